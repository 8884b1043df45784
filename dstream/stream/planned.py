"""The operations that are named and not there yet: asking for one says so."""

from __future__ import annotations

from typing import NoReturn

from dstream.errors import UnsupportedError

__all__ = ["PLANNED", "refuse"]

PLANNED = frozenset(
    {
        "apply",
        "cache",
        "chunked",
        "cogroup",
        "enumerate",
        "flatten",
        "gather",
        "join",
        "key_by",
        "pairwise",
        "partition_by",
        "pluck",
        "sample",
        "starmap",
        "to_arrow",
        "to_df",
        "to_pandas",
        "top",
        "union",
        "zip_with_index",
    }
)


def refuse(name: str) -> NoReturn:
    """Say that an operation is not there yet.

    Raises:
        UnsupportedError: always.
    """
    raise UnsupportedError(
        f".{name}() does not exist yet; docs/limits.md lists what is missing and what to use instead"
    )
