"""`EventTime`: time and watermarks of partitions and steps between epochs, and late items.

Tasks report the watermarks of the partitions that they read; the driver has all others. A partition that is idle, or
has ended, delays no watermark. All functions compute from the last record and one clock time, without side effects.
"""

from __future__ import annotations

import logging
import pickle
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from dstream.base.pickling import dumps_named_by_reference
from dstream.errors import EngineError
from dstream.failures import naming
from dstream.jobs.unbounded.log import LogRecord, PlaceTime, SourceMark, StepMark, TimedPartition
from dstream.jobs.unbounded.plans import OpenPlan
from dstream.operators.state.watermarks import next_watermark
from dstream.spi.epochs import (
    PartitionReceipt,
    PartitionTime,
    StepReceipt,
    StepTime,
    WatermarkPolicy,
    policy_as_planned,
    watermark_of,
)
from dstream.values.time import END_OF_TIME, NO_WATERMARK

__all__ = ["EventTime", "LoadedPolicies", "RetainedWatermarks", "log_late"]


_MOST = 10_000


class LoadedPolicies:
    """A cache of unpickled policies, of which only copies may be changed.

    Args:
        load: loads a pickle, if the storage allows it.
    """

    def __init__(self, load: Callable[[bytes], Any]) -> None:
        self._load = load
        self._loaded: dict[bytes, Any] = {}

    def load(self, data: bytes) -> Any:
        """Return the policy that was pickled."""
        if data not in self._loaded:
            # A policy changes with the items that it sees, so each epoch brings pickles that no later one needs.
            if len(self._loaded) >= _MOST:
                self._loaded.clear()
            self._loaded[data] = self._load(data)
        return self._loaded[data]


class RetainedWatermarks:
    """The watermarks of the inputs of steps, by the clock of this driver's epochs.

    Args:
        seconds: how long to wait for a lagging input; None: without limit.
    """

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds
        self._reached: dict[str, deque[tuple[float, int]]] = {}
        """By the stage that assigns timestamps (clock time, watermark), both increasing."""

    def note(self, now: float, watermarks: Mapping[str, int]) -> None:
        """Record the progress of inputs.

        Args:
            now: the clock time of an epoch, in seconds.
            watermarks: the watermarks at its end, by the stage that assigns timestamps.
        """
        if self._seconds is None:
            return
        for stamp, watermark in watermarks.items():
            reached = self._reached.setdefault(stamp, deque())
            if watermark > (reached[-1][1] if reached else NO_WATERMARK):
                reached.append((now, watermark))
            # The last one from before that time remains: it shows the progress of the input at that time.
            while len(reached) > 1 and reached[1][0] <= now - self._seconds:
                reached.popleft()

    def floor(self, stamps: Iterable[str], now: float) -> int:
        """Return the progress of the fastest input at the start of the wait; `NO_WATERMARK` if unknown."""
        if self._seconds is None:
            return NO_WATERMARK
        until = now - self._seconds
        passed = (watermark for stamp in stamps for at, watermark in self._reached.get(stamp, ()) if at <= until)
        return max(passed, default=NO_WATERMARK)


@dataclass(frozen=True, slots=True)
class _Known:
    """The event time of a partition, with its policy as an object."""

    watermark: int
    policy: WatermarkPolicy
    heard_at: float


_NEW_STEP = StepMark(NO_WATERMARK, None, None)


