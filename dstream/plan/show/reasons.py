"""The stages with the reasons for the route of each function, where a picture shows the routes alone."""

from __future__ import annotations

from dataclasses import replace

from dstream.plan.stages import Call, Stages

__all__ = ["with_reasons"]


def with_reasons(stages: Stages) -> Stages:
    """Return the same stages, whose calls say why their functions run as they do."""
    reasoned = (replace(stage, calls=tuple(map(_reasoned, stage.calls))) for stage in stages.stages)
    return replace(stages, stages=tuple(reasoned))


def _reasoned(call: Call) -> Call:
    return replace(call, note=f"{call.note}. {call.why}") if call.why else call
