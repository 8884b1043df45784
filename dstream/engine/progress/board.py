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
        self._lock = threading.RLock()
        self._waiting: list[Shown] = []
        self._is_watched = False

    def enter(self, operation: Shown) -> None:
        """Let `operation` be shown from now on, until it left as often as it entered."""
        with self._lock:
            self._waiting.append(operation)
            if not self._is_watched:
                self._is_watched = True
                self._start(self)

    def leave(self, operation: Shown) -> None:
        """Give the place of the line back to the caller of `operation`."""
        with self._lock:
            self._waiting.remove(operation)
            quietly(operation.display.erase)

    def tick(self) -> bool:
        """Draw the line as it is now; say whether anything waits."""
        with self._lock:
            self._is_watched = bool(self._waiting)
            if not self._is_watched:
                return False
            shown = self._waiting[0]
        if self.clock() - shown.started >= _PATIENCE:
            self._draw(shown)
        return True

    def _draw(self, shown: Shown) -> None:
        # Facts may take their time, and nobody shall wait for them.
        facts = quietly(shown.facts)
        with self._lock:
            if facts is None or shown not in self._waiting:
                return
            display, now = shown.display, self.clock()
            others = len(set(map(id, self._waiting))) - 1
            line = written(facts, now - shown.started, quietly(display.width), others)
            quietly(lambda: shown.context.run(display.draw, line, now))


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
