"""Pipelines: stages that fork, join and end in several sinks, as a value that any context runs.

`builder` has the `Pipeline`, `planning` makes of it the `PipelinePlan` (`plan`) that a job runs. A stage is a handle on
its `StageRecord` (`stage_records`). `stages` has the bases of all stages and their two type parameters; `operations`,
`joins` and `keyed` have the operations of items that end and of items without an end; `bounded` and `pairs` those that
of bounded stages only, `unbounded` with `timestamps` and `windows` those of unbounded stages only.
`stateful_nodes` makes the nodes of states and windows; `arguments` checks those of methods.
"""

from __future__ import annotations

from dstream.pipeline.bounded import BatchStage
from dstream.pipeline.builder import Pipeline
from dstream.pipeline.joins import JoinClause
from dstream.pipeline.keyed import KeyedStage, KeyedStreamStage
from dstream.pipeline.plan import PipelinePlan, PlannedStage, PlannedWrite
from dstream.pipeline.stages import SinkStage
from dstream.pipeline.unbounded import StreamStage
from dstream.pipeline.windows import KeyedWindowedStage, WindowedStage

__all__ = [
    "BatchStage",
    "JoinClause",
    "KeyedStage",
    "KeyedStreamStage",
    "KeyedWindowedStage",
    "Pipeline",
    "PipelinePlan",
    "PlannedStage",
    "PlannedWrite",
    "SinkStage",
    "StreamStage",
    "WindowedStage",
]
