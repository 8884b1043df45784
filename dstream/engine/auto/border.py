"""`SparkStart`: Spark as far as it has been started; `SparkBorder`: when a run of this process continues there."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from itertools import islice
from time import monotonic
from typing import Any, Protocol

from dstream.base.threads import RenewedLock
from dstream.engine.auto.cost_model import Costs
from dstream.engine.auto.measured import MeasuredCosts
from dstream.engine.calls import Call, Cancellation
from dstream.engine.physical.vertices import Items, SourceSplits, Splits, Vertex
from dstream.engine.runs.moves import BegunRun, Remote
from dstream.engine.runs.splits import ListedSplits
from dstream.errors import DStreamError
from dstream.plan.walk import inputs_first
from dstream.spi import Engine
from dstream.spi.runtime import SparkStatus
from dstream.spi.source import input_size

__all__ = ["RemoteEngine", "SparkBorder", "SparkStart", "StartBeside"]


class RemoteEngine(Engine, Protocol):
    """An engine that runs the rest of a run's tasks."""

    def remote(self, begun: BegunRun, call: Call, cancellation: Cancellation) -> Remote:
        """Return where the rest of the tasks of a run run."""
        ...


class StartBeside(Protocol):
    """A start of Spark in the background."""

    def __call__(self) -> Any:
        """Wait for the engine and return it, or raise the exception that prevented its start."""
        ...

    @property
    def has_ended(self) -> bool:
        """Whether the engine has started, or its start has failed."""
        ...

    def close(self) -> None:
        """Close an engine that was not asked for."""
        ...


