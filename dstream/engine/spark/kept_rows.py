"""What Spark keeps of a `cache()`, and where to find what the local engine kept of it."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from dstream.engine.batches import loads
from dstream.engine.keeping import KeptItems, KeptSource
from dstream.engine.spark.cluster import Cluster
from dstream.engine.spark.flow import Frame
from dstream.engine.worker.rows import ITEMS
from dstream.plan import Read, Recall

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["KeptRows", "read_here"]


class KeptRows:
    """The rows of a cached stream, where they were computed; the executors forget them with this object.

    Attributes:
        partitions: in how many partitions they stand.
    """

    def __init__(self, rows: DataFrame, partitions: int, cluster: Cluster) -> None:
        self.partitions = partitions
        self._items = rows.where(f"channel = {ITEMS}")
        self._cluster = cluster
        weakref.finalize(self, cluster.release, rows).atexit = False

    def frame(self) -> Frame:
        """Return what reads the items."""
        return Frame(self._items, self.partitions)

    def __iter__(self) -> Iterator[Any]:
        """Give the items to this process: the local engine may find them if two threads run a plan of each engine."""
        for row in self._cluster.rows_one_partition_at_a_time(self._items):
            yield from loads(row.payload)


def read_here(node: Recall) -> Read | None:
    """Return what reads the items of `node` if they are in this process, where the local engine kept them."""
    if not isinstance(node.items, KeptItems):
        return None
    return Read(KeptSource(node.items, node.is_ordered), node.label(), where=node.where, step=node.step)
