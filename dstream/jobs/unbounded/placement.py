"""`EpochPlacement`: the choice of the engine of each epoch by its load; `EngineChoice`: the same for one run of a job.

An epoch in this process costs milliseconds, and on Spark 50 to 150 ms, even with few items. So Spark is for loads that
exceed one process.
"""

from __future__ import annotations

import logging
import math
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from dstream.base.by_value import dumps_by_value
from dstream.errors import CancelledError, DStreamError, JobTakenOverError
from dstream.jobs.unbounded.rate_control import EpochCosts
from dstream.keys.hashing import has_seeded_keys
from dstream.operators.state.shards import kept_shards
from dstream.processors.graph_operator import GraphShard
from dstream.spi.epochs import ShardState
from dstream.spi.runtime import Engine, EngineOfEpoch, EnginesOfEpochs

__all__ = ["EngineChoice", "EpochLoad", "EpochPlacement", "obstacle_to_moving"]


_log = logging.getLogger("dstream.jobs")


class EpochLoad(NamedTuple):
    """The load of one epoch.

    Attributes:
        began: the time of a monotonic clock at its start.
        seconds: its duration.
        items: the number of items that it read.
        left: the backlog that the next epoch may read, as far as it is known.
        has_more: a source that does not know its backlog returned all items that the epoch could take.
    """

    began: float
    seconds: float
    items: int
    left: float = 0.0
    has_more: bool = False


_BACKLOG = 0.3
"""Seconds of work in the backlog that count as a high load: more than an epoch usually takes."""
_SHARE, _LONG, _IN_A_ROW = 0.8, 0.1, 3
"""The share of the time, and the seconds, of a heavy epoch; *n* of them in a row are a high load."""
_LONGEST_CONSTANT = 0.02
"""Limit of the constant seconds of the shortest epoch, by default: the rest is the cost of its items."""
_RECENT = 5
"""Number of epochs of which the fastest shows the cost of an item: other delays are not caused by items."""
_MANY = 1_000
"""Items of which one epoch shows the cost of the next ones; of fewer, two in a row do."""
_RISING = 0.5
"""The part of a high load at which Spark begins to start."""
_CALM = 0.4
"""The share of a core that the items take at a low load: half of a high one, so that epochs do not alternate."""
_HALF_LIFE = 3.0
"""Seconds after which the load of the past counts half."""
_STAY, _LONGEST_STAY, _SOON = 10.0, 50.0, 60.0
"""Minimal seconds that epochs remain on Spark; it doubles, up to a limit, when they return within a minute."""
_FIRST_EPOCHS, _SLOWER, _IN_A_ROW_SLOWER = 3, 1.2, 5
"""Epochs after a move that do not count, since workers start; factor and number in a row that are too slow."""


