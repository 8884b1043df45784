"""Collectors of exact percentiles: they store all numbers, the newest in memory, the others sorted in runs on disk."""

from __future__ import annotations

import math
import weakref
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from struct import Struct
from typing import Any, Protocol, Self, TypeVar, cast

from dstream.arguments import checked_function
from dstream.collectors.arguments import checked_places, named
from dstream.collectors.arithmetic import Numbers, doubles
from dstream.collectors.batches import Prepared
from dstream.spi import Collector

__all__ = ["median", "percentiles"]

T = TypeVar("T")


@named
def percentiles(ps: Iterable[float], fn: Callable[[T], float] | None = None) -> Collector[T, object, list[float]]:
    """Find exact percentiles of the results of `fn` for each item, as floats; NaN are left out.

    Between two numbers it interpolates linearly, as `numpy.percentile` and `statistics.median` do.

    Every number is stored, in 8 bytes, first in the tasks and then in the caller: two million of them in memory,
    the others on disk, sorted. Downstream of another collector, such as a grouping, the numbers of a container are
    sent in one piece. `quantiles` needs a few KB.

    Args:
        ps: from 0 (the least number) over 50 (the median) to 100 (the greatest).
        fn: returns a number; without it the items are the numbers.

    Returns:
        A collector of one float for each percentile; NaN each if there were no numbers.

    Raises:
        TypeError: a percentile is no number; when it runs: a value is no number.
        ValueError: a percentile is not between 0 and 100.

    Example:
        >>> percentiles([0, 50, 99]).collect(range(1, 101))
        [1.0, 50.5, 99.01]
    """
    return _exact("percentiles", checked_places(ps, 100, "ps"), fn, _found)


@named
def median(fn: Callable[[T], float] | None = None) -> Collector[T, object, float]:
    """Find the exact median of the results of `fn` for each item, NaN of nothing; otherwise as `percentiles`.

    Example:
        >>> median(len).collect(["a", "bb", "cccc"])
        2.0
    """
    return _exact("median", [50.0], fn, _first_found)


def _exact(
    factory: str, ps: list[float], fn: Callable[[Any], Any] | None, finish: Callable[..., Any]
) -> Collector[Any, Any, Any]:
    taken = doubles(factory)
    if fn is not None:
        checked_function(fn, "fn")
    return Collector(
        KeptNumbers,
        partial(_add, taken, fn),
        KeptNumbers.take,
        partial(finish, ps),
        accumulate_all=Prepared(partial(taken.every, fn), KeptNumbers.add, _add_all),
        parts=KeptNumbers.parts,
    )


def _add(taken: Numbers, fn: Callable[[Any], Any] | None, kept: KeptNumbers, item: Any) -> None:
    kept.add(taken.one(item if fn is None else fn(item), item))


def _add_all(kept: KeptNumbers, values: list[float]) -> KeptNumbers:
    kept.fromlist(values)
    kept.spill_many()
    return kept


def _found(ps: list[float], kept: KeptNumbers) -> list[float]:
    ordered = kept.in_order()
    return [_between(ordered, p) for p in ps]


def _between(ordered: Ordered, p: float) -> float:
    if not len(ordered):
        return math.nan
    below, part = divmod(p * (len(ordered) - 1), 100)
    low, high = (ordered[place] for place in (int(below), min(int(below) + 1, len(ordered) - 1)))
    share = part / 100
    # An infinite number times 0 would be NaN.
    return low if share == 0 or low == high else low * (1 - share) + high * share


def _first_found(ps: list[float], kept: KeptNumbers) -> float:
    return _found(ps, kept)[0]


class Ordered(Protocol):
    """Numbers by their rank."""

    def __len__(self) -> int: ...

    def __getitem__(self, rank: int, /) -> float: ...


_MOST_IN_MEMORY = 2**21
"""Maximum number of numbers in memory, 8 bytes each; sorting them takes about three times the memory."""


