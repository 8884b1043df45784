"""Idle threads for reuse, locks that survive a fork, and contexts that any exception may leave.

A function in a reused thread sees no context variable that another one has set, as in a new thread; values in a
`threading.local` remain. A new thread has to connect to Java first, which creates a thread, too: a small run on Spark
took 12 to 18 ms longer in a new thread than in a used one (PySpark 4.3 with py4j 0.10.9.9, a busy machine).
"""

from __future__ import annotations

import contextvars
import functools
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from time import monotonic, sleep
from types import TracebackType
from typing import Generic, ParamSpec, Protocol, TypeVar
from weakref import WeakSet

__all__ = [
    "Renewed",
    "RenewedLock",
    "closing",
    "closing_with",
    "contextmanager",
    "in_a_thread",
    "in_this_process",
    "is_only_thread",
    "renewed_after_fork",
    "result_within",
]


class Renewed(Protocol):
    """An object with a lock."""

    def renew(self) -> None:
        """Create a new lock, and reset state that may be partially changed."""
        ...


class RenewedLock:
    """A reentrant lock that is free in a forked process, even if it was locked in the parent.

    The locks of `threading` are faster, for operations on every item.
    """

    def __init__(self) -> None:
        self.renew()
        renewed_after_fork(self)

    def renew(self) -> None:
        """Replace the lock by one that is free."""
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *exc_info: object) -> None:
        self._lock.release()


_renewed: WeakSet[Renewed] = WeakSet()


def renewed_after_fork(renewed: Renewed) -> None:
    """Renew an object in every process that is forked from this one, as long as the object exists."""
    _renewed.add(renewed)


def _renew_all() -> None:
    for renewed in list(_renewed):
        renewed.renew()


os.register_at_fork(after_in_child=_renew_all)


