"""`Gathering`: operations on neighbouring items and on the numbers of items."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Self, TypeVar

from dstream.arguments import count, hint_of_a_gatherer, kind_of, whole
from dstream.gatherers.neighbours import indexed, numbered, pairs, ranked, sampled, window_fixed
from dstream.plan import Gather, Node, Recover, Shuffle, Step, call_site, called
from dstream.spi import Calling, Gatherer
from dstream.stream.base import BaseStream
from dstream.stream.runtime import Delivery

if TYPE_CHECKING:
    from dstream.stream.objects import Stream

__all__ = ["Gathering"]


T = TypeVar("T")
R = TypeVar("R")


class Gathering(BaseStream[T]):
    """A stream whose items may be gathered, in encounter order.

    Over several partitions, all of these but `gather` leave the items where they are in a first job, which counts those
    of each partition, and continue from there in parallel. `gather` depends on its gatherer.
    """

    __slots__ = ()

    def gather(self, gatherer: Gatherer[T, Any, R]) -> Stream[R]:
        """Replace the items by the output of `gatherer`, in encounter order.

        `dstream.gatherers` has windows, `fold` and `scan`; `Gatherer.of` makes one of your own. The docstring of each
        states whether it runs in parallel.

        Raises:
            TypeError: `gatherer` is none.

        Example:
            >>> from dstream.gatherers import window_sliding
            >>> Stream.of(3, 5, 1, 2).gather(window_sliding(2)).map(max).to_list()
            [5, 5, 2]
        """
        if not isinstance(gatherer, Gatherer):
            raise TypeError(f"gatherer must be a Gatherer, not {kind_of(gatherer)}{hint_of_a_gatherer(gatherer)}")
        return self._gathered(gatherer, "gather", gatherer.name)

    def zip_with_index(self) -> Stream[tuple[T, int]]:
        """Pair each item with its index, from 0: `(item, index)`.

        Example:
            >>> Stream.of("whale", "sea").zip_with_index().to_list()
            [('whale', 0), ('sea', 1)]
        """
        return self._gathered(indexed(), "zip_with_index")

    def enumerate(self, start: int = 0) -> Stream[tuple[int, T]]:
        """Put its number before each item: `(index, item)`, as the `enumerate` of Python does.

        Raises:
            TypeError: `start` is no int.

        Example:
            >>> Stream.of("whale", "sea").enumerate(1).to_list()
            [(1, 'whale'), (2, 'sea')]
        """
        first = whole(start, "start")
        return self._gathered(numbered(first), "enumerate", str(first) if first else "")

    def pairwise(self) -> Stream[tuple[T, T]]:
        """Replace the items by pairs of an item and the next one, as `itertools.pairwise` does.

        Example:
            >>> Stream.of(1, 4, 9).pairwise().map(lambda pair: pair[1] - pair[0]).to_list()
            [3, 5]
        """
        return self._gathered(pairs(), "pairwise")

    def chunked(self, n: int) -> Stream[tuple[T, ...]]:
        """Replace the items by tuples of `n` of them; the last one has the rest.

        Raises:
            ValueError: `n` is less than 1.

        Example:
            >>> Stream.of(1, 2, 3, 4, 5).chunked(2).to_list()
            [(1, 2), (3, 4), (5,)]
        """
        return self._gathered(window_fixed(n), "chunked", str(n))

    def sample(self, fraction: float | None = None, seed: int | None = None, *, n: int | None = None) -> Self:
        """Keep each item with the probability `fraction`, or `n` items, each as probable as any other.

        The selection depends only on the seed and the positions of the items: on an ordered stream a seed selects the
        same items on every engine, in any number of partitions. With a `fraction` they keep their order; `n` items have
        a random order, as in `random.sample`: up to `n` = 100,000, each partition holds `n` items in memory and sorts
        nothing. If there are fewer, all are returned.

        Args:
            fraction: from 0.0 for none to 1.0 for all.
            seed: unset, one is chosen now, so that this stream returns the same items in each run.
            n: how many items, instead of a fraction.

        Raises:
            TypeError: neither `fraction` nor `n` is passed, or both.
            ValueError: `fraction` is less than 0 or more than 1, or `n` is negative.

        Example:
            >>> Stream.from_iterable(range(20)).sample(0.25, seed=7).to_list()
            [1, 8, 12, 13, 15]
            >>> Stream.from_iterable(range(20)).sample(n=3, seed=7).to_list()
            [15, 19, 7]
        """
        chosen = _seed(seed)
        if n is not None:
            most = _sample_size(fraction, n)
            return self._shuffled(f"sample(n={most}{'' if seed is None else f', seed={chosen}'})", chosen, most)
        part = _fraction(fraction)
        arguments = str(part) if seed is None else f"{part}, seed={chosen}"
        return self._then(Gather(self._node, sampled(part, chosen), step=called("sample", arguments)))

    def shuffle(self, seed: int | None = None) -> Self:
        """Put the items into a random order, in which the stream is ordered from this step on.

        The order depends on the seed and the numbers of the items alone: an ordered stream has the same order for a
            seed on every engine, in any number of partitions. Costs what `sorted` costs.

        Args:
            seed: unset, one is chosen now, so that this stream returns the same order in each run.

        Raises:
            TypeError: `seed` is no int.

        Example:
            >>> Stream.from_iterable("abcdef").shuffle(seed=7).to_list()
            ['c', 'f', 'e', 'd', 'b', 'a']
        """
        chosen = _seed(seed)
        return self._shuffled(f"shuffle({'' if seed is None else chosen})", chosen, None)

    def _shuffled(self, call: str, seed: int, most: int | None) -> Self:
        """Return the items in random order, or only the first of them."""
        return self._then(Shuffle(self._node, ranked(seed), most, step=Step(f".{call}", call_site())))

    def _gathered(self, gatherer: Gatherer[T, Any, R], name: str, arguments: str = "") -> Stream[R]:
        gather = Gather(self._node, gatherer, step=called(name, arguments))
        return self._as("Stream", self._recovering(gather, gatherer.parallel))

    def _recovering(self, gather: Gather, calling: Any) -> Node:
        """Return the step with its gatherer's treatment of calls that fail."""
        if isinstance(calling, Calling) and calling.into is not None:
            return Recover(gather, (Exception,), "sent", delivery=Delivery(calling.into, self._runtime))
        if isinstance(calling, Calling) and calling.instead:
            return Recover(gather, (Exception,), "resolved", functools.partial(_instead, *calling.instead))
        return gather


def _seed(seed: Any) -> int:
    if seed is not None:
        return whole(seed, "seed")
    from random import getrandbits  # lazily: few programs draw

    return getrandbits(64)


def _sample_size(fraction: Any, n: Any) -> int:
    if fraction is not None:
        raise TypeError("sample() takes a fraction or n=, not both")
    return count(n, "n")


def _fraction(value: Any) -> float:
    if value is None:
        raise TypeError("sample() takes a fraction, or n= for so many items")
    # A Decimal and a Fraction are no floats either, and a str has no such method.
    if isinstance(value, bool) or not hasattr(type(value), "__float__"):
        raise TypeError(f"fraction must be a number, not {kind_of(value)}")
    number = float(value)
    if not 0 <= number <= 1:
        raise ValueError(f"fraction must be from 0 to 1: {number}; sample(n=...) returns n items")
    return number


def _instead(value: Any, item: Any, error: Exception) -> Any:
    return value
