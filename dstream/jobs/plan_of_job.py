"""What of a pipeline a job runs, if it can run."""

from __future__ import annotations

from typing import Any

from dstream.errors import UnsupportedError
from dstream.failures import shown
from dstream.pipeline.pipeline_plan import PipelinePlan
from dstream.plan import Read, check, is_bounded, rewrite, topological

__all__ = ["plan_of"]


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
