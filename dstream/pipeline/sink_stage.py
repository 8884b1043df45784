"""`SinkStage`: the end of a branch of a pipeline."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dstream.pipeline.any_stage import AnyStage
from dstream.pipeline.stage_record import StageRecord
from dstream.spi import ProcessorSink

if TYPE_CHECKING:
    from dstream.pipeline.pipeline import Pipeline

__all__ = ["SinkStage", "ended"]


class SinkStage(AnyStage):
    """What `write_to(sink)` returns: a stage that has a name and a parallelism, and that no other stage reads."""

    __slots__ = ()

    def __repr__(self) -> str:
        sink = self._record.sink
        return f"<SinkStage {self.name!r}: {'' if sink is None else sink.label}>"


def ended(pipeline: Pipeline, record: StageRecord) -> SinkStage:
    """Return the stage that ends a branch; processors give it their name."""
    stage = SinkStage(pipeline, record)
    if isinstance(record.sink, ProcessorSink):
        stage.set_name(record.sink.name)  # Before it is there: one with a name that is refused would have no other.
    pipeline._add(record)
    return stage
