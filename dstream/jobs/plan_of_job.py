"""The plan of a job: what of a pipeline runs, if it can run, and how it is kept for other processes."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from dstream.errors import UnsupportedError
from dstream.failures import shown
from dstream.jobs.job_records import JobRecords
from dstream.pickling import dumps
from dstream.pipeline.pipeline_plan import PipelinePlan
from dstream.plan import Read, check, is_bounded, rewrite, topological

__all__ = ["keep_plan", "plan_of"]

_LARGEST_PLAN = 8 * 2**20
"""Bytes above which a pipeline holds data of its own, which records are not for."""


def plan_of(pipeline: Any, call: str) -> PipelinePlan:
    """Return what of a pipeline a job runs; refuse what cannot run."""
    plan = pipeline if isinstance(pipeline, PipelinePlan) else getattr(pipeline, "plan", None)
    plan = plan() if callable(plan) else plan
    if not isinstance(plan, PipelinePlan):
        raise TypeError(f"{call}() takes a pipeline, not {shown(pipeline)}")
    if not plan.writes:
        raise ValueError(f"{call}() takes a pipeline that ends in a sink; this one writes to none")
    _check_that_it_ends(plan, call)
    return plan


def _check_that_it_ends(plan: PipelinePlan, call: str) -> None:
    several = plan.several([None] * len(plan.writes))
    if all(not isinstance(node, Read) or getattr(node.source, "bounded", True) for node in topological(several)):
        return
    rewritten = rewrite(several)
    for write, end in zip(plan.writes, rewritten.ends, strict=True):
        if not is_bounded(end):
            raise UnsupportedError(
                f"{call}(): the stage {write.stage!r} takes items that never end, and cannot be read range by range: "
                "limit(n) ends them, and stream_source_from(...) makes a source that needs no end"
            )
    check(rewritten, needs_end=True)


def keep_plan(plan: PipelinePlan, identity: str, records: JobRecords) -> None:
    """Keep the pipeline of a job for other processes, if it can travel; without it the job runs as well."""
    data = _pickled(plan)
    with suppress(Exception):
        if 0 < len(data) <= _LARGEST_PLAN:
            records.keep_pickle(identity, "plan", data)
        else:  # That of the driver before may be another one.
            records.forget_pickle(identity, "plan")


def _pickled(plan: PipelinePlan) -> bytes:
    """Return a pipeline as others load it; nothing if it cannot travel."""
    try:
        return dumps(plan)
    except KeyboardInterrupt:
        raise
    except BaseException:  # What it holds may raise anything when it is pickled.
        return b""
