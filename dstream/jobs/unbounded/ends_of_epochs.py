"""`End`: where a pipeline without an end writes to. Its sink gets epoch after epoch of the job."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from contextlib import nullcontext
from typing import Any, NamedTuple

from dstream.errors import IllegalStateError
from dstream.failures import naming
from dstream.jobs.unbounded.log_record import LogRecord
from dstream.plan.steps import Step
from dstream.spi import Sink, WriteJob
from dstream.spi.sink import Target
from dstream.state.step_state import folder_of

__all__ = ["End", "show_held"]

_log = logging.getLogger("dstream.jobs")


class End(NamedTuple):
    """Where a pipeline writes to: items, or the dead letters of a stage.

    Attributes:
        stage: its name.
        step: the one before a sink, which a failure names.
    """

    stage: str
    sink: Sink[Any, Any]
    target: Target[Any]
    step: Step | None

    def name(self, job: str) -> str:
        """Return what the sink calls a job.

        It has the id of the job: one that is started afresh counts its epochs from 1 again, and they are not those that
        were done. And it has the name of the stage, so that a pipeline that was changed meets its own epochs only.
        """
        own = f"{job}-{folder_of(self.stage)}"
        return own if self.sink.job is None else f"{self.sink.job}:{own}"

    def begin(self, job: str, number: int) -> WriteJob[Any]:
        """Begin an epoch of a job, or what publishes it."""
        begin = getattr(self.target, "begin_epoch", self.target.begin)
        begun: WriteJob[Any] = begin(self.name(job), number)
        return begun

    def publish(self, job: WriteJob[Any], record: LogRecord) -> None:
        """Let everybody see what a record names, unless it was published before."""
        # A failure there, such as one of a function that merges, names the step as one in a task does.
        with nullcontext() if self.step is None else naming(self.step):
            if not job.is_done:
                _commit(job, record, self.stage)


def _commit(job: WriteJob[Any], record: LogRecord, stage: str) -> None:
    try:
        job.commit(record.receipts[stage])
    except IllegalStateError as error:
        error.add_note(
            f"Epoch {record.published} is decided, and stage {stage!r} cannot publish what it wrote for it. To read "
            f"its items again, go on with JobConfig(start_at={record.published - 1}, force=True); sinks that have "
            "published it get them twice."
        )
        raise


def show_held(ends: Iterable[End], job: str, *, is_over: bool = False, failed: BaseException | None = None) -> None:
    """Let sinks show what they hold back of epochs that are published, if it is time.

    Args:
        ends: where the pipeline writes to.
        job: the id of the job.
        is_over: the run ends, so nothing stays held back.
        failed: why it ends; a sink that fails now is only logged then.

    Raises:
        Exception: a sink fails.
    """
    for end in ends:
        show = getattr(end.target, "show_held", None)
        if show is None:
            continue
        try:
            show(end.name(job), is_over=is_over)
        except Exception as error:
            if failed is None:
                raise
            _log.warning("stage %r: what is held back was not shown: %s", end.stage, error)
