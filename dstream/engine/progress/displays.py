"""Where the line is drawn: in a terminal, in a notebook, or as plain lines in a log."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Iterable, Iterator
from typing import IO, Any, Protocol

from dstream.values.forked_locks import RenewedLock

__all__ = ["Display", "Notebook", "Plain", "Terminal", "chosen", "is_terminal"]

# What terminals since the VT100 know.
_MAKE_ROOM = "\x1bD\x1b[A"
"""One line down and up again: at the bottom, the screen scrolls; the cursor keeps its place in the text."""
_SAVE, _RESTORE = "\x1b7", "\x1b8"
_ERASE_REST, _ERASE_BELOW = "\x1b[K", "\x1b[J"
_STREAMS = ("stdout", "stderr")
_PLAIN_EVERY = 10.0


class Display(Protocol):
    """Shows one line of text."""

    def width(self) -> int | None:
        """Return how many cells a line may have; None for any number."""
        ...

    def draw(self, line: str, now: float) -> None:
        """Show `line` instead of what was shown before; `now` is in seconds, of any clock."""
        ...

    def erase(self) -> None:
        """Give the place free for what others write."""
        ...


def chosen(asked: bool | None) -> Display | None:
    """Return the display for this process as it is now, or None if nothing is to be shown.

    Args:
        asked: whether the user wants the line; None for where it can be seen: in terminals and notebooks.
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
    """Say whether a line can be drawn over and over on `stream`."""
    try:
        return stream is not None and stream.isatty() and os.environ.get("TERM") not in ("dumb", "unknown")
    except (AttributeError, ValueError):  # It is closed, or somebody's own object.
        return False


def _notebook() -> Any:
    """Return the shell of the notebook kernel that this process is, or None."""
    module = sys.modules.get("IPython")
    shell = None if module is None else module.get_ipython()
    return shell if hasattr(shell, "kernel") else None


@functools.lru_cache(maxsize=1)
def _notebook_display(shell: Any) -> Notebook:
    """Return the one display of a kernel, which knows what it showed in this cell already."""
    return Notebook(shell)


@functools.lru_cache(maxsize=1)
def _terminal_display(stream: IO[str]) -> Terminal:
    """Return the one display of a terminal, which knows whether a line is drawn."""
    return Terminal(stream)


@functools.lru_cache(maxsize=1)
def _plain_display(stream: IO[str]) -> Plain:
    """Return the one display of a log, which knows when it wrote last."""
    return Plain(stream)


class Terminal:
    """Draws the line below the cursor, which stays where it is; what is written through `sys` takes its place.

    rich's live display would send what is printed meanwhile to the stream of the line, so that
    `script.py > file` lost it; here each stream keeps what it gets, and a prompt stays what it is.
    """

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self._lock = RenewedLock()
        self._is_drawn = False
        self._asides: dict[int, _Aside] = {}
        # `print` of Python 3.11 to 3.13 does not hold the stream that it writes to: none may die when it is replaced.

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
        """Restore the streams, but for one that somebody else has replaced meanwhile."""
        for name in _STREAMS:
            aside = getattr(sys, name)
            if isinstance(aside, _Aside):
                setattr(sys, name, aside.stream)


class _Aside:
    """Stands for a terminal's stream while the line is there, and takes it away before something is written.

    Whoever keeps it longer has a stream that only forwards.
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
    """Shows the line in one output of the cell that runs, changed in place and empty at the end."""

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
