"""Whether a pipeline runs once, or epoch after epoch."""

from __future__ import annotations

from dstream.pipeline.pipeline_plan import PipelinePlan
from dstream.pipeline.source_in_parts import InParts
from dstream.plan import Node, topological
from dstream.plan.nodes import Read
from dstream.plan.nodes_of_epochs import AddTimestamps, OverEpochs
from dstream.plan.stream_read import StreamRead

__all__ = ["is_unbounded"]


def is_unbounded(plan: PipelinePlan) -> bool:
    """Say whether a plan needs epochs: it reads what never ends, or has a step that knows time."""
    nodes = topological(plan.several([None] * len(plan.writes)))
    return any(isinstance(each, AddTimestamps | OverEpochs) or _is_stream(each) for each in nodes)


def _is_stream(node: Node) -> bool:
    source = node.source if isinstance(node, Read) else None
    return isinstance(source.source if isinstance(source, InParts) else source, StreamRead)
