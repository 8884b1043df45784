"""The one copy of each collection: encoded bytes in a dict or a list, under one lock.

No code of users, their classes included, runs while the lock is held: so nothing that they do can deadlock.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import uuid4

from dstream.spi.store import Kind
from dstream.storage.shape import Shape
from dstream.storage.vanished import destroyed_error
from dstream.values.contexts import contextmanager

__all__ = ["Changes", "Event", "ListState", "MapState", "State"]

Changes = Mapping[bytes, bytes | None]
"""New values by key; None removes an entry."""


@dataclass(slots=True, eq=False)
class State(ABC):
    """What maps and lists have in common."""

    kind: Kind
    name: str
    shape: Shape
    types: Any
    """The codec as JSON; another object as soon as a type is decided."""
    lock: threading.Lock = field(default_factory=threading.Lock)
    jobs: dict[str, int] = field(default_factory=dict)
    """The last epoch that was committed of each job."""
    identity: str = field(default_factory=lambda: uuid4().hex)
    destroyed: bool = False

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the lock.

        Raises:
            CollectionDestroyedError: the collection is no more.
        """
        with self.lock:
            if self.destroyed:
                raise destroyed_error(f"{self.kind} {self.name!r}")
            yield

    @property
    @abstractmethod
    def size(self) -> int:
        """How many entries or items there are."""

    def has_committed(self, job: str, epoch: int) -> bool:
        """Say whether an epoch of a job, or a later one, was committed, the lock being held."""
        return self.jobs.get(job, 0) >= epoch

    def settle(self, types: Any) -> None:
        """Write down types that were decided, the lock being held."""
        if types != self.types:
            self.types = types


class Event(NamedTuple):
    """One change of one entry, and when it was made, in milliseconds."""

    key: bytes
    old: bytes | None
    new: bytes | None
    timestamp: int


@dataclass(slots=True, eq=False)
class MapState(State):
    """Entries by encoded key, and every change in the order in which it happened."""

    entries: dict[bytes, bytes] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)

    @property
    def size(self) -> int:
        """How many entries there are."""
        return len(self.entries)

    def look(self, keys: Iterable[bytes]) -> tuple[Any, list[bytes | None]]:
        """Return the types, and the value of each key."""
        with self.held():
            return self.types, list(map(self.entries.get, keys))

    def has(self, types: Any, old: Changes) -> bool:
        """Say whether types and values are still these, the lock being held."""
        return self.types is types and all(self.entries.get(key) == value for key, value in old.items())

    def apply(self, changes: Changes) -> None:
        """Make changes, the lock being held."""
        now = int(time.time() * 1000)
        for key, new in changes.items():
            old = self.entries.get(key)
            if new is not None:
                self.entries[key] = new
            elif old is not None:
                del self.entries[key]
            if self.shape.journal and not (old is None and new is None):
                self.events.append(Event(key, old, new, now))


@dataclass(slots=True, eq=False)
class ListState(State):
    """Items in order. Views hold the list and its size: it grows in place, and is replaced by any other change."""

    items: list[bytes] = field(default_factory=list)
    version: int = 0

    @property
    def size(self) -> int:
        """How many items there are."""
        return len(self.items)

    def replace(self, start: int, stop: int, items: list[bytes]) -> None:
        """Replace a stretch, the lock being held."""
        if start == stop == len(self.items):
            self.items += items
        else:
            self.items = self.items[:start] + items + self.items[stop:]
        self.version += 1
