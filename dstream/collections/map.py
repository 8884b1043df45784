"""`IStreamMap`: a distributed map that works like a dict and has Jet's names too, and `replace_all`."""

from __future__ import annotations

import operator
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Literal, TypeVar, overload

from more_itertools import chunked

from dstream.arguments import count, optional_predicate, optional_running, running_function, seconds
from dstream.base.records import record
from dstream.base.showing import add_note, shown
from dstream.collections.indexes import Indexes
from dstream.collections.map_queries import CHUNK
from dstream.collections.map_updates import ChangingMap, Processing, noting
from dstream.collections.sources import EntrySource
from dstream.errors import IllegalStateError, NullElementError
from dstream.spi import Collector, Grouped
from dstream.spi.sink import Collections, MapWriter, WriteJob
from dstream.spi.store import Kind, LiveEntry, MapStore, Revision
from dstream.stream.objects import Stream, read
from dstream.values import Entry, where
from dstream.values.entries import JournalEvent
from dstream.values.user_functions import shown_function

__all__ = ["IStreamMap", "Replacing"]


@record(repr=False)
class Replacing:
    """Sink that replaces the values of existing entries whose keys are in the stream.

    Attributes:
        store: the store of the map.
        title: the name of the map in errors.
        fn: returns the new value for the key and the stored value at the time of the write.
    """

    store: MapStore
    title: str
    fn: Callable[[Any, Any], Any]

    job = None

    @property
    def label(self) -> str:
        """The call."""
        return f"replace_all({shown_function(self.fn)})"

    @property
    def collector(self) -> Grouped:
        """Return a collector of the value of each entry; a map has each key once."""
        return Grouped(operator.attrgetter("key"), Collector(_nothing, _value_of, _later))

    def open(self, context: Collections) -> Replacing:
        """Return itself: it has its store already."""
        return self

    def begin(self, job: str | None, epoch: int = 1) -> WriteJob[MapWriter]:
        """Begin to write into the store."""
        return self.store.begin(job, epoch, merge=Revision(_Replaced(self.title, self.fn)))

    def result(self) -> None:
        """Return nothing."""


def _nothing() -> None:
    """Replace the value of a key before its entry arrives."""


def _value_of(_: Any, entry: Any) -> Any:
    return entry.value


def _later(left: Any, right: Any) -> Any:
    return right


@record
class _Replaced:
    """Call of the user's function, on the workers, or in the driver for entries that changed meanwhile."""

    title: str
    fn: Callable[[Any, Any], Any]

    def __call__(self, key: Any, value: Any) -> Any:
        place = f"replace_all() of {self.title}, {shown_function(self.fn)}, on the key {shown(key)}"
        try:
            new = self.fn(key, value)
        except Exception as error:
            add_note(error, f"in {place}; nothing was changed")
            raise
        if new is None:
            raise NullElementError(
                f"{place}: it gave None, and a map holds no None values; nothing was changed. "
                "execute_on_entries(lambda entry: entry.set_value(None), predicate) removes entries"
            )
        return new


K = TypeVar("K")
V = TypeVar("V")
R = TypeVar("R")

_VALUE: Callable[[Any], Any] = operator.attrgetter("value")


