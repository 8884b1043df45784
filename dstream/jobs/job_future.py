"""`JobFuture`: the end of a job, to be waited for."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager
from types import TracebackType

__all__ = ["JobCancelledError", "JobFuture"]


class JobCancelledError(CancelledError):
    """A job was cancelled, which is no failure: its message names the job."""


class JobFuture(Future[None]):
    """The result of a job, which is None, or what it failed with. `asyncio.wrap_future` makes it awaitable.

    It ends when the job does, and nobody can end it otherwise: `cancel()` does nothing. `job.cancel()` ends the job.

    Attributes:
        error: how the job ended; None before, and if it completed.
        where: its traceback when it arrived.
        was_asked: whether anybody has asked for the end.
    """

    def __init__(self) -> None:
        super().__init__()
        self._first = threading.Lock()
        self.error: BaseException | None = None
        self.was_asked = False
        self.where: TracebackType | None = None

    def cancel(self) -> bool:
        """Do nothing: whoever waits no longer, as after a time-out, leaves the job alone."""
        return False

    def result(self, timeout: float | None = None) -> None:
        """Wait for the end of the job; raise what it failed with."""
        self.was_asked = True
        with self._named():
            super().result(timeout)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Wait for the end of the job; return what it failed with."""
        self.was_asked = True
        with self._named():
            return super().exception(timeout)

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Let the error of a cancelled job name the job, which that of a future does not."""
        try:
            yield
        except CancelledError:
            raise JobCancelledError(*(self.error.args if self.error else ())) from None

    def end(self, error: BaseException | None) -> None:
        """Say how the job ended; a second call does nothing, whichever thread it comes from."""
        if not self._first.acquire(blocking=False):
            return
        self.error = error
        if isinstance(error, CancelledError):
            super().cancel()
            self.set_running_or_notify_cancel()
        elif error is not None:
            self.where = error.__traceback__
            self.set_exception(error)
        else:
            self.set_result(None)