def in_this_process(action: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> Callable[[], None]:
    """Return a call for an exit handler or a finalizer: a forked process inherits these, and not what they remove."""
    return functools.partial(_in_process, os.getpid(), functools.partial(action, *args, **kwargs))


def _in_process(process: int, action: Callable[[], object]) -> None:
    if os.getpid() == process:
        action()


_PATIENCE = 60.0
"""Seconds after which an idle thread ends: an unbounded job runs something every few seconds."""


def in_a_thread(run: Callable[[], object], name: str) -> None:
    """Begin to run a function in another thread.

    Args:
        run: the function, which raises nothing.
        name: what the thread is called meanwhile.
    """
    with _lock:
        thread = _idle.pop() if _idle else None
    if thread is None:
        thread = _Thread()
        thread.start()
    thread.give((run, name))


def is_only_thread() -> bool:
    """Return whether no other thread of Python may run a function of the user's now."""
    known, own = threading.enumerate(), threading.get_ident()
    # Threads of C, and those of `_thread`, are known to the interpreter only.
    others = (sys._current_frames().keys() | {each.ident for each in known}) - {own}
    return others <= {each.ident for each in known if _runs_no_function(each)}


def _runs_no_function(thread: threading.Thread) -> bool:
    # A subclass has a method in place of a target.
    target = getattr(thread, "_target", None) or thread
    kind = type(getattr(target, "__self__", target))
    return thread.name in _WITHOUT_FUNCTIONS or f"{kind.__module__}.{kind.__qualname__}" in _SERVING


_WITHOUT_FUNCTIONS = frozenset({"dstream-idle", "dstream-jvm-stderr", "dstream-loading", "dstream-progress"})
_SERVING = frozenset(
    {
        "IPython.core.history.HistorySavingThread",
        "ipykernel.control.ControlThread",
        "ipykernel.heartbeat.Heartbeat",
        "ipykernel.iostream.IOPubThread",
        "ipykernel.iostream.OutStream",
        "ipykernel.parentpoller.ParentPollerUnix",
        "ipykernel.shellchannel.ShellChannelThread",
        "py4j.clientserver.FinalizerWorker",
        "pyspark.accumulators.AccumulatorTCPServer",
        "pyspark.accumulators.AccumulatorUnixServer",
        "zmq.utils.garbage.GarbageCollectorThread",
    }
)
"""Classes whose threads serve a notebook or Java. Other threads of these packages may run cells and functions."""


def result_within(seconds: float, ask: Callable[[], T]) -> T | None:
    """Return the result of a function that another thread runs; None if it fails, or if it takes longer.

    Args:
        seconds: the maximal time to wait; the function continues after that, and its result is dropped.
        ask: the function, which may wait for another machine.
    """
    found: list[T] = []
    is_done = threading.Event()

    def run() -> None:
        with suppress(Exception):
            found.append(ask())
        is_done.set()

    in_a_thread(run, "dstream-asking")
    is_done.wait(seconds)
    return found[0] if found else None


class _Thread(threading.Thread):
    """A thread that runs its tasks one after another."""

    def __init__(self) -> None:
        super().__init__(name="dstream-idle", daemon=True)
        self._given: deque[_Task] = deque()
        self._waiting = threading.Semaphore(0)  # No `queue`: a folder of the user's may have that name.

    def give(self, given: _Task) -> None:
        """Hand over a function to run."""
        self._given.append(given)
        self._waiting.release()

    def run(self) -> None:
        while (given := self._next()) is not None:
            run, self.name = given
            contextvars.Context().run(run)
            del given, run  # The arguments may refer to a plan, and its data.
            self.name = "dstream-idle"
            with _lock:
                _idle.append(self)

    def _next(self) -> _Task | None:
        """Return the next task; None if the thread has been idle for so long that it ends."""
        if not self._waiting.acquire(timeout=_PATIENCE):
            with _lock:
                if self in _idle:
                    _idle.remove(self)
                    return None
            self._waiting.acquire()  # Another thread has popped this one and is about to pass it a task.
        return self._given.popleft()


_Task = tuple[Callable[[], object], str]
_lock = threading.Lock()
_idle: list[_Thread] = []


def _forget_threads() -> None:
    """Drop the threads in a forked process, since they exist only in its parent."""
    global _lock
    _lock = threading.Lock()
    _idle.clear()


def _wait_for_imports() -> None:
    """Wait until our threads end the imports that they are in, before this process is forked.

    In the forked process the imports would never end: the module remains partially initialized, and each use of it
    fails.
    """
    until = monotonic() + _LONGEST_IMPORT
    while any(map(_is_importing, threading.enumerate())) and monotonic() < until:
        sleep(_BETWEEN_LOOKS)


def _is_importing(thread: threading.Thread) -> bool:
    if not isinstance(thread, _Thread) or thread is threading.current_thread():
        return False
    frame = sys._current_frames().get(thread.ident or 0)
    while frame is not None and frame.f_code.co_filename != _IMPORTING:
        frame = frame.f_back
    return frame is not None


_IMPORTING = "<frozen importlib._bootstrap>"
_BETWEEN_LOOKS = 0.001
_LONGEST_IMPORT = 10.0
"""Maximal seconds to wait: an import may wait for the forking thread, and then does not end before the fork."""

os.register_at_fork(before=_wait_for_imports, after_in_child=_forget_threads)


P = ParamSpec("P")
T = TypeVar("T")


def contextmanager(generator: Callable[P, Iterator[T]]) -> Callable[P, AbstractContextManager[T]]:
    """Make a context of a function that yields once, as `contextlib.contextmanager` does.

    `contextlib` sets an attribute of the exception that leaves the block (Python 3.11 to 3.13), which a class may
    refuse: a frozen dataclass, or a class with its own `__setattr__`. Then the error of that refusal would be raised
    instead.
    """

    @functools.wraps(generator)
    def make(*args: P.args, **kwargs: P.kwargs) -> AbstractContextManager[T]:
        return _Context(generator(*args, **kwargs))

    return make


class _Context(AbstractContextManager[T], Generic[T]):
    def __init__(self, generator: Iterator[T]) -> None:
        self._generator = generator

    def __enter__(self) -> T:
        return next(self._generator)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        if error is None:
            next(self._generator, None)
            return False
        try:
            self._generator.throw(error)  # type: ignore[attr-defined]  # It was made by a function that yields.
        except StopIteration:
            return True  # The function caught the exception and ended.
        except BaseException as raised:
            # Python makes a RuntimeError of a StopIteration that leaves a generator (PEP 479).
            is_of_python = isinstance(error, StopIteration) and raised.__cause__ is error
            if raised is not error and not is_of_python:
                raise
            # The frames of the generator are not the user's; a class with its own `__setattr__` may refuse this.
            BaseException.__setattr__(error, "__traceback__", traceback)
        return False


Leave = Callable[[type[BaseException] | None, BaseException | None, TracebackType | None], None]


def closing(close: Callable[[], object]) -> Leave:
    """Return a callback for `ExitStack` that closes something; its failure does not hide an earlier one."""

    def leave(kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        try:
            close()
        except Exception:
            # A loop that is left early closes its generator by a GeneratorExit, which is no failure.
            if error is None or isinstance(error, GeneratorExit):
                raise

    return leave


def closing_with(close: Callable[[BaseException | None], object]) -> Leave:
    """Return a callback for `ExitStack` that closes something; it receives the failure, and raises nothing."""

    def leave(kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        close(None if isinstance(error, GeneratorExit) else error)

    return leave
