"""`log_status`: a line on the logger `dstream.jobs` for each change of a job's status, with its reason."""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from contextlib import suppress

from dstream.jobs.job_records import Want
from dstream.jobs.job_state import FailureText, JobState
from dstream.jobs.job_status import JobStatus

__all__ = ["REASONS", "failed_with", "log_end", "log_status", "show_lines_of_jobs"]

_log = logging.getLogger("dstream.jobs")

REASONS: Mapping[Want, str] = {
    "cancel": "cancel() was called",
    "restart": "restart() was called",
    "suspend": "suspend() was called",
    "resume": "resume() was called",
    "update": "update() was called, with another pipeline",
    "leave": "its context was closed; it goes on when its pipeline is submitted again under its name",
}
"""Why a job changes its status, by the request that was taken last."""


def log_status(state: JobState, reason: str = "", level: int = logging.INFO) -> None:
    """Log the status that a job has now; never raise, whatever the handlers of a program do."""
    with suppress(Exception):
        _log.log(level, "%s is %s%s", state.title, state.status.name, f": {reason}" if reason else "")


def log_end(state: JobState, asked: str) -> None:
    """Log how a job has ended: with what it failed, or by which request."""
    match state:
        case JobState(status=JobStatus.COMPLETED):
            log_status(state)
        case JobState(status=JobStatus.FAILED, failure=FailureText() as failure):
            log_status(state, failed_with(failure))
        case _:
            log_status(state, asked)


def failed_with(failure: FailureText) -> str:
    """Return a failure as the reason of a change, in one line."""
    return " ".join(f"{failure.type_name}: {failure.message}".split())


class _UntilLoggingIsSetUp(logging.Handler):
    """Writes lines to stderr unless the program has handlers of its own, which get them as well."""

    def emit(self, record: logging.LogRecord) -> None:
        if not logging.getLogger().handlers:
            print(self.format(record), file=sys.stderr, flush=True)


def show_lines_of_jobs() -> None:
    """Let this process write the lines of its jobs to stderr, with their times, from the level INFO on."""
    handler = _UntilLoggingIsSetUp()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s", "%Y-%m-%d %H:%M:%S"))
    _log.addHandler(handler)
    _log.setLevel(logging.INFO)
