"""Collectors that divide items into groups and collect each group downstream.

Keys follow `dstream.keys`: `1`, `1.0` and `True` are one key, all NaN are one, and a key that would
not survive a process border is refused. The result has its keys in the order in which they were
first seen.
"""

from __future__ import annotations

import functools
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import compress, islice
from operator import itemgetter, not_
from typing import Any, TypeVar, cast, overload

from collectors.arguments import (
    checked_collector,
    checked_function,
    checked_map_factory,
    checked_predicate,
    made_by,
    shown,
)
from collectors.arithmetic import count_all, counting
from collectors.batches import Prepared, batches, kinds, prepared
from collectors.containers import to_list
from collectors.naming import named
from collectors.shapes import OfItems
from dstream.errors import NullElementError
from dstream.keys import are_canonical, canonical, canonical_all
from dstream.spi import Characteristics, Collector, InColumns, Keyed, identity
from dstream.values import Optional
from dstream.values.blaming import each, failed_on, traced

__all__ = ["frequencies", "grouping_by", "grouping_by_concurrent", "mode", "partitioning_by"]

T = TypeVar("T")
K = TypeVar("K")
D = TypeVar("D")
M = TypeVar("M")
F = TypeVar("F", bound=Callable[..., Any])

Downstream = Collector[Any, Any, Any]
Groups = dict[Any, Any]
"""The downstream container of each key."""

_LISTS: Downstream = to_list()


def _as_in_java(factory: F) -> F:
    """Let a factory say what to write instead of Java's `groupingBy(classifier, mapFactory, downstream)`."""

    @functools.wraps(factory)
    def make(*args: Any, **kwargs: Any) -> Any:
        if len(args) == 3:
            name = factory.__name__
            raise TypeError(f"{name}() takes no three arguments: write {name}(classifier, downstream, map_factory=...)")
        return factory(*args, **kwargs)

    return cast(F, make)


@overload
def grouping_by(classifier: Callable[[T], K]) -> Collector[T, object, dict[K, list[T]]]: ...
@overload
def grouping_by(classifier: Callable[[T], K], downstream: Collector[T, Any, D]) -> Collector[T, object, dict[K, D]]: ...
@overload
def grouping_by(classifier: Callable[[T], Any], *, map_factory: Callable[[], M]) -> Collector[T, object, M]: ...
@overload
def grouping_by(
    classifier: Callable[[T], Any], downstream: Collector[T, Any, Any], *, map_factory: Callable[[], M]
) -> Collector[T, object, M]: ...
@named
@_as_in_java
def grouping_by(
    classifier: Callable[[Any], Any], downstream: Downstream = _LISTS, *, map_factory: Callable[[], Any] = dict
) -> Collector[Any, Any, Any]:
    """Group items by what `classifier` gives, and collect each group downstream.

    Items may be None, keys may not. Nothing gives an empty dictionary.

    Args:
        classifier: gives the key of an item.
        downstream: collects the items of one key; lists by default.
        map_factory: makes the empty mapping that the result is put into, key by key.

    Raises:
        NullElementError: an item has a None key; the message names the item.
        UnstableKeyError: a key has no hash, or one that comes from its identity.

    Example:
        >>> grouping_by(len).collect(["a", "bb", "c"])
        {1: ['a', 'c'], 2: ['bb']}
        >>> grouping_by(len, counting()).collect(["a", "bb", "c"])
        {1: 2, 2: 1}
    """
    checked_function(classifier, "classifier")
    checked_map_factory(map_factory)
    return _grouping(_Keys(classifier), downstream, map_factory, _filled)


