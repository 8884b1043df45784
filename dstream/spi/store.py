"""`Storage`: stores of maps and lists, their options and updates; `LiveEntry`: one entry in an update.

A storage finds stores by name; a `MapStore` holds entries (a cache is a map whose values carry their expiry; sets,
counters and queues are maps too), a `ListStore` holds items in order. Both speak Python values: how these become bytes
or columns is their own affair. One conformance suite, `tests/storage/conformance`, checks what every backend must hold.

What holds for all of them:

- A store lives in the storage, not in the process. Any number of handles, threads and processes may use it.
- Every operation sees all operations that returned before it started, from any process.
- What is handed out is the caller's own: changing it changes nothing in the store.
- A change is all or nothing. It is acknowledged by returning; after that a SIGKILL loses nothing.
- On a destroyed store every operation raises `CollectionDestroyedError`.
- Keys are equal as in `dstream.keys`; the first of equal keys stays, in the form that the key type gives it.
- A None among the keys or values of a map is a `NullElementError`; a key whose type has no stable encoding is an
  `UnstableKeyError` that names the type; a value that the store does not take is a `TypeError` that names it.
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
    """The mark of an entry that stays as it is; there is one such value."""

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
        key_type: what keys are, such as `str`; unset, the first commit decides. Maps and caches only.
        value_type: what values or items are, such as `int`, `list[float]` or a dataclass; unset, the first
            commit decides. Values of other types are kept too, unless `strict`.
        buckets: into how many parts the keys are divided. Maps and caches only.
        journal: keep every change with its old value. Maps and caches only.
        strict: refuse keys and values that are not exactly of their type.
        ttl: seconds that an entry lives after it was written. Caches only.
        max_idle: seconds that an entry lives after it was last used. Caches only.
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
    """Maker of new values of present entries: a `merge` of `MapStore.begin` that looks at keys.

    The keys that a job writes are those of the entries; its values do not matter. A key that has no value when the job
    is committed gets none.

    Attributes:
        fn: gets the key and the value that is there and returns the new one, which is not None. It runs again, with the
            fresh value, if the entry changed before the commit.
    """

    fn: Callable[[Any, Any], Any]


@dataclass(frozen=True, slots=True)
class Update:
    """Maker of new values of items: a `merge` of `MapStore.begin` whose result alone is stored in the map.

    What a job writes for a key is no value of the map, but anything that the store can keep meanwhile, such as a list
    of items. It does not go together with `replace`.

    Attributes:
        fn: gets the key, the value that is there, or None, and what the job writes; returns the new value, None to
            remove the entry, or `UNCHANGED`. It runs again, with the fresh value, if the entry changed before the
            commit. It may change what it gets.
    """

    fn: Callable[[Any, Any, Any], Any]


Merge = Callable[[Any, Any], Any] | Revision | Update
"""Makes one value of two, the present one first, or as the classes define; None of a function removes the entry."""


class Storage(Protocol):
    """Finds stores by kind and name. Two kinds may use one name.

    Attributes:
        url: what was connected to.
    """

    @property
    def url(self) -> str: ...

    @property
    def records(self) -> Records:
        """Small named values beside the collections, such as the records of jobs."""
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
        """Return the store of that name, made if there is none; two processes get the same one.

        Raises:
            ValueError: it exists with other options than those that are given here; the message names both.
        """
        ...

    def open(self, kind: Kind, name: str, options: Options) -> MapStore | ListStore | None:
        """Return the store of that name, or None if there is none; options as for `create`."""
        ...

    def names(self) -> list[tuple[Kind, str]]:
        """Return the kinds and names of all stores, sorted."""
        ...

    def vacuum(self, older_than: float) -> int:
        """Vacuum all stores as `Store.vacuum` does, and remove leftovers of destroyed ones; return the pieces removed.

        The mark of a destroyed store stays, for handles to it.
        """
        ...

    def close(self) -> None:
        """Release connections and caches; the stores stay. A second call does nothing."""
        ...


class Store(Protocol):
    """The common operations of maps and lists.

    Attributes:
        name: its name.
        identity: a text; a store of the same name that is made later has another one.
        options: how it was made; it contains a type that the first commit decided as soon as it is known.
        in_process: its splits hold the data themselves, since no other process could read it.
        location: the folder or URL of a table that other tools read; None if there is none.
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
        """Rewrite the data of many small changes; the contents stay the same."""
        ...

    def vacuum(self, older_than: float) -> int:
        """Remove data that no reader can need that started within `older_than` seconds; return the number of pieces."""
        ...


