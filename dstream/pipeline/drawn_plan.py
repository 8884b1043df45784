"""A plan with several ends, printed or drawn: `explain` of pipelines and of graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from dstream.pipeline.pipeline_plan import PipelinePlan
from dstream.stream.runtime import default_stages

if TYPE_CHECKING:
    from dstream.plan.show.drawing import Drawing
    from dstream.plan.stages import Stages

__all__ = ["explained_in"]


def explained_in(format: str, plan: Callable[[], PipelinePlan], *, routes: bool = False) -> Drawing | None:
    """Return the drawing of a plan in the default context; or print it, if the format is text.

    Args:
        format: as `explain` takes it; looked at before the plan is made.
        plan: makes it.
        routes: whether to say why each function runs as it does.

    Raises:
        ValueError: there is no such format.
    """
    from dstream.plan.show.drawing import show

    return show(lambda: _stages(plan()), format, routes=routes)


def _stages(plan: PipelinePlan) -> Stages:
    stages: Stages = default_stages(plan.several([None] * len(plan.writes)), None)
    return stages