@overload
def grouping_by_concurrent(classifier: Callable[[T], K]) -> Collector[T, object, dict[K, list[T]]]: ...
@overload
def grouping_by_concurrent(
    classifier: Callable[[T], K], downstream: Collector[T, Any, D]
) -> Collector[T, object, dict[K, D]]: ...
@overload
def grouping_by_concurrent(
    classifier: Callable[[T], Any], *, map_factory: Callable[[], M]
) -> Collector[T, object, M]: ...
@overload
def grouping_by_concurrent(
    classifier: Callable[[T], Any], downstream: Collector[T, Any, Any], *, map_factory: Callable[[], M]
) -> Collector[T, object, M]: ...
@named
@_as_in_java
def grouping_by_concurrent(
    classifier: Callable[[Any], Any], downstream: Downstream = _LISTS, *, map_factory: Callable[[], Any] = dict
) -> Collector[Any, Any, Any]:
    """Group items as `grouping_by` does, with no promise about the order of keys or inside a group.

    Raises:
        NullElementError: an item has a None key, or `downstream` gave None for a key.
        UnstableKeyError: a key has no hash, or one that comes from its identity.

    Example:
        >>> grouping_by_concurrent(len, counting()).collect(["a", "bb", "c"])
        {1: 2, 2: 1}
    """
    checked_function(classifier, "classifier")
    checked_map_factory(map_factory)
    return _grouping(_Keys(classifier), downstream, map_factory, _filled_without_none, Characteristics.UNORDERED)


def groups_of_any_key(
    classifier: Callable[[Any], Any] | AnyKeys, downstream: Downstream
) -> Collector[Any, Any, dict[Any, Any]]:
    """Group items as `grouping_by` does, also under None: for aggregates, whose results are no entries of a map.

    Raises:
        UnstableKeyError: a key has no hash, or one that comes from its identity.

    Example:
        >>> groups_of_any_key({"a": 1}.get, counting()).collect("abc")
        {1: 1, None: 2}
    """
    keys = classifier if isinstance(classifier, AnyKeys) else AnyKeys(classifier)
    return _grouping(keys, downstream, dict, _filled)


@named
def frequencies() -> Collector[T, OfItems, Counter[T]]:
    """Count how often each item occurs, None among them, in a `collections.Counter`.

    Raises:
        UnstableKeyError: an item has no hash, or one that comes from its identity.

    Example:
        >>> frequencies().collect("abca").most_common(1)
        [('a', 2)]
    """
    return replace(_grouping(_ItemsAsKeys(), counting(), Counter, _filled), deducting=_deduct_counts)


@overload
def mode() -> Collector[T, OfItems, Optional[T]]: ...
@overload
def mode(fn: Callable[[T], K]) -> Collector[T, object, Optional[K]]: ...
@named
def mode(fn: Callable[[Any], Any] | None = None) -> Collector[Any, Any, Any]:
    """Find what occurs most often, also if that is None, the first of equals; nothing gives an empty `Optional`.

    Holds a count for each different value.

    Args:
        fn: gives a value of an item; without it the items are the values.

    Raises:
        UnstableKeyError: a value has no hash, or one that comes from its identity.

    Example:
        >>> mode().collect("abcab")
        Optional['a']
        >>> mode(len).collect(["sea", "whale", "sky"])
        Optional[3]
    """
    keys = _ItemsAsKeys() if fn is None else AnyKeys(checked_function(fn, "fn"))
    return _grouping(keys, counting(), dict, _most_frequent)


def _most_frequent(map_factory: Callable[[], Any], pairs: Iterable[tuple[Any, Any]]) -> Optional[Any]:
    most = max(pairs, key=itemgetter(1), default=None)
    return Optional.empty() if most is None else Optional.of_item(most[0])


def _deduct_counts(left: Groups, right: Groups) -> Groups:
    """Return `left` without the counts of `right`, and without the keys that have none left."""
    if not (are_canonical(list(left)) and are_canonical(list(right))):
        left, right = _with_canonical_keys(left), _with_canonical_keys(right)
    for key, count in right.items():
        left[key] -= count
        if not left[key]:
            del left[key]
    return left


@dataclass(frozen=True)
class _Keys:
    """The keys of items.

    Attributes:
        classifier: gives the key of an item.
    """

    classifier: Callable[[Any], Any]

    def one(self, item: Any) -> Any:
        """Return the canonical key of an item."""
        return self.checked(self.classifier(item), item)

    def given(self, batch: list[Any]) -> list[Any]:
        """Return what the classifier gives for each item, unchecked."""
        return each(self.classifier, batch)

    def are_checked(self, given: list[Any]) -> bool:
        """Say whether `checked` leaves all keys as they are; False also where only a look at each key can tell."""
        found = kinds(given)
        return type(None) not in found and are_canonical(given, found)

    def checked(self, key: Any, item: Any) -> Any:
        """Return the canonical form of the key that an item has."""
        if key is None:
            raise NullElementError(f"element cannot be mapped to a null key: {shown(item)}")
        return canonical(key)


