"""Pipelines: stages that fork, join and end in several sinks, as a value that any context runs.

`builder` has the `Pipeline`, `planning` makes of it the `PipelinePlan` (`plan`) that a job runs. A stage is a handle on
its `StageRecord` (`records`). `stages` has the bases of all stages, `operations` the lazy operations of streams,
`pairs` and `joins` those with other stages, `keyed` those by key. `bounded` adds the aggregates, states and services of
bounded data. `unbounded` has the stages of unbounded data, with `steps`, `timestamps` and `windows`; `epochs` makes the
nodes that only such stages have.
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