class MapStore(Store, Protocol):
    """The entries of a map or a cache. An absent value is None, which no entry can hold.

    It travels pickled to tasks, which may call `get_many` and `size`: on the newest state, or where `in_process`, on a
    copy of the entries as they were.
    """

    def get_many(self, keys: Sequence[Any]) -> list[Any]:
        """Return the value of each key, None where there is none, all from one state of the map."""
        ...

    def update(self, keys: Sequence[Any], change: Callable[[list[Any]], list[Any]]) -> list[Any]:
        """Replace the values of some keys by the results of `change` for the old ones, atomically.

        Args:
            keys: different keys, at least one.
            change: gets the old values (None where there is none) and returns as many: the new value, None to
                remove the entry, or `UNCHANGED`. It runs again, with fresh values, if another
                process or thread changed one of the keys meanwhile.

        Returns:
            The old values that the last run of `change` got, again as copies.
        """
        ...

    def clear(self) -> None:
        """Remove all entries, atomically."""
        ...

    def splits(self, parallelism: int) -> Sequence[EntrySplit]:
        """Divide the entries as they are now; the splits read this state, however much later.

        A redis store pins each bucket when it is read, not the whole map at once.
        """
        ...

    def journal(self, since: int) -> Iterator[JournalEvent]:
        """Give the changes after offset `since` in the order in which they happened, oldest first; 0 is the start.

        Raises:
            IllegalStateError: the map was made without `journal=True`; or, while it is read, events after `since` are
                no longer there.
        """
        ...

    def journal_end(self) -> int:
        """Return an offset that is not less than that of any change so far, and less than that of any later one.

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
        """Return how many events there are after `since`, None if to count them takes long; raise as the others."""
        ...

    def shown_offset(self, offset: int) -> str:
        """Return where in the journal an offset is, for people."""
        ...

    def journal_before(self, when: int) -> int:
        """Return the offset of the last event that was committed before a time, 0 if there is none.

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
            job: what names the job, so that it writes once however often it runs; unset, every run is a job of its own.
            epoch: its number, from 1 on.
            merge: makes one value of the value that is there and the new one; unset, the new one replaces it. A
                `Revision` makes it of the key and the value that is there, an `Update` also where there is none.
            replace: what was there before disappears in the same commit.
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
            change: takes the list and returns what to replace, or None for nothing. It runs again if the list
                changed meanwhile; an exception that it raises passes through and changes nothing.
        """
        ...

    def splits(self, parallelism: int) -> Sequence[ItemSplit]:
        """Divide the items as they are now, in order; the splits read this state, however much later."""
        ...

    def begin(self, job: str | None, epoch: int = 1, *, replace: bool = False) -> WriteJob[Writer]:
        """Prepare to append the output of a job's epoch; arguments as for a map."""
        ...


class ListView(Protocol):
    """One state of a list."""

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
    """Some of the entries of a map, as (key, value). It travels pickled and reads the store itself."""

    def read_arrow(self) -> Iterator[pa.RecordBatch]:
        """Give the entries in columns, by the schema of the store.

        Raises:
            TypeError: an entry does not fit the schema; the message names it.
        """
        ...


class ItemSplit(Split[Any], Protocol):
    """Some of the items of a list, in order. It travels pickled and reads the store itself."""

    def read_arrow(self) -> Iterator[pa.RecordBatch]:
        """Give the items in a column, by the schema of the store; errors as for entries."""
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
        """The value as it is by now: None if the map has no entry of this key."""
        value: V = self._value
        return value

    def set_value(self, value: V | None) -> V | None:
        """Give the entry another value and return the one before; None removes the entry."""
        before: V | None = self._value
        self._value = value
        self._change = value
        return before

    def __repr__(self) -> str:
        return f"LiveEntry(key={self._key!r}, value={self._value!r})"


def change_of(entry: LiveEntry[Any, Any], before: Any) -> Any:
    """Return the change of an entry with a value, or without one: its new value, None to remove it, or UNCHANGED."""
    # An entry that is not there cannot be removed.
    return UNCHANGED if before is None and entry._change is None else entry._change


MOST_BUCKETS = 2**16
"""A task that writes keeps a place for each bucket of a map, and makes a file for each that it has entries of."""

PickleMode = Literal["trusted", "restricted", "never"]
Durability = Literal["process", "power"]


@dataclass(frozen=True, slots=True)
class Settings:
    """Choices of a storage in matters that it cannot check for itself.

    Attributes:
        pickle: which pickled values are loaded: all (`"trusted"`), those of plain types and of `allowed`
            classes (`"restricted"`), or none (`"never"`). None: `"trusted"` where only this user can write,
            otherwise `"restricted"`.
        allowed: classes whose instances may be loaded in restricted mode.
        durability: what an acknowledged change survives: the death of any process, or also that of the machine.
    """

    pickle: PickleMode | None = None
    allowed: tuple[type, ...] = ()
    durability: Durability = "process"
