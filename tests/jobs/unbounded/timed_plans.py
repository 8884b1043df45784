"""Plans with timestamps and a step over epochs, made by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dstream.pipeline.plan import PipelinePlan, PlannedStage, PlannedWrite
from dstream.plan import Node, Read, Step, call_site
from dstream.plan.operations.unbounded import AssignTimestamps, OverEpochs
from dstream.plan.timestamps import InstantOf, StreamRead
from dstream.spi import Source
from reducers import to_ilist

__all__ = ["summing_plan"]


def summing_plan(
    source: Any, policy: Callable[[], Any], operator: Any, sink: Any = None, idle: float = 60
) -> PipelinePlan:
    """Return the plan of a pipeline: numbers, which are their own timestamps, into a step, into a list."""
    here = call_site()
    is_bounded = isinstance(source, Source)
    read: Node = Read(source if is_bounded else StreamRead(source), step=Step("read_from(source)", here))
    time = AssignTimestamps(
        read, InstantOf(int), "time", policy=policy, idle_timeout=idle, step=Step(".add_timestamps()", here)
    )
    sums = OverEpochs((time,), operator, "sums", step=Step(".sums()", here))
    stages = [("source", "read_from", ()), ("time", "add_timestamps", ("source",)), ("sums", "window", ("time",))]
    stages.append(("sink", "write_to", ("sums",)))
    write = PlannedWrite("sink", sums, sink or to_ilist("out"), here)
    return PipelinePlan(tuple(PlannedStage(*each, here) for each in stages), (write,), (("source", read),))
