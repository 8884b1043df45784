"""Resumption of a job: the check of its sources, and its records under another pipeline.

Another pipeline requires one record, with a complete index. A driver with the new plan stores it when all previous
records are published.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Mapping, Sequence
from time import monotonic
from typing import Any, TypeAlias, TypeVar

from dstream.errors import IllegalStateError, SourceUnavailableError
from dstream.failures import naming
from dstream.jobs.unbounded.log import LogRecord, SourceMark
from dstream.jobs.unbounded.plans import OpenPlan, open_plan
from dstream.jobs.unbounded.ranges import check_offsets, identity_of
from dstream.operators.state.index_format import index_from_plain
from dstream.pipeline.plan import PipelinePlan
from dstream.spi import StreamSource
from dstream.spi.epochs import StateOperator
from dstream.spi.sink import Collections

__all__ = [
    "SameSources",
    "check_are_same",
    "check_sources_go_on",
    "fitting",
    "is_of",
    "is_same",
    "marks_of",
    "with_plan",
]


_log = logging.getLogger("dstream.jobs")

Same: TypeAlias = Callable[[StreamSource[Any], SourceMark], bool]


def marks_of(
    plan: OpenPlan, before: Mapping[str, SourceMark], now: float, same: Same | None = None
) -> dict[str, SourceMark]:
    """Return where the sources of a plan resume: those that were read where they were, others where they begin.

    Args:
        plan: the plan with its sources.
        before: how far sources were read, by the names of their stages.
        now: the clock time.
        same: returns whether a source is the one that was read; unset, `is_same`.

    Raises:
        SourceError: a source that is new cannot begin.
    """
    marks: dict[str, SourceMark] = {}
    for stage, source in plan.sources.items():
        mark = before.get(stage)
        with naming(plan.read_steps[stage]):
            marks[stage] = mark if mark is not None and (same or is_same)(source, mark) else _begun(source, now)
    return marks


def _begun(source: StreamSource[Any], now: float) -> SourceMark:
    offsets = dict(source.begin())
    # Checked while the source is known: a record that cannot contain an offset would not name the source.
    check_offsets(source, offsets)
    return SourceMark(offsets, False, now, identity=identity_of(source))


def is_same(source: StreamSource[Any], mark: SourceMark) -> bool:
    """Return whether the stored offsets belong to this source, as far as both have an identity."""
    found, before = identity_of(source), mark.identity
    if isinstance(found, Mapping) and isinstance(before, Mapping):
        return all(before.get(part, text) == text for part, text in found.items())
    return not (found and before) or found == before


def _may_be_same(source: StreamSource[Any], mark: SourceMark) -> bool:
    """Return whether a source may be the one that was read; if it does not respond, the run of the job decides."""
    try:
        return is_same(source, mark)
    except SourceUnavailableError:
        return True


def check_sources_go_on(
    plan: PipelinePlan, context: Collections, before: LogRecord | None, forgets: bool = False
) -> None:
    """Refuse a pipeline whose sources cannot begin, or resume at the offsets of a job.

    Args:
        plan: the pipeline.
        context: opens its sources.
        before: the last record of the job; None: it is new.
        forgets: the job may restart with another source.

    Raises:
        IllegalStateError: a source is not the one that was read.
        SourceError: a source does not exist.
    """
    opened = open_plan(plan, context)
    read = {} if before is None else before.sources
    if not forgets:
        check_are_same(opened, read, _may_be_same)
    # Only for what it refuses: each new source has to begin.
    marks_of(opened, read, 0.0, _may_be_same)


class SameSources:
    """The check, now and then while a job runs, that its sources are still those that it reads.

    Args:
        plan: with its sources.
    """

    def __init__(self, plan: OpenPlan) -> None:
        self._plan = plan
        self._looked_at = monotonic()

    def check(self, read: Mapping[str, SourceMark]) -> None:
        """Refuse a source that was recreated, such as a topic: the earlier offsets belong to another one.

        Within five seconds it is not checked again, since a source may have to call a server. After a failure it is
        checked the next time.

        Args:
            read: how far sources were read, by the names of their stages.

        Raises:
            IllegalStateError: there is such a source.
        """
        if monotonic() - self._looked_at >= _PAUSE:
            check_are_same(self._plan, read, _reports_same)
            # Counted from the end of the check: a slow server is not polled more densely than any other.
            self._looked_at = monotonic()


_PAUSE = 5.0


def _reports_same(source: StreamSource[Any], mark: SourceMark) -> bool:
    """Return whether a source is the one that was read; an error in its identity is no reason to end its job."""
    try:
        return is_same(source, mark)
    except Exception as error:
        _log.debug("%s does not say what it is: %r", source.label, error)
        return True


def check_are_same(plan: OpenPlan, read: Mapping[str, SourceMark], same: Same | None = None) -> None:
    """Refuse a source that is not the source that was read by its stage.

    Raises:
        IllegalStateError: there is such a source.
    """
    for stage, source in plan.sources.items():
        with naming(plan.read_steps[stage]):
            if stage in read and not (same or is_same)(source, read[stage]):
                raise IllegalStateError(
                    f"{source.label} is not what the stage {stage!r} has read so far, but another one, or one that was "
                    "made anew, so its offsets say nothing of it: give the stage another name, or submit the pipeline "
                    "under another name; with JobConfig(force=True) the job begins with it where it begins"
                )


T = TypeVar("T")


def is_of(records: Sequence[LogRecord], plan: OpenPlan) -> bool:
    """Return whether records belong to a plan, as far as they refer to its stages.

    Args:
        records: the last record with a complete index, and all later ones.
        plan: the plan to run.
    """
    # Later records change shards, but neither the steps nor their kinds.
    kept = _fitting_steps(records[0], plan.steps)
    read = records[-1].sources
    if read.keys() != plan.sources.keys() or not all(is_same(plan.sources[stage], read[stage]) for stage in read):
        return False
    return kept == plan.steps.keys() == _steps(records[0])


def fitting(records: Sequence[LogRecord], plan: OpenPlan) -> list[LogRecord]:
    """Return records without the state of steps that the plan does not have, or that have another kind."""
    kept = _fitting_steps(records[0], plan.steps)
    return [
        dataclasses.replace(
            each,
            index=None if each.index is None else _only(each.index, kept),
            changes=_only(each.changes, kept),
            steps=_only(each.steps, kept),
        )
        for each in records
    ]


def with_plan(record: LogRecord, plan: OpenPlan, index: Mapping[str, Any]) -> LogRecord:
    """Return the record by which a job continues with a plan: new sources begin, and removed ones are dropped.

    Args:
        record: a claim.
        plan: the plan to run.
        index: the locations of the state of its steps.
    """
    sources = marks_of(plan, record.sources, record.now)
    times = {
        place: time
        for place, time in record.times.items()
        if place.source in plan.sources_of.get(place.stamp, frozenset[str]())
        # A source that restarts has a new mark, and the watermarks of the old one do not apply to it.
        and sources[place.source] is record.sources.get(place.source)
    }
    steps = _only(record.steps, index.keys())
    return dataclasses.replace(record, sources=sources, times=times, steps=steps, index=dict(index))


def _steps(record: LogRecord) -> set[str]:
    return set(record.index or {})


def _fitting_steps(record: LogRecord, steps: Mapping[str, StateOperator]) -> set[str]:
    return {name for name, plain in (record.index or {}).items() if name in steps and _is_for(plain, steps[name])}


def _is_for(plain: Any, operator: StateOperator) -> bool:
    index = index_from_plain(plain)
    return (index.kind, index.signature) == (operator.kind, tuple(operator.signature))


def _only(values: Mapping[str, T], names: Any) -> dict[str, T]:
    return {name: value for name, value in values.items() if name in names}
