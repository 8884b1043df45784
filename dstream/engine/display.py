"""The progress line: its facts, its displays in terminals, notebooks and logs, and the board of operations.

One line serves the whole process. A thread looks three times a second while something waits; it
ends by itself when nothing does. No job depends on it: any failure of the line ends the display.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextvars import Context
from typing import IO, Any, Protocol, TypeVar

from dstream.base.records import record
from dstream.base.threads import RenewedLock

__all__ = [
    "BOARD",
    "Board",
    "BoardEntry",
    "Display",
    "Notebook",
    "Plain",
    "ProgressFacts",
    "Terminal",
    "chosen",
    "is_terminal",
    "quietly",
    "written",
]


_GAP = "  "


@record(slots=False)
class ProgressFacts:
    """The progress of an operation.

    Attributes:
        title: what runs, in the user's words, such as `sorted(key=len) orders.py:12`.
        items: how many items were read from sources; None if they are not counted.
        tasks: how many of all tasks are done, as (done, all); None where there are no tasks.
        stage: the running stage and the number of stages, as (number, all).
        place: a description of the engine it runs on, if it was chosen; empty: on the only engine.
    """

    title: str
    items: int | None = None
    tasks: tuple[int, int] | None = None
    stage: tuple[int, int] | None = None
    place: str = ""


def written(facts: ProgressFacts, seconds: float, width: int | None = None, others: int = 0) -> str:
    """Write the line; where it is too narrow, the title is cut first.

    Args:
        facts: how far the operation is.
        seconds: how long it has been running.
        width: how many cells there are; None for any number.
        others: how many other operations run meanwhile.

    Example:
        >>> written(ProgressFacts("count() orders.py:3", 1_200_000, (14, 24), (2, 3)), 12)
        'count() orders.py:3  stage 2 of 3  14/24 tasks  1,200,000 items  0:12'
    """
    rest = _GAP.join(_parts(facts, seconds, others))
    line = _GAP.join((facts.title, rest))
    return line if width is None else _cut(facts.title, rest, width)


def _parts(facts: ProgressFacts, seconds: float, others: int) -> list[str]:
    parts = [facts.place] if facts.place else []
    if facts.stage is not None and facts.stage[1] > 1:
        parts.append(f"stage {facts.stage[0]} of {facts.stage[1]}")
    if facts.tasks is not None:
        parts.append(f"{facts.tasks[0]}/{facts.tasks[1]} tasks")
    if facts.items:
        parts.append(f"{facts.items:,} item{'s' if facts.items > 1 else ''}")
    parts.append(_clock(seconds))
    if others:
        parts.append(f"and {others} more job{'s' if others > 1 else ''}")
    return parts


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _cut(title: str, rest: str, width: int) -> str:
    """Fit title and rest into `width` cells, at the cost of the title, then of the end of the rest."""
    from rich.cells import cell_len
    from rich.text import Text

    room = width - cell_len(rest) - len(_GAP)
    short = Text(title)
    short.truncate(max(room, 0), overflow="ellipsis")
    line = Text(_GAP.join((short.plain, rest)) if room > 1 else rest)
    line.truncate(width, overflow="ellipsis")
    return line.plain


# Supported by terminals since the VT100.
_MAKE_ROOM = "\x1bD\x1b[A"
"""One line down and up again: at the bottom, the screen scrolls; the cursor keeps its position in the text."""
_SAVE, _RESTORE = "\x1b7", "\x1b8"
_ERASE_REST, _ERASE_BELOW = "\x1b[K", "\x1b[J"
_STREAMS = ("stdout", "stderr")
_PLAIN_EVERY = 10.0


class Display(Protocol):
    """A display of one line of text."""

    def width(self) -> int | None:
        """Return how many cells a line may have; None for any number."""
        ...

    def draw(self, line: str, now: float) -> None:
        """Replace the shown line by `line`; `now` is in seconds, of any clock."""
        ...

    def erase(self) -> None:
        """Remove the line, to make room for other output."""
        ...


def chosen(asked: bool | None) -> Display | None:
    """Return the display for this process as it is now, or None if nothing is to be shown.

    Args:
        asked: whether the user wants the line; None: only in terminals and notebooks.
    """
    if asked is False:
        return None
    if (shell := _notebook()) is not None:
        return _notebook_display(shell)
    stream = sys.stderr.stream if isinstance(sys.stderr, _Aside) else sys.stderr
    if is_terminal(stream):
        return _terminal_display(stream)
    return _plain_display(stream) if asked and stream is not None else None


def is_terminal(stream: IO[str] | None) -> bool:
    """Return whether a line can be drawn over and over on `stream`."""
    try:
        return stream is not None and stream.isatty() and os.environ.get("TERM") not in ("dumb", "unknown")
    except (AttributeError, ValueError):  # It is closed, or an object of another library.
        return False


def _notebook() -> Any:
    """Return the shell of the notebook kernel that this process is, or None."""
    # A kernel has loaded IPython long ago, so it need not be imported to be asked.
    module = sys.modules.get("IPython")
    shell = None if module is None else module.get_ipython()
    return shell if hasattr(shell, "kernel") else None


@functools.lru_cache(maxsize=1)
def _notebook_display(shell: Any) -> Notebook:
    """Return the one display of a kernel, which stores its output in this cell."""
    return Notebook(shell)


@functools.lru_cache(maxsize=1)
def _terminal_display(stream: IO[str]) -> Terminal:
    """Return the one display of a terminal, which stores whether a line is drawn."""
    return Terminal(stream)


@functools.lru_cache(maxsize=1)
def _plain_display(stream: IO[str]) -> Plain:
    """Return the one display of a log, which stores when it wrote last."""
    return Plain(stream)


class Terminal:
    """A line below the cursor, which is not moved; output through `sys` replaces it.

    rich's live display would redirect printed output to the stream of the line, so that `script.py > file` would lose
    it; this one leaves each stream its output, and does not change prompts.
    """

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self._lock = RenewedLock()
        self._is_drawn = False
        self._asides: dict[int, _Aside] = {}
        # `print` of Python 3.11 to 3.13 has no reference to the stream that it writes to: a replaced stream must stay
        # alive.

    def width(self) -> int | None:
        try:
            # A line that fills the last cell makes some terminals begin a new one.
            return (os.get_terminal_size(self._stream.fileno()).columns or 80) - 1
        except (OSError, ValueError, AttributeError):
            return 79

    def draw(self, line: str, now: float) -> None:
        with self._lock:
            if not self._is_drawn:
                self._stand_aside()
            self._is_drawn = True
            self._stream.write(f"{_MAKE_ROOM}{_SAVE}\r\n{line}{_ERASE_REST}{_RESTORE}")
            self._stream.flush()

    def erase(self) -> None:
        with self._lock:
            if self._is_drawn:
                self._is_drawn = False
                self._back()
                self._stream.write(_ERASE_BELOW)
                self._stream.flush()

    def write_aside(self, stream: IO[str], text: str) -> int:
        """Write to `stream` where the line was."""
        with self._lock:
            self.erase()
            return stream.write(text)

    def _stand_aside(self) -> None:
        for name in _STREAMS:
            stream = getattr(sys, name)
            if is_terminal(stream) and not isinstance(stream, _Aside):
                setattr(sys, name, self._asides.setdefault(id(stream), _Aside(stream, self)))

    def _back(self) -> None:
        """Restore the streams, but for one that was replaced by other code meanwhile."""
        for name in _STREAMS:
            aside = getattr(sys, name)
            if isinstance(aside, _Aside):
                setattr(sys, name, aside.stream)


class _Aside:
    """The stand-in of a terminal's stream while the line is shown; it erases the line before each write.

    For code that stores it longer, it only forwards.
    """

    def __init__(self, stream: IO[str], terminal: Terminal) -> None:
        self.stream = stream
        self._terminal = terminal

    def write(self, text: str) -> int:
        return self._terminal.write_aside(self.stream, text)

    def writelines(self, lines: Iterable[str]) -> None:
        self._terminal.write_aside(self.stream, "".join(lines))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.stream)


class Notebook:
    """A line in one output of the running cell, updated in place and empty at the end."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._cell: object = None
        self._handle: Any = None
        self._is_drawn = False

    def width(self) -> int | None:
        return None

    def draw(self, line: str, now: float) -> None:
        from IPython.display import display

        self._is_drawn = True
        if self._handle is None or self._cell != self._shell.execution_count:
            self._cell = self._shell.execution_count
            self._handle = display({"text/plain": line}, raw=True, display_id=True)  # type: ignore[no-untyped-call]
        else:
            self._handle.update({"text/plain": line}, raw=True)

    def erase(self) -> None:
        if self._is_drawn:
            self._is_drawn = False
            self._handle.update({"text/plain": ""}, raw=True)


