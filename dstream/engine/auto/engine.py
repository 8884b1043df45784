"""`AutoEngine`: each plan where it is sooner done: in this process, or on Spark, which starts when a plan needs it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from dstream.base.environment import cores_here
from dstream.engine.auto.border import SparkBorder, SparkStart
from dstream.engine.auto.cost_model import COSTS, machine_scale
from dstream.engine.auto.estimates import Machine, MeasuredCosts
from dstream.engine.auto.placement import FRAMES, AutoSettings, Placement, placed
from dstream.engine.calls import Call, Cancellation
from dstream.engine.runs.moves import RunHere
from dstream.errors import SetupError
from dstream.plan.capture_checks import check_captures
from dstream.plan.operations.ends import End, Several
from dstream.plan.properties import is_bounded, is_of_epoch
from dstream.plan.walk import CacheLookup, topological
from dstream.spi import Engine, Running
from dstream.spi.runtime import SparkStatus

__all__ = ["AutoEngine", "MovableEngine"]


class MovableEngine(Engine, Protocol):
    """An engine of this process whose runs may continue elsewhere."""

    def submit(self, end: End | Several, how: RunHere | None = None) -> Running:
        """Return a run of a plan that begins in this process."""
        ...


class AutoEngine:
    """The engine that runs each plan where it ends sooner: in this process or on Spark.

    Args:
        local: the interpreter, for small numbers of immutable items.
        here: the engine that runs graphs in this process.
        spark: Spark, which may have to start.
        cores: the number of concurrent tasks on Spark, as far as that is known before it runs.
        found: returns the content of a `cache()` in any of them.
        settings: the settings of the context that affect the choice.

    Attributes:
        keeps_epochs_on_spark: epochs run on Spark unless a job asks for another engine.
    """

    name = "auto"

    def __init__(
        self,
        local: Engine,
        here: MovableEngine,
        spark: SparkStart,
        cores: Callable[[], int | None],
        found: CacheLookup,
        settings: AutoSettings,
        keeps_epochs_on_spark: bool = False,
    ) -> None:
        self.keeps_epochs_on_spark = keeps_epochs_on_spark
        self._local = local
        self._here = here
        self._spark = spark
        self._cores = cores
        self._found = found
        self._settings = settings
        self._costs = MeasuredCosts()

    @property
    def spark(self) -> Any:
        """The session of Spark, started if it was not."""
        session: Any = getattr(self._spark.engine(), "spark", None)
        return session

    def submit(self, end: End | Several) -> Running:
        """Return a run of the plan, which begins on the engine where it is sooner done."""
        if is_of_epoch(end):
            is_here = isinstance(end, Several) and end.engine == "inprocess"
            return self._here.submit(end) if is_here else self._of_spark(end, "its epochs run there")
        placement = self.placement(end)
        match placement.engine:
            case "local":
                # Captures that Spark refuses are refused in this process too, so that no plan fails only when its data
                # grow.
                check_captures(end, travel=False)
                return self._local.submit(end)
            case "inprocess":
                self._costs.lost += placement.lost
                return self._movable(end, placement)
        if placement.must:
            return self._of_spark(end, placement.reason.removeprefix("runs on Spark: "))
        engine = self._spark.offer()
        return self._movable(end, placement) if engine is None else engine.submit(end)

    def placement(self, end: End | Several) -> Placement:
        """Return where a plan begins, and why."""
        return placed(end, self._found, self._machine, self._costs, self._settings)

    def _of_spark(self, end: End | Several, why: str) -> Running:
        step = next((each.step for each in reversed(topological(end)) if each.step.label), None)
        running: Running = self._needed(f"the plan of {step.label} needs Spark: {why}" if step else why).submit(end)
        return running

    def _needed(self, why: str) -> Any:
        """Return the engine on Spark, started if necessary, for operations that only Spark supports.

        Raises:
            SetupError: Spark cannot start; the message reports for which operation it was needed.
        """
        try:
            return self._spark.engine()
        except SetupError as error:
            # Its own cause, if it has one: two messages of nearly the same content would be too many.
            raise SetupError(f"{why}. {error}") from error.__cause__

    def _movable(self, end: End | Several, placement: Placement) -> Running:
        facts, machine = placement.facts, self._machine()
        assert facts is not None, "what begins here has facts"
        may_move = machine.cores > 1 and not facts.is_sequential and is_bounded(end)

        def border(call: Call, cancellation: Cancellation) -> SparkBorder:
            costs, limit = COSTS.scaled(machine.scale), self._settings.local_limit
            return SparkBorder(self._spark, machine.cores, limit, costs, self._costs, call, cancellation)

        return self._here.submit(end, RunHere(facts, border if may_move else None, placement.compiled))

    def _machine(self) -> Machine:
        status = self._spark.status(start=False)
        state: Any = status if status in ("running", "absent") else "startable"
        return Machine(self._cores() or cores_here(), machine_scale(), state)

    def data_frame(self, splits: Sequence[Any], schema: Any) -> Any:
        """Return a lazy DataFrame over splits."""
        return self._needed(FRAMES).data_frame(splits, schema)

    def cores(self) -> int:
        """Return how many tasks run at the same time on Spark, which starts if that is not known before."""
        known = self._cores()
        cores: int = self._spark.engine().cores() if known is None else known
        return cores

    def spark_status(self, *, start: bool) -> SparkStatus:
        """Return the status of Spark, which begins to start in the background if it is stopped and `start` is set."""
        return "absent" if self.is_lost() else self._spark.status(start=start)

    def spark_start_seconds(self) -> float:
        """Return how many seconds a start of Spark takes on this machine; 0 while it runs."""
        return self._machine().start_seconds()

    @property
    def spark_failure(self) -> str:
        """The reason why Spark is absent; empty if it is not."""
        return self._spark.failure

    def is_lost(self) -> bool:
        """Return whether the one on Spark is."""
        there = self._spark.running
        return there is not None and there.is_lost()

    def close(self) -> None:
        """Close the engines that were started."""
        self._local.close()
        self._here.close()
        self._spark.close()
