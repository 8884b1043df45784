"""`SinkStage`: the end of a branch of a pipeline."""

from __future__ import annotations

from dstream.pipeline.any_stage import AnyStage

__all__ = ["SinkStage"]


class SinkStage(AnyStage):
    """What `write_to(sink)` returns: a stage that has a name and a parallelism, and that no other stage reads."""

    __slots__ = ()

    def __repr__(self) -> str:
        sink = self._record.sink
        return f"<SinkStage {self.name!r}: {'' if sink is None else sink.label}>"
