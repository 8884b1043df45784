"""`Pin`: a state of a collection that readers can still see after others have changed it.

`sqlite_schema` says how a change keeps what pins need. A pin that never left its process is dropped with the last split
that holds it; one that traveled stays for a day, since nobody knows who reads it.
"""

from __future__ import annotations

import sqlite3
import time
import weakref
from collections import defaultdict, deque
from dataclasses import dataclass
from typing import Any

from dstream.storage.sqlite.sqlite_collection import KEEP_SECONDS, Collection
from dstream.storage.sqlite.sqlite_database import Place

__all__ = ["Pin", "pinned", "removed_pins"]

_dropped: dict[Place, deque[int]] = defaultdict(deque)
"""Pins that nobody here needs any more. The next one who pins removes them: no finalizer talks to a database."""


@dataclass(eq=False)
class Pin:
    """A number in `dstream_pins`."""

    number: int

    def __post_init__(self) -> None:
        self._at_end: Any = None

    def drop_at_end(self, place: Place) -> None:
        """Drop the pin when nobody in this process holds it any more."""
        self._at_end = weakref.finalize(self, _dropped[place].append, self.number)
        self._at_end.atexit = False

    def __reduce__(self) -> tuple[Any, ...]:
        if self._at_end is not None:
            self._at_end.detach()
        return Pin, (self.number,)


def pinned(connection: sqlite3.Connection, collection: Collection) -> Pin:
    """Pin the state of a collection inside a transaction, and remove pins that nobody needs."""
    dropped = _dropped[collection.place]
    while dropped:
        connection.execute("DELETE FROM dstream_pins WHERE pin = ?", (dropped.popleft(),))
    removed_pins(connection, collection.number, time.time() - KEEP_SECONDS)
    made = connection.execute(
        "INSERT INTO dstream_pins (collection, at) VALUES (?, ?)", (collection.number, time.time())
    )
    pin = Pin(made.lastrowid or 0)
    pin.drop_at_end(collection.place)
    return pin


def removed_pins(connection: sqlite3.Connection, number: int, before: float) -> int:
    """Remove the pins of a collection that are older, inside a transaction, and the values that no other one needs."""
    found = connection.execute("DELETE FROM dstream_pins WHERE collection = ? AND at <= ?", (number, before))
    connection.execute(
        "DELETE FROM dstream_undo WHERE collection = ? "
        "AND pin < coalesce((SELECT min(pin) FROM dstream_pins WHERE collection = ?), 9223372036854775807)",
        (number, number),
    )
    return found.rowcount
