"""Pipelines: stages that fork, join and end in several sinks, as a value that any context runs.

`pipeline` has what is built, `planning` makes of it the `PipelinePlan` that a job runs. A stage is a handle:
`lazy_stage` has the operations of streams, `joining_stage` those with other stages, `reducing_stage` aggregates, states
and services, `batch_stage` the rest; `keyed_stage` is what happens to each key on its own. `stream_stage` is a stage
whose items have no end, with `stream_steps`, `keyed_stream_stage` and `windowed_stage`; `timestamping` and
`epoch_steps` make the nodes that only such stages have.
"""

from dstream.pipeline.batch_stage import BatchStage
from dstream.pipeline.join_clause import JoinClause
from dstream.pipeline.keyed_stage import KeyedStage
from dstream.pipeline.keyed_stream_stage import KeyedStreamStage
from dstream.pipeline.pipeline import Pipeline
from dstream.pipeline.pipeline_plan import PipelinePlan, PlannedStage, PlannedWrite
from dstream.pipeline.sink_stage import SinkStage
from dstream.pipeline.stream_stage import StreamStage
from dstream.pipeline.windowed_stage import KeyedWindowedStage, WindowedStage

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
