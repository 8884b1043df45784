"""State of collections in one process: encoded entries and items, records, state files of jobs, one lock.

No code of users, including their classes, runs under the lock: so user code cannot deadlock.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, NoReturn, TypeVar
from uuid import uuid4

from dstream.base.threads import contextmanager
from dstream.errors import UnsupportedError
from dstream.spi.records import Record, StateFile
from dstream.spi.source import InputSize
from dstream.spi.store import Kind, Options
from dstream.storage.base.options import Shape, check_prefix, check_record, check_write, destroyed_error
from dstream.storage.codec.collection import Codec
from dstream.storage.codec.description import described_codec
from dstream.storage.codec.pickles import Pickles, for_state

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "Changes",
    "Event",
    "ListState",
    "MapState",
    "MemoryHandle",
    "MemoryRecords",
    "MemoryRegistry",
    "MemoryStateFiles",
    "State",
]


Changes = Mapping[bytes, bytes | None]
"""New values by key; None removes an entry."""


@dataclass(slots=True, eq=False)
class State(ABC):
    """The common parts of maps and lists."""

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
        """The number of entries or items."""

    def has_committed(self, job: str, epoch: int) -> bool:
        """Return whether an epoch of a job, or a later one, was committed. Requires the lock."""
        return self.jobs.get(job, 0) >= epoch

    def settle(self, types: Any) -> None:
        """Record decided types. Requires the lock."""
        # Equal types remain the same object, since handles compare them by identity.
        if types != self.types:
            self.types = types


class Event(NamedTuple):
    """Change of an entry, with its time in milliseconds."""

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
        """The number of entries."""
        return len(self.entries)

    def look(self, keys: Collection[bytes]) -> tuple[Any, list[bytes | None]]:
        """Return the types, and the value of each key; no iterator, which could run code of users under the lock."""
        with self.held():
            return self.types, list(map(self.entries.get, keys))

    def has(self, types: Any, old: Changes) -> bool:
        """Return whether types and values are unchanged. Requires the lock."""
        return self.types is types and all(self.entries.get(key) == value for key, value in old.items())

    def apply(self, changes: Changes) -> None:
        """Apply changes. Requires the lock."""
        # One time for all, since they happen at one moment.
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
    """Items in order. Views refer to the list and its size: it grows in place, and is replaced by any other change."""

    items: list[bytes] = field(default_factory=list)
    version: int = 0

    @property
    def size(self) -> int:
        """The number of items."""
        return len(self.items)

    def replace(self, start: int, stop: int, items: list[bytes]) -> None:
        """Replace a range. Requires the lock."""
        if start == stop == len(self.items):
            self.items += items
        else:
            # A new list, since views read on in the old one.
            self.items = self.items[:start] + items + self.items[stop:]
        self.version += 1


@dataclass(slots=True, eq=False)
class MemoryRecords:
    """The records of one storage of this process."""

    _lock: threading.Lock = field(default_factory=threading.Lock)
    _records: dict[str, Record] = field(default_factory=dict)

    def read(self, name: str) -> Record | None:
        """Look a name up."""
        check_record(name)
        with self._lock:
            return self._records.get(name)

    def write(self, name: str, data: bytes, version: int) -> bool:
        """Replace a record if it has the version before this one."""
        check_write(name, data, version)
        with self._lock:
            there = self._records.get(name)
            if (0 if there is None else there.version) != version - 1:
                return False
            self._records[name] = Record(version, bytes(data))
            return True

    def names(self, prefix: str = "") -> list[str]:
        """Return the names that begin with `prefix`, sorted."""
        check_prefix(prefix)
        with self._lock:
            return sorted(name for name in self._records if name.startswith(prefix))

    def remove(self, name: str) -> None:
        """Remove a record."""
        check_record(name)
        with self._lock:
            self._records.pop(name, None)

    def forget(self, name: str) -> None:
        """Remove a record."""
        self.remove(name)


@dataclass(slots=True, eq=False)
class MemoryStateFiles:
    """The files of one job, shared by all callers in this process.

    Attributes:
        title: its name in errors.
        pickles: which pickles are loaded.
    """

    title: str
    pickles: Pickles
    _data: dict[str, tuple[bytes, float]] = field(default_factory=dict)

    def write(self, name: str, data: bytes) -> None:
        """Keep the bytes."""
        self._data[name] = data, time.time()

    def read(self, name: str, offset: int, length: int) -> bytes:
        """Return a part of a file."""
        found = self._data.get(name)
        if found is None:
            raise FileNotFoundError(name)
        return found[0][offset : offset + length]

    def remove(self, name: str) -> None:
        """Forget a file."""
        self._data.pop(name, None)

    def found(self) -> Iterator[StateFile]:
        """List all files."""
        # A copy, since steps write files while those that are not needed any more are looked for.
        return iter([StateFile(name, written_at) for name, (_, written_at) in list(self._data.items())])

    def dump(self, value: Any) -> bytes:
        """Pickle a value."""
        return for_state(self.pickles).dump(value)

    def load(self, data: bytes) -> Any:
        """Load a pickle."""
        return for_state(self.pickles).load(data)

    def __reduce__(self) -> NoReturn:
        raise UnsupportedError(
            f"{self.title} stands in the memory of this process, and other processes cannot reach it: keep it in a "
            "folder or an object store, with connect(storage=...) or JobConfig(files_at=...)"
        )


S = TypeVar("S", bound=State)


@dataclass(slots=True, eq=False)
class MemoryRegistry:
    """The collections, records and states of jobs of one storage."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    states: dict[tuple[Kind, str], State] = field(default_factory=dict)
    records: MemoryRecords = field(default_factory=MemoryRecords)
    state_files: dict[str, MemoryStateFiles] = field(default_factory=dict)


class MemoryHandle(Generic[S]):
    """The part of a store that does not depend on its kind."""

    in_process = True
    location: str | None = None

    def __init__(self, registry: MemoryRegistry, state: S, asked: Options, pickles: Pickles) -> None:
        self._registry = registry
        self._state = state
        self._asked = asked
        self._pickles = pickles
        self._known: tuple[Any, Codec] | None = None

    @property
    def name(self) -> str:
        """The name of the collection."""
        return self._state.name

    @property
    def identity(self) -> str:
        """The identity, which differs from a later one of its name."""
        return self._state.identity

    @property
    def options(self) -> Options:
        """The options of its creation, and the current types."""
        return self._state.shape.options(self._codec())

    def size(self) -> int:
        """Count the entries or items."""
        with self._state.held():
            return self._state.size

    def input_size(self) -> InputSize:
        """Return the number of entries or items; of a destroyed one, which a reader will refuse, the last one."""
        return InputSize(self._state.size, is_held=True, is_near=True)

    def destroy(self) -> None:
        """Remove the collection and its name."""
        with self._registry.lock, self._state.held():
            self._state.destroyed = True
            del self._registry.states[self._state.kind, self._state.name]

    def schema(self) -> pa.Schema:
        """Return the columns of `read_arrow`."""
        return self._codec().schema()

    def compact(self) -> None:
        """Do nothing: changes leave no old data."""
        self.size()

    def vacuum(self, older_than: float) -> int:
        """Remove nothing: splits contain their data."""
        self.size()
        return 0

    def _codec(self) -> Codec:
        with self._state.held():
            types = self._state.types
        return self._codec_of(types)

    def _codec_of(self, types: Any) -> Codec:
        known = self._known
        if known is None or known[0] is not types:
            codec = described_codec(types, self._state.kind, self._state.name, self._asked, self._pickles)
            self._known = known = (types, codec)
        return known[1]
