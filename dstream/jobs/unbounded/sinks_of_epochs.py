"""Which sinks a job without an end can write into: those for which each epoch adds to what is there."""

from __future__ import annotations

from dstream.errors import UnsupportedError
from dstream.pipeline.pipeline_plan import PipelinePlan

__all__ = ["check_sinks"]


def check_sinks(plan: PipelinePlan, call: str) -> None:
    """Refuse sinks whose content would depend on where epochs end.

    Args:
        plan: of a job without an end.
        call: what was called, for the message.

    Raises:
        UnsupportedError: one of them means all items of a job at once; the message says what to use.
    """
    for write in plan.writes:
        instead = getattr(write.sink, "instead_of_epochs", None)
        if instead is not None and write.is_unbounded:
            raise UnsupportedError(
                f"{call}(): the stage {write.stage!r} writes into {write.sink.label}, which means all items of a job "
                f"at once, and this job never has them all: {instead}"
            )
