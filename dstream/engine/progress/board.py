"""The board: which operations wait for an engine right now, and when their line is drawn.

One line serves the whole process. A thread looks three times a second while something waits; it
ends by itself when nothing does. Nobody's job depends on it: whatever fails here ends the showing.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextvars import Context
from typing import Protocol, TypeVar

from dstream.engine.progress.displays import Display
from dstream.engine.progress.line import Facts, written
from dstream.values.forked_locks import RenewedLock

__all__ = ["BOARD", "Board", "Shown", "quietly"]

T = TypeVar("T")

_EVERY = 0.3
_PATIENCE = 1.0
"""How many seconds an operation takes before it is shown."""


class Shown(Protocol):
    """An operation as the board sees it."""

    started: float
    display: Display
    context: Context
    """The context of the caller: a notebook shows in the cell of the caller what another thread displays."""

    def facts(self) -> Facts | None:
        """Return how far it is; None if there is nothing to say."""
        ...


class Board:
    """The operations that wait.

    Args:
        clock: gives seconds.
        start: starts a thread that calls `tick` until it says that nothing waits.
    """

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, start: Callable[[Board], None] | None = None
    ) -> None:
        self.clock = clock
        self._start = start or _start_thread
        self._lock = RenewedLock()
        self._waiting: list[Shown] = []
        self._is_watched = False
        self._is_drawn = False

    def enter(self, operation: Shown) -> None:
        """Let `operation` be shown from now on, until it left as often as it entered."""
        self._waiting.append(operation)
        if not self._is_watched:
            with self._lock:
                if not self._is_watched:
                    self._is_watched = True
                    self._start(self)

    def leave(self, operation: Shown) -> None:
        """Give the place of the line back to the caller of `operation`; nothing is drawn for it later."""
        with self._lock:
            self._waiting.remove(operation)
            self._erase(operation)

    def pause(self, operation: Shown) -> None:
        """Do the same, but a line that is being drawn goes a moment later; `settle` must follow at the end.

        An iterator does this for every item.
        """
        self._waiting.remove(operation)
        if self._is_drawn:
            with self._lock:
                self._erase(operation)

    def settle(self, operation: Shown) -> None:
        """Make sure that nothing is drawn any more for an operation that pauses."""
        with self._lock:
            self._erase(operation)

    def tick(self) -> bool:
        """Draw the line as it is now; say whether anything waits."""
        with self._lock:
            # Whoever enters looks at this after it waits, so one of the two sees the other.
            self._is_watched = False
            waiting = list(self._waiting)
            self._is_watched = bool(waiting)
        if waiting and self.clock() - waiting[0].started >= _PATIENCE:
            self._draw(waiting[0])
        return bool(waiting)

    def _draw(self, shown: Shown) -> None:
        # Facts may take their time, and nobody shall wait for them.
        facts = quietly(shown.facts)
        with self._lock:
            waiting = list(self._waiting)
            if facts is None or shown not in waiting:
                return
            display, now = shown.display, self.clock()
            line = written(facts, now - shown.started, quietly(display.width), len(set(map(id, waiting))) - 1)
            self._is_drawn = True
            quietly(lambda: shown.context.run(display.draw, line, now))
            if shown not in self._waiting:
                self._erase(shown)

    def _erase(self, operation: Shown) -> None:
        self._is_drawn = False
        quietly(operation.display.erase)


def quietly(action: Callable[[], T]) -> T | None:
    """Return what `action` returns, or None if it fails: a job does not fail because nobody can watch it."""
    try:
        return action()
    except Exception:
        return None


def _start_thread(board: Board) -> None:
    threading.Thread(target=_watch, args=(board,), name="dstream-progress", daemon=True).start()


def _watch(board: Board) -> None:
    pause = threading.Event()
    while True:
        pause.wait(_EVERY)
        if not board.tick():
            return


BOARD = Board()
"""The board of this process."""
