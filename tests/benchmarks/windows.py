"""B8: two million floats in windows of ten that slide: counted, and their moving averages.

All contestants make the floats in the same way and run the same functions on the windows. Ours has two
partitions. Floats of a range are read again by the partition before, where it needs them. Those that a
function of the user's made are made once: the windows that lie across the border are gathered by a task of their own.
"""

from __future__ import annotations

import functools
import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor

from more_itertools import ilen, sliding_window

from dstream import IntStream
from dstream.gatherers import window_sliding
from dstream.stream import Stream
from tests.benchmarks.harness import Bench, Case, Contestant

__all__ = ["cases"]

Window = tuple[float, ...]

_WINDOW = 10
_PARTITIONS = 2
_PLAIN = "plain Python, more_itertools.sliding_window"
_JOBS = 20
"""Each takes half a second or so; a measurement runs it so often, as it does the small jobs of B7."""


def cases(bench: Bench) -> list[Case]:
    """Return the largest moving average, the windows counted, and both behind a function of the user's."""
    count = bench.size(2_000_000, 100_000)
    title = f"{count / 1e6:g} M floats, sliding windows of {_WINDOW}"

    def ours(make: Callable[[int], float]) -> Stream[Window]:
        return _windows(IntStream.range(0, count).parallel(_PARTITIONS).map_to_obj(make))

    return [
        _case(f"{title}: largest average", lambda: ours(float).map(_average).max().get(), _largest, float, count),
        _case(f"{title}: counted", lambda: ours(float).count(), _counted, float, count),
        _case(
            f"{title} that a function made: largest average",
            lambda: ours(_level).map(_average).max().get(),
            _largest,
            _level,
            count,
        ),
    ]


Plain = Callable[[Callable[[int], float], range], float]
"""What plain Python makes of the windows over some numbers."""


def _case(title: str, ours: Callable[[], float], plain: Plain, make: Callable[[int], float], count: int) -> Case:
    """Return a case; plain Python in two processes shows what the second core costs whoever uses it."""
    halves = [range(count // 2 + _WINDOW - 1), range(count // 2, count)]
    together = sum if plain is _counted else max

    def in_two() -> float:
        return together(_processes().map(plain, [make, make], halves))

    rivals = [
        Contestant(_PLAIN, lambda: plain(make, range(count)), goal=1.5, jobs=_JOBS, uses_spark=False),
        Contestant(f"{_PLAIN}, a half in each of two processes", in_two, jobs=_JOBS, uses_spark=False),
    ]
    return Case("B8", title, Contestant("dstream gather(window_sliding(10))", ours, jobs=_JOBS), rivals)


def _largest(make: Callable[[int], float], numbers: range) -> float:
    return max(map(_average, sliding_window(map(make, numbers), _WINDOW)))


def _counted(make: Callable[[int], float], numbers: range) -> float:
    return ilen(sliding_window(map(make, numbers), _WINDOW))


@functools.cache
def _processes() -> ProcessPoolExecutor:
    """Return two processes that stay, as Spark's workers do."""
    return ProcessPoolExecutor(2, multiprocessing.get_context("spawn"))


def _windows(floats: Stream[float]) -> Stream[Window]:
    return floats.gather(window_sliding(_WINDOW))


def _level(number: int) -> float:
    """Make the float with that number; multiplying by an odd number modulo 2^32 shuffles them."""
    return number * 2_654_435_761 % 2**32 / 2**32


def _average(window: Window) -> float:
    return sum(window) / len(window)
