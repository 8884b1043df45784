"""How a job goes on with another pipeline: what its records say of stages that are gone is left out.

One record says so, with a whole index. It is put when all before it is published, by a driver that has the new plan.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from dstream.jobs.unbounded.log_record import LogRecord, SourceMark
from dstream.jobs.unbounded.open_plan import OpenPlan
from dstream.jobs.unbounded.ranges import check_offsets
from dstream.plan.core_of_epochs import OverEpochs
from dstream.spi import StreamSource
from dstream.state.plain_index import index_from_plain

__all__ = ["fitting", "is_of", "with_plan"]

T = TypeVar("T")


def is_of(records: Sequence[LogRecord], plan: OpenPlan) -> bool:
    """Say whether records are those of a plan, as far as they speak of its stages.

    Args:
        records: the last one with a whole index, and all after it.
        plan: the one that is to run.
    """
    kept = _fitting_steps(records[0], plan.steps)
    return records[-1].sources.keys() == plan.sources.keys() and kept == plan.steps.keys() == _steps(records[0])


def fitting(records: Sequence[LogRecord], plan: OpenPlan) -> list[LogRecord]:
    """Return records without the state of steps that the plan has not, or that are of another kind there."""
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
    """Return the record by which a job goes on with a plan: new sources begin, and those that are gone do not stay.

    Args:
        record: a claim.
        plan: the one that is to run.
        index: where the state of its steps is.
    """
    sources = {stage: record.sources.get(stage) or _begun(source, record.now) for stage, source in plan.sources.items()}
    times = {
        place: time
        for place, time in record.times.items()
        if place.source in plan.sources_of.get(place.stamp, frozenset[str]())
    }
    steps = _only(record.steps, index.keys())
    return dataclasses.replace(record, sources=sources, times=times, steps=steps, index=dict(index))


def _begun(source: StreamSource[Any], now: float) -> SourceMark:
    offsets = dict(source.begin())
    check_offsets(source, offsets)
    return SourceMark(offsets, False, now)


def _steps(record: LogRecord) -> set[str]:
    return set(record.index or {})


def _fitting_steps(record: LogRecord, steps: Mapping[str, OverEpochs]) -> set[str]:
    return {name for name, plain in (record.index or {}).items() if name in steps and _is_for(plain, steps[name])}


def _is_for(plain: Any, step: OverEpochs) -> bool:
    index = index_from_plain(plain)
    return (index.kind, index.signature) == (step.operator.kind, tuple(step.operator.signature))


def _only(values: Mapping[str, T], names: Any) -> dict[str, T]:
    return {name: value for name, value in values.items() if name in names}