class IStreamMap(ChangingMap[K, V]):
    """A map in a storage: `dict` and Jet's `IMap` in one. Get one with `Context.get_map`.

    Keys are equal as in a dict, and every NaN is one key. Neither keys nor values may be None. Every
    operation on one key is atomic, for all threads and processes; `update` and `put_all` are one commit.

    Differences from a dict: there is no insertion order; returned values are copies, so changing a value in place does
    not change the map (`execute_on_key` does); iteration sees the state at its start, regardless of concurrent writes.
    `dict(m)` looks up key by key, `m.copy()` does not.

    Example:
        >>> with connect(engine="local", storage="memory:") as ctx:
        ...     ages = ctx.get_map("ages")
        ...     ages.update(Ada=36, Grace=85)
        ...     ages.put("Ada", 37)
        ...     ages.stream(lambda entry: entry.value > 40).map(lambda entry: entry.key).to_list()
        36
        ['Grace']
    """

    _kind: ClassVar[Kind] = "map"
    _indexes: Indexes | None = None

    # Functions that are sent to the entries

    def execute_on_key(self, key: K, fn: Callable[[LiveEntry[K, V | None]], R]) -> R:
        """Call `fn` to read and change one entry, atomically; return its result.

        Args:
            key: the key; it need not exist.
            fn: receives an entry with `key`, `value` (None if absent) and `set_value(value)`; `set_value(None)` removes
                the entry. It runs again, with the fresh value, if another thread or process changed the entry
                meanwhile, so it should have no side effects. An exception propagates and changes nothing.

        Example:
            >>> with connect(engine="local", storage="memory:") as ctx:
            ...     counts = ctx.get_map("counts")
            ...     counts["whale"] = 1
            ...     counts.execute_on_key("whale", lambda entry: entry.set_value((entry.value or 0) + 1))
            ...     counts["whale"]
            1
            2
        """
        known = self._key(key)
        work = Processing(self._place("execute_on_key"), [known], running_function(fn, "fn"))
        self.store.update([known], work.each)
        return work.results[known]

    def execute_on_entries(
        self, fn: Callable[[LiveEntry[K, V]], R], predicate: Callable[[Entry[K, V]], object] | None = None
    ) -> dict[K, R]:
        """Call `fn` to read and change every entry, or those that satisfy `predicate`; return its results by key.

        Each entry is changed atomically, the map as a whole is not: entries are visited a thousand at a time, and after
        an exception earlier entries remain changed. Entries that are added meanwhile are not visited. Both functions
        may run again, as in `execute_on_key`.

        Example:
            >>> with connect(engine="local", storage="memory:") as ctx:
            ...     ages = ctx.get_map("ages")
            ...     ages.update(Ada=36, Grace=85)
            ...     ages.execute_on_entries(lambda entry: entry.set_value(entry.value + 1), lambda e: e.value < 40)
            ...     ages["Ada"]
            {'Ada': 36}
            37
        """
        running_function(fn, "fn"), optional_predicate(predicate)
        place, results = self._place("execute_on_entries"), {}
        for chunk in chunked(self._pairs(), CHUNK):
            keys = [key for key, value in chunk if predicate is None or _satisfies(predicate, key, value, place)]
            # Selected from one consistent state: `each_present` evaluates the predicate again for entries that it
            # changes.
            if keys:
                work = Processing(place, keys, fn, predicate)
                self.store.update(keys, work.each_present)
                results.update(work.results)
        return results

    def replace_all(self, fn: Callable[[K, V], V]) -> None:
        """Replace the value of every entry by the result of `fn` for its key and its value, all in one commit.

        The workers run it in parallel, and every entry is shuffled once. The change is atomic for readers, and a
        failure changes nothing. Entries that are added meanwhile are not changed, and entries that are removed remain
        absent. `fn` runs again, with the fresh value, for entries that change meanwhile, so it should have no side
        effects.

        Raises:
            NullElementError: `fn` returned None; the message names the key.

        Example:
            >>> with connect(engine="local", storage="memory:") as ctx:
            ...     ages = ctx.get_map("ages")
            ...     ages.update(Ada=36, Grace=85)
            ...     ages.replace_all(lambda name, age: age + 1)
            ...     sorted(ages.values())
            [37, 86]
        """
        sink = Replacing(self.store, f"{self._kind} {self.name!r}", running_function(fn, "fn"))
        self.stream().collect(sink)

    # Streams, tables, changes

    @property
    def source(self) -> EntrySource:
        """The entries as a source, which `stream()` reads."""
        return EntrySource(self.store)

    @overload
    def stream(self, predicate: Callable[[Entry[K, V]], object] | None = None) -> Stream[Entry[K, V]]: ...

    @overload
    def stream(
        self, predicate: Callable[[Entry[K, V]], object] | None, projection: Callable[[Entry[K, V]], R | None]
    ) -> Stream[R]: ...

    @overload
    def stream(self, *, projection: Callable[[Entry[K, V]], R | None]) -> Stream[R]: ...

    def stream(self, predicate: Any = None, projection: Any = None) -> Stream[Any]:
        """Return an unordered stream of the entries; workers read them from the storage.

        The entries are the contents at the time of each terminal operation, regardless of concurrent writes.

        Args:
            predicate: selects entries; it runs where the data is read.
            projection: returns the item of each entry, also where the data is read; an entry for which it returns None
                is dropped.

        Example:
            >>> with connect(engine="local", storage="memory:") as ctx:
            ...     ages = ctx.get_map("ages")
            ...     ages.update(Ada=36, Grace=85)
            ...     ages.stream(projection=lambda entry: entry.key[0]).sorted().to_list()
            ['A', 'G']
        """
        return self._sieved("stream", optional_predicate(predicate), projection)

    @overload
    def select(self, predicate: Callable[[Entry[K, V]], object]) -> list[V]: ...

    @overload
    def select(
        self, predicate: Callable[[Entry[K, V]], object], projection: Callable[[Entry[K, V]], R | None]
    ) -> list[R]: ...

    def select(self, predicate: Any, projection: Any = None) -> list[Any]:
        """Return the values of the entries that satisfy `predicate`, or the result of `projection` for each.

        They have no order, belong to one consistent state, and must fit into the caller's memory. Workers read all
        entries, in parallel, unless an index of `add_index` finds the matching entries.

        Args:
            predicate: such as `where("country") == "NO"`, or a function of an entry; it runs where the data is read.
            projection: returns the result of each entry, also where the data is read; an entry for which it returns
                None is dropped.

        Example:
            >>> with connect(engine="local", storage="memory:") as ctx:
            ...     people = ctx.get_map("people")
            ...     people.update(Ada={"born": 1815}, Grace={"born": 1906})
            ...     people.select(where("born").between(1800, 1899))
            ...     people.select(where("born") > 1900, lambda entry: entry.key)
            [{'born': 1815}]
            ['Grace']
        """
        running_function(predicate, "predicate"), optional_running(projection, "projection")
        self._runtime.check_open()
        known = None if self._indexes is None else self._indexes.look_up(predicate)
        if known is None:
            return self._sieved("select", predicate, projection or _VALUE).to_list()
        place = self._place("select")
        # An index finds the entries that may satisfy it, including false positives.
        chosen = [entry for entry in known if _satisfies(predicate, *entry, place)]
        made = (_projected(projection or _VALUE, entry, place) for entry in chosen)
        return [each for each in made if each is not None]

    def add_index(self, field: str, kind: Literal["hash", "sorted"] = "hash") -> None:
        """Index a field of the values: `select` of this handle finds entries by it without reading the others.

        The index is in the memory of this process. It is built by reading all entries, in this call, and is updated
        from the journal at each look-up, so it contains all writes, of every process and kind, as soon as they are
        committed. `select` returns the same with and without it, except that a condition that raises for an entry, such
        as a comparison of strings and numbers, is not evaluated for entries that the index excludes. It is used for
        conditions of `where` on the field, alone or in `&`, and in `|` if each part has an index; for plain values,
        such as numbers, strings, dates, enum members.

        Costs a few hundred bytes for each entry, and at a look-up the entries that are found.

        Args:
            field: as `where` takes it.
            kind: `"hash"` for `==`, `is_in` and `is_none`; `"sorted"` also for `<`, `<=`, `>`, `>=` and `between`.

        Raises:
            IllegalStateError: the map was made without `journal=True`.

        Example:
            >>> with connect(engine="local", storage="memory:") as ctx:
            ...     people = ctx.get_map("people", journal=True)
            ...     people.update(Ada={"born": 1815}, Grace={"born": 1906})
            ...     people.add_index("born", "sorted")
            ...     people["Alan"] = {"born": 1912}
            ...     people.select(where("born") > 1910)
            [{'born': 1912}]
        """
        where(field)
        if kind not in ("hash", "sorted"):
            raise ValueError(f'kind must be "hash" or "sorted", not {kind!r}')
        self._refuse_without_journal()
        if self._indexes is None:
            self._indexes = Indexes(self.store)
        self._indexes.add(field, kind)

    def _sieved(self, name: str, predicate: Any, projection: Any) -> Stream[Any]:
        optional_running(projection, "projection")
        functions = (("predicate", predicate), ("projection", projection))
        shown_arguments = ", ".join(f"{name}={shown_function(fn)}" for name, fn in functions if fn is not None)
        source = EntrySource(self.store, predicate, projection)
        return read(source, f"get_{self._kind}({self.name!r}).{name}({shown_arguments})", self._runtime)

    def journal(self, since: int = 0) -> Iterator[JournalEvent]:
        """Yield the changes after offset `since`, the oldest first; 0 is the start.

        Raises:
            IllegalStateError: the map was made without `journal=True`.

        Example:
            >>> with connect(engine="local", storage="memory:") as ctx:
            ...     ages = ctx.get_map("ages", journal=True)
            ...     ages["Ada"] = 36
            ...     [(event.kind, event.key, event.new_value) for event in ages.journal()]
            [('ADDED', 'Ada', 36)]
        """
        first = count(since, "since")
        self._refuse_without_journal()
        return self._while_open(self.store.journal(first))

    def watch(
        self, since: int | None = None, *, every: float = 0.1, timeout: float | None = None
    ) -> Iterator[JournalEvent]:
        """Yield the changes as they happen, the oldest first, in a loop that waits for new changes: `break` ends it.

        Changes by all processes are yielded, without gaps, in the order in which they happened. To resume later, store
        the `offset` of the last event and pass it as `since`.

        Args:
            since: begin after this offset, 0 for the start; unset, with changes after the call.
            every: seconds between two polls of the storage while nothing happens.
            timeout: the seconds without a change after which the loop ends; unset, it waits for ever.

        Raises:
            IllegalStateError: the map was created without `journal=True`. In the loop: a vacuum has removed events that
                were not yielded yet; the context was closed.
            ValueError: `since` is later than the last change, so it is an offset of another map.

        Example:
            >>> with connect(engine="local", storage="memory:") as ctx:
            ...     ages = ctx.get_map("ages", journal=True)
            ...     changes = ages.watch()
            ...     ages.update(Ada=36, Grace=85)
            ...     for event in changes:
            ...         print(event.kind, event.key)
            ...         if event.key == "Grace":
            ...             break
            ADDED Ada
            ADDED Grace
        """
        seconds(every, "every"), timeout is None or seconds(timeout, "timeout")
        self._refuse_without_journal()
        end = self.store.journal_end()
        first = end if since is None else count(since, "since")
        if first > end:
            raise ValueError(
                f"since={first} is later than the last change of {self._kind} {self.name!r}: take the offset of one of "
                "its own events"
            )
        return self._watched(first, every, timeout)

    def _watched(self, since: int, every: float, timeout: float | None) -> Iterator[JournalEvent]:
        changed = time.monotonic()
        while True:
            # Entries up to this offset are read below, so the next poll need not begin before it.
            end = self.store.journal_end()
            for event in self.journal(since):
                yield event
                since, changed = event.offset, time.monotonic()
            since = max(since, end)
            left = threading.TIMEOUT_MAX if timeout is None else changed + timeout - time.monotonic()
            if left <= 0:
                return
            time.sleep(min(every, left, threading.TIMEOUT_MAX))  # `sleep` raises an OverflowError for longer times.

    def _refuse_without_journal(self) -> None:
        if not self.options.journal:
            raise IllegalStateError(
                f"{self._kind} {self.name!r} keeps no journal; get_{self._kind}({self.name!r}, journal=True) makes one "
                "that does"
            )


def _satisfies(predicate: Callable[[Any], object], key: Any, value: Any, place: str) -> bool:
    with noting(f"{place}, {shown_function(predicate)}", key):
        return bool(predicate(Entry(key, value)))


def _projected(projection: Callable[[Any], Any], entry: Entry[Any, Any], place: str) -> Any:
    with noting(f"{place}, {shown_function(projection)}", entry.key):
        return projection(entry)
