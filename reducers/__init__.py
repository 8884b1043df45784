"""Where a stream's result goes when it becomes a distributed collection.

The contract stands in `dstream.spi.reducer`. There is no reducer yet: asking for one by name says so.
"""

from __future__ import annotations

from typing import NoReturn

from dstream.errors import UnsupportedError

__all__: list[str] = []

_PLANNED = frozenset(
    {
        "grouping_by_to_icache",
        "grouping_by_to_imap",
        "replacing",
        "to_icache",
        "to_ilist",
        "to_imap",
    }
)


def __getattr__(name: str) -> NoReturn:
    if name in _PLANNED:
        raise UnsupportedError(f"reducers.{name} does not exist yet: it comes with the distributed collections")
    raise AttributeError(f"module 'reducers' has no attribute {name!r}")
