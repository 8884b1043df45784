"""B8: two million floats in windows of ten that slide: counted, and their moving averages.

Both contestants make the floats in the same way and run the same functions on the windows. Ours has two
partitions. Floats of a range are read again by the partition before, where it needs them; those that a
function of the user's made are kept where they were made, and read again by a second job.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from more_itertools import ilen, sliding_window

from dstream import IntStream
from dstream.gatherers import window_sliding
from dstream.stream import Stream
from tests.benchmarks.harness import Bench, Case, Contestant

__all__ = ["cases"]

Window = tuple[float, ...]

_WINDOW = 10
_PARTITIONS = 2
_JOBS = 5
"""Each takes less than a second or two; a measurement runs it so often, as it does the small jobs of B7."""


def cases(bench: Bench) -> list[Case]:
    """Return the largest moving average, the windows counted, and both behind a function of the user's."""
    count = bench.size(2_000_000, 100_000)
    title = f"{count / 1e6:g} M floats, sliding windows of {_WINDOW}"

    def of_floats() -> Stream[Window]:
        return _windows(IntStream.range(0, count).parallel(_PARTITIONS).map_to_obj(float))

    def of_levels() -> Stream[Window]:
        return _windows(IntStream.range(0, count).parallel(_PARTITIONS).map_to_obj(_level))

    def plain(make: Callable[[int], float]) -> Iterator[Window]:
        return sliding_window(map(make, range(count)), _WINDOW)

    return [
        _case(
            f"{title}: largest average",
            lambda: of_floats().map(_average).max().get(),
            lambda: max(map(_average, plain(float))),
        ),
        _case(f"{title}: counted", lambda: of_floats().count(), lambda: ilen(plain(float))),
        _case(
            f"{title} that a function made: largest average",
            lambda: of_levels().map(_average).max().get(),
            lambda: max(map(_average, plain(_level))),
        ),
    ]


def _case(title: str, ours: Callable[[], float], theirs: Callable[[], float]) -> Case:
    rival = Contestant("plain Python, more_itertools.sliding_window", theirs, goal=1.5, jobs=_JOBS, uses_spark=False)
    return Case("B8", title, Contestant("dstream gather(window_sliding(10))", ours, jobs=_JOBS), [rival])


def _windows(floats: Stream[float]) -> Stream[Window]:
    return floats.gather(window_sliding(_WINDOW))


def _level(number: int) -> float:
    """Make the float with that number; multiplying by an odd number modulo 2^32 shuffles them."""
    return number * 2_654_435_761 % 2**32 / 2**32


def _average(window: Window) -> float:
    return sum(window) / len(window)