class SparkStart:
    """Spark, as far as it has been started.

    Args:
        start: starts Spark, or finds one that runs.
        beside: begins to start Spark in a thread; None: it runs already, or elsewhere, so that a start costs little.
        report: writes a line to the user.
        begun: a start that has already begun.
        may_begin: Spark may start in the background of a run that needs it later; otherwise it starts when a plan needs
            it.
        wait: calls a function that starts Spark, or waits for it, and shows this to the user meanwhile.
        clock: reads a monotonic clock.

    Attributes:
        failure: why the last start failed that was offered to a run; empty if none was, or did. Another one is tried
            after a minute, and then after twice as long each time.
    """

    def __init__(
        self,
        start: Callable[[], Engine],
        beside: Callable[[], StartBeside | None],
        report: Callable[[str], object],
        begun: StartBeside | None = None,
        may_begin: bool = True,
        wait: Callable[[Callable[[], Any]], Any] = operator.call,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.failure = ""
        self._pause, self._next_trial = _FIRST_PAUSE, -math.inf
        self._clock = clock
        self._start = start
        self._beside = beside
        self._report = report
        self._engine: Any = None
        self._begun = begun
        self._may_begin = may_begin
        self._wait = wait
        self._is_starting = self._has_reported = False
        self._lock = RenewedLock()

    @property
    def running(self) -> Any:
        """The engine; None if it was not started."""
        return self._engine

    def engine(self) -> Any:
        """Return the engine, started if it was not."""
        with self._lock:
            if self._engine is None:
                self._is_starting = True
                begun, self._begun = self._begun, None
                try:
                    self._engine = self._wait(self._start if begun is None else begun)
                finally:
                    self._is_starting = False
                self.failure = ""
            return self._engine

    def status(self, *, start: bool) -> SparkStatus:
        """Return the status of Spark.

        Args:
            start: begin a background start if Spark is stopped.
        """
        # Without the lock: the placement of a small plan does not wait for a start in another thread.
        begun = self._begun
        if self._engine is not None:
            return "running"
        if begun is None and self._has_failed_lately():
            return "absent"
        if self._is_starting:
            return (
                "starting"  # A caller that requests a start, such as a job between two epochs, would wait for this one.
            )
        if begun is not None:
            return self._started() if begun.has_ended else "starting"
        return self._starting() if start and self._may_begin else "stopped"

    def _starting(self) -> SparkStatus:
        with self._lock:
            if self._engine is None and self._begun is None:
                try:
                    self._begun = self._beside()
                except RuntimeError:
                    return "stopped"  # No thread can start now: the caller continues and retries.
                if self._begun is None:
                    return self._started()
        return self.status(start=False)

    def _started(self) -> SparkStatus:
        try:
            self.engine()
        except Exception as error:  # Any failure of the start: a caller that needs Spark gets the error itself.
            self.failure = str(error) or type(error).__name__
            self._next_trial = self._clock() + self._pause
            self._pause = min(2 * self._pause, _LONGEST_PAUSE)
            return "absent"
        return "running"

    def _has_failed_lately(self) -> bool:
        """Return whether the last start failed, and it is too soon for another one."""
        return bool(self.failure) and self._clock() < self._next_trial

    def offer(self) -> Any:
        """Return the engine, started if it was not; None if it cannot start, which is reported to the user once."""
        if self._engine is None and not self._has_failed_lately():
            self._started()
        if self._engine is None:
            self.report_once(f"large plans run in this process, since Spark does not start: {self.failure}")
        return self._engine

    def report_once(self, line: str) -> None:
        """Write the first reason why a plan does not run on Spark to stderr, and no later one."""
        if not self._has_reported:
            self._has_reported = True
            self._report(f"dstream: {line}")

    def close(self) -> None:
        """Close the engine, or the start of one."""
        with self._lock:
            engine, begun, self._engine, self._begun = self._engine, self._begun, None, None
        for each in (engine, begun):
            if each is not None:
                each.close()


_FIRST_PAUSE, _LONGEST_PAUSE = 60.0, 3600.0
"""Seconds between two starts that fail: a machine may lack memory or a port for a while, or Java for good."""

_PATIENCE = 1.0
"""The seconds of a run before Spark starts in the background."""


class SparkBorder:
    """Decides when the rest of a run's tasks runs on Spark.

    An unknown number of further tasks is estimated as the work of the tasks before: then a run that
    moves has never taken more than twice the time of the better choice.

    Args:
        spark: where they run then.
        cores: the number of concurrent tasks on Spark.
        limit: the seconds of work that remain in this process; None: the seconds of Spark's start.
        costs: the constants of this machine.
        measured: takes note of what functions cost.
        call: the call of the run.
        cancellation: the cancellation of the run.
    """

    def __init__(
        self,
        spark: SparkStart,
        cores: int,
        limit: float | None,
        costs: Costs,
        measured: MeasuredCosts,
        call: Call,
        cancellation: Cancellation,
    ) -> None:
        self._spark = spark
        self._cores = cores
        self._limit = limit
        self._costs = costs
        self._measured = measured
        self._call = call
        self._cancellation = cancellation
        self._seconds = 0.0
        self._input: Splits | None = None
        self._before = 0.0
        self._pieces: int | None = None
        self._remotes: list[Remote] = []

    def took(self, of: Vertex | Items, items: int, seconds: float) -> None:
        """Take note of a task that ran in this process."""
        self._seconds += seconds
        self._measured.took(of, items, seconds)

    def is_crossed(self, splits: ListedSplits, each: Splits, piece: int) -> bool:
        """Return whether the pieces of an input are better read on Spark, from the number `piece` on."""
        if each is not self._input:
            self._input, self._before, self._pieces = each, self._seconds, None
        if self._cores < 2 or self._seconds < self._least():
            return False
        rest = self._rest(splits, each, piece)
        if self._limit is not None:
            return self._seconds + rest > self._limit and self._is_there(rest)
        saved = rest * (1 - 1 / self._cores)
        return saved > 2 * self._costs.job and self._is_there(saved)

    def _least(self) -> float:
        if self._limit is not None:
            return min(self._limit, _PATIENCE)
        return self._costs.job if self._spark.running is not None else _PATIENCE

    def _rest(self, splits: ListedSplits, each: Splits, piece: int) -> float:
        """Return the seconds that the rest of an input is expected to take in this process."""
        spent = self._seconds - self._before
        if self._pieces is None:
            # Once per input: counting its pieces again before each would take longer than reading many small ones.
            self._pieces = _count_pieces(splits, each)
        if piece == 0 or self._pieces == _UNKNOWN:
            return max(spent, self._seconds)
        return spent / piece * (self._pieces - piece)

    def _is_there(self, saved: float) -> bool:
        """Return whether Spark is available; start it in the background if that saves more than it costs."""
        if self._spark.running is None and saved < self._costs.start and self._limit is None:
            return False
        return self._spark.status(start=True) in ("running", "absent")

    def remote(self, run: BegunRun) -> Remote | None:
        """Return where the rest of the tasks run; None if Spark cannot take them."""
        engine = self._spark.offer()
        if engine is None:
            self._cores = 1
            return None
        try:
            remote: Remote = engine.remote(run, self._call, self._cancellation)
        except DStreamError as error:
            self._spark.report_once(f"this run goes on in this process: {error}")
            self._cores = 1
            return None
        self._remotes.append(remote)
        return remote

    def end(self, error: BaseException | None) -> None:
        """End the tasks on Spark."""
        remotes, self._remotes = self._remotes, []
        for each in remotes:
            each.end(error)


_MOST_COUNTED = 10_000
_UNKNOWN = -1


def _count_pieces(splits: ListedSplits, each: Splits) -> int:
    """Return how many pieces there are; `_UNKNOWN` if the source would be asked further, or all be counted."""
    for part in inputs_first(each, Splits.inner):
        for source in part.parts:
            if isinstance(source, SourceSplits) and _may_be_endless(source):
                return _UNKNOWN
    found = sum(1 for _ in islice(splits.pieces(each), _MOST_COUNTED))
    return found if found < _MOST_COUNTED else _UNKNOWN


def _may_be_endless(source: SourceSplits) -> bool:
    """Return whether the splits of a source are made one after another, of items that were not counted."""
    size = input_size(source.node.source)
    is_unknown = size.items is None or size.items == math.inf
    return is_unknown and (source.node.source.in_caller or not source.node.source.bounded or size.is_held)
