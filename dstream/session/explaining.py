"""Which engine says what a plan will run as; neither is started for that."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dstream.plan import Found, nothing_kept

if TYPE_CHECKING:
    from dstream.engine.compiler import ColumnMode
    from dstream.plan.stages import Stages

__all__ = ["Explain", "auto_stages", "local_stages", "spark_stages", "stages_on"]

Explain = Callable[[Any, Any], "Stages"]
"""Takes the last node of a plan, and what it goes into or None."""


def local_stages(found: Found, node: Any, into: Any) -> Stages:
    """Return the stages of a plan on the local engine."""
    from dstream.engine.local.local_stages import stages
    from dstream.plan import rewrite
    from dstream.spi import Sink
    from dstream.stream.writing import ended

    if isinstance(into, Sink):
        node, into = ended(node, into)
    return stages(rewrite(node), into, found)


def spark_stages(
    found: Found, master: str | None, config: Mapping[str, Any], columns: ColumnMode, node: Any, into: Any
) -> Stages:
    """Return the stages of a plan on Spark: on the one that runs, or on one that would start with these settings."""
    from dstream.engine.spark.session.launch import known_cores

    return stages_on(known_cores(master, config), node, into, found, columns)


def stages_on(
    cores: int | None, node: Any, into: Any, found: Found = nothing_kept, columns: ColumnMode = "auto"
) -> Stages:
    """Return the stages of a plan on Spark with so many cores; None if nobody knows yet how many."""
    from dstream.engine.explaining.spark_stages import stages
    from dstream.engine.spark.spark_facts import largest_small_side
    from dstream.plan import configuration

    plan = _plan(node, into)
    return stages(plan, cores, largest_small_side(configuration(plan)), found, columns)


def _plan(node: Any, into: Any) -> Any:
    """Return the plan with the end that it is explained with, or its own; the target it writes into is not opened."""
    from dstream.plan import Collect, Loop, ToList, is_bounded, rewrite
    from dstream.plan.ends import Several
    from dstream.spi import Collector, Sink
    from dstream.stream.writing import ended, writing

    if isinstance(node, Several):
        return rewrite(node)
    match into:
        case Collector():
            return rewrite(Collect(node, into, given=into.name or "..."))
        case Sink():
            return rewrite(writing(*ended(node, into), None))
    return rewrite(ToList(node) if is_bounded(rewrite(node)) else Loop(node))


def auto_stages(
    found: Found, master: str | None, config: Mapping[str, Any], columns: ColumnMode, node: Any, into: Any
) -> Stages:
    """Return the stages of a plan where it would run, with a note that says why there."""
    from dstream.plan import rewrite
    from dstream.plan.placing import place

    placement = place(rewrite(node), found)
    if placement.is_here:
        stages = local_stages(found, node, into)
    else:
        stages = spark_stages(found, master, config, columns, node, into)
    return replace(stages, notes=(placement.reason, *stages.notes))
