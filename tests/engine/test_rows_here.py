"""Shuffles of epochs that go through the driver: its rows are those that Spark would have brought."""

from __future__ import annotations

import errno
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import dstream as ds
from collectors import counting
from dstream import Pipeline
from dstream.engine.physical.vertices import EVERYTHING, ITEMS_AND_BESIDE, OutputPort, Taken
from dstream.engine.runs.rows import ShuffleFiles, by_target, rows_taken
from dstream.engine.spark.run import engine, graphs
from dstream.engine.spark.run.backend import SparkBackend
from dstream.engine.spark.run.segments import chosen_rows
from dstream.engine.spark.run.stage_runner import StageRunner
from dstream.engine.tasks.rows import (
    COUNTS,
    FAILED,
    STORED,
    WATERMARKS,
    Row,
    Storing,
    arrow_schema,
    from_record_batches,
    handed_on,
    whole,
)
from dstream.errors import EngineError
from dstream.jobs.unbounded import epoch_runner as one_epoch
from dstream.testing.unbounded import epochs
from dstream.windows import tumbling
from reducers import to_ilist
from tests.engine.shuffles import SHUFFLES
from tests.engine.test_asking_java import asked

__all__ = ["asked"]

SMALL, LARGE = b"small", b"l" * 1000


def rows_with(*payloads: bytes) -> list[Row]:
    """Return rows of one task."""
    return [Row(number % 2, 7, number, 0, 1, payload) for number, payload in enumerate(payloads)]


def test_what_is_large_of_the_rows_of_a_task_stands_in_a_file(tmp_path: Path) -> None:
    """So many bytes travel as they are; the rows are the same again for those who read them."""
    rows = rows_with(SMALL, LARGE, SMALL, LARGE, b"")
    stored = list(Storing(str(tmp_path), 12).stored(iter(rows)))

    assert [row.channel for row in stored] == [0, STORED, 0, STORED, 0]
    assert [whole(handed_on(row)) for row in stored] == rows
    assert [path.stat().st_size for path in tmp_path.iterdir()] == [2 * len(LARGE)]


def test_few_bytes_need_no_file(tmp_path: Path) -> None:
    """What travels stands nowhere else."""
    assert list(Storing(str(tmp_path), 12).stored(iter(rows_with(SMALL)))) == rows_with(SMALL)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_to_is_named(tmp_path: Path) -> None:
    """As where its disk is full, in the task and before it."""
    (tmp_path / "rows").write_text("no folder")
    with pytest.raises(EngineError, match=r"between two tasks cannot be written into .*rows: .*Not a directory"):
        list(Storing(str(tmp_path / "rows"), 0).stored(iter(rows_with(SMALL))))
    with pytest.raises(EngineError, match=r"between two tasks cannot be written into .*rows: .*File exists"):
        ShuffleFiles().storing(str(tmp_path / "rows"), 1)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no device that is always full")
