"""What Spark keeps of a `cache()`."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from dstream.engine.graph.output_ports import ITEMS_AND_WATERMARKS
from dstream.engine.kernels.caches import HeldByContext
from dstream.engine.kernels.item_batches import loads
from dstream.engine.spark.chosen_rows import chosen_rows
from dstream.engine.spark.cluster import Cluster
from dstream.engine.spark.port.spark_port import Port
from dstream.engine.spark.segments import Frame
from dstream.errors import UnsupportedError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["KeptRows"]


class KeptRows(HeldByContext):
    """The rows of a cached stream, where they were computed; the executors forget them with this object.

    Attributes:
        partitions: in how many partitions they stand.
    """

    def __init__(self, rows: DataFrame, partitions: int, cluster: Cluster) -> None:
        self.partitions = partitions
        self._items = chosen_rows(rows, ITEMS_AND_WATERMARKS)
        self._cluster = cluster
        weakref.finalize(self, cluster.port.release, rows).atexit = False

    def frame(self, port: Port) -> Frame:
        """Return what reads the items.

        Raises:
            UnsupportedError: the session of `port` may not read them.
        """
        if not port.reads(self._items):
            raise UnsupportedError(
                "with Spark Connect, what cache() keeps is there for runs without configure(...), which gives a run a "
                "session of its own: leave out one of the two"
            )
        return Frame(self._items, self.partitions)

    def __iter__(self) -> Iterator[Any]:
        """Give the items to this process: the local engine may find them if two threads run a plan of each engine."""
        for row in self._cluster.rows_one_partition_at_a_time(self._items):
            yield from loads(row.payload)
