"""Gatherers over neighbouring items: folds, scans, windows, and numbering."""

from __future__ import annotations

import functools
import itertools
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, compress, count, islice
from typing import Any, TypeVar, overload

from dstream.arguments import checked_function, optional_function, window_size
from dstream.base.functions import checked_result
from dstream.spi import AtEnd, ByPlace, Downstream, Gatherer, Place, RunningValue

__all__ = ["fold", "indexed", "numbered", "pairs", "ranked", "sampled", "scan", "window_fixed", "window_sliding"]


T = TypeVar("T")
R = TypeVar("R")
U = TypeVar("U")
U2 = TypeVar("U2")
U3 = TypeVar("U3")


@overload
def fold(  # type: ignore[overload-overlap]  # For pyright, as with `Stream.iterate`: it takes `(0, 1)` for that 0 and 1.
    start: Callable[[], R], fn: Callable[[R, T], R], combiner: Callable[[R, R], R] | None = None
) -> Gatherer[T, Any, R]: ...
@overload
def fold(
    start: Callable[[], tuple[U, U2]],
    fn: Callable[[tuple[U, U2], T], tuple[U, U2]],
    combiner: Callable[[tuple[U, U2], tuple[U, U2]], tuple[U, U2]] | None = None,
) -> Gatherer[T, Any, tuple[U, U2]]: ...
@overload
def fold(
    start: Callable[[], tuple[U, U2, U3]],
    fn: Callable[[tuple[U, U2, U3], T], tuple[U, U2, U3]],
    combiner: Callable[[tuple[U, U2, U3], tuple[U, U2, U3]], tuple[U, U2, U3]] | None = None,
) -> Gatherer[T, Any, tuple[U, U2, U3]]: ...
def fold(
    start: Callable[[], Any], fn: Callable[[Any, Any], Any], combiner: Callable[[Any, Any], Any] | None = None
) -> Gatherer[Any, Any, Any]:
    """Gather all items into one value: `functools.reduce(fn, items, start())`. An empty stream results in `start()`.

    Without a `combiner` one task reads all items, in order. With a `combiner`, each partition folds its own items from
    its own start, and the values are combined in order. So the start must be neutral (0 for a sum, "" for a
    string), and `combiner(fold of a, fold of b)` must be the fold of a, then b.

    Args:
        start: returns the initial value.
        fn: `fn(value, item)` returns the next value.
        combiner: `combiner(left, right)` returns the combined value of two neighbouring parts.

    Example:
        >>> from dstream.gatherers import fold
        >>> Stream.of(1, 2, 3).gather(fold(lambda: "", lambda text, n: f"{text}{n}")).to_list()
        ['123']
    """
    checked_function(start, "start")
    checked_function(fn, "fn")
    optional_function(combiner, "combiner")
    return Gatherer(
        functools.partial(_boxed, start),
        functools.partial(_take, fn),
        None if combiner is None else functools.partial(_combine, combiner),
        _push_value,
        functools.partial(_folded, start, fn),
        None if combiner is None else AtEnd(functools.partial(_state_of, start, fn)),
        "fold(...)",
    )


def _boxed(start: Callable[[], R]) -> list[R]:
    return [start()]


def _take(fn: Callable[[R, T], R], box: list[R], item: T, downstream: Downstream[R]) -> None:
    box[0] = fn(box[0], item)


def _combine(combiner: Callable[[R, R], R], left: list[R], right: list[R]) -> list[R]:
    return [combiner(left[0], right[0])]


def _push_value(box: list[R], downstream: Downstream[R]) -> None:
    downstream.push(checked_result(box[0]))


def _state_of(start: Callable[[], R], fn: Callable[[R, T], R], items: Iterable[T]) -> list[R]:
    value = start()
    for item in items:
        value = fn(value, item)
    return [checked_result(value)]


def _folded(start: Callable[[], R], fn: Callable[[R, T], R], items: Iterable[T]) -> Iterator[R]:
    yield from _state_of(start, fn, items)


