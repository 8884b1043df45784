"""Terminal calls that an engine runs: their names, progress, results and cancellation."""

from __future__ import annotations

import contextvars
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from contextvars import copy_context
from functools import partial
from typing import Any, TypeVar

from dstream.base.records import record
from dstream.base.threads import contextmanager, in_a_thread
from dstream.engine.display import BOARD, Board, Display, ProgressFacts, chosen, quietly
from dstream.errors import CancelledError, EngineError, IllegalStateError
from dstream.failures import TransportedError
from dstream.plan.steps import SourceLocation, Step, entry_point
from dstream.spi import RunStatus

__all__ = ["Call", "Cancellation", "Operation", "Progress", "Submitted"]


T = TypeVar("T")

_LONGEST = 100
_END = object()


@record(slots=False)
class Call:
    """A call in the user's code, as it is shown while it runs.

    Attributes:
        text: the call, such as `sorted(key=len)`.
        where: its source location.
        purpose: the part of it that runs, if it is not the whole call.
    """

    text: str
    where: SourceLocation | None
    purpose: str = ""

    @staticmethod
    def of_step(step: Step, purpose: str = "") -> Call:
        """Return the call that made a step of the chain."""
        text = step.label.removeprefix(".")
        return Call(text if len(text) <= _LONGEST else text[:_LONGEST] + "...", step.where, purpose)

    @staticmethod
    def of_user() -> Call:
        """Return the call of the user's code."""
        name, where = entry_point()
        return Call("iterating" if name == "__iter__" else f"{name}()", where)

    def title(self) -> str:
        """Return it for the line, such as `sorted(key=len) orders.py:12`."""
        return f"{self.text} {self._location()}" if self.where else self.text

    def description(self) -> str:
        """Return it in full, such as `sorted(key=len) at orders.py:12: sample of keys`."""
        location = f" at {self._location()}" if self.where else ""
        return f"{self.text}{location}{': ' if self.purpose else ''}{self.purpose}"

    def _location(self) -> str:
        assert self.where is not None
        return os.path.basename(str(self.where))


class Progress:
    """The setting and display of the progress of a context's operations.

    Args:
        asked: whether the user wants it; None: only in terminals and notebooks.
        board: the board that shows the operations.
        choose: chooses the display when an operation begins.
    """

    def __init__(
        self,
        asked: bool | None = None,
        board: Board = BOARD,
        choose: Callable[[bool | None], Display | None] = chosen,
    ) -> None:
        self._asked = asked
        self._board = board
        self._choose = choose

    def begin(self, facts: Callable[[], ProgressFacts]) -> Operation | None:
        """Return an operation that calls `facts` when it is shown; None if it is not to be shown."""
        display = quietly(lambda: self._choose(self._asked))
        return None if display is None else Operation(self._board, display, facts)

    def of_start(self, start: Callable[[], T]) -> T:
        """Return the result of a start of Spark, which is shown while the caller waits for it."""
        operation = self.begin(lambda: ProgressFacts("starting Spark"))
        with nullcontext() if operation is None else operation:
            return start()

    def report(self, line: str) -> None:
        """Write a line to stderr, unless the user has disabled it; a failure to write it is ignored."""
        if self._asked is not False and sys.stderr is not None:
            quietly(lambda: print(line, file=sys.stderr, flush=True))


class Operation:
    """A terminal operation. As a context it is shown while the caller waits inside."""

    def __init__(self, board: Board, display: Display, facts: Callable[[], ProgressFacts]) -> None:
        self.started = board.clock()
        self.display = display
        self.context = copy_context()
        self.facts = facts
        self._board = board

    def __enter__(self) -> None:
        self._board.enter(self)

    def __exit__(self, *exc_info: object) -> None:
        self._board.leave(self)

    def lazily(self, items: Iterator[Any]) -> Iterator[Any]:
        """Yield the items; the line is erased whenever the caller has control."""
        enter, pause = self._board.enter, self._board.pause
        each = None
        try:
            while each is not _END:
                enter(self)
                try:
                    each = next(items, _END)
                finally:
                    pause(self)
                if each is not _END:
                    yield each
        finally:
            self._board.settle(self)


