"""B3: the average of each of 500,000 groups of five million records, once evenly spread, once with hot keys.

All contestants make the records from the numbers of a range by the same arithmetic: ours and the RDD with one
function, the native one with columns. The values are small ints, so that their sums are exact in every order and the
averages agree to the last bit. The functions have their numbers in themselves: one that looks at variables of an
importable module is called for each item. The result is a dictionary in the caller for all of them: the whole result
is compared, and making it costs each of them the same few tenths of a second.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from collectors import averaging, grouping_by
from dstream import IntStream
from tests.benchmarks.harness import Bench, Case, Contestant

__all__ = ["cases"]

Record = tuple[int, int]

_FACTOR = 2_654_435_761
_MODULUS = 2**32
_KEYS = 500_000
_VALUES = 1000


def cases(bench: Bench) -> list[Case]:
    """Return the even groups and the skewed ones."""
    return [_case(bench, "even keys", _even, _even_column()), _case(bench, "zipf keys", _skewed, _skewed_column())]


def _case(bench: Bench, kind: str, record: Callable[[int], Record], key: Column) -> Case:
    count, spark = bench.size(5_000_000, 100_000), bench.spark

    def ours() -> dict[int, float]:
        records = IntStream.range(0, count).map_to_obj(record)
        return records.collect(grouping_by(itemgetter(0), averaging(itemgetter(1))))

    def rdd() -> dict[int, float]:
        records = spark.sparkContext.range(count).map(record)
        totals = records.aggregateByKey((0, 0), _added, _combined)
        averages: dict[int, float] = totals.mapValues(lambda total: total[0] / total[1]).collectAsMap()
        return averages

    def native() -> dict[int, float]:
        records = spark.range(count).select(key.alias("key"), (F.col("id") % _VALUES).alias("value"))
        averages = records.groupBy("key").avg("value").toArrow()
        return dict(zip(*(column.to_pylist() for column in averages.columns), strict=True))

    return Case(
        "B3",
        f"grouping, {count / 1e6:g} M records, {kind}",
        Contestant("dstream grouping_by(key, averaging(value))", ours),
        [
            Contestant("RDD aggregateByKey", rdd, goal=0.6),
            Contestant("native DataFrame groupBy.avg", native, goal=3.0, warm_ups=3),
        ],
    )


def _even(number: int) -> Record:
    """Make a record; multiplying by an odd number modulo 2^32 shuffles, and each key comes as often as the others."""
    return number * 2_654_435_761 % 2**32 % 500_000, number % 1000


def _even_column() -> Column:
    return F.col("id") * _FACTOR % _MODULUS % _KEYS


def _skewed(number: int) -> Record:
    """Make a record whose key comes as often as 1 / rank: the first one in every nineteenth record."""
    return int(500_000 ** (number * 2_654_435_761 % 2**32 / 2**32)), number % 1000


def _skewed_column() -> Column:
    return F.pow(F.lit(float(_KEYS)), F.col("id") * _FACTOR % _MODULUS / _MODULUS).cast("long")


def _added(total: Any, value: int) -> Any:
    return total[0] + value, total[1] + 1


def _combined(left: Any, right: Any) -> Any:
    return left[0] + right[0], left[1] + right[1]
