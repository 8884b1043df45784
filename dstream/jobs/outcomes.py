"""Outcomes of jobs: failures as text and pickle, futures, and lines of the log."""

from __future__ import annotations

import logging
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager, suppress
from functools import partial
from types import TracebackType
from typing import Any

from dstream.base.pickling import dumps_named
from dstream.base.showing import class_name
from dstream.errors import (
    ColumnsDifferError,
    EngineError,
    RemoteError,
    SinkTakenError,
    SinkUnavailableError,
    SourceUnavailableError,
)
from dstream.failures import known_of, origin_of
from dstream.failures.account import arguments_of, rebuilt, state_of
from dstream.jobs.records import JobRecords
from dstream.jobs.state import FailureText, JobState, JobStatus, Want

__all__ = [
    "REASONS",
    "JobCancelledError",
    "JobFuture",
    "arrived",
    "failed_with",
    "failure_text",
    "is_no_fault_of_the_user",
    "keep_failure",
    "log_end",
    "log_status",
    "publication_note",
    "show_lines_of_jobs",
]


_LONGEST = 20_000


def failure_text(error: BaseException) -> FailureText:
    """Return an exception in words."""
    message = _safely_written(lambda: str(error), "its message")[:_LONGEST]
    # Of a long traceback the end is retained, which has the exception and the line that raised it.
    shown = _safely_written(lambda: "".join(traceback.format_exception(error)), "its traceback")[-_LONGEST:]
    return FailureText(class_name(type(error)), message, tuple(_notes(error)), shown)


_MOST_NOTES = 50


def _notes(error: BaseException) -> Iterator[str]:
    # Not `error.__notes__`: the class of a user may override `__getattribute__`, and raise anything in it.
    notes = BaseException.__getattribute__(error, "__dict__").get("__notes__")
    for note in notes[:_MOST_NOTES] if isinstance(notes, list | tuple) else ():
        yield _safely_written(partial(str, note), "this note")[:_LONGEST]


def _safely_written(write: Callable[[], str], what: str) -> str:
    try:
        return write()
    except BaseException as problem:  # A class of the user's may raise anything in this call.
        return f"({what} cannot be shown: {type(problem).__name__})"


def keep_failure(error: BaseException, identity: str, records: JobRecords) -> None:
    """Store an exception with the state of its job, if it can be pickled and the storage allows it."""
    pickle = _pickled(error)
    if pickle is not None:
        with suppress(Exception):  # The failure of the job matters more than that this cannot be stored.
            records.keep_pickle(identity, "failure", pickle)


def _pickled(error: BaseException) -> bytes | None:
    """Return an exception as it can be made again elsewhere; None if it cannot travel."""
    # If an attribute cannot be pickled, the class and its arguments still can.
    for has_state in (True, False):
        try:
            return dumps_named((type(error), arguments_of(error), state_of(error) if has_state else {}))
        except BaseException:  # The value of an attribute may raise anything when it is pickled.
            continue
    return None


def arrived(text: FailureText, pickle: bytes | None, load: Callable[[bytes], Any]) -> BaseException:
    """Return the exception of another process, built again; or one that describes it.

    Args:
        text: its description.
        pickle: as `keep_failure` stored it.
        load: loads a pickle, if the storage allows it.
    """
    error = None if pickle is None else _made(pickle, load)
    if error is None:
        return RemoteError(text.type_name, text.message, text.notes, text.traceback)
    if text.notes:
        error.__dict__["__notes__"] = list(text.notes)
    return error


def _made(pickle: bytes, load: Callable[[bytes], Any]) -> BaseException | None:
    try:
        kind, arguments, state = load(pickle)
        error = rebuilt(kind, arguments, state)
    except BaseException:  # Its class may be missing, raise anything, or not be allowed: the description is complete.
        return None
    return error if isinstance(error, BaseException) else None


def is_no_fault_of_the_user(error: BaseException, has_run: bool) -> bool:
    """Return whether the job lost its workers, Spark or a connection, so that no step is to blame.

    A server that has not responded before the first run of a job may not exist: the user gets the error immediately.
    """
    if isinstance(error, SourceUnavailableError | SinkUnavailableError):
        return has_run
    known = known_of(error)
    # It is an EngineError, and another run would fail in the same way.
    if isinstance(error, ColumnsDifferError):
        return False
    if isinstance(error, EngineError):
        origin = known.origin if known is not None and known.origin is not None else origin_of(error)
        return origin is None or not origin.is_raiser
    if isinstance(error, SinkTakenError):  # By a process that was stopped: it may continue, or end.
        return True
    return isinstance(error, ConnectionError) and (known is None or known.step is None)


