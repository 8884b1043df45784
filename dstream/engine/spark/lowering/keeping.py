"""What `cache()` and tables of the user become on Spark."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from dstream.engine.batches import loads
from dstream.engine.keeping import KeptItems, KeptSource
from dstream.engine.spark.cluster import Cluster
from dstream.engine.spark.flow import Flow, Frame, rows_of
from dstream.engine.spark.lowering.registry import Lowering, lower_node, step_of
from dstream.engine.spark.rows import ITEMS
from dstream.engine.spark.side_rows import SideRows
from dstream.engine.spark.sinks import WriteItems
from dstream.engine.spark.stage import TableInput
from dstream.plan import Cache, Read, Recall, Table, is_ordered
from dstream.values.fields import field_names

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

    def flow(self) -> Flow:
        """Return the items."""
        return Flow((Frame(self._items, self.partitions),))

    def __iter__(self) -> Iterator[Any]:
        """Give the items to this process: the local engine may find them if two threads run a plan of each engine."""
        for row in self._cluster.rows_one_partition_at_a_time(self._items):
            yield from loads(row.payload)


def read_here(node: Recall) -> Read | None:
    """Return what reads the items of `node` if they are in this process, where the local engine kept them."""
    if not isinstance(node.items, KeptItems):
        return None
    return Read(KeptSource(node.items, node.is_ordered), node.label(), where=node.where, step=node.step)


@lower_node.register
def _(node: Cache, inputs: Sequence[Flow], lowering: Lowering) -> Flow:
    with node.kept.lock:
        kept = node.kept.found()
        if kept is None:
            return _computed(node, inputs[0], lowering)
        return lower_node(Recall(kept, node.kept.is_ordered, where=node.where, step=node.step), (), lowering)


def _computed(node: Cache, flow: Flow, lowering: Lowering) -> Flow:
    """Run the plan up to here and keep its rows; only now `peek` steps before it see something."""
    cluster = lowering.cluster.doing(step_of(node), "keeping its items")
    rows, partitions = cluster.pinned(rows_of(flow, WriteItems(), cluster)), flow.count_partitions()
    beside = SideRows()
    for row in cluster.rows(rows.where(f"channel > {ITEMS}")):
        beside.add(row)
    lowering.act(beside.in_order(), {}, {})
    kept = KeptRows(rows, partitions, cluster)
    node.kept.keep(kept, is_ordered(node), cluster.is_running)
    return kept.flow()


@lower_node.register
def _(node: Recall, inputs: Sequence[Flow], lowering: Lowering) -> Flow:
    read = read_here(node)
    if read is not None:
        return lower_node(read, (), lowering)
    flow: Flow = node.items.flow()
    return flow


@lower_node.register
def _(node: Table, inputs: Sequence[Flow], lowering: Lowering) -> Flow:
    """Pin the rows, so that the number of their partitions is known; they are computed when a job needs them."""
    cluster = lowering.cluster.doing(step_of(node), "reading a DataFrame")
    table: Any = node.table
    if node.kind is not None:
        table = table.select(*(f"`{name}`" for name in field_names(node.kind)))
    rows = cluster.pinned(cluster.stage(table, TableInput(table.schema, node.kind), WriteItems()))
    return Flow((Frame(rows, cluster.partitions(rows)),))