class EventTime:
    """The time of an epoch that may begin now.

    Args:
        plan: contains the partitions upstream of each step.
        before: the last record.
        sources: how far each source will have been read.
        now: the clock time of the epoch.
        started_at: the clock time of the start of the driver: no partition has been idle for longer.
        is_resumed: it would be the first epoch of the driver.
        load: loads a pickled policy.
        retained: returns the past progress of the fastest of several stages that assign timestamps, from which others
            are no longer waited for.
        is_over: all sources have ended, and endless processors: the job has one epoch left.
    """

    def __init__(
        self,
        plan: OpenPlan,
        before: LogRecord,
        sources: Mapping[str, SourceMark],
        now: float,
        started_at: float,
        is_resumed: bool = False,
        load: Callable[[bytes], Any] = pickle.loads,
        retained: RetainedWatermarks | None = None,
        is_over: bool = False,
    ) -> None:
        self._retained = retained or RetainedWatermarks(None)
        self._plan = plan
        self._before = before
        self._sources = sources
        self._now = now
        self._started_at = started_at
        self._is_resumed = is_resumed
        self._is_over = is_over
        self._load = load
        self._known = {place: self._restored(place) for place in self._places()}

    def _places(self) -> list[TimedPartition]:
        return [
            TimedPartition(stamp, source, partition)
            for stamp, sources in self._plan.sources_of.items()
            for source in sorted(sources)
            for partition in self._partitions(source)
        ]

    def _partitions(self, source: str) -> list[str]:
        """Return the partitions that are known, and those that end in this epoch."""
        ending = () if source not in self._before.sources else self._before.sources[source].offsets
        return list(dict.fromkeys((*self._sources[source].offsets, *ending)))

    def _restored(self, place: TimedPartition) -> _Known:
        found, policy = self._before.times.get(place), self._plan.stamps[place.stamp].policy
        assert policy is not None, "what gives timestamps has a policy"
        if found is None:
            return _Known(NO_WATERMARK, policy(), self._found_at(place))
        with self._naming(place):
            policy_then = policy_as_planned(self._load(found.policy), policy())
        return _Known(found.watermark, policy_then, max(found.heard_at, self._started_at))

    def _found_at(self, place: TimedPartition) -> float:
        """Return when a partition was found that no epoch has reported: with its source, or in this epoch."""
        source = self._before.sources.get(place.source)
        if source is None or place.partition not in source.offsets:
            return self._now
        return self._begun_at(source)

    # ------------------------------------------------------------------------------------------------- for the tasks

    def partition_time(self, stamp: str, source: str, partition: str, ends: bool) -> PartitionTime:
        """Return the times for the task that reads a range of a partition."""
        known = self._known[TimedPartition(stamp, source, partition)]
        counts = not self._is_idle(TimedPartition(stamp, source, partition))
        return PartitionTime(stamp, (source, partition), known.policy, known.watermark, self._now, ends, counts)

    def step_time(self, step: str, epoch: int, read: Iterable[TimedPartition]) -> StepTime:
        """Return the current times of a step.

        Args:
            step: its name.
            epoch: the number of the epoch.
            read: the partitions whose time tasks will report.
        """
        stamps = self._plan.stamps_of[step]
        mark = self._before.steps.get(step, _NEW_STEP)
        unread, idle = self.unread_watermark(step, frozenset(read)), self.all_idle(step)
        floor = self._retained.floor(stamps, self._now)
        resumed, clock_deadline = self._is_resumed, mark.clock_deadline
        ended, has_new_end = self._ended_inputs(step), self._has_new_end(step)
        return StepTime(
            epoch, self._now, mark.watermark, unread, stamps, resumed, idle, clock_deadline, floor, ended, has_new_end
        )

    def _ended_inputs(self, step: str) -> frozenset[int]:
        """Return the inputs of a step that have ended, if it is one that is notified."""
        inputs = self._plan.inputs_of.get(step, ())
        return frozenset(n for n, origins in enumerate(inputs) if all(map(self._is_at_its_end, origins)))

    def _is_at_its_end(self, origin: str) -> bool:
        """Return whether no more items arrive from a source, or from processors that may run for ever."""
        return self._sources[origin].has_ended if origin in self._sources else self._is_over

    def _has_new_end(self, step: str) -> bool:
        """Return whether an input of a step has ended of which the step was not notified yet."""
        inputs, before = self._plan.inputs_of.get(step, ()), self._before.sources
        is_new = step not in self._before.steps
        return any(
            is_new or not all(each in before and before[each].has_ended for each in inputs[number])
            for number in self._ended_inputs(step)
        )

    def unread_watermark(self, step: str, read: frozenset[TimedPartition]) -> int:
        """Return the least watermark of the partitions that count for a step and are not read; see `StepTime`."""
        unread = (each for each in self._places_of(step) if each not in read)
        held = [self._watermark(each) for each in unread if not self._is_idle(each)]
        held += [NO_WATERMARK] * any(map(self._awaits, self._plan.stamps_of[step]))
        return min(held, default=END_OF_TIME)

    def all_idle(self, step: str) -> int:
        """Return the watermark of a step if no partition holds it back; see `StepTime`."""
        if all(self._sources[each].has_ended for each in self._sources_of(step)):
            return END_OF_TIME
        reached = (self._watermark(each) for each in self._places_of(step) if not self._has_ended(each))
        return max(reached, default=NO_WATERMARK)

    def _places_of(self, step: str) -> list[TimedPartition]:
        return [each for each in self._known if each.stamp in self._plan.stamps_of[step]]

    def _sources_of(self, step: str) -> set[str]:
        return {source for stamp in self._plan.stamps_of[step] for source in self._plan.sources_of[stamp]}

    def _watermark(self, place: TimedPartition) -> int:
        if self._has_ended(place):
            return END_OF_TIME
        known = self._known[place]
        with self._naming(place):
            return max(known.watermark, watermark_of(known.policy, self._now))

    def _naming(self, place: TimedPartition) -> naming:
        """Name the step in errors of the user's policy."""
        return naming(self._plan.stamps[place.stamp].step)

    def _has_ended(self, place: TimedPartition) -> bool:
        return not self._sources[place.source].goes_on(place.partition)

    def _is_idle(self, place: TimedPartition, heard_at: float | None = None) -> bool:
        """Return whether a partition does not hold the watermark back, unless it has an event."""
        heard_at = self._known[place].heard_at if heard_at is None else heard_at
        return self._has_ended(place) or self._now - heard_at >= self._plan.stamps[place.stamp].idle_timeout

    def _awaits(self, stamp: str) -> bool:
        """Return whether a stage waits for a source that has no partitions yet."""
        timeout = self._plan.stamps[stamp].idle_timeout
        marks = [self._sources[source] for source in self._plan.sources_of[stamp]]
        return any(self._is_empty(mark) and self._now - self._begun_at(mark) < timeout for mark in marks)

    def _is_empty(self, mark: SourceMark) -> bool:
        return not any(map(mark.goes_on, mark.offsets)) and not mark.has_ended

    def _begun_at(self, mark: SourceMark) -> float:
        return max(mark.found_at, self._started_at)

    # ------------------------------------------------------------------------------------------------ between epochs

    def is_due(self) -> bool:
        """Return whether the clock, or the watermark it moves, reaches the deadline of a step, or must be passed on."""
        steps = self._before.steps
        has_end = any(step not in steps or self._has_new_end(step) for step in self._plan.inputs_of)
        return has_end or any(self._is_step_due(step, mark) for step, mark in steps.items())

    def _is_step_due(self, step: str, mark: StepMark) -> bool:
        if mark.clock_deadline is not None and mark.clock_deadline <= self._now:
            return True
        if mark.deadline is None:
            return False
        return mark.deadline <= next_watermark(self.step_time(step, 0, ()), END_OF_TIME)

    # ------------------------------------------------------------------------------------------------ after an epoch

    def after(
        self, receipts: Iterable[PartitionReceipt], read: Iterable[TimedPartition]
    ) -> dict[TimedPartition, PlaceTime]:
        """Return the times of all partitions after an epoch.

        Raises:
            EngineError: of a partition that was read nothing is known.
        """
        reported: dict[TimedPartition, PartitionReceipt] = {}
        for each in receipts:
            place = TimedPartition(each.stamp, *each.partition)
            # A bounded source is one partition that several tasks read: one that got no item has less information.
            reported[place] = each if place not in reported or each.items else reported[place]
        if missing := [place for place in read if place not in reported]:
            raise EngineError(f"the engine did not report the watermark of partition {missing[0].partition!r}")
        return {place: self._after(place, reported.get(place)) for place in self._known if self._is_kept(place)}

    def _is_kept(self, place: TimedPartition) -> bool:
        return place.partition in self._sources[place.source].offsets

    def _after(self, place: TimedPartition, reported: PartitionReceipt | None) -> PlaceTime:
        known = self._known[place]
        if reported is None:
            # Not the end of time, which counts only while a partition is left out: it continues when it is shown again.
            watermark = known.watermark if self._has_ended(place) else self._watermark(place)
            return PlaceTime(watermark, dumps_named_by_reference(known.policy), known.heard_at)
        heard_at = self._now if reported.items else known.heard_at
        return PlaceTime(reported.watermark, dumps_named_by_reference(reported.policy), heard_at)

    def clock_after(self, times: Mapping[TimedPartition, PlaceTime]) -> int | None:
        """Return the clock of the job after an epoch: the least watermark of partitions that count. It never decreases.

        Args:
            times: the result of `after`.
        """
        reported = [time.watermark for place, time in times.items() if not self._is_idle(place, time.heard_at)]
        before = self._before.clock
        if not reported or min(reported) == NO_WATERMARK:
            return before
        return min(reported) if before is None else max(before, min(reported))

    def of_stamps(self, times: Mapping[TimedPartition, PlaceTime]) -> dict[str, int]:
        """Return the watermark of each stage that assigns timestamps, of the partitions that count, after an epoch.

        Args:
            times: the result of `after`.
        """
        found: dict[str, int] = {}
        for place, time in times.items():
            if not self._is_idle(place, time.heard_at):
                found[place.stamp] = min(time.watermark, found.get(place.stamp, time.watermark))
        return found

    def steps_after(
        self, receipts: Iterable[StepReceipt], deadlines: Callable[[str], tuple[int | None, float | None]]
    ) -> dict[str, StepMark]:
        """Return how steps are left when an epoch has run.

        Args:
            receipts: one receipt of each task and step.
            deadlines: returns the pending timers of a step, in all its shards.
        """
        reached = {step: mark.watermark for step, mark in self._before.steps.items()}
        for each in receipts:
            reached[each.stage] = max(reached.get(each.stage, NO_WATERMARK), each.watermark)
        return {step: StepMark(reached.get(step, NO_WATERMARK), *deadlines(step)) for step in self._plan.steps}


_log = logging.getLogger("dstream.jobs")


def log_late(job: str, before: LogRecord, record: LogRecord) -> None:
    """Warn of items that were late in an epoch, with the stages and their numbers.

    Args:
        job: its id.
        before: the record of the epoch before.
        record: that of the epoch; counts start at the beginning of the job.
    """
    late = {stage: _late(record, stage) - _late(before, stage) for stage in record.counts}
    reported = ", ".join(f"{count:,} at {stage!r}" for stage, count in late.items() if count > 0)
    if reported:
        _log.warning("job %s, epoch %d: items that came too late: %s", job, record.number, reported)


def _late(record: LogRecord, stage: str) -> int:
    return int(record.counts.get(stage, {}).get("late", 0))
