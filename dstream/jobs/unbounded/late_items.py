"""What the log of a job says of items that came too late: once for each epoch that had some."""

from __future__ import annotations

import logging

from dstream.jobs.unbounded.log_record import LogRecord

__all__ = ["log_late"]

_log = logging.getLogger("dstream.jobs")


def log_late(job: str, before: LogRecord, record: LogRecord) -> None:
    """Warn of items that were late in an epoch, with the stages and how many there were.

    Args:
        job: its id.
        before: the record of the epoch before.
        record: that of the epoch; counts go from the beginning of the job.
    """
    late = {stage: _late(record, stage) - _late(before, stage) for stage in record.counts}
    told = ", ".join(f"{count:,} at {stage!r}" for stage, count in late.items() if count > 0)
    if told:
        _log.warning("job %s, epoch %d: items that came too late: %s", job, record.number, told)


def _late(record: LogRecord, stage: str) -> int:
    return int(record.counts.get(stage, {}).get("late", 0))
