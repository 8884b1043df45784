"""`in_a_thread`: runs a function in a thread of its own, one that has nothing to do any more if there is any.

A function sees no context variable that another one has set, as in a new thread; values in a `threading.local` stay.

What runs in a new thread has to connect to Java first, where a thread is made for it too: a small run on Spark took
12 to 18 ms longer there than in one that has run something before (PySpark 4.3 with py4j 0.10.9.9, a busy machine).
"""

from __future__ import annotations

import contextvars
import os
import threading
from collections import deque
from collections.abc import Callable

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


os.register_at_fork(after_in_child=_forget_threads)