class Cancellation:
    """The cancellation flag of a run, and the function that ends it. It references neither the plan nor the result."""

    def __init__(self) -> None:
        self.is_cancelled = False
        self.is_watched = False
        self._ways: list[Callable[[], object]] = []

    def by(self, cancel: Callable[[], object]) -> None:
        """Set the function that ends the run."""
        # Appended before the look, as `cancel` sets before it calls: the later one of two threads sees the other.
        self._ways.append(cancel)
        if self.is_cancelled:
            cancel()

    def cancel(self) -> None:
        """End the run."""
        self.is_cancelled = True
        for cancel in self._ways:
            cancel()

    def check(self) -> None:
        """Refuse to go on if the run was cancelled.

        Raises:
            CancelledError: it was.
        """
        if self.is_cancelled:
            raise CancelledError("this run was cancelled")


class Submitted:
    """A function that runs once, in the thread that requests its result or in a separate one.

    Terminal operations wait for their result, so they run in the calling thread: user functions in this process see
    that thread, and Ctrl-C reaches them.

    Args:
        run: returns the result; it takes the cancellation, to which it adds the action that ends the run, and which it
            checks.
    """

    def __init__(self, run: Callable[[Cancellation], Any]) -> None:
        self._run = run
        self._cancellation = Cancellation()
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._process = os.getpid()
        self._status: RunStatus = "waiting"
        self._runner: int | None = None
        self._result: Any = None
        self._error: TransportedError | None = None

    @property
    def status(self) -> RunStatus:
        """The progress of the run."""
        return self._status

    def start(self) -> None:
        """Run it in a separate thread, unless it has begun."""
        if self._claimed():
            self._runner = None  # This thread may request the result before the other one has begun.
            self._cancellation.is_watched = True
            # The caller's context variables apply in the thread, too.
            in_a_thread(partial(contextvars.copy_context().run, self._in_thread), "dstream-run")

    def run_here(self) -> Any:
        """Return the result; run for it in this thread, so that another one can cancel it before each item."""
        self._cancellation.is_watched = True
        return self.result()

    def result(self) -> Any:
        """Return the result: run for it, unless the run has begun; then wait for it.

        Raises:
            CancelledError: the run was cancelled.
            IllegalStateError: it ran in the thread that asked first, and failed there; or in another process.
        """
        if self._claimed():
            try:
                with self._ending():
                    self._result = self._taken()(self._cancellation)
            finally:
                self._ended.set()
            return self._result
        self._wait()
        if self._error is not None:
            raise self._error.arrived()
        if self._status == "failed":
            raise IllegalStateError("this run has failed before; submit its plan again")
        if self._status == "cancelled":
            self._cancellation.check()
        return self._result

    def _wait(self) -> None:
        # A function of the plan that requests the result of its own run would wait for ever.
        if os.getpid() != self._process or (self._runner == threading.get_ident() and not self._ended.is_set()):
            raise IllegalStateError("this run belongs to another process, or to what asks for its result")
        self._ended.wait()

    def _claimed(self) -> bool:
        with self._lock:
            is_first = self._status == "waiting"
            if is_first:
                self._status = "running"
                self._runner = threading.get_ident()
        return is_first

    @contextmanager
    def _ending(self) -> Iterator[None]:
        has_result = False
        try:
            self._cancellation.check()
            yield
            has_result = True
        # A cancelled job ends with Spark's own words about that; the caller asked for it, so it is no failure.
        except EngineError as error:
            if not self._cancellation.is_cancelled:
                raise
            raise CancelledError("this run was cancelled") from error
        finally:
            ended: RunStatus = "cancelled" if self._cancellation.is_cancelled else "failed"
            self._status = "done" if has_result else ended

    def _taken(self) -> Callable[[Cancellation], Any]:
        """Return the run, and release it: the rest of the run must not reference the plan."""
        run, self._run = self._run, _ended
        return run

    def _in_thread(self) -> None:
        self._runner = threading.get_ident()
        try:
            with self._ending():
                self._result = self._taken()(self._cancellation)
        except BaseException as error:
            self._error = TransportedError(error)
        finally:
            self._ended.set()

    def cancel(self) -> None:
        """End the run; of a loop that was handed out, its remaining jobs."""
        with self._lock:
            if self._status == "waiting":
                # Under the lock, so that no thread claims the run meanwhile.
                self._status = "cancelled"
                self._ended.set()
        self._cancellation.cancel()


def _ended(cancellation: Cancellation) -> None:
    raise AssertionError("a run runs once")
