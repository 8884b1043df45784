"""How tests use the command: in this process, as a process, and at a terminal."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import dstream as ds
from dstream.command.program import program

ROOT = Path(__file__).parents[2]
LONGEST = 240
_PATIENCE = 5.0
_CONTROL = re.compile(r"\x1b(\[[0-9;?]*[a-zA-Z]|\][^\x07]*\x07|[=>])|\r")

Command = Callable[..., Result]
Process = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def command(folder: Path) -> Command:
    """Run the command in this process, in the empty folder."""

    def run(*arguments: str, answer: str | None = None) -> Result:
        return CliRunner().invoke(program, arguments, input=answer, prog_name="dstream")

    return run


@pytest.fixture
def storage(folder: Path) -> Iterator[ds.Context]:
    """The storage that the command finds in the folder."""
    with ds.connect(engine="local") as ctx:
        yield ctx


def environment(**changes: str) -> dict[str, str]:
    """Return the environment of a process: nothing that steers Spark or dstream, with these changes."""
    steering = {name for name in os.environ if name.startswith(("SPARK_", "PYSPARK_", "DSTREAM_"))}
    kept = {name: value for name, value in os.environ.items() if name not in steering - {"SPARK_SUBMIT_OPTS"}}
    return {**kept, "PYTHONPATH": str(ROOT), "DSTREAM_MASTER": "local[1]", "TERM": "dumb", **changes}


@pytest.fixture
def process(tmp_path: Path) -> Process:
    """Run Python with some arguments as a process of its own, in the test's folder."""

    def run(*arguments: str, typed: str = "", **changes: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *arguments],
            input=typed,
            cwd=tmp_path,
            env=environment(XDG_STATE_HOME=str(tmp_path / "state")) | changes,
            capture_output=True,
            text=True,
            timeout=LONGEST,
            check=False,
        )

    return run


class Terminal:
    """A process at a terminal of its own: what it shows is read up to what is expected."""

    def __init__(self, arguments: list[str], folder: Path, **changes: str) -> None:
        self._screen, inner = pty.openpty()
        self._process = subprocess.Popen(
            [sys.executable, *arguments],
            cwd=folder,
            env=environment(HOME=str(folder), **changes),
            stdin=inner,
            stdout=inner,
            stderr=inner,
            start_new_session=True,
            preexec_fn=_take_terminal,
        )
        os.close(inner)
        self._unread = ""

    def expect(self, text: str) -> str:
        """Read up to `text`; return what stood before it."""
        until = time.monotonic() + LONGEST
        while text not in self._unread:
            if not self._read(until):
                raise AssertionError(f"expected {text!r}, the terminal shows {self._unread!r}")
        before, _, self._unread = self._unread.partition(text)
        return before

    def _read(self, until: float) -> bool:
        if not select.select([self._screen], [], [], max(0.0, until - time.monotonic()))[0]:
            return False
        try:
            data = os.read(self._screen, 65536)
        except OSError:  # the process has ended
            return False
        self._unread += _CONTROL.sub("", data.decode(errors="replace"))
        return bool(data)

    def type(self, text: str) -> None:
        """Type some keys."""
        os.write(self._screen, text.encode())

    def interrupt(self) -> None:
        """Type Ctrl-C until the prompt has seen one: it misses one that comes just before it waits (CPython 3.11)."""
        until = time.monotonic() + LONGEST
        while "KeyboardInterrupt" not in self._unread:
            assert time.monotonic() < until, f"the terminal shows {self._unread!r}"
            self.type("\x03")
            self._read(time.monotonic() + _PATIENCE)

    def end(self) -> int:
        """Read to the end, and return the exit code."""
        until = time.monotonic() + LONGEST
        while self._read(until):
            pass
        return self._process.wait(timeout=LONGEST)

    @property
    def process(self) -> int:
        """The number of the process."""
        return self._process.pid

    @property
    def rest(self) -> str:
        """What was shown since the last that was expected."""
        return self._unread

    def close(self) -> None:
        """End what still runs."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        os.close(self._screen)


def _take_terminal() -> None:
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Callable[..., Terminal]]:
    """Open a process at a terminal, in the test's folder."""
    opened: list[Terminal] = []

    def open_terminal(*arguments: str, **changes: str) -> Terminal:
        opened.append(Terminal(list(arguments), tmp_path, **changes))
        return opened[-1]

    yield open_terminal
    for each in opened:
        each.close()