@overload
def scan(  # type: ignore[overload-overlap]  # For pyright, as with `Stream.iterate`: it takes `(0, 1)` for that 0 and 1.
    start: Callable[[], R], fn: Callable[[R, T], R], combiner: Callable[[R, R], R] | None = None
) -> Gatherer[T, Any, R]: ...
@overload
def scan(
    start: Callable[[], tuple[U, U2]],
    fn: Callable[[tuple[U, U2], T], tuple[U, U2]],
    combiner: Callable[[tuple[U, U2], tuple[U, U2]], tuple[U, U2]] | None = None,
) -> Gatherer[T, Any, tuple[U, U2]]: ...
@overload
def scan(
    start: Callable[[], tuple[U, U2, U3]],
    fn: Callable[[tuple[U, U2, U3], T], tuple[U, U2, U3]],
    combiner: Callable[[tuple[U, U2, U3], tuple[U, U2, U3]], tuple[U, U2, U3]] | None = None,
) -> Gatherer[T, Any, tuple[U, U2, U3]]: ...
def scan(
    start: Callable[[], Any], fn: Callable[[Any, Any], Any], combiner: Callable[[Any, Any], Any] | None = None
) -> Gatherer[Any, Any, Any]:
    """Gather the running value after each item: `itertools.accumulate` without its start.

    Without a `combiner` one task reads all items, in order. With a `combiner`, each partition first folds its own
    items from its own start, and then folds them again from the value of the partitions before it: `fn` runs twice
    for an item. The start must be neutral (0 for a sum), and `combiner(fold of a, fold of b)` must be the fold of a,
    then b. `fn` must return a new value, not change the old value: each value is an item of the result.

    Args:
        start: returns the initial value.
        fn: `fn(value, item)` returns the next value.
        combiner: `combiner(left, right)` returns the combined value of two neighbouring parts.

    Example:
        >>> import operator
        >>> from dstream.gatherers import scan
        >>> Stream.of(3, 1, 2).gather(scan(lambda: 0, operator.add, operator.add)).to_list()
        [3, 4, 6]
    """
    checked_function(start, "start")
    checked_function(fn, "fn")
    optional_function(combiner, "combiner")
    return Gatherer(
        functools.partial(_boxed, start),
        functools.partial(_take_and_push, fn),
        gather_all=functools.partial(_scanned, start, fn),
        parallel=None if combiner is None else RunningValue(start, fn, combiner),
        name="scan(...)",
    )


def _take_and_push(fn: Callable[[R, T], R], box: list[R], item: T, downstream: Downstream[R]) -> bool:
    box[0] = fn(box[0], item)
    return downstream.push(box[0])


def _scanned(start: Callable[[], R], fn: Callable[[R, T], R], items: Iterable[T]) -> Iterator[R]:
    value, items = start(), iter(items)
    for item in items:
        # Only the first value is checked: an async function returns a coroutine from the first call on.
        value = checked_result(fn(value, item))
        yield value
        break
    for item in items:
        value = fn(value, item)
        yield value


def window_fixed(n: int) -> Gatherer[T, Any, tuple[T, ...]]:
    """Gather the items into consecutive tuples of `n`; the last tuple has the rest.

    Runs in parallel: each partition reads up to `n` - 1 items of the partitions after it.

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
    """Return the windows that begin in this partition."""
    # The first items belong to a window that begins in an earlier partition.
    first = -place.offset % size
    windows = -(-(place.size - first) // size) if first < place.size else 0
    return islice(_cut(islice(items, first, None), size), windows)


def _cut(items: Iterable[T], size: int) -> Iterator[tuple[T, ...]]:
    """Return tuples of `size` items. `itertools.batched` allocates a tuple of the full size at once (3.13)."""
    left = iter(items)
    return iter(lambda: tuple(islice(left, size)), ())


def window_sliding(n: int) -> Gatherer[T, Any, tuple[T, ...]]:
    """Gather each item and the next `n` - 1 items into a tuple, if at least `n` - 1 items follow.

    A stream of fewer than `n` items results in one window of all its items, an empty stream in none. Runs in parallel:
    each partition reads up to `n` - 1 items of the partitions after it.

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
    """The items of the next window, and whether there was an earlier window."""

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
    # `chain` takes the windows in C code: the generator only makes their iterator.
    return chain.from_iterable(_opened(size, iter(items)))


def _opened(size: int, items: Iterator[T]) -> Iterator[Iterable[tuple[T, ...]]]:
    first = tuple(islice(items, size))
    if len(first) == size:
        yield _slid(first, items)
    elif first:
        yield (first,)


