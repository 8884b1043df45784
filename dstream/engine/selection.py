"""`AutoEngine`: the choice of the local engine for small plans of the caller's own items, of Spark for others.

`dstream.plan.properties` decides which engine runs a plan. Spark starts with the first plan that needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dstream.base.threads import RenewedLock
from dstream.plan.capture_checks import check_captures
from dstream.plan.operations.ends import Columns, End, ForEachPartition, Partitions, Several
from dstream.plan.operations.streams import Node
from dstream.plan.properties import place
from dstream.plan.walk import CacheLookup
from dstream.spi import Engine, Running

__all__ = ["AutoEngine"]


class AutoEngine:
    """Runs each plan on one of two engines.

    What is about partitions, or about tables of Spark, always runs there: one process has neither.

    Args:
        here: the engine of this process.
        start: starts the other one.
        found: says what either of them keeps of a `cache()`.
    """

    name = "auto"

    def __init__(self, here: Engine, start: Callable[[], Engine], found: CacheLookup) -> None:
        self._here = here
        self._start = start
        self._found = found
        self._there: Engine | None = None
        self._lock = RenewedLock()

    @property
    def spark(self) -> Any:
        """The session of Spark, started if it was not."""
        session: Any = getattr(self._on_spark(), "spark", None)
        return session

    def submit(self, end: End | Several) -> Running:
        """Return a run of the plan, on the engine where it belongs."""
        is_of_spark = isinstance(end, Partitions | ForEachPartition) or (isinstance(end, Columns) and end.is_frame)
        return (self._on_spark() if is_of_spark else self._chosen(end)).submit(end)

    def data_frame(self, splits: Sequence[Any], schema: Any) -> Any:
        """Return a lazy DataFrame over splits."""
        return self._on_spark().data_frame(splits, schema)

    def cores(self) -> int:
        """Return how many tasks run at the same time on Spark."""
        return self._on_spark().cores()

    def is_lost(self) -> bool:
        """Say whether the one on Spark is."""
        there = self._there
        return there is not None and there.is_lost()

    def close(self) -> None:
        """Close the engines that were started."""
        with self._lock:
            there, self._there = self._there, None
        self._here.close()
        if there is not None:
            there.close()

    def _chosen(self, node: Node) -> Engine:
        if not place(node, self._found).is_here:
            return self._on_spark()
        # What is refused on Spark is refused here too, so that no plan fails only when its data grow.
        check_captures(node, travel=False)
        return self._here

    def _on_spark(self) -> Engine:
        with self._lock:
            if self._there is None:
                self._there = self._start()
            return self._there
