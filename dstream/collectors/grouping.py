"""Collectors that divide items into groups and collect each group downstream.

Keys follow `dstream.keys`: `1`, `1.0` and `True` are one key, all NaN are one, and a key that is not
stable between processes is refused. The result has its keys in the order of their first items.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from itertools import compress
from operator import itemgetter, not_
from typing import Any, TypeVar, cast, overload

from dstream.arguments import checked_function
from dstream.base.functions import refuse_awaitable
from dstream.collectors.arguments import (
    OfItems,
    checked_collector,
    checked_map_factory,
    checked_predicate,
    named,
    shown,
)
from dstream.collectors.arithmetic import counting
from dstream.collectors.batches import batches
from dstream.collectors.containers import to_list
from dstream.collectors.groups import (
    AnyKeys,
    Downstream,
    Groups,
    ItemsAsKeys,
    Keys,
    collecting_groups,
    combine_groups,
    filled,
    finish_groups,
    with_canonical_keys,
)
from dstream.errors import NullElementError
from dstream.failures.attribution import satisfied
from dstream.keys import are_canonical
from dstream.spi import Characteristics, Collector
from dstream.values import Optional

__all__ = ["frequencies", "grouping_by", "grouping_by_concurrent", "mode", "partitioning_by"]

T = TypeVar("T")
K = TypeVar("K")
D = TypeVar("D")
M = TypeVar("M")
F = TypeVar("F", bound=Callable[..., Any])

_LISTS: Downstream = to_list()


def _as_in_java(factory: F) -> F:
    """Make a factory advise on Java's `groupingBy(classifier, mapFactory, downstream)`."""

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
    """Group items by the result of `classifier`, and collect each group downstream.

    Items may be None, keys may not. The result is an empty dictionary without items.

    Args:
        classifier: returns the key of an item.
        downstream: collects the items of one key; lists by default.
        map_factory: returns the empty mapping to which the result is added, key by key.

    Raises:
        NullElementError: an item has a None key; the message names the item.
        UnstableKeyError: a key has no hash, or one that depends on its identity.

    Example:
        >>> grouping_by(len).collect(["a", "bb", "c"])
        {1: ['a', 'c'], 2: ['bb']}
        >>> grouping_by(len, counting()).collect(["a", "bb", "c"])
        {1: 2, 2: 1}
    """
    checked_function(classifier, "classifier")
    checked_map_factory(map_factory)
    return collecting_groups(Keys(classifier), downstream, map_factory, filled)


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
        NullElementError: an item has a None key, or the result of `downstream` for a key is None.
        UnstableKeyError: a key has no hash, or one that depends on its identity.

    Example:
        >>> grouping_by_concurrent(len, counting()).collect(["a", "bb", "c"])
        {1: 2, 2: 1}
    """
    checked_function(classifier, "classifier")
    checked_map_factory(map_factory)
    return collecting_groups(Keys(classifier), downstream, map_factory, _filled_without_none, Characteristics.UNORDERED)


def _filled_without_none(map_factory: Callable[[], Any], pairs: Iterable[tuple[Any, Any]]) -> Any:
    return filled(map_factory, map(_without_none, pairs))


def _without_none(pair: tuple[Any, Any]) -> tuple[Any, Any]:
    if pair[1] is None:
        raise NullElementError(
            f"grouping_by_concurrent() refuses None results, but downstream gave None for key {shown(pair[0])}"
        )
    return pair


@named
def frequencies() -> Collector[T, OfItems, Counter[T]]:
    """Count how often each item occurs, None among them, in a `collections.Counter`.

    Raises:
        UnstableKeyError: an item has no hash, or one that depends on its identity.

    Example:
        >>> frequencies().collect("abca").most_common(1)
        [('a', 2)]
    """
    return replace(collecting_groups(ItemsAsKeys(), counting(), Counter, filled), deducting=_deduct_counts)


def _deduct_counts(left: Groups, right: Groups) -> Groups:
    """Return `left` without the counts of `right`, and without keys whose count becomes 0."""
    # The NaN of a pickled container is another object than the key whose count is reduced.
    if not (are_canonical(list(left)) and are_canonical(list(right))):
        left, right = with_canonical_keys(left), with_canonical_keys(right)
    for key, count in right.items():
        left[key] -= count
        # A Counter retains keys with the count 0, which a sliding window would report.
        if not left[key]:
            del left[key]
    return left


@overload
def mode() -> Collector[T, OfItems, Optional[T]]: ...
@overload
def mode(fn: Callable[[T], K]) -> Collector[T, object, Optional[K]]: ...
@named
def mode(fn: Callable[[Any], Any] | None = None) -> Collector[Any, Any, Any]:
    """Find the most frequent result, also None, the first of equals; an empty `Optional` without items.

    Memory: a count for each different value.

    Args:
        fn: returns the value of an item; without it the items are the values.

    Raises:
        UnstableKeyError: a value has no hash, or one that depends on its identity.

    Example:
        >>> mode().collect("abcab")
        Optional['a']
        >>> mode(len).collect(["sea", "whale", "sky"])
        Optional[3]
    """
    keys = ItemsAsKeys() if fn is None else AnyKeys(checked_function(fn, "fn"))
    return collecting_groups(keys, counting(), dict, _most_frequent)


def _most_frequent(map_factory: Callable[[], Any], pairs: Iterable[tuple[Any, Any]]) -> Optional[Any]:
    # `max` returns the first of equals, and groups are in the order in which their keys were first seen.
    most = max(pairs, key=itemgetter(1), default=None)
    return Optional.empty() if most is None else Optional.of_item(most[0])


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
    """Divide items by `predicate` into items that fail it and items that satisfy it.

    The result always has both keys, False first, also without items.

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
        partial(combine_groups, downstream),
        partial(finish_groups, downstream, dict),
        accumulate_all=partial(_divide_all, predicate, downstream),
    )


def _both_sides(downstream: Downstream) -> Groups:
    return {False: downstream.supplier(), True: downstream.supplier()}


def _divide_one(predicate: Callable[[Any], object], downstream: Downstream, sides: Groups, item: Any) -> None:
    side = bool(predicate(item))
    following = downstream.accumulator(sides[side], item)
    if following is not None:
        # Not `accumulated`, which searches a container that is a tuple: once a batch, but here for each item.
        if type(following) is not tuple:
            refuse_awaitable(following)
        sides[side] = following


def _divide_all(
    predicate: Callable[[Any], object], downstream: Downstream, sides: Groups, items: Iterable[Any]
) -> Groups:
    for batch in batches(items):
        passes = satisfied(predicate, batch)
        sides[True] = downstream.accumulated(sides[True], list(compress(batch, passes)))
        sides[False] = downstream.accumulated(sides[False], list(compress(batch, map(not_, passes))))
    return sides
