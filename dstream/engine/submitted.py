"""`Submitted`: one run of a plan, whatever engine it runs on."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Iterator
from typing import Any

from dstream.errors import CancelledError, IllegalStateError
from dstream.failures import Carried
from dstream.spi import RunStatus
from dstream.values.contexts import contextmanager

__all__ = ["Submitted"]


class Submitted:
    """Runs a function once, in the thread that asks for its result or in one of its own.

    Terminal operations wait for their result, so they run where they are called: the user's functions that belong to
    this process see its thread, and Ctrl-C reaches them.

    Args:
        run: gives the result; it is told what it is the run of, so that it can say how to cancel it.
    """

    def __init__(self, run: Callable[[Submitted], Any]) -> None:
        self._run = run
        self._lock = threading.Lock()
        self._status: RunStatus = "waiting"
        self._thread: threading.Thread | None = None
        self._result: Any = None
        self._error: Carried | None = None
        self._cancels: list[Callable[[], object]] = []
        self._is_cancelled = False

    @property
    def status(self) -> RunStatus:
        """How far the run is."""
        return self._status

    @property
    def is_in_background(self) -> bool:
        """Whether a thread of its own runs it."""
        return self._thread is not None

    def start(self) -> None:
        """Run it in a thread of its own, unless it has begun."""
        with self._lock:
            if self._thread is None and self._status == "waiting":
                context = contextvars.copy_context()
                name = "dstream-run"
                self._thread = threading.Thread(target=context.run, args=(self._in_thread,), name=name, daemon=True)
                self._thread.start()

    def result(self) -> Any:
        """Return the result; run for it if nobody has begun to.

        Raises:
            IllegalStateError: it ran in the thread that asked first, and failed there.
        """
        if self._claimed():
            with self._ending():
                self._result = self._taken()(self)
        elif self._thread is not None:
            self._thread.join()
        if self._error is not None:
            raise self._error.arrived()
        if self._status != "done":
            raise IllegalStateError("this run has failed before; submit its plan again")
        return self._result

    def _claimed(self) -> bool:
        with self._lock:
            is_first = self._status == "waiting" and self._thread is None
            if is_first:
                self._status = "running"
        return is_first

    @contextmanager
    def _ending(self) -> Iterator[None]:
        try:
            self.check()
            yield
        except BaseException:
            self._status = "cancelled" if self._is_cancelled else "failed"
            raise
        self._status = "done"

    def _taken(self) -> Callable[[Submitted], Any]:
        """Return what runs, and hold it no longer: what the run leaves behind must not hold the plan."""
        run, self._run = self._run, _ended
        return run

    def _in_thread(self) -> None:
        self._status = "running"
        try:
            with self._ending():
                self._result = self._taken()(self)
        except BaseException as error:
            self._error = Carried(error)

    def cancelled_by(self, cancel: Callable[[], object]) -> None:
        """Say how to end what runs."""
        self._cancels.append(cancel)
        if self._is_cancelled:
            cancel()

    def cancel(self) -> None:
        """End the run; of a loop that was handed out, what would still have to run."""
        self._is_cancelled = True
        for cancel in self._cancels:
            cancel()

    def check(self) -> None:
        """Go on only if nobody has cancelled it.

        Raises:
            CancelledError: somebody has.
        """
        if self._is_cancelled:
            raise CancelledError("this run was cancelled")


def _ended(submitted: Submitted) -> None:
    raise AssertionError("a run runs once")
