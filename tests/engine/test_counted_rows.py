"""Rows of an epoch are counted where they are sent, and where they arrive."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from math import inf
from typing import Any

import pytest

import dstream as ds
from dstream import Pipeline
from dstream.engine.physical.vertices import EVERYTHING
from dstream.engine.spark.run import engine, graphs
from dstream.engine.spark.run.backend import SparkBackend
from dstream.engine.spark.run.stage_runner import StageRunner
from dstream.engine.tasks.readers import read_items
from dstream.engine.tasks.routing import RouteInTurn
from dstream.engine.tasks.rows import COUNTS, ITEMS, LAST, SAMPLE, ExpectedRows, Row, counting_sent
from dstream.engine.tasks.runtime import StageTask
from dstream.errors import EngineError
from dstream.failures.transport import WorkerFailure, from_worker
from dstream.operators.rows.batches import dumps_items
from dstream.testing.unbounded import epochs
from reducers import to_ilist, to_imap
from sources import Items
from tests.engine.epochs import step
from tests.engine.shuffles import SHUFFLES, spread
from tests.jobs.unbounded.streams import Feed, eventually, pipeline_of

TARGETS = 2
STEP = step(".rebalance()", 5)
SINK = RouteInTurn(TARGETS)


def sent(tasks: int, has_beside: bool = True) -> ExpectedRows:
    """Return what some tasks send."""
    return ExpectedRows(tasks, EVERYTHING.channels, has_beside, STEP)


def rows_of(task: int, items: list[Any], *others: Row) -> Iterable[Row]:
    """Return what a task sends, and what it sends beside that."""
    rows = iter([*SINK(iter(items), StageTask(task, 2**60)), *others])
    return counting_sent(rows, task, SINK)


@pytest.fixture
def rows() -> list[Row]:
    """What comes to the first target of two tasks, of which the second has items for the other target only."""
    tasks = enumerate([["a", "b", "c"], []])
    return [row for number, items in tasks for row in rows_of(number, items) if row.target == 0]


def read(rows: Iterable[Row], sent: ExpectedRows) -> list[Any]:
    """Return the items that a task reads."""
    return list(read_items(StageTask(0, 2**60).reading(iter(rows), sent)))


def test_what_was_sent_arrives(rows: list[Row]) -> None:
    """Without the rows that count; also of a task that sent nothing, and of no task."""
    assert read(rows, sent(2)) == ["a", "c"]
    assert read((), sent(0)) == []


@pytest.mark.parametrize(
    ("lost", "said"),
    [
        (lambda row: row.source == 0 and row.channel == ITEMS, "task 0 sent 1, and 0 arrived"),
        (lambda row: row.source == 1, "1 of 2 tasks were heard of"),
        (lambda row: row.channel == COUNTS, "0 of 2 tasks were heard of"),
        (lambda row: True, "0 of 2 tasks were heard of"),
    ],
)
def test_lost_rows_are_noticed(rows: list[Row], lost: Callable[[Row], bool], said: str) -> None:
    """Items, the last row of a task, or all that a target should have."""
    left = (row for row in rows if not lost(row))
    with pytest.raises(EngineError, match=rf"the shuffle before step 5 of 9: .rebalance\(\) lost rows: {said}"):
        list(sent(2).arriving(left))


def test_rows_that_come_twice_are_noticed(rows: list[Row]) -> None:
    """A number that is too large is as wrong, and so is a row of a task that sent none."""
    with pytest.raises(EngineError, match="task 0 sent 1, and 2 arrived"):
        list(sent(2).arriving(iter([*rows, rows[0]])))
    with pytest.raises(EngineError, match="task 1 sent 0, and 1 arrived"):
        list(sent(2).arriving(iter([*rows, rows[0]._replace(source=1)])))


def test_a_loss_that_nobody_reads_up_to_is_noticed(rows: list[Row]) -> None:
    """A task that wants the first item alone, or a function that catches what it meets, does not hide it."""
    task = StageTask(0, 2**60)
    next(task.reading(iter(rows), sent(3)))
    for _ in range(2):
        with pytest.raises(WorkerFailure) as failed:
            task.read_rest()

    assert "2 of 3 tasks were heard of" in str(from_worker(str(failed.value), task.secret))


def test_what_is_left_out_before_it_moves_is_not_lost() -> None:
    """A channel that nobody wants, and what is beside the items, where that was delivered before."""
    others = [Row(0, 0, 0, channel, 1, dumps_items(["b"])) for channel in (SAMPLE, 3)]
    came = [row for row in rows_of(0, ["a"], *others) if row.target == 0]
    wanted = [row for row in came if row.channel in (ITEMS, COUNTS)]
    without_sample = ExpectedRows(1, EVERYTHING.channels - {SAMPLE}, False, STEP)

    assert read(wanted, without_sample) == read(came, sent(1)) == ["a"]
    with pytest.raises(EngineError, match="task 0 sent 2, and 1 arrived"):
        list(sent(1, has_beside=False).arriving(iter(wanted)))


def test_rows_of_a_bucket_are_counted_where_it_is_written() -> None:
    """Several buckets go to one target."""
    given = [Row(bucket, 0, bucket, ITEMS, 1, dumps_items([bucket])) for bucket in range(5)]
    rows = [*counting_sent(iter(given), 0, SINK)]

    for target in range(TARGETS):
        came = [row for row in rows if row.target % TARGETS == target]
        assert read(came, sent(1)) == list(range(target, 5, TARGETS))
        assert (came[-1].sequence, came[-1].channel) == (LAST, COUNTS)


# ------------------------------------------------------------------------------------------------------------ on Spark


def losing(monkeypatch: pytest.MonkeyPatch, times: float = inf, **lost: int) -> None:
    """Lose rows in the next *n* shuffles: those of Spark, and those through this process."""
    shuffled, by_target, left = SparkBackend.shuffled, graphs.by_target, times

    def loses() -> bool:
        nonlocal left
        left -= 1
        return left >= 0

    def lossy(backend: SparkBackend, frame: Any, targets: int) -> Any:
        condition = " and ".join(f"{name} = {value}" for name, value in lost.items())
        return shuffled(backend, frame.where(f"not ({condition})") if loses() else frame, targets)

    def lossy_here(rows: Iterable[Row], targets: int) -> Any:
        found = list(rows)
        kept = [row for row in found if any(getattr(row, name) != value for name, value in lost.items())]
        return by_target(kept if loses() else found, targets)

    monkeypatch.setattr(SparkBackend, "shuffled", lossy)
    monkeypatch.setattr(graphs, "by_target", lossy_here)


@pytest.fixture(params=["here", "Spark"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Whether shuffles of epochs go through this process where they can, or Spark moves the rows of all."""
    if request.param == "Spark":
        monkeypatch.setattr(StageRunner, "shuffle_folder", lambda runner: None)
    return str(request.param)


