"""What a plan with several ends would run as, printed or drawn: `explain` of pipelines and of graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from dstream.pipeline.pipeline_plan import PipelinePlan
from dstream.stream.runtime import default_stages

if TYPE_CHECKING:
    from dstream.plan.show.drawing import Drawing

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
    from dstream.plan.show.drawing import check_format, drawn

    check_format(format)
    made = plan()
    drawing = drawn(default_stages(made.several([None] * len(made.writes)), None), format, routes=routes)
    if format != "text":
        return drawing
    print(drawing)
    return None
