"""Contexts whose drivers look around more often."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import dstream as ds
from dstream.jobs.heartbeats import Rhythm
from dstream.jobs.registry import Jobs
from tests.jobs.planned import Gate

SOON = Rhythm(look=0.02, beat=0.1, lost_after=1.0, patience=0.2)
"""So that a test waits for nothing."""
ROOT = Path(__file__).parents[2]
LONGEST = 60.0


@pytest.fixture
def gate() -> Iterator[Gate]:
    """A gate, which is open at the end of the test, so that no thread is left."""
    made = Gate()
    yield made
    made.is_open.set()


@pytest.fixture
def place(tmp_path: Path) -> str:
    """A folder for a storage that several contexts and processes share."""
    return str(tmp_path / "lake")


@pytest.fixture
def connect(place: str) -> Iterator[Callable[..., ds.Context]]:
    """Open a context of the local engine on that storage, whose drivers look around often; closed at the end."""
    opened: list[ds.Context] = []

    def open_one(rhythm: Rhythm = SOON, **settings: Any) -> ds.Context:
        context = ds.connect(engine="local", **{"storage": place, **settings})
        storage = context.running_storage()
        context._jobs = Jobs(context, storage.records, storage.load_pickle, rhythm)
        opened.append(context)
        return context

    yield open_one
    for each in opened:
        each.close()


@pytest.fixture
def ctx(connect: Callable[..., ds.Context]) -> ds.Context:
    """One such context."""
    return connect()


class Process:
    """A program in a process of its own, whose lines are read as they come."""

    def __init__(self, *arguments: str, **changes: str) -> None:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("DSTREAM_", "PYSPARK_"))}
        environment = {**kept, "PYTHONPATH": str(ROOT), **changes}
        pipe: Any = subprocess.PIPE
        command = [sys.executable, *arguments]
        self.process = subprocess.Popen(command, env=environment, stdout=pipe, stderr=subprocess.STDOUT, text=True)

    def says(self, line: str) -> None:
        """Read up to a line; fail if it does not come."""
        assert self.process.stdout is not None
        said = []
        for each in self.process.stdout:
            said.append(each)
            if each.strip() == line:
                return
        raise AssertionError(f"expected {line!r}, the process said {''.join(said)}")

    def signal(self, number: int) -> None:
        """Send a signal."""
        self.process.send_signal(number)

    def ended(self) -> tuple[int, str]:
        """Wait for the end; return the exit code and what was said since the last line that was read."""
        assert self.process.stdout is not None
        said = self.process.stdout.read()
        return self.process.wait(LONGEST), said

    def close(self) -> None:
        """End it, if it still runs."""
        assert self.process.stdout is not None
        self.process.kill()
        self.process.wait(LONGEST)
        self.process.stdout.close()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Process]]:
    """Run a text as a program in a process of its own: `start(text, *arguments)`."""
    started: list[Process] = []

    def run(text: str, *arguments: str, **changes: str) -> Process:
        script = tmp_path / f"program{len(started)}.py"
        script.write_text(text)
        started.append(Process(str(script), *arguments, **changes))
        return started[-1]

    yield run
    for each in started:
        each.close()
