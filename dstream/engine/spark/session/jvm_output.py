"""What the JVM and its workers write to stderr: what the user should see of it, and what is only chatter.

Many workers write to one pipe. Each writes a line that a user prints in one piece or more, and a traceback in pieces of
its own: the first line, each frame with its line of source, the last line. Pieces of others come between them, also
between a user's text and the end of its line. Where
two readings are possible a line is shown: only right behind a frame does an indented line count as its source.
"""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Iterable, Iterator
from typing import IO

__all__ = ["Pump"]

_CHATTER = (
    "Setting Spark log level to ",  # at each start of a session in a JVM that runs already (4.3)
    "WARNING: Using incubator modules",
    "Using Spark's default log4j profile",
    "Setting default log level to ",
    "To adjust logging level use ",
    "Current mem limits: ",  # from each worker whose memory is limited (4.3)
    "Setting mem limits to ",
)


class Pump:
    """Reads what the JVM and the workers write to stderr: held back at first, then passed on to `sys.stderr`."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self._lines: list[str] = []
        self._passes = False
        self._thread = threading.Thread(target=self._run, name="dstream-jvm-stderr", daemon=True)
        self._thread.start()

    def let_through(self) -> None:
        """Pass on what comes from now on."""
        self._passes = True

    def held_back(self) -> str:
        """Return what came so far, once the JVM has ended."""
        self._thread.join(timeout=5)
        return "".join(self._lines[-20:]).strip() or "it wrote no message"

    def _run(self) -> None:
        with self._stream:
            for line in _without_last_words(self._stream):
                if not self._passes:
                    self._lines.append(line)
                elif sys.stderr is not None and not line.startswith(_CHATTER):
                    sys.stderr.write(line)


_BEGIN = "Traceback (most recent call last):"
_FRAME = re.compile(r'  File "(.+)", line \d+')
_OF_PYSPARK = re.compile(r"(^|/)pyspark/\w+\.py$")
_BELOW_PYSPARK = re.compile(r"/(?:socket|struct|selectors)\.py$")
_SOURCE = re.compile(r"    \S")
_MARKS = re.compile(r"    [ ~^]+$")
_LAST = re.compile(r"[A-Za-z_][\w.]*(?:Error|Exception|Exit|Interrupt)(?::|$)")
_CLOSED = ("BrokenPipeError", "ConnectionResetError", "ConnectionAbortedError", "EOFError")
"""What a worker meets whose socket Java has closed."""
_GLUED_LAST = re.compile(rf"(?<=[^\s(:'\"`])(?:{'|'.join(_CLOSED)})(?::.*)?$")
"""The last line of a traceback right behind other text. Behind a blank the name is a word of a user's line."""
_NOT_FLUSHED = "PySpark daemon failed to flush the output to the worker process:"
"""Stands before a traceback of PySpark's (4.3), behind which comes an empty line."""


class _Workers:
    """What the workers are writing: the tracebacks of PySpark's that have begun, as far as they came."""

    def __init__(self) -> None:
        self._begun: list[list[str]] = []
        self._newest: list[str] | None = None
        """The traceback that the line before belongs to."""
        self._of_users = 0
        self._lent = 0
        """How many first lines were shown with a frame of the user's that may have continued another traceback."""
        self._empty_lines = 0

    def take(self, line: str) -> Iterator[str]:
        """Give the lines that the user should see, now that `line` has come."""
        if start := self._start_of_piece(line):
            yield line[:start]  # Somebody's line that goes on behind it.
            line = line[start:]
        text = line.rstrip("\n")
        frame = _FRAME.match(text)
        before, self._newest = self._newest, None
        if text.endswith(_BEGIN) and not text.endswith("Group " + _BEGIN):
            yield from filter(None, [text.removesuffix(_BEGIN)])
            self._begun.append([_BEGIN + "\n"])
        elif frame is not None:
            yield from self._frame(frame[1], line)
        elif before is not None and _goes_on(before[-1], text):
            self._newest = before
            before.append(line)
        elif _LAST.match(text):
            yield from self._last(line)
        elif text == _NOT_FLUSHED:
            self._empty_lines += 1
        elif not text and self._empty_lines:
            self._empty_lines -= 1
        else:
            yield line

    def _start_of_piece(self, line: str) -> int:
        """Return where, behind text that has no end yet, a piece of PySpark's begins; 0 if none does."""
        if (start := line.find(_NOT_FLUSHED)) > 0:
            return start
        if not self._begun:
            return 0
        start = line.rfind('  File "')
        frame = _FRAME.match(line, start) if line[: max(start, 0)].strip(" |") else None
        if frame is not None and self._is_of_pyspark(frame[1]):
            return start
        last = _GLUED_LAST.search(line)
        return 0 if last is None else last.start()

    def _is_of_pyspark(self, file: str) -> bool:
        has_frames = any(len(lines) > 1 for lines in self._begun)
        return _OF_PYSPARK.search(file) is not None or (has_frames and _BELOW_PYSPARK.search(file) is not None)

    def _frame(self, file: str, line: str) -> Iterator[str]:
        of_pyspark = [lines for lines in self._begun if len(lines) > 1]
        empty = [lines for lines in self._begun if len(lines) == 1]
        if self._is_of_pyspark(file):
            if not self._begun:
                self._begun.append([""])  # Its first line was shown with another one.
            self._newest = (empty or of_pyspark or self._begun)[-1]
            self._newest.append(line)
            return
        # A frame of the user's: the traceback that it opens or continues is shown from here on.
        if empty:
            self._begun.remove(empty[-1])
            self._lent += bool(self._of_users)
            yield from empty[-1]
        self._of_users += bool(empty) or not self._of_users
        yield line

    def _last(self, line: str) -> Iterator[str]:
        if self._begun and line.startswith(_CLOSED):
            self._ended()  # Java has ended, or wants no more of what the worker was at.
            return
        if self._lent and line.startswith(_CLOSED):
            self._lent -= 1
            return
        if self._begun and not self._of_users:
            yield from self._ended()
        self._of_users = max(0, self._of_users - 1)
        yield line

    def _ended(self) -> list[str]:
        """Forget one of the tracebacks: one that has frames, if there is any."""
        index = max(range(len(self._begun)), key=lambda number: len(self._begun[number]) > 1)
        return self._begun.pop(index)


def _goes_on(before: str, text: str) -> bool:
    """Say whether a line is the source of the frame in the line before it, or the marks below that source."""
    return (_SOURCE if _FRAME.match(before) else _MARKS).match(text) is not None


def _without_last_words(lines: Iterable[str]) -> Iterator[str]:
    """Leave out how workers find their sockets closed, when Spark stops or a job has failed elsewhere (4.3).

    What is left at the end is left out too: a worker is stopped in the middle of a word.
    """
    workers = _Workers()
    for line in lines:
        yield from workers.take(line)
