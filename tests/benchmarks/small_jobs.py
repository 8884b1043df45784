"""B7: `map/filter/to_list` on a thousand items that the caller holds, on a warm engine."""

from __future__ import annotations

from functional import seq
from pyspark.sql import functions as F
from pyspark.sql.types import LongType

import dstream as ds
from tests.benchmarks.harness import Bench, Case, Contestant

__all__ = ["cases"]

_ITEMS = list(range(1000))
_JOBS = 20
_LOCAL_JOBS = 1000


def cases(bench: Bench) -> list[Case]:
    """Return the case on Spark and the case in one process."""
    return [_on_spark(bench), _in_one_process(bench)]


def _run(ctx: ds.Context) -> list[int]:
    return ctx.stream(_ITEMS).map(lambda n: n + 1).filter(lambda n: n % 2 == 0).to_list()


def _on_spark(bench: Bench) -> Case:
    spark = bench.spark

    def rdd() -> list[int]:
        numbers = spark.sparkContext.parallelize(_ITEMS)
        collected: list[int] = numbers.map(lambda n: n + 1).filter(lambda n: n % 2 == 0).collect()
        return collected

    def native() -> list[int]:
        numbers = spark.createDataFrame(_ITEMS, LongType()).select((F.col("value") + 1).alias("n"))
        return [row.n for row in numbers.where(F.col("n") % 2 == 0).collect()]

    def with_functions() -> list[int]:
        plus_one, is_even = F.udf(lambda n: n + 1, "long"), F.udf(lambda n: n % 2 == 0, "boolean")
        numbers = spark.createDataFrame(_ITEMS, LongType()).select(plus_one("value").alias("n"))
        return [row.n for row in numbers.where(is_even("n")).collect()]

    jobs = bench.size(_JOBS, 2)
    return Case(
        "B7",
        "small job, 1,000 items, Spark",
        Contestant("dstream", lambda: _run(bench.ctx), jobs=jobs),
        [
            Contestant("native DataFrame", native, goal=1.2, jobs=jobs),
            Contestant("DataFrame with Python functions", with_functions, goal=1.2, jobs=jobs),
            Contestant("RDD", rdd, jobs=jobs),
        ],
    )


def _in_one_process(bench: Bench) -> Case:
    def functional() -> list[int]:
        numbers: list[int] = seq(_ITEMS).map(lambda n: n + 1).filter(lambda n: n % 2 == 0).to_list()
        return numbers

    def plain() -> list[int]:
        return [n + 1 for n in _ITEMS if (n + 1) % 2 == 0]

    jobs = bench.size(_LOCAL_JOBS, 20)
    return Case(
        "B7",
        "small job, 1,000 items, one process",
        Contestant("dstream, local engine", lambda: _run(bench.local), jobs=jobs, uses_spark=False),
        [
            Contestant("PyFunctional", functional, goal=1.0, jobs=jobs, uses_spark=False),
            Contestant("plain Python, a comprehension", plain, jobs=jobs, uses_spark=False),
        ],
    )
