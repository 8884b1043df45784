"""B1: ten million ints through `map(x * 3 + 1).filter(even).sum()`."""

from __future__ import annotations

from pyspark.sql import functions as F

from dstream import IntStream
from tests.benchmarks.harness import Bench, Case, Contestant

__all__ = ["cases"]


def cases(bench: Bench) -> list[Case]:
    """Return the case."""
    count, spark = bench.size(10_000_000, 200_000), bench.spark

    def ours() -> int:
        return IntStream.range(0, count).map(lambda x: x * 3 + 1).filter(lambda x: x % 2 == 0).sum()

    def rdd() -> int:
        numbers = spark.sparkContext.range(count)
        return int(numbers.map(lambda x: x * 3 + 1).filter(lambda x: x % 2 == 0).sum())

    def native() -> int:
        numbers = spark.range(count).select((F.col("id") * 3 + 1).alias("x"))
        return int(numbers.where(F.col("x") % 2 == 0).agg(F.sum("x")).first()[0])

    def loop() -> int:
        total = 0
        for x in range(count):
            x = x * 3 + 1
            if x % 2 == 0:
                total += x
        return total

    def functions() -> int:
        # Written with the same two functions as the others, so no comprehension.
        return sum(filter(lambda x: x % 2 == 0, map(lambda x: x * 3 + 1, range(count))))  # noqa: C417

    return [
        Case(
            "B1",
            f"narrow, {count / 1e6:g} M ints",
            Contestant("dstream IntStream", ours),
            [
                Contestant("RDD", rdd, goal=0.5),
                Contestant("native DataFrame", native, warm_ups=3),
                Contestant("plain Python, the same functions", functions, goal=1.3, uses_spark=False),
                Contestant("plain Python, a loop without functions", loop, goal=1.3, uses_spark=False),
            ],
        )
    ]
