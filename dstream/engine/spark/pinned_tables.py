"""The DataFrames that a graph reads: each becomes rows once, and these stay where they were computed."""

from __future__ import annotations

from typing import Any

from dstream.engine.spark.cluster import Cluster
from dstream.engine.spark.segments import Frame
from dstream.engine.worker.sinks import WriteItems
from dstream.engine.worker.stage import TableInput
from dstream.errors import UnsupportedError
from dstream.failures import naming
from dstream.plan.core import Table

__all__ = ["PinnedTables"]


class PinnedTables:
    """Those of one run."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._frames: dict[int, Frame] = {}

    def frame(self, node: Table) -> Frame:
        """Pin the rows, so that the number of their partitions is known; they are computed when a job needs them.

        Raises:
            UnsupportedError: it is a DataFrame of another session of Spark Connect.
        """
        if id(node) not in self._frames:
            cluster = self._cluster
            table, schema = _chosen(node)
            if not cluster.port.reads(table):
                with naming(node.step):
                    raise UnsupportedError(
                        "with Spark Connect, a DataFrame is read in its own session: make it with ctx.spark, and leave "
                        "out configure(...), which gives a run a session of its own"
                    )
            rows = cluster.port.pinned(cluster.stage(table, TableInput(schema, node.made, node.step), WriteItems()))
            self._frames[id(node)] = Frame(rows, cluster.partitions(rows))
        return self._frames[id(node)]


def _chosen(node: Table) -> tuple[Any, Any]:
    """Return those columns of a DataFrame that are read, under names that need no quotes, and their schema."""
    table, schema = node.table, node.table.schema
    fields = schema.names if node.made is None else node.made.names
    places = [schema.names.index(name) for name in fields]
    numbered = table.toDF(*(f"c{place}" for place in range(len(schema.names))))
    return numbered.select(*(f"c{place}" for place in places)), type(schema)([schema[place] for place in places])