def test_a_full_disk_is_noticed_before_the_task_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the last bytes do not fit."""
    with open("/dev/full", "wb") as full:
        monkeypatch.setattr(Storing, "_opened", lambda storing: full)
        with pytest.raises(EngineError, match=r"cannot be written into .*: .*No space left"):
            list(Storing(str(tmp_path), 0).stored(iter(rows_with(SMALL))))


def test_a_file_that_is_cut_off_or_gone_is_an_error(tmp_path: Path) -> None:
    """As by a cleaner of temporary folders."""
    (stored,) = map(handed_on, Storing(str(tmp_path), 0).stored(iter(rows_with(LARGE))))
    (file,) = tmp_path.iterdir()
    file.write_bytes(LARGE[:-1])
    with pytest.raises(EngineError, match="are cut off, in"):
        whole(stored)
    file.unlink()
    with pytest.raises(EngineError, match=r"cannot be read: .*No such file"):
        whole(stored)


def test_files_of_a_run_go_with_it(tmp_path: Path) -> None:
    """Its tasks share a folder, into which nobody else may look, and what may travel with the rows."""
    files = ShuffleFiles()
    first, second = files.storing(str(tmp_path / "made"), 4096), files.storing(str(tmp_path / "made"), 2048)
    list(first.stored(iter(rows_with(b"x" * 5000))))
    assert first.folder == second.folder
    assert first.most == 2 * second.most
    assert os.stat(first.folder).st_mode & 0o777 == 0o700
    files.remove()

    assert list((tmp_path / "made").iterdir()) == []


_KILLED = """
import os, signal, sys
from dstream.engine.runs.rows import ShuffleFiles
storing = ShuffleFiles().storing(sys.argv[1], 0)
print(storing.folder, flush=True)
open(os.path.join(storing.folder, "file"), "w").close()
os.kill(os.getpid(), signal.SIGKILL) if sys.argv[2] == "killed" else sys.stdin.read()
"""


def test_files_of_a_killed_process_go_when_another_one_stores_rows(tmp_path: Path) -> None:
    """Folders of a running process remain, and young ones, which may not have their lock yet."""
    python = [sys.executable, "-c", _KILLED, str(tmp_path)]
    folders = []
    with subprocess.Popen([*python, "runs"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        folders = [running.stdout.readline().strip()]
        for _ in range(2):
            killed = subprocess.run([*python, "killed"], capture_output=True, text=True, check=False)
            folders.append(killed.stdout.strip())
        for each in folders[:2]:
            os.utime(each, (0, 0))
        files = ShuffleFiles()
        own = files.storing(str(tmp_path), 0).folder
        assert sorted(map(str, tmp_path.iterdir())) == sorted([folders[0], folders[2], own])
        running.stdin.close()
    files.remove()
    assert sorted(map(str, tmp_path.iterdir())) == sorted([folders[0], folders[2]])


@pytest.mark.parametrize(
    ("name", "mode"), [("dstream.notebook", 0o700), (".dstream-rows-old", 0o700), (".dstream-notebook", 0o755)]
)
def test_folders_of_users_beside_those_of_rows_stay(tmp_path: Path, name: str, mode: int) -> None:
    """Only names and modes that this program makes are removed."""
    theirs = tmp_path / name
    theirs.mkdir()
    theirs.chmod(mode)
    os.utime(theirs, (0, 0))
    files = ShuffleFiles()
    files.storing(str(tmp_path), 0)
    files.remove()
    assert list(tmp_path.iterdir()) == [theirs]


def test_a_folder_that_cannot_have_a_lock_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process would remove it while the run goes on."""

    def refuse(path: str, flags: int) -> int:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), path)

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(EngineError, match=r"between two tasks cannot be written into .*: .*Too many open files"):
        ShuffleFiles().storing(str(tmp_path), 0)
    monkeypatch.undo()
    assert list(tmp_path.iterdir()) == []


def test_a_task_that_goes_on_behind_the_end_of_its_run_leaves_no_file(tmp_path: Path) -> None:
    """As where the run was cancelled, or another attempt of the task was faster."""
    files = ShuffleFiles()
    storing = files.storing(str(tmp_path), 1024)
    writing = storing.stored(iter(rows_with(LARGE, b"x" * 5000)))
    next(writing)
    begun = storing.stored(iter(rows_with(b"x" * 5000)))
    next(begun)
    files.remove()
    assert list(tmp_path.iterdir()) == []
    list(begun)
    with pytest.raises(EngineError, match="No such file or directory"):
        list(writing)

    assert list(tmp_path.iterdir()) == []


# ------------------------------------------------------------------------------------------------------------ on Spark


def some_rows() -> list[Row]:
    """Return rows of all channels, in no order."""
    by_chance = random.Random(5)
    channels = [COUNTS, FAILED, WATERMARKS, -1, 0, 0, 0, 0, 3, 4]
    return [
        Row(by_chance.randrange(7), by_chance.randrange(4), number, by_chance.choice(channels), 1, b"%d" % number)
        for number in by_chance.sample(range(-50, 50), 100)
    ]


