"""Collectors whose result is a dictionary of one value per key: the `to_map` family.

A key keeps the place where it was first seen, also when `merge` removed it and it came back.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, TypeVar, overload

from collectors.arguments import checked_function, shown
from collectors.batches import batches, kinds
from dstream.errors import IllegalStateError, NullElementError
from dstream.keys import canonical
from dstream.spi import Characteristics, Collector, Keyed

__all__ = ["to_concurrent_map", "to_map", "to_unmodifiable_map"]

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")
M = TypeVar("M")


@overload
def to_map(
    key: Callable[[T], K], value: Callable[[T], V], merge: Callable[[V, V], V | None] | None = None
) -> Collector[T, Any, dict[K, V]]: ...
@overload
def to_map(
    key: Callable[[T], Any],
    value: Callable[[T], V],
    merge: Callable[[V, V], V | None] | None = None,
    *,
    map_factory: Callable[[], M],
) -> Collector[T, Any, M]: ...
@overload
def to_map(
    key: Callable[[T], Any],
    value: Callable[[T], V],
    merge: Callable[[V, V], V | None] | None,
    map_factory: Callable[[], M],
) -> Collector[T, Any, M]: ...
def to_map(
    key: Callable[[Any], Any],
    value: Callable[[Any], Any],
    merge: Callable[[Any, Any], Any] | None = None,
    map_factory: Callable[[], Any] = dict,
) -> Collector[Any, Any, Any]:
    """Map the key of each item to its value. A key may be None, a value may not.

    Args:
        key: gives the key of an item.
        value: gives its value.
        merge: makes one value of the earlier and the later one of a key; None removes the key.
            Without it a second value for a key is an error.
        map_factory: makes the empty mapping that the result is put into, key by key.

    Raises:
        IllegalStateError: two items have one key and there is no `merge`; the message names the key
            and both values.
        NullElementError: a value is None; the message names the key.
        UnstableKeyError: a key has no hash, or one that comes from its identity.

    Example:
        >>> to_map(len, str.upper).collect(["a", "bb"])
        {1: 'A', 2: 'BB'}
        >>> to_map(len, str.upper, max).collect(["a", "b"])
        {1: 'B'}
    """
    checked_function(map_factory, "map_factory")
    return _mapping_out(_checked_rules("to_map", key, value, merge, null_keys=True), partial(_filled, map_factory))


@overload
def to_concurrent_map(
    key: Callable[[T], K], value: Callable[[T], V], merge: Callable[[V, V], V | None] | None = None
) -> Collector[T, Any, dict[K, V]]: ...
@overload
def to_concurrent_map(
    key: Callable[[T], Any],
    value: Callable[[T], V],
    merge: Callable[[V, V], V | None] | None = None,
    *,
    map_factory: Callable[[], M],
) -> Collector[T, Any, M]: ...
@overload
def to_concurrent_map(
    key: Callable[[T], Any],
    value: Callable[[T], V],
    merge: Callable[[V, V], V | None] | None,
    map_factory: Callable[[], M],
) -> Collector[T, Any, M]: ...
def to_concurrent_map(
    key: Callable[[Any], Any],
    value: Callable[[Any], Any],
    merge: Callable[[Any, Any], Any] | None = None,
    map_factory: Callable[[], Any] = dict,
) -> Collector[Any, Any, Any]:
    """Map keys to values as `to_map` does, with no promise about order; None keys are refused.

    Raises:
        IllegalStateError: two items have one key and there is no `merge`.
        NullElementError: a key or a value is None.
        UnstableKeyError: a key has no hash, or one that comes from its identity.

    Example:
        >>> to_concurrent_map(len, str.upper).collect(["a", "bb"])
        {1: 'A', 2: 'BB'}
    """
    checked_function(map_factory, "map_factory")
    rules = _checked_rules("to_concurrent_map", key, value, merge, null_keys=False)
    return _mapping_out(rules, partial(_filled, map_factory), Characteristics.UNORDERED)


def to_unmodifiable_map(
    key: Callable[[T], K], value: Callable[[T], V], merge: Callable[[V, V], V | None] | None = None
) -> Collector[T, Any, MappingProxyType[K, V]]:
    """Map keys to values as `to_map` does, read-only; None keys are refused.

    Raises:
        IllegalStateError: two items have one key and there is no `merge`.
        NullElementError: a key or a value is None.
        UnstableKeyError: a key has no hash, or one that comes from its identity.

    Example:
        >>> to_unmodifiable_map(len, str.upper).collect(["a", "bb"])
        mappingproxy({1: 'A', 2: 'BB'})
    """
    return _mapping_out(_checked_rules("to_unmodifiable_map", key, value, merge, null_keys=False), _read_only)


class _Mark(enum.Enum):
    """What stands in a container where a value does not; a member of an enum is one object in every process."""

    REMOVED = "removed"


@dataclass(frozen=True)
class _Rules:
    """How items become entries, and entries of one key one entry."""

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

    def merged(self, key: Any, earlier: Any, later: Any) -> Any:
        if earlier is _Mark.REMOVED:
            return later
        if later is _Mark.REMOVED:
            return earlier
        if self.merge is None:
            raise IllegalStateError(f"Duplicate key {key} (attempted merging values {earlier} and {later})")
        value = self.merge(earlier, later)
        return _Mark.REMOVED if value is None else value

    # The container of the whole: key to value.

    def put(self, entries: dict[Any, Any], key: Any, value: Any) -> None:
        entries[key] = self.merged(key, entries[key], value) if key in entries else value

    def accumulate(self, entries: dict[Any, Any], item: Any) -> None:
        key = self.key_of(item)
        self.put(entries, key, self.checked_value(key, self.value(item)))

    def accumulate_all(self, entries: dict[Any, Any], items: Iterable[Any]) -> dict[Any, Any]:
        for batch in batches(items):
            keys = list(map(self.checked_key, map(self.key, batch), batch))
            values = list(map(self.value, batch))
            if type(None) in kinds(values):
                values = list(map(self.checked_value, keys, values))
            fresh = dict(zip(keys, values, strict=True))
            if len(fresh) == len(keys) and entries.keys().isdisjoint(fresh):
                entries.update(fresh)
            else:
                for key, value in zip(keys, values, strict=True):
                    self.put(entries, key, value)
        return entries

    def combine(self, left: dict[Any, Any], right: dict[Any, Any]) -> None:
        for key, value in right.items():
            self.put(left, canonical(key), value)

    # The container of one key: nothing yet, or the key and its value.

    def accumulate_entry(self, entry: list[Any], item: Any) -> None:
        key = self.key_of(item)
        self.combine_entries(entry, [key, self.checked_value(key, self.value(item))])

    def combine_entries(self, left: list[Any], right: list[Any]) -> None:
        if left and right:
            left[1] = self.merged(left[0], left[1], right[1])
        else:
            left.extend(right)


def _checked_rules(
    factory: str,
    key: Callable[[Any], Any],
    value: Callable[[Any], Any],
    merge: Callable[[Any, Any], Any] | None,
    null_keys: bool,
) -> _Rules:
    checked_function(key, "key")
    checked_function(value, "value")
    if merge is not None:
        checked_function(merge, "merge")
    return _Rules(factory, key, value, merge, null_keys)


def _mapping_out(
    rules: _Rules, assemble: Callable[[Iterable[tuple[Any, Any]]], Any], *characteristics: Characteristics
) -> Collector[Any, Any, Any]:
    entry: Collector[Any, Any, Any] = Collector(list, rules.accumulate_entry, rules.combine_entries, _entry_value)
    return Collector(
        dict,
        rules.accumulate,
        rules.combine,
        partial(_assembled, assemble),
        frozenset(characteristics),
        rules.accumulate_all,
        Keyed(rules.key_of, entry, assemble),
    )


def _entry_value(entry: list[Any]) -> Any:
    return entry[1] if entry else _Mark.REMOVED


def _assembled(assemble: Callable[[Iterable[tuple[Any, Any]]], Any], entries: dict[Any, Any]) -> Any:
    return assemble(entries.items())


def _filled(map_factory: Callable[[], Any], pairs: Iterable[tuple[Any, Any]]) -> Any:
    result = map_factory()
    for key, value in pairs:
        if value is not _Mark.REMOVED:
            result[key] = value
    return result


def _read_only(pairs: Iterable[tuple[Any, Any]]) -> Any:
    return MappingProxyType(_filled(dict, pairs))
