"""`KnownPlans`: what the jobs of a session have in common, so that Spark plans it once."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from dstream.engine.spark.port.spark_port import Port
from dstream.engine.worker.carried_stage import carried_stage
from dstream.engine.worker.rows import arrow_schema
from dstream.engine.worker.stage import run

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

__all__ = ["MOST_PLANS", "KnownPlans", "schema_of_rows"]

MOST_PLANS = 64
"""How many plans of each kind are kept."""


class KnownPlans:
    """Functions that make parts of plans, and remember what they returned; nothing in it differs from job to job.

    Attributes:
        numbers: returns so many partitions, with their number in each.
        places: returns the partition of each row among so many targets, as a column.
        carrying: returns the rows of so many tasks, which find modules on a path and run the stage that their job
            carries.
    """

    def __init__(self, port: Port) -> None:
        remembering = functools.lru_cache(MOST_PLANS)
        self.numbers = remembering(functools.partial(_numbers, port))
        self.places = remembering(functools.partial(_places, port))
        self.carrying = remembering(functools.partial(_carrying, port, self.numbers))


def _numbers(port: Port, count: int) -> DataFrame:
    return port.session.range(0, count, 1, max(count, 1))


def _places(port: Port, targets: int) -> Column:
    return port.column("target") % targets


def _carrying(port: Port, numbers: Callable[[int], DataFrame], tasks: int, path: tuple[str, ...]) -> DataFrame:
    def dstream_stage(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return run(carried_stage(), path, batches)

    return port.mapped(numbers(tasks), dstream_stage, schema_of_rows())


@functools.cache
def schema_of_rows() -> StructType:
    """Return the schema of rows, parsed; Spark would parse a text for every stage."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(arrow_schema())