@pytest.mark.parametrize(
    ("port", "behind", "as_items"),
    [
        (EVERYTHING, 0, False),
        (EVERYTHING.with_counts(), 3, False),
        (EVERYTHING.without_beside(), 0, False),
        (ITEMS_AND_BESIDE.of_sources(1, 3), -2, False),
        (EVERYTHING.to_targets(2, 5).with_counts(), 0, True),
    ],
)
def test_rows_come_to_their_targets_as_spark_brings_them(
    spark_context: ds.Context, port: OutputPort, behind: int, as_items: bool
) -> None:
    """Those of a port, in the order in which a task reads them."""
    rows, targets = some_rows(), 3
    backend: SparkBackend = spark_context.running_engine()._backend  # type: ignore[attr-defined]
    table = pa.Table.from_pylist([row._asdict() for row in rows], arrow_schema())
    frame = chosen_rows(backend.port.session.createDataFrame(table), port)
    if as_items:
        channel = f"case when channel = {COUNTS} then channel else 0 end as channel"
        frame = frame.selectExpr("target", "source", "sequence", channel, "size", "payload")
    moved = backend.shuffled(backend.beside(frame, behind) if behind else frame, targets)
    by_spark = [row._replace(payload=bytes(row.payload)) for row in from_record_batches(moved.toArrow().to_batches())]

    taken = Taken(None, port, behind, as_items)  # type: ignore[arg-type]  # Its rows are here.
    placed = by_target(rows_taken(rows, taken, port), targets)
    # A port of everything asks Spark for no channel, and whoever reads rows leaves out those that count.
    is_counted = COUNTS in port.channels
    assert [row for each in placed for row in each] == [row for row in by_spark if is_counted or row.channel != COUNTS]


def test_java_removes_what_a_driver_leaves_that_is_killed(spark_context: ds.Context) -> None:
    """It ends with its driver, and has the folder of such files among those that it removes then."""
    port: Any = spark_context.running_engine()._backend.port  # type: ignore[attr-defined]
    java, folder = port.session._jvm, port.local_folder()

    assert java.org.apache.spark.util.ShutdownHookManager.hasShutdownDeleteDir(java.java.io.File(folder))


def seen(context: ds.Context, shuffle: Callable[[ds.Context], Any]) -> Any:
    """Return what an operation gives, or the map that it writes."""
    result = shuffle(context)
    if result is None or hasattr(result, "entry_set"):
        result = context.get_map("counted-rows").copy()
        context.get_map("counted-rows").clear()
    return result


