"""Collectors that compare items: least and greatest, the first few in order, all in order.

All of them use one order: `<`, with a float NaN after every other key. Of equal items, the
first is first.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable
from decimal import Decimal
from functools import partial
from itertools import chain
from typing import Any, TypeVar

from dstream.arguments import checked_function
from dstream.collectors.arguments import OfItems, checked_count, named
from dstream.collectors.batches import applied, batches, kinds
from dstream.spi import Collector, InColumns
from dstream.values import Optional
from dstream.values.order import holds_nan, is_nan

__all__ = ["bottom_n", "max_by", "min_by", "sorting", "top_n"]

T = TypeVar("T")

Key = Callable[[Any], Any] | None
Ranked = list[tuple[Any, Any]]
"""Pairs (key, item)."""

_key = operator.itemgetter(0)


@functools.cache
def _plain() -> frozenset[type]:
    """Return types whose values are the same everywhere: such keys, and tuples of them, travel with their items."""
    from datetime import date, datetime, timedelta  # 3 ms that only a ranking needs.

    return frozenset({int, float, str, bytes, bool, type(None), date, datetime, timedelta, Decimal})


@named
def min_by(key: Callable[[T], Any] | None = None) -> Collector[T, OfItems, Optional[T]]:
    """Take the item with the least key, the first of equals.

    The result is an empty `Optional` without items, and if the least item is None.

    Args:
        key: returns the value to compare; `functools.cmp_to_key` converts a comparator. Without it the
            items are compared.

    Example:
        >>> min_by(len).collect(["bb", "a", "c"])
        Optional['a']
    """
    return _selecting(_before, min, key)


@named
def max_by(key: Callable[[T], Any] | None = None) -> Collector[T, OfItems, Optional[T]]:
    """Take the item with the greatest key, the first of equals; otherwise as `min_by`.

    Example:
        >>> max_by(len).collect(["bb", "a", "cc"])
        Optional['bb']
    """
    return _selecting(_after, max, key)


def _selecting(better: Callable[[Any, Any], bool], select: Callable[..., Any], key: Key) -> Collector[Any, Any, Any]:
    all_at_once = partial(_consider_all, better, select, key)
    return Collector(
        list,
        partial(_consider, better, _optional_key(key)),
        partial(_consider_other, better, _optional_key(key)),
        _selected,
        accumulate_all=all_at_once,
        in_columns=InColumns("first", of=key, same_as=all_at_once, first=1, reverse=select is max),
    )


def _optional_key(key: Key) -> Key:
    return None if key is None else checked_function(key, "key")


def _consider(better: Callable[[Any, Any], bool], key: Key, best: Ranked, item: Any) -> None:
    _keep_better(better, key, best, item if key is None else key(item), item)


def _keep_better(better: Callable[[Any, Any], bool], key: Key, best: Ranked, rank: Any, item: Any) -> None:
    if best and best[0][0] is _NO_KEY:
        best[:] = _with_keys(key, best)  # The best item was sent by another process, without its key.
    if not best or better(rank, best[0][0]):
        best[:] = [(rank, item)] if type(rank) in _plain() else _sendable([(rank, item)])


def _consider_all(
    better: Callable[[Any, Any], bool], select: Callable[..., Any], key: Key, best: Ranked, items: Iterable[Any]
) -> Ranked:
    for batch in batches(items):
        ranks = applied(key, batch)
        # With a NaN, the result of `min` and `max` depends on the order.
        if holds_nan(ranks):
            for rank, item in zip(ranks, batch, strict=True):
                _keep_better(better, key, best, rank, item)
        else:
            _keep_better(better, key, best, *select(zip(ranks, batch, strict=True), key=_key))
    return best


def _consider_other(better: Callable[[Any, Any], bool], key: Key, left: Ranked, right: Ranked) -> None:
    for rank, item in _with_keys(key, right):
        _keep_better(better, key, left, rank, item)


class _Sent(tuple[Any, Any]):
    """A pair (key, item) of which only the item is pickled, since the key may not be picklable.

    The keys of `functools.cmp_to_key` cannot be pickled, and copies of other keys may have another order. The process
    that receives the item computes its key again.
    """

    __slots__ = ()

    def __reduce__(self) -> tuple[Any, ...]:
        return _received, (self[1],)


class _NoKey:
    """Placeholder of the key of an item that was sent by another process."""

    def __reduce__(self) -> str:
        return "_NO_KEY"  # Pickled as a global, so that `is` holds in every process.


_NO_KEY = _NoKey()


def _received(item: Any) -> _Sent:
    return _Sent((_NO_KEY, item))


def _sendable(pairs: Ranked) -> Ranked:
    """Return the pairs in the form in which they are sent: without their keys, unless all keys are plain values."""
    ranks = [rank for rank, _ in pairs]
    found = kinds(ranks)
    if tuple in found:
        parts = chain.from_iterable(rank for rank in ranks if type(rank) is tuple)
        found = found - {tuple} | kinds(parts)
    return pairs if found <= _plain() else list(map(_Sent, pairs))


def _with_keys(key: Key, pairs: Ranked) -> Ranked:
    """Return the pairs with all keys; keys of pairs that another process sent without them are computed again."""
    if _Sent not in kinds(pairs):
        return pairs
    found = [(rank if rank is not _NO_KEY else item if key is None else key(item), item) for rank, item in pairs]
    return _sendable(found)


def _selected(best: Ranked) -> Optional[Any]:
    return Optional.of_nullable(best[0][1]) if best else Optional.empty()


def _before(left: Any, right: Any) -> bool:
    if is_nan(right):
        return not is_nan(left)
    return bool(left < right)


def _after(left: Any, right: Any) -> bool:
    return _before(right, left)


@named
def top_n(n: int, key: Callable[[T], Any] | None = None) -> Collector[T, OfItems, list[T]]:
    """Take the `n` items with the greatest keys, the greatest first, the first of equals first.

    Memory: a few times `n` items.

    Raises:
        TypeError: `n` is not an int.
        ValueError: `n` is negative.

    Example:
        >>> top_n(2, len).collect(["a", "ccc", "bb", "ddd"])
        ['ccc', 'ddd']
    """
    return _leading(checked_count(n, "n"), key, descending=True)


@named
def bottom_n(n: int, key: Callable[[T], Any] | None = None) -> Collector[T, OfItems, list[T]]:
    """Take the `n` items with the least keys, the least first; otherwise as `top_n`.

    Example:
        >>> bottom_n(2).collect([3, 1, 2])
        [1, 2]
    """
    return _leading(checked_count(n, "n"), key, descending=False)


def _leading(n: int, key: Key, descending: bool) -> Collector[Any, Any, Any]:
    all_at_once = partial(_lead_all, n, key, descending)
    return Collector(
        list,
        partial(_lead_one, n, _optional_key(key), descending),
        partial(_lead_others, n, key, descending),
        partial(_leaders, n, key, descending),
        accumulate_all=all_at_once,
        # With n = 0 the keys are compared nevertheless; columns would not compare them.
        in_columns=InColumns("first", of=key, same_as=all_at_once, first=n, reverse=descending) if n else None,
    )


def _lead_one(n: int, key: Key, descending: bool, leading: Ranked, item: Any) -> None:
    leading += _sendable([(item if key is None else key(item), item)])
    # Not at each item, so that many share the cost of a sort.
    if len(leading) > 2 * n + 64:
        _prune(n, key, descending, leading)


def _lead_all(n: int, key: Key, descending: bool, leading: Ranked, items: Iterable[Any]) -> Ranked:
    _prune(n, key, descending, leading)  # `_challengers` needs the leading items in order.
    for batch in batches(items):
        ranks = applied(key, batch)
        leading.extend(_challengers(n, descending, leading, ranks, batch))
        leading[:] = _in_order(leading, descending)[:n]
    leading[:] = _sendable(leading)
    return leading


def _challengers(n: int, descending: bool, leading: Ranked, ranks: list[Any], batch: list[Any]) -> Iterable[Any]:
    """Return the items that may still get among the first `n`; `leading` is in order."""
    pairs = zip(ranks, batch, strict=True)
    if not 0 < n <= len(leading) or holds_nan([leading[-1][0], *ranks]):
        return pairs
    last = leading[-1][0]
    return [pair for pair in pairs if last < pair[0]] if descending else [pair for pair in pairs if pair[0] < last]


def _lead_others(n: int, key: Key, descending: bool, left: Ranked, right: Ranked) -> None:
    left.extend(right)
    _prune(n, key, descending, left)


def _prune(n: int, key: Key, descending: bool, leading: Ranked) -> None:
    leading[:] = _in_order(_with_keys(key, leading), descending)[:n]


def _leaders(n: int, key: Key, descending: bool, leading: Ranked) -> list[Any]:
    return [item for _, item in _in_order(_with_keys(key, leading), descending)[:n]]


@named
def sorting(key: Callable[[T], Any] | None = None) -> Collector[T, OfItems, list[T]]:
    """Collect all items in a list in the order of their keys; equal items remain in encounter order.

    Example:
        >>> sorting(len).collect(["ccc", "a", "bb", "d"])
        ['a', 'd', 'bb', 'ccc']
    """
    collector: Collector[Any, Any, Any] = Collector(
        list, list.append, list.extend, partial(_sorted, _optional_key(key)), accumulate_all=_extend
    )
    return collector


def _extend(items: list[Any], others: Iterable[Any]) -> list[Any]:
    items.extend(others)
    return items


def _sorted(key: Key, items: list[Any]) -> list[Any]:
    ranks = applied(key, items)
    return [item for _, item in _in_order(list(zip(ranks, items, strict=True)), descending=False)]


def _in_order(pairs: Ranked, descending: bool) -> Ranked:
    """Sort by key, stable also when descending."""
    nan_last = holds_nan([rank for rank, _ in pairs])
    return sorted(pairs, key=_nan_last if nan_last else _key, reverse=descending)


def _nan_last(pair: tuple[Any, Any]) -> tuple[bool, Any]:
    return (True, None) if is_nan(pair[0]) else (False, pair[0])