def _sliding_part(size: int, items: Iterable[T], place: Place) -> Iterator[tuple[T, ...]]:
    """Return the windows that begin in this partition; its first items are the only window of a short stream."""
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
    """Return all windows after and including `first`: fast, or with only one of them in memory if it is large."""
    size = len(first)
    if sum(map(sys.getsizeof, first)) < size * _LARGE:
        from more_itertools import sliding_window  # lazily: few programs gather windows

        return sliding_window(chain(first, items), size)
    return _slid_one_by_one(first, items)


_LARGE = 64 * 2**10
"""Bytes from which items are large: `itertools.tee` of `sliding_window` retains up to 57 of them (CPython 3.11)."""


def _slid_one_by_one(first: tuple[T, ...], items: Iterator[T]) -> Iterator[tuple[T, ...]]:
    window = deque(first, maxlen=len(first))
    yield first
    # Otherwise the first window would remain in memory until the last one.
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
    # In place, since this list is the state.
    before, last[:] = last[:], [item]
    return downstream.push((before[0], item)) if before else None


def _pairs_part(items: Iterable[T], place: Place) -> Iterator[tuple[T, T]]:
    return itertools.pairwise(items)


def _pairs_ahead(own: Iterable[T], behind: Iterable[T], is_first: Callable[[], bool]) -> Iterator[tuple[T, T]]:
    return itertools.pairwise(chain(own, islice(behind, 1)))


# Another number would give other samples and orders of the same seed.
_DRAWN_TOGETHER = 4096

At = Callable[[int, Iterable[T]], Iterator[R]]
"""Function from the number of the first item, and the items, to the output."""


def indexed() -> Gatherer[T, Any, tuple[T, int]]:
    """Gather each item with its number."""
    return _by_number(_with_index, "zip_with_index()")


def _with_index(first: int, items: Iterable[T]) -> Iterator[tuple[T, int]]:
    return zip(items, count(first))


def numbered(start: int) -> Gatherer[T, Any, tuple[int, T]]:
    """Gather the number of each item, counted from `start`, with the item."""
    return _by_number(functools.partial(_enumerated, start), "enumerate()")


def _enumerated(start: int, first: int, items: Iterable[T]) -> Iterator[tuple[int, T]]:
    return enumerate(items, start + first)


def sampled(fraction: float, seed: int) -> Gatherer[T, Any, T]:
    """Gather a random sample of the items: whether an item is in it depends only on the seed and its number."""
    return _by_number(functools.partial(_sampled, fraction, seed), "sample(...)")


def _sampled(fraction: float, seed: int, first: int, items: Iterable[T]) -> Iterator[T]:
    # No draw reaches 1.0, so that the fraction 1.0 selects all items, and 0.0 none.
    return compress(items, map(fraction.__gt__, _drawn(seed, first)))


def ranked(seed: int) -> Gatherer[T, Any, tuple[float, T]]:
    """Gather a random number with each item, which depends on the seed and the item's own number alone."""
    return _by_number(functools.partial(_with_rank, seed), "shuffle(...)")


def _with_rank(seed: int, first: int, items: Iterable[T]) -> Iterator[tuple[float, T]]:
    # With a prefix, so that a shuffle and a sample of one seed draw different numbers.
    return zip(_drawn(f"shuffle:{seed}", first), items, strict=False)


def _drawn(seed: object, first: int) -> Iterator[float]:
    """Draw a number from 0 up to 1 for each item from the `first` on."""
    chunk, before = divmod(first, _DRAWN_TOGETHER)
    draws = chain.from_iterable(map(functools.partial(_draws, seed), count(chunk)))
    return islice(draws, before, None)


def _draws(seed: object, chunk: int) -> list[float]:
    """Draw a number from 0 up to 1 for each item of a chunk."""
    from random import Random  # lazily: few programs draw

    draw = Random(f"{seed}:{chunk}").random
    return [draw() for _ in range(_DRAWN_TOGETHER)]


def _by_number(at: At[T, R], name: str) -> Gatherer[T, Any, R]:
    return Gatherer(
        functools.partial(count, 0),
        functools.partial(_push_one, at),
        gather_all=functools.partial(at, 0),
        parallel=ByPlace(0, functools.partial(_part, at)),
        name=name,
    )


def _push_one(at: At[T, R], numbers: Iterator[int], item: T, downstream: Downstream[R]) -> bool:
    return all(map(downstream.push, at(next(numbers), [item])))


def _part(at: At[T, R], items: Iterable[T], place: Place) -> Iterator[R]:
    return at(place.offset, items)