class KeptNumbers(array):  # type: ignore[type-arg]  # `array[float]` is no class to inherit from
    """The numbers in memory, as an array, and with them the runs on disk."""

    __slots__ = ("_runs",)

    _runs: _Runs

    def __new__(cls, numbers: Any = ()) -> Self:
        """Create an array of numbers, or of their bytes."""
        return cast(Self, super().__new__(cls, "d", numbers))

    def add(self, number: float) -> None:
        """Take a number."""
        self.append(number)
        if len(self) >= _MOST_IN_MEMORY:
            self._spill()

    def spill_many(self) -> None:
        """Write the numbers in memory to disk if they are many."""
        if len(self) >= _MOST_IN_MEMORY:
            self._spill()

    def _spill(self) -> None:
        ordered = _sorted(self)
        if not hasattr(self, "_runs"):
            self._runs = _Runs()
        self._runs.write(ordered)
        # The array itself is the container, so it is emptied and not replaced.
        del self[:]

    def take(self, other: KeptNumbers) -> None:
        """Add the numbers of another container."""
        # In parts, so that the numbers on disk are never in memory together.
        for part in other.parts():
            self.extend(part)
            self.spill_many()

    def parts(self) -> Iterator[KeptNumbers]:
        """Yield the numbers in parts that fit into memory."""
        if not hasattr(self, "_runs"):
            yield self
            return
        yield from map(KeptNumbers, self._runs.contents())
        yield KeptNumbers(self.tobytes())

    def in_order(self) -> Ordered:
        """Return the numbers by their ranks, without NaN."""
        if not hasattr(self, "_runs"):
            return _sorted(self)
        self._spill()
        return self._runs.merged()

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        """Pickle all numbers, also the numbers on disk."""
        return KeptNumbers, (b"".join(part.tobytes() for part in self.parts()),)


def _sorted(numbers: array[float]) -> memoryview[float]:
    """Return the numbers in order, without NaN, as a sequence of doubles."""
    # pyarrow takes about 200 ms to import, and sorts the numbers in place, without an object for each.
    import pyarrow as pa
    import pyarrow.compute as pc

    array_ = pa.Array.from_buffers(pa.float64(), len(numbers), [None, pa.py_buffer(numbers)])
    is_nan = pc.call_function("is_nan", [array_])
    ordered = array_.filter(pc.call_function("invert", [is_nan])).sort()
    content = ordered.buffers()[1]
    if content is None or not len(ordered):
        return memoryview(b"").cast("d")
    return memoryview(content)[ordered.offset * 8 :][: len(ordered) * 8].cast("d")


class _Runs:
    """Sorted runs of numbers in a file without a name, which is closed with this object."""

    def __init__(self) -> None:
        import tempfile  # Lazily: few need a file, and the import takes 3 ms.

        self._file = tempfile.TemporaryFile(prefix="dstream-")  # noqa: SIM115 - it is open as long as the numbers exist
        # Python warns about a file that is not closed.
        weakref.finalize(self, self._file.close)
        self._sizes: list[int] = []

    def write(self, ordered: memoryview[float]) -> None:
        """Add a run."""
        if len(ordered):
            self._file.write(ordered)
            self._sizes.append(len(ordered) * 8)

    def contents(self) -> Iterator[bytes]:
        """Yield each run as bytes."""
        place = 0
        for size in self._sizes:
            self._file.seek(place)
            yield self._file.read(size)
            place += size
        self._file.seek(0, 2)  # The next run is appended.

    def merged(self) -> _Merged:
        """Return all numbers by their ranks."""
        self._file.flush()
        if not self._sizes:
            return _Merged([])
        import mmap

        view, runs, place = memoryview(mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)), [], 0
        for size in self._sizes:
            runs.append(view[place : place + size].cast("d"))
            place += size
        return _Merged(runs)


class _Merged:
    """Sorted runs as one sequence in order: the number of a rank is found by bisecting the range of all doubles."""

    def __init__(self, runs: list[memoryview[float]]) -> None:
        self._runs = runs
        self._size = sum(map(len, runs))

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, rank: int) -> float:
        least, greatest = (_place(choose(run[end] for run in self._runs)) for choose, end in ((min, 0), (max, -1)))
        while least < greatest:
            middle = (least + greatest) // 2
            if self._up_to(_number(middle)) > rank:
                greatest = middle
            else:
                least = middle + 1
        return _number(least)

    def _up_to(self, number: float) -> int:
        """Count the numbers that are not greater than `number`."""
        return sum(bisect_right(run, number) for run in self._runs)


_DOUBLE, _INT = Struct("<d"), Struct("<q")
_HIGHEST = 2**63


def _place(number: float) -> int:
    """Return the number of a double among all doubles in their order."""
    place: int = _INT.unpack(_DOUBLE.pack(number))[0]
    # The bits of negative doubles ascend, as ints, where the doubles descend.
    return place if place >= 0 else -(place + _HIGHEST)


def _number(place: int) -> float:
    """Return the double with this number."""
    number: float = _DOUBLE.unpack(_INT.pack(place if place >= 0 else -place - _HIGHEST))[0]
    return number
