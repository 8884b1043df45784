"""`AutoEngine`: the choice of the local engine for small plans of the caller's own items, of Spark for others.

`dstream.plan.properties` decides which engine runs a plan. Spark starts with the first plan that needs it. The plan of
an epoch names its engine, and jobs start Spark in the background.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dstream.base.threads import RenewedLock, in_a_thread
from dstream.errors import SetupError
from dstream.plan.capture_checks import check_captures
from dstream.plan.operations.ends import Columns, End, ForEachPartition, Partitions, Several
from dstream.plan.operations.streams import Node
from dstream.plan.properties import place
from dstream.plan.walk import CacheLookup, topological
from dstream.spi import Engine, Running
from dstream.spi.runtime import EngineOfEpoch, SparkStatus

__all__ = ["AutoEngine"]


class AutoEngine:
    """Runs each plan on one of two engines.

    What is about partitions, or about tables of Spark, always runs there: one process has neither.

    Args:
        here: the engine of this process.
        start: starts the other one.
        found: says what either of them keeps of a `cache()`.
        graphs: the engine of this process for epochs, and for compiled graphs in general; None: there is none.
        keeps_epochs_on_spark: epochs run on Spark unless a job asks for another engine.
        cores: how many tasks Spark will run at the same time, as far as that is known before it starts.
    """

    name = "auto"

    def __init__(
        self,
        here: Engine,
        start: Callable[[], Engine],
        found: CacheLookup,
        graphs: Engine | None = None,
        keeps_epochs_on_spark: bool = False,
        cores: Callable[[], int | None] = lambda: None,
    ) -> None:
        self.keeps_epochs_on_spark = keeps_epochs_on_spark
        self.spark_failure = ""
        self._cores = cores
        self._graphs = graphs
        self._is_closed = False
        self._background: SparkStatus = "stopped"
        self._here = here
        self._start = start
        self._found = found
        self._there: Engine | None = None
        self._lock = RenewedLock()
        self._state = RenewedLock()

    @property
    def spark(self) -> Any:
        """The session of Spark, started if it was not."""
        session: Any = getattr(self._on_spark(), "spark", None)
        return session

    def submit(self, end: End | Several) -> Running:
        """Return a run of the plan, on the engine where it belongs."""
        if isinstance(end, Several) and end.engine is not None:
            return self._of_epochs(end, end.engine).submit(end)
        only_there = _only_on_spark(end)
        return (self._on_spark(end, only_there) if only_there else self._chosen(end)).submit(end)

    def data_frame(self, splits: Sequence[Any], schema: Any) -> Any:
        """Return a lazy DataFrame over splits."""
        return self._on_spark(None, _FRAME).data_frame(splits, schema)

    def cores(self) -> int:
        """Return how many tasks run at the same time on Spark, which starts if that is not known before."""
        known = None if self._there is not None else self._cores()
        return self._on_spark().cores() if known is None else known

    def spark_status(self, *, start: bool) -> SparkStatus:
        """Return the status of Spark, which begins to start in the background if it is stopped and `start` is set."""
        with self._state:
            if self._background == "stopped" and self._there is not None:
                return "absent" if self.is_lost() else "running"
            if self._background == "stopped" and start:
                self._background = "starting"
                in_a_thread(self._start_in_background, "dstream-spark-start")
            return "absent" if self._background == "running" and self.is_lost() else self._background

    def _start_in_background(self) -> None:
        try:
            with self._lock:
                if not self._is_closed:
                    # An epoch is not to wait for the start of workers, as a first job does.
                    getattr(self._on_spark(), "warm_up", lambda: None)()
        except BaseException as error:
            self.spark_failure = str(error)
            self._background = "absent"
        else:
            self._background = "running"

    def is_lost(self) -> bool:
        """Say whether the one on Spark is."""
        there = self._there
        return there is not None and there.is_lost()

    def close(self) -> None:
        """Close the engines that were started."""
        self._is_closed = True  # Before the lock: a background start that waits for it gives up.
        with self._lock:
            there, self._there = self._there, None
        self._here.close()
        if self._graphs is not None:
            self._graphs.close()
        if there is not None:
            there.close()

    def _of_epochs(self, end: Several, engine: EngineOfEpoch) -> Engine:
        if engine == "spark" or self._graphs is None:
            return self._on_spark(end, "its job has moved there")
        return self._graphs

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
