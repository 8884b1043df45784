"""The order of sorting, `min` and `max`: Python's `<`, with every NaN of floats after all other keys.

Comparing with NaN is always false, so `sorted` would leave an order that depends on how the items
were divided. The search for a NaN runs at the speed of C, and only for floats.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from numbers import Integral, Real
from typing import Any

from dstream.failures.attribution import each, failed_on, stopped

__all__ = ["NanLast", "before", "choose", "first_compared", "holds_nan", "is_nan", "sort"]

Key = Callable[[Any], Any]


class _Last:
    """A key that is greater than every other, of any type."""

    __slots__ = ()

    def __lt__(self, other: object) -> bool:
        return False

    def __gt__(self, other: object) -> bool:
        return other is not self

    def __reduce__(self) -> str:
        return "_LAST"  # Pickled as a global, so that `is` works in every process.


_LAST = _Last()


def sort(items: list[Any], key: Key | None, reverse: bool, known: Sequence[Any] = ()) -> None:
    """Sort `items` in place, stable, calling `key` once for each item, except for the first, whose keys are `known`."""
    if key is None and not holds_nan(items):
        items.sort(reverse=reverse)
    else:
        # `next(keys, item)`: the keys in turn, without a Python call for each of them.
        items.sort(key=functools.partial(next, iter(_ranks(items, key, known))), reverse=reverse)


def first_compared(items: Sequence[Any], key: Key | None) -> Sequence[Any]:
    """Compare the first two of `items`, so that a sort fails before it has read the others; return their keys."""
    keys = list(items[:2]) if key is None else list(each(key, items[:2]))
    # A copy, since the keys are returned in the order of their items.
    sort(keys.copy(), None, False)
    return keys


def before(items: list[Any], bound: Any, key: Key | None, reverse: bool) -> list[Any]:
    """Return the items that a sort would put strictly before `bound`, calling `key` for each."""
    ranks, (limit,) = _ranks(items, key), _ranks([bound], key)
    # Only `<`, as in a sort: `min` and `max` fail for keys that cannot be compared, and `max` uses `>`.
    if reverse:
        found = [None for rank in ranks if limit < rank]
        return [item for item, rank in zip(items, ranks, strict=True) if limit < rank] if found else []
    found = [None for rank in ranks if rank < limit]
    return [item for item, rank in zip(items, ranks, strict=True) if rank < limit] if found else []


def choose(extreme: Callable[..., Any], items: Sequence[Any], key: Key | None) -> Any:
    """Return the first of the extreme ones of `items`, by `min` or `max`."""
    if key is None and not holds_nan(items):
        return extreme(items)
    return items[extreme(range(len(items)), key=_ranks(items, key).__getitem__)]


_TOGETHER = 1024
"""Number of keys that are the coordinates of one point: its distance from zero is finite only if all are.

It is computed in a third of the time of `isnan` for each.
"""


def holds_nan(keys: Sequence[Any]) -> bool:
    """Return whether a float among `keys`, of Python or of NumPy, is NaN."""
    if keys and type(keys[0]) is float:
        with suppress(Exception):  # Keys that are no numbers may be among floats.
            if all(math.hypot(*keys[start : start + _TOGETHER]) < math.inf for start in range(0, len(keys), _TOGETHER)):
                return False
    return any(map(_is_floating, set(map(type, keys)))) and any(map(is_nan, keys))


def is_nan(key: Any) -> bool:
    """Return whether `key` is a NaN of Python or of NumPy."""
    return _is_floating(type(key)) and bool(key != key)


def _is_floating(kind: type) -> bool:
    # Only `float64` of NumPy is a subclass of float.
    return issubclass(kind, float) or (
        kind.__module__ == "numpy" and issubclass(kind, Real) and not issubclass(kind, Integral)
    )


class NanLast:
    """A key function whose NaN sort after all other keys, for single comparisons."""

    def __init__(self, key: Key | None) -> None:
        self.key = key

    def __call__(self, item: Any) -> Any:
        """Return the key of `item`, or a value that sorts after every key."""
        try:
            key = item if self.key is None else self.key(item)
        except StopIteration as error:
            failed = stopped(getattr(self.key, "__qualname__", type(self.key).__qualname__))
            failed_on(failed, item)
            raise failed from error  # A merge of sorted runs would mistake it for the end of a run.
        except Exception as error:
            failed_on(error, item)
            raise
        return _LAST if is_nan(key) else key


def _ranks(items: Sequence[Any], key: Key | None, known: Sequence[Any] = ()) -> Sequence[Any]:
    if key is None:
        ranks = items
    else:
        ranks = [*known, *each(key, items[len(known) :])] if known else each(key, items)
    return [*map(NanLast(None), ranks)] if holds_nan(ranks) else ranks
