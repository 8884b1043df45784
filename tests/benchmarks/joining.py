"""B5: joins of a million records by id and by skewed keys, and the distinct ones of five million ids.

The results of a join end on the workers, as those of a full sort do; they are compared on fewer records, as lists.
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Iterator
from typing import Any

from collectors import counting
from dstream import Entry, IntStream
from dstream.stream import Stream
from tests.benchmarks.harness import Bench, Case, Contestant

__all__ = ["cases"]

_CHECKED = 20_000
_SKEWED_KEYS = 20_000


def cases(bench: Bench) -> list[Case]:
    """Return the joins and the distinct ids."""
    count, ids = bench.size(1_000_000, 20_000), bench.size(5_000_000, 100_000)
    return [
        _joined(bench, f"join, {count / 1e6:g} M x {count / 1e6:g} M by id", count, count, _left, _right),
        _joined(bench, f"join, {count / 1e6:g} M skewed x {_SKEWED_KEYS:,}", count, _SKEWED_KEYS, _skewed, _right),
        _joined(bench, f"join, {count / 1e6:g} M skewed x {count / 1e6:g} M", count, count, _skewed, _right),
        _distinct(bench, ids),
    ]


def _joined(bench: Bench, title: str, left: int, right: int, of_left: Any, of_right: Any) -> Case:
    def ours(scale: float = 1.0) -> Stream[Entry[int, tuple[Any, Any]]]:
        lefts, rights = (IntStream.range(0, int(size * scale)) for size in (left, right))
        return lefts.map_to_obj(of_left).join(rights.map_to_obj(of_right))

    def rdd(scale: float = 1.0) -> Any:
        context = bench.spark.sparkContext
        lefts, rights = (context.range(int(size * scale)) for size in (left, right))
        return lefts.map(of_left).join(rights.map(of_right))

    checked = _CHECKED / left
    return Case(
        "B5",
        title,
        Contestant(
            "dstream join",
            lambda: ours().for_each_partition(_walk),
            check=lambda: sorted(map(tuple, ours(checked).to_list())),
        ),
        [
            Contestant(
                "RDD join",
                lambda: rdd().foreachPartition(_walk),
                goal=0.8,
                check=lambda: sorted(map(tuple, rdd(checked).collect())),
            )
        ],
    )


def _left(number: int) -> tuple[int, str]:
    """Make a pair; multiplying by an odd number modulo a power of two shuffles the keys, none twice."""
    return number * 2_654_435_761 % 2**32, f"left-{number}"


def _right(number: int) -> tuple[int, str]:
    return number * 2_654_435_761 % 2**32, f"right-{number}"


def _skewed(number: int) -> tuple[int, str]:
    """Make a pair whose key is one of 20,000, as often as words are: the first in one of fourteen pairs."""
    rank = int(_SKEWED_KEYS ** (number * 2_654_435_761 % 2**32 / 2**32)) - 1
    return rank * 2_654_435_761 % 2**32, f"left-{number}"


def _distinct(bench: Bench, count: int) -> Case:
    def ours(size: int = count) -> Any:
        return IntStream.range(0, size).map_to_obj(functools.partial(_id, size)).unordered().distinct()

    def rdd(size: int = count) -> Any:
        return bench.spark.sparkContext.range(size).map(functools.partial(_id, size)).distinct()

    return Case(
        "B5",
        f"distinct, {count / 1e6:g} M ids",
        Contestant("dstream distinct()", lambda: ours().collect(counting())),
        [Contestant("RDD distinct()", lambda: rdd().count(), goal=0.8)],
    )


def _id(count: int, number: int) -> int:
    """Return one of half as many ids as there are numbers."""
    return number * 2_654_435_761 % 2**32 % (count // 2)


def _walk(entries: Iterator[Any]) -> None:
    deque(entries, maxlen=0)