class AnyKeys(_Keys):
    """Keys of items, None among them."""

    def are_checked(self, given: list[Any]) -> bool:
        return are_canonical(given)

    def checked(self, key: Any, item: Any) -> Any:
        return canonical(key)


class _ItemsAsKeys(AnyKeys):
    """Items that are their own keys, None among them."""

    def __init__(self) -> None:
        super().__init__(canonical)

    def given(self, batch: list[Any]) -> list[Any]:
        return batch


def _all_checked(keys: _Keys, given: list[Any], batch: Sequence[Any]) -> list[Any]:
    return given if keys.are_checked(given) else each(keys.checked, batch, given)


def _grouping(
    keys: _Keys,
    downstream: Downstream,
    map_factory: Callable[[], Any],
    fill: Callable[[Callable[[], Any], Iterable[tuple[Any, Any]]], Any],
    *characteristics: Characteristics,
) -> Collector[Any, Any, Any]:
    downstream = checked_collector(downstream)
    assemble = partial(fill, map_factory)
    # A Counter is a dictionary of the containers of `counting`, and counts a batch at the speed of C.
    counted = downstream.accumulate_all is count_all
    group_all = (
        partial(_count_keys, keys) if counted else partial(_group_all, keys, downstream.supplier, prepared(downstream))
    )
    return Collector(
        Counter if counted else dict,
        partial(_group_one, keys.one, downstream),
        partial(_combine_groups, downstream),
        partial(_finish_groups, downstream, assemble),
        frozenset(characteristics),
        group_all,
        Keyed(keys.one, downstream, assemble),
        in_columns=_in_columns(keys, downstream, group_all),
    )


def _in_columns(keys: _Keys, downstream: Downstream, same_as: Callable[..., Any]) -> InColumns | None:
    known = downstream.on_columns()
    if known is None or known.finds in ("groups", "first"):
        return None
    of = None if isinstance(keys, _ItemsAsKeys) else keys.classifier
    return InColumns("groups", of=of, downstream=known, same_as=same_as)


def _group_one(key_of: Callable[[Any], Any], downstream: Downstream, groups: Groups, item: Any) -> None:
    key = key_of(item)
    container = groups[key] if key in groups else downstream.supplier()
    following = downstream.accumulator(container, item)
    groups[key] = container if following is None else following


def _group_all(
    keys: _Keys,
    supplier: Callable[[], Any],
    steps: Prepared,
    groups: Groups,
    items: Iterable[Any],
) -> Groups:
    for batch in batches(items):
        given, values = keys.given(batch), steps.prepare(batch)
        if steps.add_known is not None and steps.add_known(groups, given, values):
            continue
        found = _all_checked(keys, given, batch)
        if steps.add_each is not None and steps.add_each(groups, found, values):
            continue
        # Where most keys occur once, bringing the values of a key together costs more than it saves.
        gather = _group_each if 2 * len(set(found)) > len(found) else _group_together
        try:
            gather(supplier, steps, groups, found, values)
        except Exception as error:
            traced(error, values, batch)
            raise
    return groups


def _group_each(
    supplier: Callable[[], Any], steps: Prepared, groups: Groups, keys: list[Any], values: list[Any]
) -> None:
    add = steps.add
    for key, value in zip(keys, values, strict=True):
        container = groups[key] if key in groups else supplier()
        try:
            following = add(container, value)
        except Exception as error:
            failed_on(error, value)
            raise
        groups[key] = container if following is None else following


def _group_together(
    supplier: Callable[[], Any], steps: Prepared, groups: Groups, keys: list[Any], values: list[Any]
) -> None:
    members: defaultdict[Any, list[Any]] = defaultdict(list)
    for key, value in zip(keys, values, strict=True):
        members[key].append(value)
    for key, together in members.items():
        groups[key] = steps.add_all(groups[key] if key in groups else supplier(), together)


def _count_keys(keys: _Keys, groups: Counter[Any], items: Iterable[Any]) -> Counter[Any]:
    for batch in batches(items):
        count_batch(keys, groups, keys.given(batch), batch)
    return groups


