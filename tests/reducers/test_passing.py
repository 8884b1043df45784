"""`sink_from`, `to_logger`, `to_nothing`: what happens where the items are, and keeps nothing for a commit."""

from __future__ import annotations

import logging
import uuid
from pathlib import Path

import pytest

import dstream as ds
from dstream.errors import SinkUnavailableError
from dstream.spi import Sink
from reducers import sink_from, to_logger, to_nothing
from tests.jobs.unbounded.streams import Feed, eventually, pipeline_of


class Noted:
    """Notes in a file of its own what happens to it, in whichever process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.notes: list[str] = []

    def __call__(self) -> Noted:
        return Noted(self.folder)

    def take(self, item: object) -> None:
        self.notes.append(str(1 // item if item == 0 else item))

    def flush(self) -> None:
        self.notes.append("flushed")

    def close(self) -> None:
        self.notes.append("closed")
        (self.folder / f"{self.notes[0]}.txt").write_text(" ".join(self.notes))


def noted(folder):
    """Give what each of them noted."""
    return sorted(path.read_text() for path in folder.glob("*.txt"))


def sink(folder):
    """A sink of them."""
    return sink_from(Noted(folder), Noted.take, Noted.flush, Noted.close)


def test_each_task_makes_one_and_closes_it(engine, tmp_path):
    """It gets the items of its partition in order; a task without items makes none."""
    assert engine.stream([1, 2, 3], partitions=5).filter(lambda n: n != 2).collect(sink(tmp_path)) is None
    on_spark = ["1 flushed closed", "3 flushed closed"]
    assert noted(tmp_path) == (on_spark if engine.name == "spark" else ["1 3 flushed closed"])


def test_a_failure_names_the_item_and_closes(engine, tmp_path):
    """What was received before stays; the exception is that of the function."""
    with pytest.raises(ZeroDivisionError) as raised:
        engine.stream([5, 0, 6], 1).collect(sink(tmp_path))

    assert "on the item 0" in "\n".join(raised.value.__notes__)
    assert "collect(sink_from(" in "\n".join(raised.value.__notes__)
    assert noted(tmp_path) == ["5 closed"]


def test_many_items_are_flushed_in_between(local_context):
    """After every thousand, and after the last one."""
    seen = []
    local_context.stream(range(2500)).collect(sink_from(list, list.append, lambda held: seen.append(len(held))))

    assert seen == [1000, 2000, 2500]


def test_a_failure_of_destroy_hides_no_other(local_context):
    """It is a note of the first one; alone, it is the failure."""
    broken = sink_from(list, lambda held, n: held.append(1 // n), destroy=lambda held: held[9])
    with pytest.raises(ZeroDivisionError) as raised:
        local_context.stream([1, 0]).collect(broken)

    assert "and then lambda failed with IndexError" in "\n".join(raised.value.__notes__)
    with pytest.raises(IndexError):
        local_context.stream([1]).collect(broken)


def test_a_stop_iteration_is_no_end(local_context):
    """What a function raises is a failure, also this."""
    with pytest.raises(RuntimeError, match="raised StopIteration") as raised:
        local_context.stream([1]).collect(sink_from(lambda: iter(()), lambda held, item: next(held)))

    assert "on the item 1" in "\n".join(raised.value.__notes__)


def test_wrong_functions_are_refused_at_the_call():
    """Before anything runs."""

    async def send(client, item):
        """Would not run."""

    with pytest.raises(TypeError, match="receive must be a function, not str"):
        sink_from(list, "append")
    with pytest.raises(TypeError, match="receive must give a result, and an async function"):
        sink_from(list, send)
    with pytest.raises(TypeError, match="flush must be a function"):
        sink_from(list, list.append, 3)
    with pytest.raises(ValueError, match="name must not be empty"):
        sink_from(list, list.append, name="")


def test_labels_say_what_was_called():
    """For messages and plans."""
    sinks = [sink_from(list, list.append), sink_from(list, list.append, name="mail"), to_logger(repr), to_nothing()]

    assert all(isinstance(each, Sink) for each in sinks)
    assert [each.label for each in sinks] == [
        "sink_from(list, list.append)",
        "sink_from('mail')",
        "to_logger(repr)",
        "to_nothing()",
    ]


def test_the_caller_logs_each_item_in_order(engine, caplog):
    """At INFO, under the name of the logger, whatever stands in the texts."""
    with caplog.at_level(logging.INFO):
        engine.stream(["b", "%s", "a"], partitions=2).collect(to_logger(str.upper, logger="ours"))

    assert [(each.name, each.levelname, each.getMessage()) for each in caplog.records] == [
        ("ours", "INFO", "B"),
        ("ours", "INFO", "%S"),
        ("ours", "INFO", "A"),
    ]


def test_a_run_that_fails_logs_nothing(local_context, caplog):
    """A failure of `to_string` names the item, also where nobody would hear."""
    for level in logging.INFO, logging.ERROR:
        with caplog.at_level(level), pytest.raises(ZeroDivisionError) as raised:
            local_context.stream([1, 0]).collect(to_logger(lambda n: str(1 // n)))
        assert "on the item 0" in "\n".join(raised.value.__notes__)

    assert caplog.records == []


def test_what_nobody_hears_is_not_sent(local_context, caplog):
    """The texts would be in the caller's memory for nothing."""
    with caplog.at_level(logging.WARNING):
        job = to_logger().open(local_context).begin(None)

    assert list(job.writer.write(iter([1, 2]))) == []