class EpochPlacement:
    """The engine of the next epoch of a job.

    Epochs begin in this process. They move to Spark when their backlog, or the share of the time that they take, is
    high. They return when the arriving items would take a small share of a core in this process, by the epochs before
    the move, or when Spark is no faster.

    Attributes:
        engine: the engine of the next epoch.
    """

    def __init__(self) -> None:
        self.engine: EngineOfEpoch = "inprocess"
        self._costs = EpochCosts()
        self._shortest = _LONGEST_CONSTANT
        self._recent: deque[EpochLoad] = deque(maxlen=_RECENT)
        self._of_each = self._share = self._arriving = 0.0
        self._load = self._left = 0.0
        self._backlogs: deque[float] = deque([0.0] * _RECENT, _RECENT)
        self._ended = -math.inf
        self._heavy = self._slower = self._since_move = 0
        self._moved = self._returned = -math.inf
        self._not_before = -math.inf
        self._stay = _STAY

    @property
    def is_rising(self) -> bool:
        """Return whether the load is so high that Spark should start."""
        return self._load >= _RISING

    def is_lasting(self, start: float) -> bool:
        """Return whether the load is expected to last until Spark has started.

        A backlog that is processed before is no reason to start it; a high rate of arrival is.

        Args:
            start: seconds of a start.
        """
        # The minimum of several: epochs of few items, with which a job begins, are a poor estimate of the cost of many.
        return self.is_rising and (min(self._backlogs) >= start or self._arriving >= _CALM)

    @property
    def is_high(self) -> bool:
        """Return whether epochs should run on Spark."""
        return self._load >= 1.0

    def has_left(self, now: float) -> bool:
        """Return whether the epochs have been on Spark for so long that they are not expected back soon."""
        return self.engine == "spark" and now - self._moved > _SOON

    def after(self, load: EpochLoad) -> None:
        """Record the load of an epoch, which ran on `engine`."""
        is_here = self.engine == "inprocess"
        if is_here and load.items > 0:
            self._learn(load)
        ended = load.began + load.seconds
        interval = max(load.seconds, ended - self._ended, 1e-3)
        # Few items in a long epoch are no sign of a backlog: after a pause of the machine, the next epoch reads it all.
        left = load.left if load.items >= _MANY else min(load.left, self._left)
        arrived = max(0.0, load.items + load.left - self._left)
        self._left = load.left
        work, backlog = load.items * self._of_each, left * self._of_each
        weight = 1 - 0.5 ** (interval / _HALF_LIFE)
        self._share += weight * (work / interval - self._share)
        # At most one core: a burst of items is a backlog, and not the rate of arrival.
        self._arriving += weight * (min(arrived * self._of_each / interval, 1.0) - self._arriving)
        self._ended = ended
        self._backlogs.append(backlog)
        if is_here:
            self._heavy = self._heavy + 1 if _is_heavy(load.seconds, interval, work) else 0
            self._load = max(backlog / _BACKLOG, self._heavy / _IN_A_ROW, self._share * _RISING / _CALM)
        else:
            self._load = 1.0 if load.has_more else backlog / _BACKLOG
            self._since_move += 1
            # For few items without a backlog, an epoch on Spark is always slower; the load is low then.
            is_slow = load.seconds > _SLOWER * (work + self._costs.of_itself) and (load.left > 0 or work >= _LONG / 2)
            self._slower = self._slower + 1 if is_slow and self._since_move > _FIRST_EPOCHS else 0

    def _learn(self, load: EpochLoad) -> None:
        """Estimate the cost of an item in this process, by an epoch that ran in it."""
        self._costs = self._costs.after(load.items, load.seconds)
        self._shortest = min(self._shortest, load.seconds)
        self._recent.append(load)
        # A pause of the machine, charged to two items, would move an idle job; and keep it on Spark, since this process
        # is not measured meanwhile. Epochs of few items are poor estimates.
        most = max(each.items for each in self._recent)
        constant = min(self._shortest, self._costs.of_itself or self._shortest)
        least = min((each.seconds - constant) / each.items for each in self._recent if 2 * each.items >= most)
        self._of_each = min(self._costs.of_each(self._shortest), least)

    def choose(self, now: float, *, is_spark_running: bool) -> EngineOfEpoch:
        """Choose the engine of the epoch that begins now, and return it.

        Args:
            now: the time of the monotonic clock.
            is_spark_running: epochs can run there.
        """
        if self.engine == "inprocess":
            if is_spark_running and self.is_high and now >= self._not_before:
                self._move(now)
        elif not is_spark_running or self._has_to_return(now):
            self._return(now)
        return self.engine

    def _move(self, now: float) -> None:
        # Soon after a return, the load was higher than estimated.
        self._stay = min(2 * self._stay, _LONGEST_STAY) if now - self._returned < _SOON else _STAY
        self.engine, self._moved = "spark", now
        self._heavy = self._slower = self._since_move = 0

    def _has_to_return(self, now: float) -> bool:
        if self._slower >= _IN_A_ROW_SLOWER:
            self._not_before = now + _SOON
            return True
        share = self._share * 0.5 ** (max(0.0, now - self._ended) / _HALF_LIFE)
        return now - self._moved >= self._stay and share < _CALM and self._load < _RISING

    def _return(self, now: float) -> None:
        self.engine, self._returned = "inprocess", now
        self._heavy, self._load = 0, 0.0


def _is_heavy(seconds: float, interval: float, work: float) -> bool:
    """Return whether an epoch takes most of the time because of its items: Spark would not shorten the rest."""
    return seconds >= _LONG and seconds >= _SHARE * interval and 2 * work >= seconds


