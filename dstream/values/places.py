"""Other storages than that of the context, as users name them."""

from __future__ import annotations

import os
from typing import Any, TypeAlias

from dstream.values.secrets import shown_url

__all__ = ["SQLITE", "Place", "checked_place", "shown_place"]

SQLITE = "sqlite:"
"""Stands before the path of a storage that is a file."""

Place: TypeAlias = "str | os.PathLike[str]"


def checked_place(storage: Any) -> str | None:
    """Return the URL or the absolute path of a storage; None stays None.

    Raises:
        TypeError: it is neither a str nor a path.
        ValueError: it is empty, or a storage that nobody else sees.
    """
    place = os.fspath(storage) if isinstance(storage, os.PathLike) else storage
    if place is None:
        return None
    if not isinstance(place, str):
        raise TypeError(f"storage must be a folder or a URL, not {type(place).__name__}")
    if not place:
        raise ValueError("storage must not be empty")
    if place.startswith("memory:"):
        raise ValueError("storage must be one that can be opened again, and memory: is that of one context")
    if "://" in place:
        return place
    scheme = SQLITE if place.startswith(SQLITE) else ""
    return scheme + os.path.abspath(os.path.expanduser(place.removeprefix(scheme)))


def shown_place(storage: str | None) -> str:
    """Return the argument as it is shown behind others; nothing for None."""
    return "" if storage is None else f", storage={shown_url(storage)!r}"