def publication_note(done: Iterable[str], left: Iterable[str], name: str | None) -> str:
    """Return the note on the failure of a job that has begun to publish: which sinks have, and how it resumes.

    Args:
        done: the labels of the sinks that have published.
        left: the labels of the others.
        name: the name of the job.
    """
    again = (
        f"submitted again under its name the job publishes what it has computed, and does not read its sources; "
        f"new_job(..., name={name!r}, afresh=True) forgets that, reads them again and writes into every sink"
        if name is not None
        else "the job has no name under which it could resume: a new one writes into every sink"
    )
    published, unpublished = (", ".join(labels) or "nothing" for labels in (done, left))
    return f"  Published: {published}. Not published: {unpublished}.\n  How to resume: {again}"


class JobCancelledError(CancelledError):
    """A job was cancelled, which is no failure: its message names the job."""


class JobFuture(Future[None]):
    """The result of a job, which is None, or its failure. `asyncio.wrap_future` makes it awaitable.

    It ends only when the job does: `cancel()` does nothing. `job.cancel()` ends the job.

    Attributes:
        error: how the job ended; None before, and if it completed.
        where: its traceback when it arrived.
        was_asked: whether a caller has requested the outcome.
    """

    def __init__(self) -> None:
        super().__init__()
        self._first = threading.Lock()
        self.error: BaseException | None = None
        self.was_asked = False
        self.where: TracebackType | None = None

    def cancel(self) -> bool:
        """Do nothing: the end of a wait, as after a time-out, is not the end of the job."""
        return False

    def result(self, timeout: float | None = None) -> None:
        """Wait for the end of the job; raise its failure."""
        self.was_asked = True
        with self._named():
            super().result(timeout)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Wait for the end of the job; return its failure."""
        self.was_asked = True
        with self._named():
            return super().exception(timeout)

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Add the name of the job to the error of a cancelled job, which the error of a future lacks."""
        try:
            yield
        except CancelledError:
            raise JobCancelledError(*(self.error.args if self.error else ())) from None

    def end(self, error: BaseException | None) -> None:
        """Set how the job ended; a second call does nothing, from whichever thread."""
        # Never released: the lock belongs to the call that ended the job.
        if not self._first.acquire(blocking=False):
            return
        self.error = error
        if isinstance(error, CancelledError):
            # Both: `cancel` alone does not wake `concurrent.futures.wait`, nor `as_completed` (Python 3.11).
            super().cancel()
            self.set_running_or_notify_cancel()
        elif error is not None:
            self.where = error.__traceback__
            self.set_exception(error)
        else:
            self.set_result(None)


_log = logging.getLogger("dstream.jobs")

REASONS: Mapping[Want, str] = {
    "cancel": "cancel() was called",
    "restart": "restart() was called",
    "suspend": "suspend() was called",
    "resume": "resume() was called",
    "update": "update() was called, with another pipeline",
    "leave": "its context was closed; it goes on when its pipeline is submitted again under its name",
}
"""Why a job changes its status, by the last accepted request."""


def log_status(state: JobState, reason: str = "", level: int = logging.INFO) -> None:
    """Log the current status of a job; never raise, even if a handler of the program fails."""
    with suppress(Exception):
        _log.log(level, "%s is %s%s", state.title, state.status.name, f": {reason}" if reason else "")


def log_end(state: JobState, asked: str) -> None:
    """Log the end of a job: its failure, or the request that ended it."""
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
    """A handler that writes to stderr, unless the program has handlers of its own, which get the lines as well."""

    def emit(self, record: logging.LogRecord) -> None:
        # Checked for each line: a program may configure logging after it has submitted a job.
        if not logging.getLogger().handlers:
            print(self.format(record), file=sys.stderr, flush=True)


def show_lines_of_jobs() -> None:
    """Make this process write the log lines of its jobs to stderr, with their times, from the level INFO on."""
    handler = _UntilLoggingIsSetUp()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s", "%Y-%m-%d %H:%M:%S"))
    _log.addHandler(handler)
    _log.setLevel(logging.INFO)
