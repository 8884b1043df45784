"""`IStreamMap`: a distributed map that works like a dict and has Jet's names too."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar, overload

from more_itertools import chunked

from dstream.distributed.collection import PIECES, Collection, type_seen
from dstream.distributed.collection_sources import EntrySource, as_entry
from dstream.distributed.equality import same
from dstream.distributed.processing import LiveEntry, Processing, noting
from dstream.distributed.views import EntrySet, KeySet, Values
from dstream.errors import IllegalStateError, NullElementError, UnstableKeyError
from dstream.failures import shown
from dstream.keys import canonical
from dstream.plan.steps import shown_function
from dstream.spi.store import UNCHANGED, EntrySplit, Kind, MapStore
from dstream.stream.stream import Stream, read
from dstream.stream.stream_arguments import count, optional_function, optional_predicate, running
from dstream.tables import brief
from dstream.values import Entry
from dstream.values.journal_events import JournalEvent

if TYPE_CHECKING:
    from _typeshed import SupportsKeysAndGetItem

__all__ = ["IStreamMap"]

K = TypeVar("K")
V = TypeVar("V")
R = TypeVar("R")
D = TypeVar("D")

_MISSING: Any = object()
_CHUNK = 1000
"""How many entries are looked up or changed in one go where a whole map is walked."""


class IStreamMap(Collection[MapStore], MutableMapping[K, V]):
    """A map that lives in a storage: `dict` and Jet's `IMap` in one. Get one with `Context.get_map`.

    Keys are equal as in a dict, and every NaN is one key. Neither keys nor values may be None. Every
    operation on one key is atomic, for all threads and processes; `update` and `put_all` are one commit.

    What differs from a dict: there is no insertion order; what is handed out is a copy, so changing
    a value in place changes nothing in the map (`execute_on_key` does); iterating sees the state at its
    start, whatever is written meanwhile. `dict(m)` looks up key by key, `m.copy()` does not.

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
    _unit = ("entry", "entries")
    _columns = ("key", "value")
    _brackets = "{{{}}}"
    _instead = "read what you need before, with get_all(keys) or copy()"

    @property
    def key_type(self) -> Any:
        """The type of its keys; None while it is not decided."""
        return self.options.key_type

    # Reading, as from a dict

    def __getitem__(self, key: K) -> V:
        value = self._found(key)
        if value is None:
            raise KeyError(key)
        found: V = value
        return found

    @overload
    def get(self, key: K, /) -> V | None: ...

    @overload
    def get(self, key: K, default: V, /) -> V: ...

    @overload
    def get(self, key: K, default: D, /) -> V | D: ...

    def get(self, key: K, default: Any = None, /) -> Any:
        """Return the value of `key`, or `default` if there is none."""
        value = self._found(key)
        return default if value is None else value

    def get_all(self, keys: Iterable[K]) -> dict[K, V]:
        """Return the entries of those `keys` that are there, all from one state of the map.

        Example:
            >>> with connect(engine="local", storage="memory:") as ctx:
            ...     ages = ctx.get_map("ages")
            ...     ages.update(Ada=36, Grace=85)
            ...     ages.get_all(["Ada", "Alan"])
            {'Ada': 36}
        """
        known = [self._key(key) for key in keys if key is not None]
        values = self.store.get_many(known) if known else []
        return {key: value for key, value in zip(known, values, strict=True) if value is not None}

    def _found(self, key: object) -> Any:
        """Return the value of `key`, or None if there is none; None is a key that is never there."""
        return None if key is None else self.store.get_many([self._key(key)])[0]

    def __contains__(self, key: object) -> bool:
        return self._found(key) is not None

    def __len__(self) -> int:
        return self.size()

    def __bool__(self) -> bool:
        return not self.is_empty()

    def __iter__(self) -> Iterator[K]:
        return (key for key, _ in self._pairs())

    def keys(self) -> KeySet[K]:
        """Return a live view of the keys."""
        return KeySet(self)

    def items(self) -> EntrySet[K, V]:
        """Return a live view of the entries."""
        return EntrySet(self, self._entries)

    def values(self) -> Values[V]:
        """Return a live view of the values."""
        return Values(self, self._entries)

    def key_set(self) -> KeySet[K]:
        """Return a live view of the keys, as `keys()`."""
        return self.keys()

    def entry_set(self) -> EntrySet[K, V]:
        """Return a live view of the entries, as `items()`."""
        return self.items()

    def copy(self) -> dict[K, V]:
        """Return the entries as a plain dict, all from one state; they must fit into the caller's memory."""
        return dict(self._pairs())

    def __eq__(self, other: object) -> bool:
        """Say whether `other`, any mapping, has the same entries."""
        if not isinstance(other, Mapping):
            return NotImplemented
        if other is self:
            return True
        if isinstance(other, IStreamMap):
            return self._equals_stored(other)
        theirs = _canonical_keys(other)
        return theirs is not None and self.size() == len(theirs) and self._is_within(theirs)

    __hash__ = None  # type: ignore[assignment]  # As for a dict.

    def _equals_stored(self, other: IStreamMap[Any, Any]) -> bool:
        if self.size() != other.size():
            return False
        return all(self._is_within(other.get_all(dict(chunk)), chunk) for chunk in chunked(self._pairs(), _CHUNK))

    def _is_within(self, theirs: Mapping[Any, Any], entries: Iterable[tuple[Any, Any]] | None = None) -> bool:
        entries = self._pairs() if entries is None else entries
        return all(key in theirs and same(value, theirs[key]) for key, value in entries)

    def __or__(self, other: Mapping[D, R]) -> dict[K | D, V | R]:
        """Return a plain dict of the entries of both; `other` wins."""
        merged: dict[K | D, V | R] = _merged(self, other)
        return merged

    def __ror__(self, other: Mapping[D, R]) -> dict[K | D, V | R]:
        merged: dict[K | D, V | R] = _merged(other, self)
        return merged

    def __ior__(self, other: Mapping[K, V] | Iterable[tuple[K, V]]) -> Self:  # type: ignore[misc]  # Takes pairs too, as a dict.
        self.put_all(other)
        return self

    # Writing

    def __setitem__(self, key: K, value: V) -> None:
        self.put(key, value)

    def __delitem__(self, key: K) -> None:
        if self.remove(key) is None:
            raise KeyError(key)

    def put(self, key: K, value: V) -> V | None:
        """Set the value of `key` and return the one before, or None."""
        new = self._value(key, value)
        return self._update(key, lambda old: new)

    def put_if_absent(self, key: K, value: V) -> V | None:
        """Set the value of `key` if it has none; return the one that it has, or None.

        Example:
            >>> with connect(engine="local", storage="memory:") as ctx:
            ...     ages = ctx.get_map("ages")
            ...     ages.put_if_absent("Ada", 36), ages.put_if_absent("Ada", 99), ages["Ada"]
            (None, 36, 36)
        """
        new = self._value(key, value)
        return self._update(key, lambda old: new if old is None else UNCHANGED)

    def setdefault(self, key: K, default: V | None = None, /) -> V:
        """Return the value of `key`, set to `default` before if it has none.

        What is returned is not the stored value itself: changing it in place changes nothing in the map.

        Raises:
            NullElementError: `default` is None, which a map cannot hold.
        """
        new: Any = self._value(key, default)
        old = self.put_if_absent(key, new)
        return new if old is None else old

    @overload
    def update(self, other: SupportsKeysAndGetItem[K, V], /) -> None: ...

    @overload
    def update(self, other: Iterable[tuple[K, V]], /) -> None: ...

    @overload
    def update(self: IStreamMap[str, V], other: SupportsKeysAndGetItem[str, V], /, **entries: V) -> None: ...

    @overload
    def update(self: IStreamMap[str, V], other: Iterable[tuple[str, V]], /, **entries: V) -> None: ...

    @overload
    def update(self: IStreamMap[str, V], /, **entries: V) -> None: ...

    def update(self, other: Any = (), /, **entries: Any) -> None:
        """Set the entries of a mapping, of pairs, or given by name, all in one commit."""
        self._put_all(dict(_local(other), **entries))

    def put_all(self, entries: SupportsKeysAndGetItem[K, V] | Iterable[tuple[K, V]]) -> None:
        """Set the entries of a mapping, or of pairs, all in one commit."""
        self._put_all(dict(_local(entries)))

    def _put_all(self, entries: dict[Any, Any]) -> None:
        new = {self._key(key): self._value(key, value) for key, value in entries.items()}
        if new:
            self.store.update([*new], lambda old: [*new.values()])

    @overload
    def replace(self, key: K, value: V, /) -> V | None: ...

    @overload
    def replace(self, key: K, old: V, new: V, /) -> bool: ...

    def replace(self, key: K, *values: Any) -> Any:
        """Set the value of `key` if it has one, or if it has a certain one.

        `replace(key, value)` returns the value before, or None if there was none, and then sets none.
        `replace(key, old, new)` says whether the value was `old`, and only then sets it to `new`.

        Example:
            >>> with connect(engine="local", storage="memory:") as ctx:
            ...     ages = ctx.get_map("ages")
            ...     ages.update(Ada=36)
            ...     ages.replace("Ada", 37), ages.replace("Alan", 41), ages.replace("Ada", 36, 38), ages["Ada"]
            (36, None, False, 37)
        """
        match values:
            case (value,):
                new = self._value(key, value)
                return self._update(key, lambda old: UNCHANGED if old is None else new)
            case (expected, value):
                new = self._value(key, value)
                return self._change_if(key, self._value(key, expected), new)
        raise TypeError(f"replace() takes (key, value) or (key, old, new), not {1 + len(values)} arguments")

    @overload
    def remove(self, key: K, /) -> V | None: ...

    @overload
    def remove(self, key: K, value: V, /) -> bool: ...

    def remove(self, key: K, *values: Any) -> Any:
        """Remove an entry, or only one with a certain value.

        `remove(key)` returns the value, or None if there was none. `remove(key, value)` says whether
        the entry had that value, and only then removes it.
        """
        match values:
            case () if key is None:
                return None
            case ():
                return self._update(key, lambda old: UNCHANGED if old is None else None)
            case (expected,):
                return self._change_if(key, self._value(key, expected), None)
        raise TypeError(f"remove() takes (key) or (key, value), not {1 + len(values)} arguments")

    @overload
    def pop(self, key: K, /) -> V: ...

    @overload
    def pop(self, key: K, /, default: V) -> V: ...

    @overload
    def pop(self, key: K, /, default: D) -> V | D: ...

    def pop(self, key: K, /, default: Any = _MISSING) -> Any:
        """Remove an entry and return its value, or `default` if there is none.

        Raises:
            KeyError: there is none, and no `default`.
        """
        old = self.remove(key)
        if old is None and default is _MISSING:
            raise KeyError(key)
        return default if old is None else old

    def popitem(self) -> Entry[K, V]:
        """Remove some entry and return it.

        Raises:
            KeyError: the map is empty.
        """
        key = None
        for key in self:
            value = self.remove(key)
            if value is not None:
                return Entry(key, value)
        if key is None:
            raise KeyError(f"popitem(): {self._kind} {self.name!r} is empty")
        return self.popitem()  # All that was there is gone by now; what came since is not.

    def clear(self) -> None:
        """Remove all entries, atomically."""
        self.store.clear()

    # Functions that go to the entries

    def execute_on_key(self, key: K, fn: Callable[[LiveEntry[K, V | None]], R]) -> R:
        """Let `fn` read and change one entry, atomically; return what it returns.

        Args:
            key: the key; it need not be there.
            fn: gets an entry with `key`, `value` (None if there is none) and `set_value(value)`;
                `set_value(None)` removes the entry. It runs again, with the fresh value, if another
                thread or process changed the entry meanwhile, so it should do nothing else. An exception
                passes through and changes nothing.

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
        work = Processing(self._place("execute_on_key"), [known], running(fn, "fn"))
        self.store.update([known], work.each)
        return work.results[known]

    def execute_on_entries(
        self, fn: Callable[[LiveEntry[K, V]], R], predicate: Callable[[Entry[K, V]], object] | None = None
    ) -> dict[K, R]:
        """Let `fn` read and change every entry, or those that satisfy `predicate`; return its results by key.

        Each entry is changed atomically, the map as a whole is not: entries are visited a thousand at a time, and an
        exception leaves those before changed. Entries that others add meanwhile are not visited. Both functions may
        run again, as in `execute_on_key`.

        Example:
            >>> with connect(engine="local", storage="memory:") as ctx:
            ...     ages = ctx.get_map("ages")
            ...     ages.update(Ada=36, Grace=85)
            ...     ages.execute_on_entries(lambda entry: entry.set_value(entry.value + 1), lambda e: e.value < 40)
            ...     ages["Ada"]
            {'Ada': 36}
            37
        """
        running(fn, "fn"), optional_predicate(predicate)
        place, results = self._place("execute_on_entries"), {}
        for chunk in chunked(self._pairs(), _CHUNK):
            keys = [key for key, value in chunk if predicate is None or _satisfies(predicate, key, value, place)]
            if keys:
                work = Processing(place, keys, fn, predicate)
                self.store.update(keys, work.each_present)
                results.update(work.results)
        return results

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

        The entries are those at the time of each terminal operation, whatever is written while it runs.

        Args:
            predicate: which entries; it runs where the data is read, and the others go no further.
            projection: what to make of each, there too; an entry of which it makes None is dropped.

        Example:
            >>> with connect(engine="local", storage="memory:") as ctx:
            ...     ages = ctx.get_map("ages")
            ...     ages.update(Ada=36, Grace=85)
            ...     ages.stream(projection=lambda entry: entry.key[0]).sorted().to_list()
            ['A', 'G']
        """
        optional_predicate(predicate), optional_function(projection, "projection")
        functions = (("predicate", predicate), ("projection", projection))
        shown_arguments = ", ".join(f"{name}={shown_function(fn)}" for name, fn in functions if fn is not None)
        source = EntrySource(self.store, predicate, projection)
        return read(source, f"get_{self._kind}({self.name!r}).stream({shown_arguments})", self._runtime)

    def journal(self, since: int = 0) -> Iterator[JournalEvent]:
        """Give the changes after offset `since`, the oldest first; 0 is the start.

        Raises:
            IllegalStateError: the map was made without `journal=True`.

        Example:
            >>> with connect(engine="local", storage="memory:") as ctx:
            ...     ages = ctx.get_map("ages", journal=True)
            ...     ages["Ada"] = 36
            ...     [(event.kind, event.key, event.new_value) for event in ages.journal()]
            [('ADDED', 'Ada', 36)]
        """
        if not self.options.journal:
            raise IllegalStateError(
                f"{self._kind} {self.name!r} keeps no journal; get_map({self.name!r}, journal=True) makes one that does"
            )
        return self._while_open(self.store.journal(count(since, "since")))

    # How it works

    def _update(self, key: Any, change: Callable[[Any], Any]) -> V | None:
        """Change the value of one key and return the old one."""
        old: V | None
        (old,) = self.store.update([self._key(key)], lambda old: [change(old[0])])
        return old

    def _change_if(self, key: Any, expected: Any, new: Any) -> bool:
        """Change the value of one key if it is what was expected, and say whether it was."""
        was_expected = False

        def change(old: Any) -> Any:
            nonlocal was_expected
            was_expected = old is not None and same(old, expected)
            return new if was_expected else UNCHANGED

        self._update(key, change)
        return was_expected

    def _key(self, key: Any) -> Any:
        """Return the one form of a key.

        Raises:
            NullElementError: it is None.
            UnstableKeyError: it has no hash, or one that other processes do not share.
        """
        if key is None:
            raise NullElementError(f"{self._kind} {self.name!r} cannot have None as a key")
        try:
            return canonical(key)
        except UnstableKeyError as error:
            error.add_note(f"in {self._kind} {self.name!r}")
            raise

    def _value(self, key: Any, value: Any) -> Any:
        if value is None:
            raise NullElementError(
                f"{self._kind} {self.name!r} cannot have None as a value, here of the key {shown(key)}; "
                "remove(key) removes an entry"
            )
        return value

    def _place(self, operation: str) -> str:
        return f"{operation}() of {self._kind} {self.name!r}"

    def _pairs(self) -> Iterator[tuple[Any, Any]]:
        """Pin the entries as they are now, and give them one part after another."""
        return self._read(self._splits())

    def _entries(self) -> Iterator[Entry[K, V]]:
        return map(as_entry, self._pairs())

    def _splits(self) -> Sequence[EntrySplit]:
        return self.store.splits(PIECES)

    def _walk(self) -> Iterator[Sequence[object]]:
        return self._pairs()

    def _types_shown(self, rows: Sequence[Sequence[object]]) -> str:
        hints = (self.key_type, self.value_type)
        types = [type_seen(hint, [row[place] for row in rows]) or "?" for place, hint in enumerate(hints)]
        return "" if types == ["?", "?"] else " -> ".join(types)

    def _written(self, *row: object) -> str:
        return ": ".join(map(brief, row))


def _satisfies(predicate: Callable[[Any], object], key: Any, value: Any, place: str) -> bool:
    with noting(f"{place}, {shown_function(predicate)}", key):
        return bool(predicate(Entry(key, value)))


def _local(entries: Any) -> Any:
    """Return what `dict` can take in without looking up key by key."""
    return entries.copy() if isinstance(entries, IStreamMap) else entries


def _merged(first: Any, second: Any) -> Any:
    if not (isinstance(first, Mapping) and isinstance(second, Mapping)):
        return NotImplemented
    return {**_local(first), **_local(second)}


def _canonical_keys(mapping: Mapping[Any, Any]) -> dict[Any, Any] | None:
    """Return the entries of any mapping by their keys as a map has them; None if no map can have them."""
    known = {}
    for key, value in mapping.items():
        try:
            known[canonical(key)] = value
        except UnstableKeyError:
            return None
    return known if len(known) == len(mapping) else None
