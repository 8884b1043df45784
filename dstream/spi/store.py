"""`Storage`: stores of maps and lists, their options and updates; `LiveEntry`: one entry in an update.

A storage finds stores by name; a `MapStore` holds entries (a cache is a map whose values carry their expiry; sets,
counters and queues are maps too), a `ListStore` holds items in order. The interface of both are Python values: their
encoding as bytes or columns is private. One conformance suite, `tests/storage/conformance`, checks the contract of
every backend.

The common contract:

- A store belongs to the storage, not to the process. Any number of handles, threads and processes may use it.
- Every operation sees all operations that returned before it started, from any process.
- Returned values belong to the caller: changing them changes nothing in the store.
- A change is atomic. It is acknowledged by returning; after that a SIGKILL loses nothing.
- On a destroyed store every operation raises `CollectionDestroyedError`.
- Keys are equal as in `dstream.keys`; the first of equal keys is retained, in the format of the key type.
- A None among the keys or values of a map is a `NullElementError`; a key whose type has no stable encoding is an
  `UnstableKeyError` that names the type; an unsupported value is a `TypeError` that names it.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, Protocol, TypeVar

from dstream.base.records import record
from dstream.spi.records import Records
from dstream.spi.sink import MapWriter, WriteJob, Writer
from dstream.spi.source import Split
from dstream.values.entries import JournalEvent

if TYPE_CHECKING:
    import pyarrow as pa

    from dstream.spi.records import StateFiles

__all__ = [
    "MOST_BUCKETS",
    "UNCHANGED",
    "Assignment",
    "Durability",
    "EntrySplit",
    "ItemSplit",
    "Kind",
    "ListStore",
    "ListView",
    "LiveEntry",
    "MapStore",
    "Merge",
    "Options",
    "PickleMode",
    "Revision",
    "Settings",
    "Splice",
    "Storage",
    "Unchanged",
    "Update",
    "change_of",
]


Kind = Literal["map", "list", "cache", "set", "counter", "queue"]
"""The kinds of collections, which `dstream.collections` describes: but for lists, all of them are stored as maps."""


class Unchanged(enum.Enum):
    """Marker of an unchanged entry; a singleton."""

    UNCHANGED = "UNCHANGED"


UNCHANGED = Unchanged.UNCHANGED


@record
class Assignment:
    """A change for `MapStore.update` that needs no old values, neither to decide on nor as the result.

    A store need not read them: it may return None for each.

    Attributes:
        values: one for each key, None to remove the entry.
    """

    values: list[Any]

    def __call__(self, old: list[Any]) -> list[Any]:
        return self.values


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a collection. None leaves a choice to the store, or to the store that exists already.

    Attributes:
        key_type: the type of the keys, such as `str`; unset, the first commit decides. Maps and caches only.
        value_type: the type of the values or items, such as `int`, `list[float]` or a dataclass; unset, the first
            commit decides. Values of other types are stored too, unless `strict`.
        buckets: the number of parts into which the keys are divided. Maps and caches only.
        journal: record every change with its old value. Maps and caches only.
        strict: refuse keys and values that are not exactly of their type.
        ttl: seconds until an entry expires after it was written. Caches only.
        max_idle: seconds until an entry expires after it was last used. Caches only.
    """

    key_type: Any = None
    value_type: Any = None
    buckets: int | None = None
    journal: bool | None = None
    strict: bool | None = None
    ttl: float | None = None
    max_idle: float | None = None


@record
class Revision:
    """Function of new values of existing entries: a `merge` of `MapStore.begin` that receives the key.

    The keys that a job writes select the entries; its values are ignored. A key without a value at the time of the
    commit gets none.

    Attributes:
        fn: receives the key and the current value and returns the new value, which is not None. It runs again, with the
            fresh value, if the entry changed before the commit.
    """

    fn: Callable[[Any, Any], Any]


@dataclass(frozen=True, slots=True)
class Update:
    """Function of new values from items: a `merge` of `MapStore.begin` whose result alone is stored in the map.

    What a job writes for a key is not a value of the map, but any data that the store can save until the commit, such
    as a list of items. It excludes `replace`.

    Attributes:
        fn: receives the key, the current value, or None, and what the job writes; returns the new value, None to remove
            the entry, or `UNCHANGED`. It runs again, with the fresh value, if the entry changed before the commit. It
            may change its arguments.
    """

    fn: Callable[[Any, Any, Any], Any]


Merge = Callable[[Any, Any], Any] | Revision | Update
"""Merge of two values, the current value first, or as the classes define; a function removes an entry with None."""


