"""A job that writes the number of each partition, for Spark Connect, which cannot count partitions (4.3)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["PARTITION", "numbered"]

PARTITION = "partition long"
"""The schema of the rows."""


def numbered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Read a partition, and give one row with its number."""
    import pyarrow as pa
    from pyspark import TaskContext

    deque(batches, 0)
    context = TaskContext.get()
    assert context is not None, "a stage runs inside a Spark task"
    yield pa.RecordBatch.from_pydict({"partition": [context.partitionId()]})
