"""`Costs`: the constants of the cost model, for formats, operations and jobs, and the scale of a machine.

`python -m tests.benchmarks.constants` measures them and prints the table.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Mapping
from dataclasses import fields, replace
from types import MappingProxyType
from typing import NamedTuple

from dstream.base.records import record

__all__ = ["COSTS", "MACHINE", "Costs", "FormatCost", "StepCost", "machine_scale"]


class FormatCost(NamedTuple):
    """The cost of reading a format.

    Attributes:
        byte: seconds for each stored byte, read into objects.
        item: additional seconds to make an object of an item.
        item_bytes: the stored bytes of an item, for formats that do not report their items.
        pickled: seconds to pickle an item and load it again.
        column_byte: seconds for each stored byte, read into columns.
    """

    byte: float
    item: float
    item_bytes: float
    pickled: float
    column_byte: float = 2e-9


class StepCost(NamedTuple):
    """The cost of an operation that looks beyond one item, in seconds for each item that it reads.

    Attributes:
        item: for objects.
        columnar: for items in columns.
        shuffles: how many times items are shuffled on Spark.
        jobs: how many more jobs run on Spark.
    """

    item: float
    columnar: float
    shuffles: int = 1
    jobs: int = 0


@record
class Costs:
    """Seconds, on the machine where they were measured.

    Attributes:
        plan: a plan in this process, without items.
        job: a job of Spark with one stage, without items.
        stage: each further stage.
        start: Spark from nothing, until its first job can run.
        item: one object through a task.
        copied: an object of the caller's that this process copies.
        pickled_scalar: a number or a string pickled and loaded again.
        pickled_object: the same of another object.
        inlined: each operator of an expression in a loop over objects.
        library_call: what an expression calls that columns do not have, such as `re.search`.
        columnar: each operator of an expression for an item in columns.
        text_columnar: each operator for a line of text in a column.
        text_key: an item of a column that is grouped by a word of a line.
        called: a user function for one item, before it has been measured.
        shuffled: an item through a shuffle of Spark, without its pickling.
        returned: an item from a task of Spark to the driver, without its pickling.
        written: an item that a writer takes.
        formats: by the function that makes the source.
        steps: by the class of the operation.
    """

    plan: float
    job: float
    stage: float
    start: float
    item: float
    copied: float
    pickled_scalar: float
    pickled_object: float
    inlined: float
    library_call: float
    columnar: float
    text_columnar: float
    text_key: float
    called: float
    shuffled: float
    returned: float
    written: float
    formats: Mapping[str, FormatCost]
    steps: Mapping[str, StepCost]

    def scaled(self, scale: float) -> Costs:
        """Return the costs of a machine that takes `scale` times as long."""
        return self if scale == 1 else _scaled(scale)


MACHINE = "AMD EPYC, 2 cores, CPython 3.11, PySpark 4.3"
"""The machine of the measurements."""

_NS = 1e-9

COSTS = Costs(
    plan=0.0006,
    job=0.034,
    stage=0.05,
    start=4.0,
    item=40 * _NS,
    copied=300 * _NS,
    pickled_scalar=120 * _NS,
    pickled_object=900 * _NS,
    inlined=12 * _NS,
    library_call=1_000 * _NS,
    columnar=1 * _NS,
    text_columnar=40 * _NS,
    text_key=80 * _NS,
    called=300 * _NS,
    shuffled=1_000 * _NS,
    returned=150 * _NS,
    written=1_500 * _NS,
    formats=MappingProxyType(
        {
            "text_files": FormatCost(2 * _NS, 60 * _NS, 64, 120 * _NS),
            "csv_rows": FormatCost(45 * _NS, 750 * _NS, 40, 900 * _NS, 5 * _NS),
            "json_lines": FormatCost(17 * _NS, 800 * _NS, 60, 900 * _NS, 9 * _NS),
            "avro_records": FormatCost(60 * _NS, 700 * _NS, 30, 900 * _NS),
            "parquet_rows": FormatCost(2 * _NS, 1_100 * _NS, 20, 900 * _NS),
            "files": FormatCost(1 * _NS, 20_000 * _NS, 100_000, 20_000 * _NS),
            "": FormatCost(10 * _NS, 1_000 * _NS, 50, 900 * _NS),
        }
    ),
    steps=MappingProxyType(
        {
            "Sorted": StepCost(500 * _NS, 80 * _NS, shuffles=2, jobs=1),
            "Distinct": StepCost(900 * _NS, 200 * _NS, shuffles=2),
            "Aggregate": StepCost(250 * _NS, 15 * _NS),
            "Collect": StepCost(100 * _NS, 15 * _NS),
            "Write": StepCost(250 * _NS, 15 * _NS),
            "Top": StepCost(200 * _NS, 20 * _NS),
            "Stateful": StepCost(900 * _NS, 900 * _NS, shuffles=2),
            "Gather": StepCost(900 * _NS, 15 * _NS, jobs=1),
            "PartitionBy": StepCost(300 * _NS, 300 * _NS),
            "Spread": StepCost(100 * _NS, 100 * _NS, jobs=1),
            "Join": StepCost(2_500 * _NS, 500 * _NS, jobs=2),
            "SemiJoin": StepCost(1_000 * _NS, 200 * _NS, jobs=2),
            "CoGroup": StepCost(1_500 * _NS, 1_500 * _NS, jobs=1),
            "AsOf": StepCost(2_000 * _NS, 2_000 * _NS, jobs=1),
            "HashJoin": StepCost(500 * _NS, 500 * _NS, shuffles=0, jobs=2),
            "Zip": StepCost(1_000 * _NS, 1_000 * _NS, jobs=1),
            "Cache": StepCost(0, 0, shuffles=0, jobs=1),
            "Fork": StepCost(0, 0, shuffles=0, jobs=1),
            "": StepCost(1_500 * _NS, 1_500 * _NS, jobs=1),
        }
    ),
)
"""The costs of `MACHINE`. Classes of operations that are not listed have the cost of the empty name."""


@functools.lru_cache(maxsize=16)
def _scaled(scale: float) -> Costs:
    numbers = {each.name: getattr(COSTS, each.name) for each in fields(COSTS)}
    formats, steps = numbers.pop("formats"), numbers.pop("steps")
    return replace(
        COSTS,
        **{name: number * scale for name, number in numbers.items()},
        formats={
            name: FormatCost(byte * scale, item * scale, size, pickled * scale, column_byte * scale)
            for name, (byte, item, size, pickled, column_byte) in formats.items()
        },
        steps={
            name: each._replace(item=each.item * scale, columnar=each.columnar * scale) for name, each in steps.items()
        },
    )


_REFERENCE = 0.000315
"""Seconds that the loop of `machine_scale` takes on `MACHINE`."""


@functools.cache
def machine_scale() -> float:
    """Return how many times as long as `MACHINE` this machine takes: a loop of 0.3 ms, measured once."""
    return max(0.1, min(10.0, min(_loop() for _ in range(3)) / _REFERENCE))


def _loop() -> float:
    # The time of the thread: other programs, which a machine may be busy with, slow both engines down.
    start = time.thread_time()
    counts: dict[int, int] = {}
    for number in range(2_000):
        key = number % 97
        counts[key] = counts.get(key, 0) + len(str(number))
    return time.thread_time() - start