class Storage(Protocol):
    """Finds stores by kind and name. Two kinds may use one name.

    Attributes:
        url: what was connected to.
    """

    @property
    def url(self) -> str: ...

    @property
    def records(self) -> Records:
        """Small named values next to the collections, such as the records of jobs."""
        ...

    def load_pickle(self, data: bytes) -> Any:
        """Load a pickle of a record, as far as pickled values of this storage are trusted, and state.

        Raises:
            TypeError: they are not.
        """
        ...

    def state_files(self, job: str) -> StateFiles:
        """Return the files of the state of a job. They are sent to tasks, but for those in the memory of one process.

        Args:
            job: its id.

        Raises:
            TypeError: state is pickled, and no pickle of this storage is loaded.
            UnsupportedError: this storage has no files; the message names another one that can store them.
        """
        ...

    def create(self, kind: Kind, name: str, options: Options) -> MapStore | ListStore:
        """Return the store of that name, created if it does not exist; two processes get the same store.

        Raises:
            ValueError: it exists with options other than `options`; the message names both.
        """
        ...

    def open(self, kind: Kind, name: str, options: Options) -> MapStore | ListStore | None:
        """Return the store of that name, or None if it does not exist; options as for `create`."""
        ...

    def names(self) -> list[tuple[Kind, str]]:
        """Return the kinds and names of all stores, sorted."""
        ...

    def vacuum(self, older_than: float) -> int:
        """Vacuum all stores as `Store.vacuum` does, and remove leftovers of destroyed ones; return the pieces removed.

        The tombstone of a destroyed store remains, for handles to it.
        """
        ...

    def close(self) -> None:
        """Release connections and caches; the stores remain. A second call does nothing."""
        ...


class Store(Protocol):
    """The common operations of maps and lists.

    Attributes:
        name: its name.
        identity: a string; a store of the same name that is created later has another one.
        options: its options; they contain a type that the first commit decided as soon as it is known.
        in_process: its splits contain the data, since no other process could read it.
        location: the folder or URL of a table that other tools can read; None if there is none.
    """

    @property
    def name(self) -> str: ...

    @property
    def identity(self) -> str: ...

    @property
    def options(self) -> Options: ...

    @property
    def in_process(self) -> bool: ...

    @property
    def location(self) -> str | None: ...

    def size(self) -> int:
        """Return the number of entries or items."""
        ...

    def destroy(self) -> None:
        """Remove the store and its name, atomically; a second call raises `CollectionDestroyedError`."""
        ...

    def schema(self) -> pa.Schema:
        """Return the columns of `read_arrow`: `key` and `value`, or `value` alone for a list.

        Raises:
            UnsupportedError: keys or values are not of one type that Arrow has.
        """
        ...

    def compact(self) -> None:
        """Rewrite the data of many small changes; the contents are unchanged."""
        ...

    def vacuum(self, older_than: float) -> int:
        """Remove data that no reader can need that started within `older_than` seconds; return the number of pieces."""
        ...


class MapStore(Store, Protocol):
    """The entries of a map or a cache. An absent value is None, which no entry can have.

    It travels pickled to tasks, which may call `get_many` and `size`: on the newest state, or where `in_process`, on a
    copy of the entries as they were.
    """

    def get_many(self, keys: Sequence[Any]) -> list[Any]:
        """Return the value of each key, None for absent keys, from one consistent state of the map."""
        ...

    def update(self, keys: Sequence[Any], change: Callable[[list[Any]], list[Any]]) -> list[Any]:
        """Replace the values of `keys` by the results of `change` for the old values, atomically.

        Args:
            keys: different keys, at least one.
            change: receives the old values (None if absent) and returns a list of the same length: the new value, None
                to remove the entry, or `UNCHANGED`. It runs again, with fresh values, if another process or thread
                changed one of the keys meanwhile.

        Returns:
            The old values that the last run of `change` got, again as copies.
        """
        ...

    def clear(self) -> None:
        """Remove all entries, atomically."""
        ...

    def splits(self, parallelism: int) -> Sequence[EntrySplit]:
        """Divide the entries as they are now; the splits read this state, however much later.

        A redis store pins each bucket when it is read, not the map as a whole.
        """
        ...

    def journal(self, since: int) -> Iterator[JournalEvent]:
        """Yield the changes after offset `since` in the order in which they happened, oldest first; 0 is the start.

        Raises:
            IllegalStateError: the map was created without `journal=True`; or, during reading, events after `since` were
                removed.
        """
        ...

    def journal_end(self) -> int:
        """Return an offset that is not less than the offset of any change so far, and less than any later offset.

        Raises:
            IllegalStateError: the map was made without `journal=True`.
        """
        ...

    def journal_reach(self, since: int, most: int | None = None) -> int:
        """Return the offset of the last event, or if that is earlier of the `most`-th after `since`; or `since` itself.

        Raises:
            IllegalStateError: the map was made without `journal=True`.
        """
        ...

    def journal_left(self, since: int) -> int | None:
        """Return the number of events after `since`, None if counting them is slow; raise as `journal` does."""
        ...

    def shown_offset(self, offset: int) -> str:
        """Return where in the journal an offset is, for people."""
        ...

    def journal_before(self, when: int) -> int:
        """Return the offset of the last event that was committed before `when`, 0 if there is none.

        Args:
            when: milliseconds since 1970.

        Raises:
            IllegalStateError: the map was made without `journal=True`.
        """
        ...

    def begin(
        self,
        job: str | None,
        epoch: int = 1,
        *,
        merge: Merge | None = None,
        replace: bool = False,
    ) -> WriteJob[MapWriter]:
        """Prepare to write an epoch of a job, as `dstream.spi.sink` describes.

        Args:
            job: the name of the job, which writes once for any number of runs; unset, every run is a new job.
            epoch: its number, from 1 on.
            merge: merges the current value with the new value; unset, the new value replaces it. A `Revision` takes the
                key and the current value, an `Update` also runs for absent keys.
            replace: all previous entries are removed in the same commit.
        """
        ...