def count_batch(keys: _Keys, groups: Counter[Any], given: list[Any], batch: Sequence[Any]) -> None:
    """Count first, and check only the keys that came in: what equals a key that was in before is that key."""
    known = len(groups)
    try:
        groups.update(given)
    except Exception:  # A key has no hash, or one that fails, which the check says in our words.
        _all_checked(keys, given, batch)
        raise
    added = list(islice(reversed(groups), len(groups) - known))
    if keys.are_checked(added):
        return
    groups.subtract(given)
    for key in added:
        del groups[key]
    groups.update(_all_checked(keys, given, batch))


def _combine_groups(downstream: Downstream, left: Groups, right: Groups) -> Groups:
    if not are_canonical(list(right)):
        left, right = _with_canonical_keys(left), _with_canonical_keys(right)
    for key, container in right.items():
        left[key] = downstream.combined(left[key], container) if key in left else container
    return left


def _with_canonical_keys(groups: Groups) -> Groups:
    """Return the groups by keys that a dict finds again: a NaN that went through pickle is another object."""
    found = type(groups)()
    dict.update(found, zip(canonical_all(list(groups)), groups.values(), strict=True))
    return found


def _finish_groups(downstream: Downstream, assemble: Callable[[Iterable[tuple[Any, Any]]], Any], groups: Groups) -> Any:
    if downstream.finisher is identity:
        return assemble(groups.items())
    return assemble(downstream.finished(groups.items()))


def _filled(map_factory: Callable[[], Any], pairs: Iterable[tuple[Any, Any]]) -> Any:
    result = made_by(map_factory)
    if type(result) in (dict, Counter):
        dict.update(result, pairs)  # A Counter would count the pairs.
        return result
    for key, value in pairs:
        result[key] = value
    return result


def _filled_without_none(map_factory: Callable[[], Any], pairs: Iterable[tuple[Any, Any]]) -> Any:
    return _filled(map_factory, map(_without_none, pairs))


def _without_none(pair: tuple[Any, Any]) -> tuple[Any, Any]:
    if pair[1] is None:
        raise NullElementError(
            f"grouping_by_concurrent() refuses None results, but downstream gave None for key {shown(pair[0])}"
        )
    return pair


@overload
def partitioning_by(predicate: Callable[[T], object]) -> Collector[T, object, dict[bool, list[T]]]: ...
@overload
def partitioning_by(
    predicate: Callable[[T], object], downstream: Collector[T, Any, D]
) -> Collector[T, object, dict[bool, D]]: ...
@named
def partitioning_by(
    predicate: Callable[[Any], object], downstream: Downstream = _LISTS
) -> Collector[Any, Any, dict[bool, Any]]:
    """Divide items into those that fail `predicate` and those that satisfy it.

    Both keys are always there, False first, also when nothing was collected.

    Example:
        >>> partitioning_by(str.isupper).collect("aBc")
        {False: ['a', 'c'], True: ['B']}
        >>> partitioning_by(bool, counting()).collect([])
        {False: 0, True: 0}
    """
    checked_predicate(predicate)
    downstream = checked_collector(downstream)
    return Collector(
        partial(_both_sides, downstream),
        partial(_divide_one, predicate, downstream),
        partial(_combine_groups, downstream),
        partial(_finish_groups, downstream, dict),
        accumulate_all=partial(_divide_all, predicate, downstream),
    )


def _both_sides(downstream: Downstream) -> Groups:
    return {False: downstream.supplier(), True: downstream.supplier()}


def _divide_one(predicate: Callable[[Any], object], downstream: Downstream, sides: Groups, item: Any) -> None:
    side = bool(predicate(item))
    sides[side] = downstream.accumulated(sides[side], (item,))


def _divide_all(
    predicate: Callable[[Any], object], downstream: Downstream, sides: Groups, items: Iterable[Any]
) -> Groups:
    for batch in batches(items):
        passes = each(predicate, batch)
        sides[True] = downstream.accumulated(sides[True], list(compress(batch, passes)))
        sides[False] = downstream.accumulated(sides[False], list(compress(batch, map(not_, passes))))
    return sides
