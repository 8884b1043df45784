"""The types that flow through gatherers and positions; two type checkers read this file, nothing runs it."""

from __future__ import annotations

from typing import Any, assert_type

import dstream as ds
from dstream import DoubleStream, IntStream, LongStream, Stream
from dstream.gatherers import Downstream, Gatherer, fold, scan, window_fixed, window_sliding


def gathered(words: Stream[str]) -> None:
    """A gatherer takes the items of the stream and gives its own ones."""
    assert_type(words.gather(window_fixed(3)), Stream[tuple[str, ...]])
    assert_type(words.gather(window_sliding(3)), Stream[tuple[str, ...]])
    assert_type(words.gather(fold(int, lambda total, word: total + len(word))), Stream[int])
    assert_type(words.gather(scan(int, lambda total, word: total + len(word), int.__add__)), Stream[int])
    assert_type(words.gather(ds.gatherers.window_fixed(2)).map(lambda window: window[0].upper()), Stream[str])


def longer(state: list[str], word: str, downstream: Downstream[int]) -> bool | None:
    """Push the length of each word that is longer than those before."""
    return downstream.push(len(word)) and not downstream.is_rejecting()


def own(words: Stream[str], first: Gatherer[str, Any, int], second: Gatherer[int, Any, float]) -> None:
    """`of` takes the types from its functions; `and_then` goes on with the items of the first."""
    made = Gatherer.of(list[str], integrator=longer, combiner=list[str].extend)
    assert_type(made, Gatherer[str, list[str], int])
    assert_type(words.gather(made), Stream[int])
    assert_type(first.and_then(second), Gatherer[str, Any, float])
    assert_type(words.gather(first.and_then(second)), Stream[float])


def parts_of_a_gatherer(made: Gatherer[str, list[str], int]) -> None:
    """A gatherer is data, and runs without a stream too."""
    made.of(integrator=lambda state, item, downstream: downstream.push(item))
    assert_type(made.initializer(), list[str])
    assert_type(list(made.gather(["sea"])), list[int])
    assert_type(made.combined(["a"], ["b"]), list[str])
    assert_type(made.finished([["a"]]), list[int])
    assert_type(made.name, str)
    assert_type(made.may_stop, bool)
    print(made.integrator, made.combiner, made.finisher, made.gather_all, made.parallel)


def positions(words: Stream[str]) -> None:
    """Positions and neighbours give tuples."""
    assert_type(words.zip_with_index(), Stream[tuple[str, int]])
    assert_type(words.enumerate(1), Stream[tuple[int, str]])
    assert_type(words.pairwise(), Stream[tuple[str, str]])
    assert_type(words.chunked(2), Stream[tuple[str, ...]])
    assert_type(words.sample(0.5, seed=1), Stream[str])
    assert_type(words.sample(n=3).shuffle(seed=1), Stream[str])
    assert_type(words.shuffle(), Stream[str])


def of_ints(numbers: IntStream) -> None:
    """A sample of numbers stays a stream of numbers."""
    assert_type(numbers.gather(window_sliding(2)), Stream[tuple[int, ...]])
    assert_type(numbers.zip_with_index(), Stream[tuple[int, int]])
    assert_type(numbers.enumerate(), Stream[tuple[int, int]])
    assert_type(numbers.pairwise(), Stream[tuple[int, int]])
    assert_type(numbers.chunked(2), Stream[tuple[int, ...]])
    assert_type(numbers.sample(0.5), IntStream)
    assert_type(numbers.shuffle(1), IntStream)


def of_longs(numbers: LongStream) -> None:
    """The same for longs."""
    assert_type(numbers.gather(window_fixed(2)), Stream[tuple[int, ...]])
    assert_type(numbers.zip_with_index(), Stream[tuple[int, int]])
    assert_type(numbers.enumerate(), Stream[tuple[int, int]])
    assert_type(numbers.pairwise(), Stream[tuple[int, int]])
    assert_type(numbers.chunked(2), Stream[tuple[int, ...]])
    assert_type(numbers.sample(0.5), LongStream)
    assert_type(numbers.shuffle(1), LongStream)


def of_doubles(numbers: DoubleStream) -> None:
    """The same for doubles."""
    assert_type(numbers.gather(scan(float, lambda total, n: total + n)), Stream[float])
    assert_type(numbers.zip_with_index(), Stream[tuple[float, int]])
    assert_type(numbers.enumerate(), Stream[tuple[int, float]])
    assert_type(numbers.pairwise(), Stream[tuple[float, float]])
    assert_type(numbers.chunked(2), Stream[tuple[float, ...]])
    assert_type(numbers.sample(0.5), DoubleStream)
    assert_type(numbers.shuffle(1), DoubleStream)