def test_nothing_runs_everything(engine, tmp_path):
    """Each step for each item, as a step of a failure would show."""
    assert engine.stream([1, 2], 2).collect(to_nothing()) is None
    with pytest.raises(ZeroDivisionError):
        engine.stream([1, 0], 2).map(lambda n: 1 // n).collect(to_nothing())


class Chest:
    """Keeps its items in a file that nobody looks into before it gets its final name."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / f"{uuid.uuid4().hex}.staged"
        self.file = self.path.open("w")

    def take(self, item: object) -> None:
        self.file.write(f"{item}\n")

    def sealed(self) -> str:
        self.file.flush()
        return str(self.path)


def shown_once(paths):
    """Rename files; one that has its name was renamed before."""
    for path in map(Path, paths):
        if path.exists():
            path.rename(path.with_suffix(".txt"))


def chests(folder, commit=shown_once):
    """Return a sink of them."""
    close = lambda chest: chest.file.close()  # noqa: E731
    return sink_from(lambda: Chest(folder), Chest.take, destroy=close, prepare=Chest.sealed, commit=commit)


def test_sink_from_with_prepare_and_commit_shows_all_items_at_the_end(engine, tmp_path):
    """What the tasks have prepared; empty partitions give none, and a run that fails shows nothing."""
    with pytest.raises(ZeroDivisionError):
        engine.stream([1, 2, 0], 3).map(lambda n: 1 // n).collect(chests(tmp_path))
    assert noted(tmp_path) == []
    engine.stream(range(5), 7).collect(chests(tmp_path))

    assert sorted("".join(noted(tmp_path)).split()) == ["0", "1", "2", "3", "4"]


def test_a_job_asks_again_for_a_commit_that_failed(local_context, tmp_path):
    """It failed before and after it had shown the items: each is there once."""
    asked = []

    def commit(paths):
        asked.append(paths)
        if len(asked) == 2:
            raise SinkUnavailableError("the store is away")
        shown_once(paths)
        if len(asked) == 3:
            raise SinkUnavailableError("the store has gone away")

    feed = Feed({"0": ["a"]})
    config = ds.JobConfig(epoch_length=0.02, auto_restart=(9, 0.02))
    job = local_context.new_job(pipeline_of(feed, chests(tmp_path, commit)), name="chests", config=config)
    eventually(lambda: job.epoch == 1)
    feed.give("b", "c")
    eventually(lambda: len(asked) == 4)
    feed.give("d")
    eventually(lambda: "".join(noted(tmp_path)).count("\n") == 4)
    job.cancel()

    assert sorted("".join(noted(tmp_path)).split()) == ["a", "b", "c", "d"]
    assert asked[1] == asked[2] == asked[3]


def test_sink_from_refuses_half_of_a_commit(local_context):
    """And what a record of a job would not give back as it was; a commit without items is none."""
    for half in {"prepare": list}, {"commit": list}:
        with pytest.raises(ValueError, match="prepare and commit belong together"):
            sink_from(list, list.append, **half)
    for prepared in object(), (1, 2), {1: "a"}, float("nan"):
        with pytest.raises(TypeError, match="prepare= must make plain data"):
            local_context.stream([1]).collect(
                sink_from(list, list.append, prepare=lambda _, it=prepared: it, commit=print)
            )
    local_context.stream([]).collect(sink_from(list, list.append, prepare=len, commit=lambda found: 1 // 0))
