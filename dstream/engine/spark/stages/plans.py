"""A whole plan as its stages on Spark: the walk over it, then its end. Spark is neither started nor needed."""

from __future__ import annotations

from typing import Any

from dstream.engine.compiler.ends import reduced_apart
from dstream.engine.spark.endings import draw_end
from dstream.engine.spark.looping import page
from dstream.engine.spark.reach import Drawn
from dstream.engine.spark.stages.drawing import reach_of
from dstream.engine.spark.stages.gathering import draw_apart
from dstream.plan import Node, configuration, rewrite
from dstream.plan.stages import Stages, exactly
from dstream.spi import Collector

__all__ = ["stages"]


def stages(root: Node, into: Any, cores: int | None) -> Stages:
    """Return the stages of a plan on Spark.

    Args:
        root: the last node of the plan.
        into: what ends it: a `Collector`, the `Output` of a reducer, or None for `to_list()`.
        cores: how many tasks run at the same time; None if nobody knows yet.

    Raises:
        UnsupportedError: Spark does not run such a plan.
    """
    core = rewrite(root)
    drawn = Drawn(core, cores)
    limit = page(core)[1] if into is None else None
    apart = reduced_apart(core, into) if isinstance(into, Collector) and not drawn.has_letters else None
    if apart is not None:
        reach = draw_apart(apart, reach_of(apart.gather.upstream, drawn), drawn)
    else:
        reach = reach_of(core if limit is None else limit.upstream, drawn)
    end, outcome = draw_end(into, reach, limit, drawn)
    engine = "Spark" if cores is None else f"Spark with {exactly(cores).of('core')}"
    settings = configuration(core)
    return drawn.sketch.finished(engine, end, outcome, [f"with the settings {settings}"] if settings else [])
