"""Collectors whose result is a dictionary of one value per key: the `to_map` family.

A key remains at its first position, also when `merge` removed it and it was added again.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable
from functools import partial
from types import MappingProxyType
from typing import Any, TypeVar, cast, overload

from dstream.arguments import checked_function
from dstream.base.functions import refuse_awaitable
from dstream.base.records import record
from dstream.collectors.arguments import checked_map_factory, made_by, named, shown
from dstream.collectors.batches import batches, kinds
from dstream.errors import IllegalStateError, NullElementError
from dstream.failures.attribution import each
from dstream.keys import canonical, canonical_all, canonical_keys
from dstream.spi import Characteristics, Collector, Keyed

__all__ = ["to_concurrent_map", "to_map", "to_unmodifiable_map"]

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")
M = TypeVar("M")

Merge = Callable[[Any, Any], Any]
"""(V, V) to V or None. Declared with Any: mypy 2.4 cannot infer V from `max` or a lambda."""


@overload
def to_map(*, merge: Merge | None = None) -> Collector[tuple[K, V], object, dict[K, V]]: ...
@overload
def to_map(*, merge: Merge | None = None, map_factory: Callable[[], M]) -> Collector[tuple[Any, Any], object, M]: ...
@overload
def to_map(
    key: Callable[[T], K], value: Callable[[T], V], merge: Merge | None = None
) -> Collector[T, object, dict[K, V]]: ...
@overload
def to_map(
    key: Callable[[T], Any],
    value: Callable[[T], V],
    merge: Merge | None = None,
    *,
    map_factory: Callable[[], M],
) -> Collector[T, object, M]: ...
@overload
def to_map(
    key: Callable[[T], Any],
    value: Callable[[T], V],
    merge: Merge | None,
    map_factory: Callable[[], M],
) -> Collector[T, object, M]: ...
@named
def to_map(
    key: Callable[[Any], Any] | None = None,
    value: Callable[[Any], Any] | None = None,
    merge: Callable[[Any, Any], Any] | None = None,
    map_factory: Callable[[], Any] = dict,
) -> Collector[Any, Any, Any]:
    """Map the key of each item to its value. A key may be None, a value may not.

    Without `key` and `value` the items are pairs of the two, such as entries of a map.

    Args:
        key: returns the key of an item.
        value: returns the value of an item.
        merge: combines the earlier and the later value of a key; None removes the key.
            Without it a second value for a key is an error.
        map_factory: returns the empty mapping to which the result is added, key by key.

    Raises:
        IllegalStateError: two items have the same key and there is no `merge`; the message names the key
            and both values.
        NullElementError: a value is None; the message names the key.
        UnstableKeyError: a key has no hash, or one that depends on its identity.

    Example:
        >>> to_map(len, str.upper).collect(["a", "bb"])
        {1: 'A', 2: 'BB'}
        >>> to_map(len, str.upper, max).collect(["a", "b"])
        {1: 'B'}
        >>> to_map().collect([("Ada", 36), ("Grace", 85)])
        {'Ada': 36, 'Grace': 85}
    """
    checked_map_factory(map_factory)
    return _mapping_out(_checked_rules("to_map", key, value, merge, null_keys=True), partial(_filled, map_factory))


@overload
def to_concurrent_map(*, merge: Merge | None = None) -> Collector[tuple[K, V], object, dict[K, V]]: ...
@overload
def to_concurrent_map(
    *, merge: Merge | None = None, map_factory: Callable[[], M]
) -> Collector[tuple[Any, Any], object, M]: ...
@overload
def to_concurrent_map(
    key: Callable[[T], K], value: Callable[[T], V], merge: Merge | None = None
) -> Collector[T, object, dict[K, V]]: ...
@overload
def to_concurrent_map(
    key: Callable[[T], Any],
    value: Callable[[T], V],
    merge: Merge | None = None,
    *,
    map_factory: Callable[[], M],
) -> Collector[T, object, M]: ...
@overload
def to_concurrent_map(
    key: Callable[[T], Any],
    value: Callable[[T], V],
    merge: Merge | None,
    map_factory: Callable[[], M],
) -> Collector[T, object, M]: ...
@named
def to_concurrent_map(
    key: Callable[[Any], Any] | None = None,
    value: Callable[[Any], Any] | None = None,
    merge: Callable[[Any, Any], Any] | None = None,
    map_factory: Callable[[], Any] = dict,
) -> Collector[Any, Any, Any]:
    """Map keys to values as `to_map` does, with no promise about order; None keys are refused.

    Raises:
        IllegalStateError: two items have the same key and there is no `merge`.
        NullElementError: a key or a value is None.
        UnstableKeyError: a key has no hash, or one that depends on its identity.

    Example:
        >>> to_concurrent_map(len, str.upper).collect(["a", "bb"])
        {1: 'A', 2: 'BB'}
    """
    checked_map_factory(map_factory)
    rules = _checked_rules("to_concurrent_map", key, value, merge, null_keys=False)
    return _mapping_out(rules, partial(_filled, map_factory), Characteristics.UNORDERED)


@overload
def to_unmodifiable_map(*, merge: Merge | None = None) -> Collector[tuple[K, V], object, MappingProxyType[K, V]]: ...
@overload
def to_unmodifiable_map(
    key: Callable[[T], K], value: Callable[[T], V], merge: Merge | None = None
) -> Collector[T, object, MappingProxyType[K, V]]: ...
@named
def to_unmodifiable_map(
    key: Callable[[Any], Any] | None = None,
    value: Callable[[Any], Any] | None = None,
    merge: Callable[[Any, Any], Any] | None = None,
) -> Collector[Any, Any, Any]:
    """Map keys to values as `to_map` does, read-only; None keys are refused.

    Raises:
        IllegalStateError: two items have the same key and there is no `merge`.
        NullElementError: a key or a value is None.
        UnstableKeyError: a key has no hash, or one that depends on its identity.

    Example:
        >>> to_unmodifiable_map(len, str.upper).collect(["a", "bb"])
        mappingproxy({1: 'A', 2: 'BB'})
    """
    return _mapping_out(_checked_rules("to_unmodifiable_map", key, value, merge, null_keys=False), _read_only)


class _Mark(enum.Enum):
    """Placeholder for the value of a removed key; a member of an enum is a singleton in every process."""

    REMOVED = "removed"


Entry = tuple[Any, ...]
"""The container of one key: the key and its value so far; empty: not seen yet, or removed by `merge`."""


@record(slots=False)
class _Rules:
    """The rules that map items to entries, and merge entries of one key."""

    factory: str
    key: Callable[[Any], Any]
    value: Callable[[Any], Any]
    merge: Callable[[Any, Any], Any] | None
    null_keys: bool

    def key_of(self, item: Any) -> Any:
        return self.checked_key(self.key(item), item)

    def checked_key(self, key: Any, item: Any) -> Any:
        if key is None and not self.null_keys:
            raise NullElementError(f"{self.factory}() refuses None keys, but the key of {shown(item)} is None")
        return canonical(key)

    def checked_value(self, key: Any, value: Any) -> Any:
        if value is None:
            raise NullElementError(f"{self.factory}() refuses None values, but the value of key {shown(key)} is None")
        return value

    def joined(self, earlier: Entry, later: Entry) -> Entry:
        if not earlier or not later:
            return earlier or later
        key, value = earlier
        if self.merge is None:
            raise IllegalStateError(f"Duplicate key {key} (attempted merging values {value} and {later[1]})")
        value = self.merge(value, later[1])
        return () if value is None else (key, value)

    def accumulate_entry(self, entry: Entry, item: Any) -> Entry:
        key = self.key_of(item)
        return self.joined(entry, (key, self.checked_value(key, self.value(item))))

    def accumulate(self, entries: dict[Any, Entry], item: Any) -> None:
        key = self.key_of(item)
        later = (key, self.checked_value(key, self.value(item)))
        entries[key] = self.joined(entries.get(key, ()), later)

    def accumulate_all(self, entries: dict[Any, Entry], items: Iterable[Any]) -> dict[Any, Entry]:
        for batch in batches(items):
            given = each(self.key, batch)
            # A pass over the types is quick, and the slow check of each key names the item.
            if not self.null_keys and type(None) in kinds(given):
                given = each(self.checked_key, batch, given)
            keys = canonical_keys(given, batch)
            values = each(self.value, batch)
            if type(None) in kinds(values):
                values = list(map(self.checked_value, keys, values))
            self.add_entries(entries, keys, list(zip(keys, values, strict=True)))
        return entries

    def add_entries(self, entries: dict[Any, Entry], keys: list[Any], later: list[Entry]) -> None:
        fresh = dict(zip(keys, later, strict=True))
        # No key occurs twice, so that nothing is merged.
        if len(fresh) == len(keys) and entries.keys().isdisjoint(fresh):
            entries.update(fresh)
            return
        joined: Entry = ()
        for key, entry in zip(keys, later, strict=True):
            entries[key] = (joined := self.joined(entries[key], entry)) if key in entries else entry
        # Once for all: each result of an async `merge` is a coroutine.
        refuse_awaitable(joined)

    def combine(self, left: dict[Any, Entry], right: dict[Any, Entry]) -> None:
        # A NaN that was pickled is another object; its canonical key is the key in `left`.
        self.add_entries(left, canonical_all(list(right)), list(right.values()))


def _checked_rules(
    factory: str,
    key: Callable[[Any], Any] | None,
    value: Callable[[Any], Any] | None,
    merge: Callable[[Any, Any], Any] | None,
    null_keys: bool,
) -> _Rules:
    if key is None and value is None:
        key, value = partial(_part, factory, 0), partial(_part, factory, 1)
    if merge is not None:
        checked_function(merge, "merge")
    functions = checked_function(cast(Any, key), "key"), checked_function(cast(Any, value), "value")
    return _Rules(factory, *functions, merge, null_keys)


def _part(factory: str, place: int, pair: Any) -> Any:
    """Return the key or the value of a pair; a string of two characters is no pair."""
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise TypeError(f"{factory}() without key and value takes pairs of the two, not {shown(pair)}")
    return pair[place]


def _mapping_out(
    rules: _Rules, assemble: Callable[[Iterable[tuple[Any, Any]]], Any], *characteristics: Characteristics
) -> Collector[Any, Any, Any]:
    entry: Collector[Any, Any, Any] = Collector(tuple, rules.accumulate_entry, rules.joined, _value)
    return Collector(
        dict,
        rules.accumulate,
        rules.combine,
        partial(_assembled, assemble),
        frozenset(characteristics),
        rules.accumulate_all,
        Keyed(rules.key_of, entry, assemble),
    )


def _value(entry: Entry) -> Any:
    return entry[1] if entry else _Mark.REMOVED


def _assembled(assemble: Callable[[Iterable[tuple[Any, Any]]], Any], entries: dict[Any, Entry]) -> Any:
    return assemble(zip(entries, map(_value, entries.values()), strict=True))


def _filled(map_factory: Callable[[], Any], pairs: Iterable[tuple[Any, Any]]) -> Any:
    result = made_by(map_factory)
    for key, value in pairs:
        if value is not _Mark.REMOVED:
            result[key] = value
    return result


def _read_only(pairs: Iterable[tuple[Any, Any]]) -> Any:
    return MappingProxyType(_filled(dict, pairs))