@pytest.fixture(params=["with the next job", "in files"])
def travelling(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How rows go on."""
    if request.param == "in files":
        monkeypatch.setattr(graphs, "_TRAVELLING", 0)
    return str(request.param)


@pytest.fixture
def folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """The folder in which runs have those of their rows; none is left there."""
    monkeypatch.setattr(
        StageRunner, "shuffle_folder", lambda runner: str(tmp_path) if runner.options.counts_rows else None
    )
    yield tmp_path
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("shuffle", [each for name, each in SHUFFLES.items() if "graph" not in name])
def test_a_shuffle_gives_the_same_through_this_process(
    spark_context: ds.Context,
    monkeypatch: pytest.MonkeyPatch,
    shuffle: Callable[[ds.Context], Any],
    folders: Path,
) -> None:
    """Whatever it is for, also where none of its rows travels with the next job."""
    by_spark = seen(spark_context, shuffle)
    monkeypatch.setattr(graphs, "_TRAVELLING", 0)
    monkeypatch.setattr(engine, "is_of_epoch", lambda end: True)

    assert seen(spark_context, shuffle) == by_spark


def windowed(context: ds.Context) -> tuple[Any, Any]:
    """Return a pipeline of windows by key, whose epochs are cut by hand, and its source."""
    by_hand, pipeline = epochs(context), Pipeline()
    numbers = by_hand.source("numbers", partitions=2)
    timed = pipeline.read_from(numbers).add_timestamps(lambda number: number)
    counts = timed.grouping_key(lambda number: number % 3).window(tumbling(10)).aggregate(counting())
    counts.map(lambda each: (each.start, each.key, each.result)).write_to(to_ilist("out"))
    return by_hand.of(pipeline), numbers


@pytest.fixture
def large_epochs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Divide every epoch among several tasks, however small it is."""
    monkeypatch.setattr(one_epoch, "_QUICK", 0.0)


@pytest.mark.usefixtures("travelling", "folders", "large_epochs")
def test_windows_of_epochs_need_no_plan(spark_context: ds.Context, asked: list[str]) -> None:
    """Two jobs that Spark has planned before, however often an epoch comes; state and watermarks go along."""
    by_hand, numbers = windowed(spark_context)
    first = by_hand.cut({numbers: {0: [1, 2, 3], 1: [4, 12]}})
    asked.clear()
    second = by_hand.cut({numbers: {0: [11, 5], 1: [13, 21]}})

    assert first == {"write_to": []}
    assert sorted(second["write_to"]) == [(0, 0, 1), (0, 1, 2), (0, 2, 2)]
    assert len(asked) <= 2 * 24


def test_a_small_epoch_is_one_job(spark_context: ds.Context, asked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """As the one before it was, it is expected to be; what it gives is the same, also where that turns out wrong."""
    monkeypatch.setattr(one_epoch, "_QUICK", 60.0)
    by_hand, numbers = windowed(spark_context)
    given = [{0: [1, 2, 3], 1: [4, 12]}, {0: [11, 5], 1: [13, 21]}, {0: range(20, 4000), 1: range(22, 4000)}]
    questions, results = [], []
    for each in given:
        asked.clear()
        results.append(sorted(by_hand.cut({numbers: each})["write_to"]))
        questions.append(len(asked))

    assert results[:2] == [[], [(0, 0, 1), (0, 1, 2), (0, 2, 2)]]
    assert len(results[2]) == 3 * 398
    assert max(questions[1:]) <= 24 < questions[0]


@pytest.mark.parametrize(("few", "quick"), [(1, 60.0), (1000, 0.0)])
def test_many_items_and_slow_functions_are_for_several_tasks(
    spark_context: ds.Context, monkeypatch: pytest.MonkeyPatch, few: int, quick: float
) -> None:
    """An epoch that had more items, or took longer, is followed by one that is divided."""
    monkeypatch.setattr(one_epoch, "_FEW", few)
    monkeypatch.setattr(one_epoch, "_QUICK", quick)
    brought = []
    monkeypatch.setattr(graphs, "by_target", lambda rows, targets: brought.append(targets) or by_target(rows, targets))
    by_hand, numbers = windowed(spark_context)
    for _ in range(2):
        by_hand.cut({numbers: {0: [1, 2], 1: [3]}})

    assert brought == [2, 2]


@pytest.mark.parametrize(("most", "comes"), [(4, [2]), (3, [])])
def test_shuffles_between_many_tasks_are_left_to_spark(
    spark_context: ds.Context, monkeypatch: pytest.MonkeyPatch, most: int, comes: list[int]
) -> None:
    """Each task that reads would get the rows of all."""
    monkeypatch.setattr(graphs, "_MOST_PAIRS", most)
    brought = []
    monkeypatch.setattr(graphs, "by_target", lambda rows, targets: brought.append(targets) or by_target(rows, targets))
    by_hand, numbers = windowed(spark_context)
    by_hand.cut({numbers: {0: [1, 2], 1: [3]}})

    assert brought == comes


@pytest.mark.usefixtures("large_epochs")
def test_a_failure_before_a_shuffle_is_told_as_it_was(spark_context: ds.Context, folders: Path) -> None:
    """With its step and its item; the next epoch runs."""
    by_hand, pipeline = epochs(spark_context), Pipeline()
    numbers = by_hand.source("numbers", partitions=2)
    pipeline.read_from(numbers).map(lambda number: 10 // number).rebalance().write_to(to_ilist("out"))
    by_hand.of(pipeline)
    with pytest.raises(ZeroDivisionError) as failed:
        by_hand.cut({numbers: {0: [5, 0], 1: [2]}})

    assert ds.failure(failed.value).item == 0
    assert sorted(by_hand.cut({numbers: {0: [5], 1: [2]}})["write_to"]) == [2, 5]
