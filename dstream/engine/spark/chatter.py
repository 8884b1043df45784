"""What the JVM and its workers write to stderr: what the user should see of it, and what is only chatter."""

from __future__ import annotations

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
        for line in _without_last_words(self._stream):
            if not self._passes:
                self._lines.append(line)
            elif sys.stderr is not None and not line.startswith(_CHATTER):
                sys.stderr.write(line)


def _without_last_words(lines: Iterable[str]) -> Iterator[str]:
    """Leave out how a worker that has nothing to do finds its socket closed, when Spark stops (4.3)."""
    traceback: list[str] = []
    for line in lines:
        if line.startswith("Traceback (most recent call last)"):
            yield from traceback
            traceback = [line]
        elif traceback and line.startswith(" "):
            traceback.append(line)
        else:
            if not (line.startswith("BrokenPipeError") and traceback and _is_idle(traceback)):
                yield from (*traceback, line)
            traceback = []
    if not _is_idle(traceback):  # It is stopped in the middle of a word, too.
        yield from traceback


def _is_idle(traceback: list[str]) -> bool:
    """Say whether a traceback is of PySpark's daemon, outside of what a worker runs, as far as it goes."""
    return all('pyspark/daemon.py"' in line for line in traceback if line.startswith("  File "))
