"""A sink of a user's own: the items of each epoch as lines of files, in a folder that appears whole, by a rename."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from dstream.errors import IllegalStateError
from dstream.spi import Collections
from tests.storage.sinks.sink_contract import SinkCase, SinkContract


@dataclass(frozen=True)
class LineWriter:
    """Writes the items of a task into one file of `.staged`, whose name begins with that of its run."""

    folder: Path
    run: str

    def write(self, items: Iterator[Any]) -> Iterator[str]:
        """Give the name of the file, if there is an item."""
        name = f"{self.run}-{uuid.uuid4().hex}"
        with (self.folder / ".staged" / name).open("w") as file:
            written = sum(1 for item in items if file.write(f"{item}\n"))
        if written:
            yield name


@dataclass(frozen=True)
class LineJob:
    """Links the files of an epoch into a folder, in their order, and renames it; no other one can have its name."""

    folder: Path
    job: str
    epoch: int
    writer: LineWriter

    @property
    def is_done(self) -> bool:
        """Whether there is a folder of this epoch or of a later one."""
        return any(int(path.name.rpartition("-")[2]) >= self.epoch for path in self.folder.glob(f"{self.job}-*"))

    def commit(self, receipts: Sequence[str]) -> None:
        """Make the folder."""
        if self.is_done:
            return
        made = self.folder / ".staged" / uuid.uuid4().hex
        made.mkdir()
        (made / "_SUCCESS").touch()
        try:
            for number, name in enumerate(receipts):
                os.link(self.folder / ".staged" / name, made / f"{number:05}.txt")
            made.rename(self.folder / f"{self.job}-{self.epoch}")
        except FileNotFoundError as error:
            raise IllegalStateError(f"what tasks wrote is no more: {error}") from error
        finally:
            shutil.rmtree(made, ignore_errors=True)
        for name in receipts:
            (self.folder / ".staged" / name).unlink(missing_ok=True)

    def abort(self) -> None:
        """Remove the files of this run."""
        for path in (self.folder / ".staged").glob(f"{self.writer.run}-*"):
            with suppress(OSError):
                path.unlink()


@dataclass(frozen=True)
class Lines:
    """The sink, which is its own target."""

    folder: Path
    job: str | None = None
    collector = None

    @property
    def label(self) -> str:
        """How a user makes it."""
        return f"lines({self.folder.name!r})"

    def open(self, context: Collections) -> Lines:
        """Make the folder."""
        (self.folder / ".staged").mkdir(parents=True, exist_ok=True)
        return self

    def begin(self, job: str | None, epoch: int = 1) -> LineJob:
        """Begin an epoch."""
        return LineJob(self.folder, job or uuid.uuid4().hex, epoch, LineWriter(self.folder, uuid.uuid4().hex))

    def result(self) -> list[str]:
        """Give all lines."""
        folders = sorted(path for path in self.folder.iterdir() if path.name != ".staged")
        files = [file for folder in folders for file in sorted(folder.glob("*.txt"))]
        return [line for file in files for line in file.read_text().splitlines()]


@pytest.fixture
def lines(tmp_path: Path) -> Lines:
    """The sink on an empty folder."""
    return Lines(tmp_path / "out")


class TestLines(SinkContract):
    """It holds the contract."""

    @pytest.fixture
    def case(self, lines, local_context):
        """Items, and how to see what is in the folder."""
        lines.open(local_context)

        def left():
            return {str(path) for path in lines.folder.rglob("*")}

        return SinkCase(lines, lambda: local_context, [1, 2, 3], [44, 55], lines.result, left)


def test_a_stream_goes_into_it(engine, lines):
    """In encounter order, written by several tasks; `collect` gives what the target gives."""
    written = engine.stream(range(100), partitions=3).map(lambda n: n * n).collect(lines)

    assert written == [str(n * n) for n in range(100)]
    assert list((lines.folder / ".staged").iterdir()) == []


def test_a_named_job_writes_once(engine, lines):
    """A second run does nothing, and its steps do not run."""
    nightly = Lines(lines.folder, "nightly")
    numbers = engine.stream([1, 2], partitions=2)

    assert numbers.collect(nightly) == ["1", "2"]
    assert numbers.map(lambda n: n // 0).collect(nightly) == ["1", "2"]


def test_a_task_that_fails_leaves_nothing(engine, lines):
    """Neither of its own lines nor of those that other tasks wrote."""
    with pytest.raises(ZeroDivisionError):
        engine.stream([4, 2, 1, 0], partitions=2).map(lambda n: 1 // n).collect(lines)

    assert (lines.result(), list((lines.folder / ".staged").iterdir())) == ([], [])


def test_a_full_disk_is_a_failure_of_the_step(engine, lines):
    """What a writer raises names the call."""

    class Broken(Lines):
        def begin(self, job, epoch=1):
            return LineJob(self.folder, "job", epoch, LineWriter(Path("/dev/null"), "run"))

    with pytest.raises(NotADirectoryError) as raised:
        engine.stream([1], partitions=1).collect(Broken(lines.folder))
    assert "collect(lines('out'))" in "\n".join(raised.value.__notes__)


def _commit(sink, receipts):
    """Commit and give all lines, in a process that has no context."""
    sink.begin("nightly", 3).commit(receipts)
    return sink.result()


def test_another_process_commits(lines, local_context, elsewhere):
    """Twice, from pickled receipts, after the one that wrote is gone."""
    case = SinkCase(lines, lambda: local_context, [], [], lines.result, set)
    receipts = case.written(case.target().begin("nightly", 3), [1, 2])

    assert [elsewhere(_commit, lines, receipts).returned() for _ in range(2)] == [["1", "2"]] * 2


def test_an_explained_plan_shows_it(engine, lines, capsys):
    """Nothing is opened for that."""
    engine.stream([1], partitions=1).explain(into=lines)

    assert "collect(lines('out'))" in capsys.readouterr().out
    assert not lines.folder.exists()


def test_dead_letters_go_into_it(local_context, lines):
    """As into every reducer."""
    local_context.stream(["1", "x"]).map(int).on_error(ValueError, into=lines).to_list()

    assert "'x'" in "".join(lines.result())
