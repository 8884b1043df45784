"""Which engine says what a plan will run as; neither is started for that."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dstream.plan.stages import Stages

__all__ = ["Explain", "auto_stages", "local_stages", "spark_stages"]

Explain = Callable[[Any, Any], "Stages"]
"""Takes the last node of a plan, and what it goes into or None."""


def local_stages(node: Any, into: Any) -> Stages:
    """Return the stages of a plan on the local engine."""
    from dstream.engine.local.stages import stages

    return stages(node, into)


def spark_stages(master: str | None, config: Mapping[str, Any], node: Any, into: Any) -> Stages:
    """Return the stages of a plan on Spark: on the one that runs, or on one that would start with these settings."""
    from dstream.engine.spark.launch import known_cores
    from dstream.engine.spark.stages import stages

    return stages(node, into, known_cores(master, config))


def auto_stages(master: str | None, config: Mapping[str, Any], node: Any, into: Any) -> Stages:
    """Return the stages of a plan where it would run, with a note that says why there."""
    from dstream.plan.placing import place

    placement = place(node)
    stages = local_stages(node, into) if placement.is_here else spark_stages(master, config, node, into)
    return replace(stages, notes=(placement.reason, *stages.notes))
