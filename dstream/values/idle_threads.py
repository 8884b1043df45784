"""`in_a_thread`: runs a function in a thread of its own, one that has nothing to do any more if there is any.

A function sees no context variable that another one has set, as in a new thread; values in a `threading.local` stay.

What runs in a new thread has to connect to Java first, where a thread is made for it too: a small run on Spark took
12 to 18 ms longer there than in one that has run something before (PySpark 4.3 with py4j 0.10.9.9, a busy machine).
"""

from __future__ import annotations

import contextvars
import os
import sys
import threading
from collections import deque
from collections.abc import Callable
from time import monotonic, sleep

__all__ = ["in_a_thread"]

_PATIENCE = 60.0
"""Seconds after which a thread that nobody needs ends: a job without an end runs something every few seconds."""


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


class _Thread(threading.Thread):
    """A thread that runs what it is given, one after another."""

    def __init__(self) -> None:
        super().__init__(name="dstream-idle", daemon=True)
        self._given: deque[_Given] = deque()
        self._waiting = threading.Semaphore(0)  # No `queue`: a folder of the user's may have that name.

    def give(self, given: _Given) -> None:
        """Let it run a function."""
        self._given.append(given)
        self._waiting.release()

    def run(self) -> None:
        while (given := self._next()) is not None:
            run, self.name = given
            contextvars.Context().run(run)
            del given, run  # They may hold a plan, and its data.
            self.name = "dstream-idle"
            with _lock:
                _idle.append(self)

    def _next(self) -> _Given | None:
        """Return what is run next; None if nothing has come for so long that the thread ends."""
        if not self._waiting.acquire(timeout=_PATIENCE):
            with _lock:
                if self in _idle:
                    _idle.remove(self)
                    return None
            self._waiting.acquire()  # Whoever has taken it is about to give it something.
        return self._given.popleft()


_Given = tuple[Callable[[], object], str]
_lock = threading.Lock()
_idle: list[_Thread] = []


def _forget_threads() -> None:
    """Know in a forked process that the threads stayed in its parent."""
    global _lock
    _lock = threading.Lock()
    _idle.clear()


def _wait_for_imports() -> None:
    """Let our threads end the imports that they are in, before this process is forked.

    In the forked process nobody would end them: the module stays there half made, and each use of it fails.
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
"""An import may wait for one of the thread that forks; then it does not end before."""

os.register_at_fork(before=_wait_for_imports, after_in_child=_forget_threads)
