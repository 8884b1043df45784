"""Pipelines: stages that fork, join and end in several sinks, as a value that any context runs.

`pipeline` has what is built, `planning` makes of it the `PipelinePlan` that a job runs. A stage is a handle:
`lazy_stage` has the operations of streams, `joining_stage` those with other stages, `reducing_stage` aggregates, states
and services, `batch_stage` the rest; `keyed_stage` is what happens to each key on its own.
"""

from dstream.pipeline.batch_stage import BatchStage
from dstream.pipeline.join_clause import JoinClause
from dstream.pipeline.keyed_stage import KeyedStage
from dstream.pipeline.pipeline import Pipeline
from dstream.pipeline.pipeline_plan import PipelinePlan, PlannedStage, PlannedWrite
from dstream.pipeline.sink_stage import SinkStage

__all__ = [
    "BatchStage",
    "JoinClause",
    "KeyedStage",
    "Pipeline",
    "PipelinePlan",
    "PlannedStage",
    "PlannedWrite",
    "SinkStage",
]
