"""Windows: tuples of neighbouring items."""

from __future__ import annotations

import functools
import itertools
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import Any, TypeVar

from dstream.gatherers.gatherer_arguments import window_size
from dstream.spi import ByPlace, Downstream, Gatherer, Place

__all__ = ["pairs", "window_fixed", "window_sliding"]

T = TypeVar("T")


def window_fixed(n: int) -> Gatherer[T, Any, tuple[T, ...]]:
    """Gather the items into tuples of `n`, one after another; the last one has what is left.

    Runs in parallel: each partition borrows up to `n` - 1 items from those behind it.

    Raises:
        ValueError: `n` is less than 1.

    Example:
        >>> from dstream.gatherers import window_fixed
        >>> Stream.of(1, 2, 3, 4, 5).gather(window_fixed(2)).to_list()
        [(1, 2), (3, 4), (5,)]
    """
    size = window_size(n)
    return Gatherer(
        list,
        functools.partial(_fill, size),
        finisher=_push_rest,
        gather_all=functools.partial(_fixed, size),
        parallel=ByPlace(size - 1, functools.partial(_fixed_part, size)),
        name=f"window_fixed({size})",
    )


def _fill(size: int, window: list[T], item: T, downstream: Downstream[tuple[T, ...]]) -> bool | None:
    window.append(item)
    if len(window) < size:
        return None
    full = tuple(window)
    window.clear()
    return downstream.push(full)


def _push_rest(window: list[T], downstream: Downstream[tuple[T, ...]]) -> None:
    if window:
        downstream.push(tuple(window))


def _fixed(size: int, items: Iterable[T]) -> Iterator[tuple[T, ...]]:
    return _cut(items, size)


def _fixed_part(size: int, items: Iterable[T], place: Place) -> Iterator[tuple[T, ...]]:
    """Give the windows that begin in this partition."""
    first = -place.offset % size
    windows = -(-(place.size - first) // size) if first < place.size else 0
    return islice(_cut(islice(items, first, None), size), windows)


def _cut(items: Iterable[T], size: int) -> Iterator[tuple[T, ...]]:
    """Give tuples of `size` items. `itertools.batched` takes the memory for all of them at once (3.13)."""
    left = iter(items)
    return iter(lambda: tuple(islice(left, size)), ())


def window_sliding(n: int) -> Gatherer[T, Any, tuple[T, ...]]:
    """Gather each item and the `n` - 1 items behind it into a tuple, as far as there are so many.

    A stream of fewer than `n` items gives one window of them all, an empty one gives none. Runs in parallel:
    each partition borrows up to `n` - 1 items from those behind it.

    Raises:
        ValueError: `n` is less than 1.

    Example:
        >>> from dstream.gatherers import window_sliding
        >>> Stream.of(1, 2, 3, 4).gather(window_sliding(3)).to_list()
        [(1, 2, 3), (2, 3, 4)]
    """
    size = window_size(n)
    return Gatherer(
        _Sliding,
        functools.partial(_slide, size),
        finisher=_push_short,
        gather_all=functools.partial(_sliding, size),
        parallel=ByPlace(
            size - 1, functools.partial(_sliding_part, size), functools.partial(_sliding_ahead, size), window=size
        ),
        name=f"window_sliding({size})",
    )


class _Sliding:
    """The items of the next window, and whether there was one before."""

    def __init__(self) -> None:
        self.window: tuple[Any, ...] = ()
        self.has_pushed = False


def _slide(size: int, state: _Sliding, item: T, downstream: Downstream[tuple[T, ...]]) -> bool | None:
    state.window = (*state.window[-(size - 1) :], item) if size > 1 else (item,)
    if len(state.window) < size:
        return None
    state.has_pushed = True
    return downstream.push(state.window)


def _push_short(state: _Sliding, downstream: Downstream[tuple[T, ...]]) -> None:
    if state.window and not state.has_pushed:
        downstream.push(state.window)


def _sliding(size: int, items: Iterable[T]) -> Iterator[tuple[T, ...]]:
    # No generator of our own stands between C code and the windows; it only opens them.
    return chain.from_iterable(_opened(size, iter(items)))


def _opened(size: int, items: Iterator[T]) -> Iterator[Iterable[tuple[T, ...]]]:
    first = tuple(islice(items, size))
    if len(first) == size:
        yield _slid(first, items)
    elif first:
        yield (first,)


def _sliding_part(size: int, items: Iterable[T], place: Place) -> Iterator[tuple[T, ...]]:
    """Give the windows that begin in this partition; its first items are the only window of a short stream."""
    items = iter(items)
    if place.total >= size:
        first = tuple(islice(items, size))
        return _slid(first, items) if len(first) == size else iter(())
    return iter([tuple(items)] if place.offset == 0 and place.size else [])


def _sliding_ahead(
    size: int, own: Iterable[T], behind: Iterable[T], is_first: Callable[[], bool]
) -> Iterator[tuple[T, ...]]:
    own = iter(own)
    first = tuple(islice(own, size))
    if not first:
        return iter(())
    items = chain(own, islice(behind, size - 1))
    first += tuple(islice(items, size - len(first)))
    if len(first) < size:
        return iter([first] if is_first() else [])
    return _slid(first, items)


def _slid(first: tuple[T, ...], items: Iterator[T]) -> Iterator[tuple[T, ...]]:
    """Give all windows, of which the first is known: fast, or holding no more than one of them if it is large."""
    size = len(first)
    if sum(map(sys.getsizeof, first)) < size * _LARGE:
        from more_itertools import sliding_window  # here: few programs gather windows

        return sliding_window(chain(first, items), size)
    return _slid_one_by_one(first, items)


_LARGE = 64 * 2**10
"""Bytes of items that `itertools.tee`, of which `sliding_window` is made, must not hold 57 of (CPython 3.11)."""


def _slid_one_by_one(first: tuple[T, ...], items: Iterator[T]) -> Iterator[tuple[T, ...]]:
    window = deque(first, maxlen=len(first))
    yield first
    del first
    for item in items:
        window.append(item)
        yield tuple(window)


def pairs() -> Gatherer[T, Any, tuple[T, T]]:
    """Gather each item and the next one: `itertools.pairwise`."""
    return Gatherer(
        list,
        _pair,
        gather_all=itertools.pairwise,
        parallel=ByPlace(1, _pairs_part, _pairs_ahead),
        name="pairwise()",
    )


def _pair(last: list[T], item: T, downstream: Downstream[tuple[T, T]]) -> bool | None:
    before, last[:] = last[:], [item]
    return downstream.push((before[0], item)) if before else None


def _pairs_part(items: Iterable[T], place: Place) -> Iterator[tuple[T, T]]:
    return itertools.pairwise(items)


def _pairs_ahead(own: Iterable[T], behind: Iterable[T], is_first: Callable[[], bool]) -> Iterator[tuple[T, T]]:
    return itertools.pairwise(chain(own, islice(behind, 1)))