@pytest.mark.parametrize("shuffle", SHUFFLES.values(), ids=SHUFFLES)
def test_a_shuffle_of_an_epoch_that_loses_rows_fails(
    spark_context: ds.Context, monkeypatch: pytest.MonkeyPatch, shuffle: Callable[[ds.Context], Any], way: str
) -> None:
    """Whatever the rows are for; also on the bounded sides of a pipeline without an end, whose plans an epoch runs."""
    monkeypatch.setattr(engine, "is_of_epoch", lambda end: True)
    shuffle(spark_context)
    losing(monkeypatch, source=1, channel=ITEMS)
    with pytest.raises(EngineError, match=r"lost rows: task 1 sent \d+, and \d+ arrived"):
        shuffle(spark_context)


def test_a_target_to_which_nothing_comes_notices_it(
    spark_context: ds.Context, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """Spark runs tasks without rows, too."""
    monkeypatch.setattr(engine, "is_of_epoch", lambda end: True)
    losing(monkeypatch, target=1)
    with pytest.raises(EngineError, match="0 of 3 tasks were heard of"):
        spread(spark_context, 2, False)


def test_a_run_that_ends_counts_nothing(spark_context: ds.Context, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its shuffles carry the rows of items alone."""
    losing(monkeypatch, channel=COUNTS)
    assert sorted(spread(spark_context, 3, False)) == list(range(12))


def test_an_epoch_without_state_counts_what_goes_to_a_map(
    spark_context: ds.Context, monkeypatch: pytest.MonkeyPatch, tmp_path: Any, way: str
) -> None:
    """The epoch whose rows were lost leaves nothing; the job starts again, and all is there once."""
    feed, name = Feed({"0": list(range(6)), "1": list(range(6, 12))}), tmp_path.name
    losing(monkeypatch, times=1, source=1, channel=ITEMS)
    pipeline, config = pipeline_of(feed, to_imap(name, str, int)), ds.JobConfig(auto_restart=(1, 0.01))
    job = spark_context.new_job(pipeline, config=config)
    eventually(lambda: job.epoch == 1)
    job.cancel()

    assert spark_context.get_map(name).copy() == {str(n): n for n in range(12)}
    assert job.metrics().runs == 2


def test_an_epoch_counts_what_a_bounded_side_brings(
    spark_context: ds.Context, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """The right side of a hash join, whose equal items met before."""
    by_hand, pipeline = epochs(spark_context), Pipeline()
    letters = by_hand.source("letters", partitions=2)
    names = pipeline.read_from(Items("abab", 2)).distinct()
    joined = pipeline.read_from(letters).inner_hash_join(names, (str, str), operator.add)
    joined.write_to(to_ilist("out"))
    assert by_hand.of(pipeline).cut({letters: {0: ["a"], 1: ["b"]}}) == {"write_to": ["aa", "bb"]}
    losing(monkeypatch, source=1, channel=ITEMS)
    by_hand.of(pipeline)
    with pytest.raises(EngineError, match=r"the shuffle before .*distinct.* lost rows: task 1 sent \d, and \d arrived"):
        by_hand.cut({letters: {0: ["a"], 1: ["b"]}})