class Plain:
    """Writes whole lines, one every ten seconds at most, for logs."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self._written: float | None = None

    def width(self) -> int | None:
        return None

    def draw(self, line: str, now: float) -> None:
        if self._written is None or now - self._written >= _PLAIN_EVERY:
            self._written = now
            self._stream.write(f"{line}\n")
            self._stream.flush()

    def erase(self) -> None:
        """Leave the lines: they scroll."""


T = TypeVar("T")

_EVERY = 0.3
_PATIENCE = 1.0
"""The seconds that an operation takes before it is shown."""


class BoardEntry(Protocol):
    """An operation as the board sees it."""

    started: float
    display: Display
    context: Context
    """The context of the caller: a notebook shows in the cell of the caller what another thread displays."""

    def facts(self) -> ProgressFacts | None:
        """Return how far it is; None if there is nothing to report."""
        ...


class Board:
    """The operations that wait.

    Args:
        clock: returns seconds.
        start: starts a thread that calls `tick` until it returns that no operation is pending.
    """

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, start: Callable[[Board], None] | None = None
    ) -> None:
        self.clock = clock
        self._start = start or _start_thread
        self._lock = RenewedLock()
        self._waiting: list[BoardEntry] = []
        self._is_watched = False
        self._is_drawn = False

    def enter(self, operation: BoardEntry) -> None:
        """Show `operation` from now on, until it left as often as it entered."""
        # An iterator does this for every item, and an append needs no lock.
        self._waiting.append(operation)
        if not self._is_watched:
            with self._lock:
                if not self._is_watched:
                    self._is_watched = True
                    self._start(self)

    def leave(self, operation: BoardEntry) -> None:
        """Release the line to the caller of `operation`; nothing is drawn for it later."""
        with self._lock:
            self._waiting.remove(operation)
            self._erase(operation)

    def pause(self, operation: BoardEntry) -> None:
        """Pause an operation: a line that is being drawn is erased a moment later; `settle` must follow at the end.

        An iterator does this for every item.
        """
        self._waiting.remove(operation)
        if self._is_drawn:
            with self._lock:
                self._erase(operation)

    def settle(self, operation: BoardEntry) -> None:
        """Make sure that nothing is drawn any more for an operation that pauses."""
        with self._lock:
            self._erase(operation)

    def tick(self) -> bool:
        """Draw the line as it is now; return whether anything waits."""
        with self._lock:
            # An operation that enters looks at this after it waits, so one of the two sees the other.
            self._is_watched = False
            pending = list(self._waiting)
            self._is_watched = bool(pending)
        if pending and self.clock() - pending[0].started >= _PATIENCE:
            self._draw(pending[0])
        return bool(pending)

    def _draw(self, shown: BoardEntry) -> None:
        # Facts may take their time, and no operation waits for them.
        facts = quietly(shown.facts)
        with self._lock:
            pending = list(self._waiting)
            if facts is None or shown not in pending:
                return
            display, now = shown.display, self.clock()
            # An operation waits several times if one of its calls waits inside of another.
            line = written(facts, now - shown.started, quietly(display.width), len(set(map(id, pending))) - 1)
            # Set before drawing: a `pause` from now on sees it, waits for this lock and erases the line.
            self._is_drawn = True
            quietly(lambda: shown.context.run(display.draw, line, now))
            # A `pause` just before that saw no line, so it erased none.
            if shown not in self._waiting:
                self._erase(shown)

    def _erase(self, operation: BoardEntry) -> None:
        self._is_drawn = False
        quietly(operation.display.erase)


def quietly(action: Callable[[], T]) -> T | None:
    """Return the result of `action`, or None if it fails: a job does not fail because it cannot be shown."""
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
