"""Positions: what depends on the number that an item has in the stream."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, compress, count, islice
from typing import Any, TypeVar

from dstream.spi import ByPlace, Downstream, Gatherer, Place

__all__ = ["indexed", "numbered", "ranked", "sampled"]

T = TypeVar("T")
R = TypeVar("R")
_DRAWN_TOGETHER = 4096

At = Callable[[int, Iterable[T]], Iterator[R]]
"""What becomes of items, the first of which has the given number."""


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
    """Gather some of the items: whether one of them is kept depends on the seed and its number alone."""
    return _by_number(functools.partial(_kept, fraction, seed), "sample(...)")


def _kept(fraction: float, seed: int, first: int, items: Iterable[T]) -> Iterator[T]:
    return compress(items, map(fraction.__gt__, _drawn(seed, first)))


def ranked(seed: int) -> Gatherer[T, Any, tuple[float, T]]:
    """Gather a random number with each item, which depends on the seed and the item's own number alone."""
    return _by_number(functools.partial(_with_rank, seed), "shuffle(...)")


def _with_rank(seed: int, first: int, items: Iterable[T]) -> Iterator[tuple[float, T]]:
    return zip(_drawn(f"shuffle:{seed}", first), items, strict=False)


def _drawn(seed: object, first: int) -> Iterator[float]:
    """Draw a number from 0 up to 1 for each item from the `first` on."""
    chunk, before = divmod(first, _DRAWN_TOGETHER)
    draws = chain.from_iterable(map(functools.partial(_draws, seed), count(chunk)))
    return islice(draws, before, None)


def _draws(seed: object, chunk: int) -> list[float]:
    """Draw a number from 0 up to 1 for each item of a chunk."""
    from random import Random  # here: few programs draw

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
