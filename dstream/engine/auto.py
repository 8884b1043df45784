"""`AutoEngine`: small plans of the caller's own items run in the caller's process, all others on Spark.

`dstream.plan.placing` says which way a plan goes. Spark starts with the first plan that needs it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from dstream.plan import Collect, Columns, ForEachPartition, Node, Write
from dstream.plan.captures import check_captures
from dstream.plan.placing import place
from dstream.spi import Engine

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["AutoEngine"]


class AutoEngine:
    """Runs each plan on one of two engines.

    What is about partitions, or about tables of Spark, always runs there: one process has neither.

    Args:
        here: the engine of this process.
        start: starts the other one.
    """

    name = "auto"

    def __init__(self, here: Engine, start: Callable[[], Engine]) -> None:
        self._here = here
        self._start = start
        self._there: Engine | None = None
        self._lock = threading.Lock()

    @property
    def spark(self) -> Any:
        """The session of Spark, started if it was not."""
        session: Any = getattr(self._on_spark(), "spark", None)
        return session

    def iterate(self, node: Node) -> Iterator[Any]:
        """Give the items in encounter order, lazily."""
        return self._chosen(node).iterate(node)

    def gather_all(self, node: Node) -> list[Any]:
        """Return all items in encounter order."""
        return self._chosen(node).gather_all(node)

    def partitions(self, node: Node) -> list[Iterator[Any]]:
        """Return one lazy iterator for each partition, on Spark."""
        return self._on_spark().partitions(node)

    def collect(self, node: Collect) -> Any:
        """Reduce the items as the node says."""
        return self._chosen(node).collect(node)

    def for_each_partition(self, node: ForEachPartition) -> None:
        """Run the action of the node on the worker that has each partition."""
        self._on_spark().for_each_partition(node)

    def write(self, node: Write) -> list[Any]:
        """Let the writer of the node take the items where they are; return its receipts in encounter order."""
        return self._chosen(node).write(node)

    def data_frame(self, splits: Sequence[Any], schema: Any) -> Any:
        """Return a lazy DataFrame over splits."""
        return self._on_spark().data_frame(splits, schema)

    def to_arrow(self, node: Columns) -> pa.Table:
        """Return all items as an Arrow table."""
        table: pa.Table = self._chosen(node).to_arrow(node)
        return table

    def to_data_frame(self, node: Columns) -> Any:
        """Run the plan; return its items as a DataFrame."""
        return self._on_spark().to_data_frame(node)

    def close(self) -> None:
        """Close what was started."""
        with self._lock:
            there, self._there = self._there, None
        self._here.close()
        if there is not None:
            there.close()

    def _chosen(self, node: Node) -> Engine:
        if not place(node).is_here:
            return self._on_spark()
        # What is refused on Spark is refused here too, so that no plan fails only when its data grow.
        check_captures(node, travel=False)
        return self._here

    def _on_spark(self) -> Engine:
        with self._lock:
            if self._there is None:
                self._there = self._start()
            return self._there
