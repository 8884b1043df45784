"""`AutoEngine`: the choice of the local engine for small plans of the caller's own items, of Spark for others.

`dstream.plan.properties` decides which engine runs a plan. Spark starts with the first plan that needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dstream.base.threads import RenewedLock
from dstream.errors import SetupError
from dstream.plan.capture_checks import check_captures
from dstream.plan.operations.ends import Columns, End, ForEachPartition, Partitions, Several
from dstream.plan.operations.streams import Node
from dstream.plan.properties import place
from dstream.plan.walk import CacheLookup, topological
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
        only_there = _only_on_spark(end)
        return (self._on_spark(end, only_there) if only_there else self._chosen(end)).submit(end)

    def data_frame(self, splits: Sequence[Any], schema: Any) -> Any:
        """Return a lazy DataFrame over splits."""
        return self._on_spark(None, _FRAME).data_frame(splits, schema)

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
        placement = place(node, self._found)
        if not placement.is_here:
            return self._on_spark(node, placement.reason.removeprefix("runs on Spark: "))
        # What is refused on Spark is refused here too, so that no plan fails only when its data grow.
        check_captures(node, travel=False)
        return self._here

    def _on_spark(self, plan: Node | None = None, why: str = "") -> Engine:
        """Return the engine on Spark, started if it was not, for a plan that needs it; `why` says so."""
        with self._lock:
            if self._there is None:
                try:
                    self._there = self._start()
                except SetupError as error:
                    # Its own cause, if it has one: two messages that say nearly the same would be too many.
                    raise SetupError(f"{_needs(plan, why)}{error}") from error.__cause__
            return self._there


_FRAME = "DataFrames are tables of Spark"


def _only_on_spark(end: End | Several) -> str:
    """Return why a plan runs on Spark whatever its size; "" if it may run here."""
    match end:
        case Partitions() | ForEachPartition():
            return "only Spark has partitions"
        case Columns(is_frame=True):
            return _FRAME
    return ""


def _needs(plan: Node | None, why: str) -> str:
    """Return a sentence that names a plan and says why it needs Spark."""
    step = None if plan is None else next((each.step for each in reversed(topological(plan)) if each.step.label), None)
    if step is None:
        return why and f"{why}. "
    return f"the plan of {step.label} needs Spark: {why}. "
