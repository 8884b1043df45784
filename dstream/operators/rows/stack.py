"""Relays between threads for plans of thousands of steps, which would exceed Python's stack.

An operation requests an item of its upstream operation, which requests one of its own upstream. So after some hundreds
of operations the rest is run by a thread with its own stack. The thread returns one item for each request, so that
nothing is read ahead.
"""

from __future__ import annotations

import contextvars
import os
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any

from dstream.failures import TransportedError

if TYPE_CHECKING:
    from queue import SimpleQueue

__all__ = ["FRAMES_OF_AN_OPERATION", "Depth", "relayed", "stack_is_deep"]


FRAMES_OF_AN_OPERATION = 4
"""Maximum number of Python frames of most operations while they request an item."""


class Depth:
    """Counts the frames of nested operations, and moves the operations to a thread when the stack becomes deep."""

    def __init__(self) -> None:
        self._frames = 0
        # The other half is for the caller, and for the user's functions.
        self._most = sys.getrecursionlimit() // 2

    def add(self, items: Iterator[Any], frames: int = FRAMES_OF_AN_OPERATION) -> Iterator[Any]:
        """Return the items of one more operation.

        Args:
            items: the results of the operation.
            frames: the maximum number of its Python frames while it requests an item.
        """
        self._frames += frames
        if self._frames < self._most:
            return items
        self._frames = 0
        return relayed(items)


def stack_is_deep() -> bool:
    """Return whether half of the stack of this thread is in use."""
    frame: FrameType | None = sys._getframe()
    left = sys.getrecursionlimit() // 2
    while frame is not None and left:
        frame, left = frame.f_back, left - 1
    return frame is not None


def relayed(items: Iterator[Any]) -> Iterator[Any]:
    """Yield the items, each computed by another thread when it is requested."""
    from queue import SimpleQueue  # A user's folder may have this name, and short plans do not need it.

    requests: SimpleQueue[bool] = SimpleQueue()
    answers: SimpleQueue[Any] = SimpleQueue()
    # The user's functions see the context variables of the caller, such as its decimal context, in the thread too.
    arguments = (contextvars.copy_context(), items, requests, answers)
    thread = threading.Thread(target=_serve, args=arguments, name="dstream-long-plan", daemon=True)
    del items, arguments
    thread.start()
    process, is_idle = os.getpid(), True
    try:
        while True:
            # A fork copies no threads: the request would never be answered.
            if os.getpid() != process:
                raise RuntimeError("a forked process cannot go on with a long plan that its parent runs")
            is_idle = False
            requests.put(True)
            answer = answers.get()
            is_idle = True
            if isinstance(answer, TransportedError):
                raise answer.arrived()
            if answer is _END:
                return
            yield answer
    finally:
        requests.put(False)
        if is_idle and os.getpid() == process:  # An interrupted thread may be busy for long.
            thread.join()


_END: Any = object()


def _serve(
    context: contextvars.Context,
    items: Iterator[Any],
    requests: SimpleQueue[bool],
    answers: SimpleQueue[Any],
) -> None:
    while requests.get():
        try:
            answers.put(context.run(next, items, _END))
        except BaseException as error:
            answers.put(TransportedError(error))
    close = getattr(items, "close", None)
    if close is not None:
        close()
