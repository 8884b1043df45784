"""How a job goes on with another pipeline: what its records say of stages that are gone is left out.

One record says so, with a whole index. It is put when all before it is published, by a driver that has the new plan.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from dstream.jobs.unbounded.log_record import LogRecord
from dstream.jobs.unbounded.open_plan import OpenPlan
from dstream.jobs.unbounded.source_marks import is_same, marks_of
from dstream.plan.core_of_epochs import OverEpochs
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
    read = records[-1].sources
    if read.keys() != plan.sources.keys() or not all(is_same(plan.sources[stage], read[stage]) for stage in read):
        return False
    return kept == plan.steps.keys() == _steps(records[0])


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
    sources = marks_of(plan, record.sources, record.now)
    times = {
        place: time
        for place, time in record.times.items()
        if place.source in plan.sources_of.get(place.stamp, frozenset[str]())
        and sources[place.source] is record.sources.get(place.source)
    }
    steps = _only(record.steps, index.keys())
    return dataclasses.replace(record, sources=sources, times=times, steps=steps, index=dict(index))


def _steps(record: LogRecord) -> set[str]:
    return set(record.index or {})


def _fitting_steps(record: LogRecord, steps: Mapping[str, OverEpochs]) -> set[str]:
    return {name for name, plain in (record.index or {}).items() if name in steps and _is_for(plain, steps[name])}


def _is_for(plain: Any, step: OverEpochs) -> bool:
    index = index_from_plain(plain)
    return (index.kind, index.signature) == (step.operator.kind, tuple(step.operator.signature))


def _only(values: Mapping[str, T], names: Any) -> dict[str, T]:
    return {name: value for name, value in values.items() if name in names}
