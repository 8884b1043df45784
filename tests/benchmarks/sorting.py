"""B4: five million records by a key function: the first ten, and all of them.

A full sort ends on the workers, where an action walks over the sorted partitions, so that neither
contestant is measured by how it brings five million records to the driver. Its result is compared
on fewer records, as a list. The native one makes the same records with columns; its full sort ends in
Spark's sink that takes rows and keeps none.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

from pyspark.sql import functions as F

from dstream import IntStream
from dstream.stream import Stream
from tests.benchmarks.harness import Bench, Case, Contestant

__all__ = ["cases"]

Record = tuple[int, str]

_TOP = 10
_CHECKED = 50_000
_FACTOR = 2_654_435_761
_MODULUS = 2**32


def cases(bench: Bench) -> list[Case]:
    """Return the top ten, the same against one pass, and the full sort."""
    count = bench.size(5_000_000, 100_000)
    millions = f"{count / 1e6:g} M"

    def ours(size: int = count) -> Stream[Record]:
        return IntStream.range(0, size).map_to_obj(_record)

    def rdd(size: int = count) -> Any:
        return bench.spark.sparkContext.range(size).map(_record)

    def native(size: int = count) -> Any:
        key = F.col("id") * _FACTOR % _MODULUS
        return bench.spark.range(size).select(key.alias("key"), F.concat(F.lit("name-"), F.col("id")).alias("name"))

    def top() -> list[Record]:
        return ours().sorted(key=lambda record: record[0]).limit(_TOP).to_list()

    return [
        Case(
            "B4",
            f"top {_TOP} of {millions} records",
            Contestant("dstream sorted(key).limit(10)", top),
            [
                Contestant("RDD sortBy(key).take(10)", lambda: rdd().sortBy(lambda record: record[0]).take(_TOP), 0.8),
                Contestant("RDD takeOrdered(10, key)", lambda: rdd().takeOrdered(_TOP, lambda record: record[0])),
                Contestant(
                    "native DataFrame sort(key).limit(10)",
                    lambda: [tuple(row) for row in native().sort("key").limit(_TOP).collect()],
                    goal=1.2,
                ),
                Contestant(
                    "dstream, one pass: map(key).count()",
                    lambda: ours().map(lambda record: record[0]).count(),
                    goal=1.2,
                    check=top,
                ),
            ],
        ),
        Case(
            "B4",
            f"full sort, {millions} records",
            Contestant(
                "dstream sorted(key)",
                lambda: ours().sorted(key=lambda record: record[0]).for_each_partition(_walk),
                check=lambda: ours(_CHECKED).sorted(key=lambda record: record[0]).to_list(),
            ),
            [
                Contestant(
                    "RDD sortBy(key)",
                    lambda: rdd().sortBy(lambda record: record[0]).foreachPartition(_walk),
                    goal=0.8,
                    check=lambda: rdd(_CHECKED).sortBy(lambda record: record[0]).collect(),
                ),
                Contestant(
                    "native DataFrame sort(key)",
                    lambda: native().sort("key").write.format("noop").mode("overwrite").save(),
                    goal=1.2,
                    check=lambda: [tuple(row) for row in native(_CHECKED).sort("key").collect()],
                ),
            ],
        ),
    ]


def _record(number: int) -> Record:
    """Make the record with that number; multiplying by an odd number modulo 2^32 shuffles the keys, none twice."""
    return (number * 2_654_435_761 % 2**32, f"name-{number}")


def _walk(records: Iterator[Record]) -> None:
    deque(records, maxlen=0)