class ListStore(Store, Protocol):
    """Items in order. None is an item like any other."""

    def read(self, start: int, stop: int) -> list[Any]:
        """Return the items from `start` up to, not including, `stop`; fewer at the end. Neither is negative."""
        ...

    def extend(self, items: Iterable[Any]) -> None:
        """Append items, all in one commit."""
        ...

    def edit(self, change: Callable[[ListView], Splice | None]) -> None:
        """Replace a stretch of items by others, atomically.

        Args:
            change: takes the list and returns the replacement, or None for no change. It runs again if the list changed
                meanwhile; an exception that it raises propagates and changes nothing.
        """
        ...

    def splits(self, parallelism: int) -> Sequence[ItemSplit]:
        """Divide the items as they are now, in order; the splits read this state, however much later."""
        ...

    def begin(self, job: str | None, epoch: int = 1, *, replace: bool = False) -> WriteJob[Writer]:
        """Prepare to append the output of a job's epoch; arguments as for a map."""
        ...


class ListView(Protocol):
    """Consistent view of a list."""

    @property
    def size(self) -> int: ...

    def read(self, start: int, stop: int) -> list[Any]:
        """Return the items from `start` up to, not including, `stop`; fewer at the end."""
        ...


class Splice(NamedTuple):
    """The items from `start` up to, not including, `stop` replaced by `items`; `0 <= start <= stop <= size`."""

    start: int
    stop: int
    items: Sequence[Any]


class EntrySplit(Split[tuple[Any, Any]], Protocol):
    """Part of the entries of a map, as (key, value). It is sent pickled and reads the store itself."""

    def read_arrow(self) -> Iterator[pa.RecordBatch]:
        """Yield the entries in columns, by the schema of the store.

        Raises:
            TypeError: an entry does not fit the schema; the message names it.
        """
        ...


class ItemSplit(Split[Any], Protocol):
    """Part of the items of a list, in order. It is sent pickled and reads the store itself."""

    def read_arrow(self) -> Iterator[pa.RecordBatch]:
        """Yield the items in a column, by the schema of the store; errors as for entries."""
        ...


K = TypeVar("K")
V = TypeVar("V")


class LiveEntry(Generic[K, V]):
    """The entry that the functions of `execute_on_key`, `execute_on_entries` and `processing_imap` receive.

    Changing the value in place changes nothing in the map: `set_value` does.
    """

    __slots__ = ("_change", "_key", "_value")

    def __init__(self, key: K, value: Any) -> None:
        self._key = key
        self._value: Any = value
        self._change: Any = UNCHANGED

    @property
    def key(self) -> K:
        """The key."""
        return self._key

    @property
    def value(self) -> V:
        """The value with its changes: None if the map has no entry of this key."""
        value: V = self._value
        return value

    def set_value(self, value: V | None) -> V | None:
        """Replace the value of the entry and return the previous value; None removes the entry."""
        before: V | None = self._value
        self._value = value
        self._change = value
        return before

    def __repr__(self) -> str:
        return f"LiveEntry(key={self._key!r}, value={self._value!r})"


def change_of(entry: LiveEntry[Any, Any], before: Any) -> Any:
    """Return the change of an entry with a value, or without one: its new value, None to remove it, or UNCHANGED."""
    # An absent entry cannot be removed.
    return UNCHANGED if before is None and entry._change is None else entry._change


MOST_BUCKETS = 2**16
"""A task that writes has a buffer for each bucket of a map, and writes a file for each bucket with entries."""

PickleMode = Literal["trusted", "restricted", "never"]
Durability = Literal["process", "power"]


@dataclass(frozen=True, slots=True)
class Settings:
    """Choices of a storage in matters that it cannot check for itself.

    Attributes:
        pickle: which pickled values are loaded: all (`"trusted"`), only plain types and `allowed` classes
            (`"restricted"`), or none (`"never"`). None: `"trusted"` where only this user can write, otherwise
            `"restricted"`.
        allowed: classes whose instances may be loaded in restricted mode.
        durability: what an acknowledged change survives: the death of any process, or also of the machine.
    """

    pickle: PickleMode | None = None
    allowed: tuple[type, ...] = ()
    durability: Durability = "process"
