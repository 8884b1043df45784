"""B5: joins of a million records by id and by skewed keys, and the distinct ones of five million ids.

The results of a join end on the workers, as those of a full sort do; they are compared on fewer records, as lists.
The native contestants make the same pairs with columns; their joins end in Spark's sink that takes rows and keeps none.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from collectors import counting
from dstream import Entry, IntStream
from dstream.stream import Stream
from tests.benchmarks.harness import Bench, Case, Contestant

__all__ = ["cases"]

_CHECKED = 20_000
_SKEWED_KEYS = 20_000
_FACTOR = 2_654_435_761
_MODULUS = 2**32
_IDS = 2_500_000


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

    def native(scale: float = 1.0) -> Any:
        lefts, rights = (bench.spark.range(int(size * scale)) for size in (left, right))
        key = _skewed_column() if of_left is _skewed else _column()
        return _named(lefts, key, "left").join(_named(rights, _column(), "right"), "key")

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
            ),
            Contestant(
                "native DataFrame join",
                lambda: native().write.format("noop").mode("overwrite").save(),
                goal=1.2,
                check=lambda: sorted((row.key, (row.left, row.right)) for row in native(checked).collect()),
            ),
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


def _named(numbers: Any, key: Column, name: str) -> Any:
    return numbers.select(key.alias("key"), F.concat(F.lit(f"{name}-"), F.col("id")).alias(name))


def _column() -> Column:
    return F.col("id") * _FACTOR % _MODULUS


def _skewed_column() -> Column:
    rank = F.pow(F.lit(float(_SKEWED_KEYS)), _column() / _MODULUS).cast("long") - 1
    return rank * _FACTOR % _MODULUS


def _distinct(bench: Bench, count: int) -> Case:
    def ours(size: int = count) -> Any:
        return IntStream.range(0, size).map_to_obj(_id).unordered().distinct()

    def rdd(size: int = count) -> Any:
        return bench.spark.sparkContext.range(size).map(_id).distinct()

    def native(size: int = count) -> Any:
        return bench.spark.range(size).select((_column() % _IDS).alias("id")).distinct()

    return Case(
        "B5",
        f"distinct, {count / 1e6:g} M ids",
        Contestant("dstream distinct()", lambda: ours().collect(counting())),
        [
            Contestant("RDD distinct()", lambda: rdd().count(), goal=0.8),
            Contestant("native DataFrame distinct()", lambda: native().count(), goal=1.2),
        ],
    )


def _id(number: int) -> int:
    """Return one of 2.5 M ids, half as many as there are numbers; its numbers stand in it, so that it can be read."""
    return number * 2_654_435_761 % 2**32 % 2_500_000


def _walk(entries: Iterator[Any]) -> None:
    deque(entries, maxlen=0)