class EngineChoice:
    """The engine of each epoch in one run of a job.

    Args:
        job: its id, for messages.
        engine: returns the engine of the context; another job may renew it.
        wants_small_here: small epochs run in this process although Spark is a cluster.
        obstacle: returns why epochs cannot move from this process to Spark; an empty string if they can.
    """

    def __init__(
        self, job: str, engine: Callable[[], Engine], wants_small_here: bool, obstacle: Callable[[], str]
    ) -> None:
        self._job = job
        self._engine = engine
        self._placement = EpochPlacement()
        self._obstacle = obstacle
        self._pinned: EngineOfEpoch | None = None
        self._has_reported_absence = self._has_run_there = False
        engines = self._engines
        if engines is not None and engines.keeps_epochs_on_spark and not wants_small_here:
            self._pinned = "spark"

    @property
    def _engines(self) -> EnginesOfEpochs | None:
        """The engine of the context, if it has several; the kind of a context is fixed."""
        engine = self._engine()
        return engine if isinstance(engine, EnginesOfEpochs) else None

    def next(self, now: float) -> EngineOfEpoch | None:
        """Return the engine of the epoch that begins now; None: the context has one engine, which runs it.

        Args:
            now: the reading of a monotonic clock.
        """
        if self._pinned is not None or (engines := self._engines) is None:
            return self._pinned
        before = self._placement.engine
        engine = self._placement.choose(now, is_spark_running=self._is_spark_running(engines))
        if engine == "spark" and before != "spark" and self._is_pinned_here():
            return self._pinned
        if engine != before:
            self._has_moved(engine)
        return engine

    def _has_moved(self, engine: EngineOfEpoch) -> None:
        _log.info("job %s: its epochs run %s from now on", self._job, _PLACES[engine])

    def _is_spark_running(self, engines: EnginesOfEpochs) -> bool:
        """Return whether epochs can run on Spark, if they may have to; it begins to start if the load rises."""
        if self._placement.engine == "inprocess" and not self._placement.is_rising:
            return False  # Java, or a server, is not called with each poll of the sources.
        status = engines.spark_status(start=False)
        if status == "stopped" and not self._placement.is_lasting(engines.spark_start_seconds()):
            return False
        # Checked before the start: a job that has to remain in this process needs no Spark.
        if status == "stopped" and not self._is_pinned_here():
            status = engines.spark_status(start=True)
        if status == "absent" and not self._has_reported_absence:
            self._has_reported_absence = True
            _log.warning("job %s: its epochs stay in this process: %s", self._job, engines.spark_failure or "no Spark")
        return status == "running"

    def _is_pinned_here(self) -> bool:
        if self._pinned is None and (why := self._obstacle()):
            self._pinned = "inprocess"
            _log.info("job %s: its epochs stay in this process: %s", self._job, why)
        return self._pinned == "inprocess"

    def after(self, load: EpochLoad) -> None:
        """Record the load of an epoch."""
        if self._pinned is not None or self._engines is None:
            return
        self._placement.after(load)
        self._has_run_there = self._has_run_there or self._placement.engine == "spark"
        if self._placement.has_left(load.began):
            # Their states are older than those on Spark; a return loads the current ones from their files.
            kept_shards.forget(self._job)

    def stay_on_spark(self) -> bool:
        """Run all further epochs on Spark, unless that cannot be; return whether they do from now on."""
        engines = self._engines
        if self._pinned is not None or engines is None or self._placement.engine == "spark":
            return False
        while (status := engines.spark_status(start=True)) == "starting":
            time.sleep(_PAUSE)  # Nothing runs in this process meanwhile.
        if status == "absent":
            return False  # The error about the keys is clearer than an unrequested start of Spark.
        self._pinned = "spark"
        kept_shards.forget(self._job)
        return True

    def return_here(self, error: Exception) -> bool:
        """Run all further epochs in this process if the first one on Spark failed because of Spark.

        Args:
            error: the failure, such as a file of the state that workers cannot read; a failure of a user's function
                does not count.

        Returns:
            Whether they run in this process from now on, including the failed one.
        """
        if self._pinned is not None or self._has_run_there or self._placement.engine != "spark":
            return False
        if not isinstance(error, _OF_THE_PLACE) or isinstance(error, CancelledError | JobTakenOverError):
            return False
        self._pinned = "inprocess"
        _log.warning("job %s: its epochs stay in this process: the first one on Spark failed: %s", self._job, error)
        return True


_OF_THE_PLACE = (DStreamError, ImportError, OSError)
"""Kinds of errors of an epoch that may run where another one has failed."""
_PAUSE = 0.05
"""Seconds between two polls of a start of Spark that epochs wait for."""
_PLACES = {"inprocess": "in this process", "spark": "on Spark"}


def obstacle_to_moving(job: str, version: str, parts: Iterable[Any]) -> str:
    """Return why the epochs of a job cannot move from this process to others; an empty string if they can.

    Args:
        job: its id.
        version: the version of its states.
        parts: the resources of this process that tasks need, such as the files of the state.
    """
    for each in parts:
        try:
            dumps_by_value(each)
        except Exception as error:
            return str(error)
    unsaved: set[str] = set()

    def look(state: ShardState) -> bool:
        unsaved.update(state.unsaved() if isinstance(state, GraphShard) else ())
        return False

    kept_shards.visit(job, version, look)
    if unsaved:
        return f"the processors of {', '.join(map(repr, sorted(unsaved)))} do not save what they hold"
    if has_seeded_keys():
        return "keys have a __hash__ of their own, which holds for the PYTHONHASHSEED of this process"
    return ""
