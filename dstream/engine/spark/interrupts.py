"""Ctrl-C: it ends the jobs of the operation that the main thread waits for, and no others."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from dstream.values.contexts import contextmanager

__all__ = ["cancelling", "interruptible"]

_LONGEST_CANCEL = 10.0
_awaited: list[tuple[int, Callable[[], None]]] = []
"""What the main thread waits for, innermost last: the process, and how to cancel it there."""


@contextmanager
def interruptible(cancel: Callable[[], None]) -> Iterator[None]:
    """Let Ctrl-C `cancel` what the main thread waits for meanwhile."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _awaited.append((os.getpid(), cancel))
    try:
        yield
    finally:
        _awaited.pop()


@contextmanager
def cancelling() -> Iterator[None]:
    """Let Ctrl-C cancel what is `interruptible`, unless the user has a handler of their own.

    Python's own handler, which notebooks have, lets PySpark 4.3 wait for the end of the job before a
    KeyboardInterrupt comes through; that of PySpark cancels the jobs of everybody who shares Spark.
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not _is_replaced(before):
        yield
        return
    signal.signal(signal.SIGINT, _cancel_and_interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _is_replaced(handler: Any) -> bool:
    return handler is signal.default_int_handler or getattr(handler, "__module__", "").startswith("pyspark.")


def _cancel_and_interrupt(number: int, frame: object) -> None:
    # In a thread of its own: the connection of this one to Java may be waiting for an answer.
    cancelling = threading.Thread(target=_cancel, args=(list(_awaited),), name="dstream-cancel", daemon=True)
    cancelling.start()
    cancelling.join(_LONGEST_CANCEL)
    raise KeyboardInterrupt


def _cancel(awaited: list[tuple[int, Callable[[], None]]]) -> None:
    for process, cancel in reversed(awaited):
        # What keeps Spark from being asked, such as a Java process that is gone, has ended the jobs as well.
        with suppress(Exception):
            if process == os.getpid():
                cancel()
