"""Names of fields and columns, as the user gives them."""

from __future__ import annotations

import collections
from collections.abc import Iterable
from typing import cast

__all__ = ["checked_names", "repeated"]


def checked_names(names: Iterable[str] | None, argument: str) -> tuple[str, ...] | None:
    """Return the names as a tuple; None stays None.

    Raises:
        TypeError: `names` is one str, or one of them is no str.
        ValueError: `names` is empty or holds one of them twice.
    """
    if names is None:
        return None
    if isinstance(names, str):
        raise TypeError(f"{argument} must be several names: write {argument}=[{names!r}]")
    if not isinstance(names, Iterable):
        raise TypeError(f"{argument} must be several names, not {type(names).__name__}")
    checked = tuple(names)
    if not checked:
        raise ValueError(f"{argument} is empty: leave it out or give at least one name")
    if wrong := [name for name in cast("tuple[object, ...]", checked) if not isinstance(name, str)]:
        raise TypeError(f"{argument} must hold names, not {wrong[0]!r}")
    if twice := repeated(checked):
        raise ValueError(f"{argument} holds {twice} more than once")
    return checked


def repeated(names: Iterable[str]) -> str:
    """Return those names that occur more than once, as text; empty if there are none."""
    return ", ".join(repr(name) for name, count in collections.Counter(names).items() if count > 1)
