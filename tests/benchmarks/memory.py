"""Peak memory of B3, B4 and B5 where the data of each task are about ten times what a worker may occupy.

Each shape runs in a program of its own, this module, with `worker_memory="128m"` and two partitions, while the
resident memory of every Python worker is sampled. How many items make ten times the bound follows from what one of
them occupies where an operation would hold it, measured on CPython 3.11: 120 bytes for a group with its average, 160
for a record, 100 for an id of a set, 440 for a record in the index of a join. The allowance above the bound is that of
`tests/soak/scale.py`: what a worker occupies besides the items held are batches on their way.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from operator import itemgetter
from typing import Any

import dstream as ds
from collectors import averaging, counting, grouping_by
from tests.benchmarks.harness import Bench, Row, yes_or_no
from tests.benchmarks.separate import answering, watched

__all__ = ["rows"]

_MEGABYTE = 2**20
_BOUND = 128 * _MEGABYTE
_ALLOWANCE = 128 * _MEGABYTE
_TIMES = 10
_TASKS = 2

Record = tuple[int, str]


def rows(bench: Bench, runs: int) -> list[Row]:
    """Run each shape once, however many `runs` are asked for: a peak is no matter of chance as a time is."""
    made: list[Row] = []
    for name, (title, size_of_one, _) in _SHAPES.items():
        items = bench.size(_TIMES * _BOUND * _TASKS // size_of_one, 20_000)
        (result, expected), peaks = watched("memory", name, items)
        assert result == expected, f"memory: {title} gives {result}, not {expected}"
        print(f"memory: {title}", file=sys.stderr)
        made.append(_row(title, items, items * size_of_one / _TASKS, peaks.worker, is_first=not made))
    return made


def _row(title: str, items: int, of_a_task: float, peak: int, *, is_first: bool) -> Row:
    times = f"{of_a_task / _BOUND:.1f} times the bound in each task"
    allowed = f"{(_BOUND + _ALLOWANCE) / _MEGABYTE:.0f} MB"
    note = f"{times}; peak of a worker with a bound of {_BOUND / _MEGABYTE:.0f} MB, goal {allowed}"
    return (
        "memory at 10 times the bound" if is_first else "",
        f"{title}, {items / 1e6:.1f} M",
        "",
        "",
        f"{peak / _MEGABYTE:,.0f}",
        "",
        "",
        yes_or_no(peak <= _BOUND + _ALLOWANCE),
        note,
    )


Outcome = tuple[Any, Any]
"""What came out, and what should have."""


def _grouping(ctx: ds.Context, items: int) -> Outcome:
    """Give each item a key of its own, so that nothing is combined, and look at the sum of the averages."""
    records = ctx.stream(range(items), _TASKS).map(lambda number: (_scattered(number), number % 1000))
    averages = records.collect(grouping_by(itemgetter(0), averaging(itemgetter(1))))
    return [len(averages), sum(averages.values())], [items, sum(number % 1000 for number in range(items))]


def _sort(ctx: ds.Context, items: int) -> Outcome:
    """Sort records and look at their order on the workers, who fail if it is wrong."""
    records = ctx.stream(range(items), _TASKS).map(_record)
    records.sorted(key=itemgetter(0)).for_each_partition(_check_rising)
    return "sorted", "sorted"


def _distinct(ctx: ds.Context, items: int) -> Outcome:
    """Repeat each id once, far from its first occurrence."""
    ids = ctx.stream(range(2 * items), _TASKS).map(partial(_id, items))
    return ids.unordered().distinct().collect(counting()), items


def _join(ctx: ds.Context, items: int) -> Outcome:
    """Join records with as many others that have the same keys; the workers look at each pair."""
    left, right = (ctx.stream(range(items), _TASKS).map(_record) for _ in range(2))
    return left.join(right).filter(_is_pair).collect(counting()), items


def _scattered(number: int) -> int:
    """Multiplying by an odd number modulo 2^32 shuffles numbers, none twice."""
    return number * 2_654_435_761 % 2**32


def _record(number: int) -> Record:
    return _scattered(number), f"name-{number}"


def _id(items: int, number: int) -> int:
    return _scattered(number % items)


def _check_rising(records: Iterator[Record]) -> None:
    last = -1
    for key, _ in records:
        if key <= last:
            raise AssertionError(f"{key} comes after {last}")
        last = key


def _is_pair(entry: Any) -> bool:
    left, right = entry.value
    return bool(left == right)


_SHAPES: dict[str, tuple[str, int, Callable[[ds.Context, int], Outcome]]] = {
    "grouping": ("B3 grouping, a key for each item", 120, _grouping),
    "sort": ("B4 full sort", 160, _sort),
    "distinct": ("B5 distinct, each id twice", 100, _distinct),
    "join": ("B5 join by id", 440, _join),
}
"""What each is called, how many bytes of memory an item takes where it is held, and what runs."""


def _alone(words: Sequence[str]) -> Outcome:
    name, items = words
    config = {"spark.driver.memory": "4g"}
    with ds.connect("local[2]", worker_memory=_BOUND, config=config, progress=False) as ctx:
        return _SHAPES[name][2](ctx, int(items))


if __name__ == "__main__":
    answering(_alone)
