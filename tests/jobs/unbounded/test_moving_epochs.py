"""Jobs whose epochs move between this process and an engine in the place of Spark, which has shards of its own."""

from __future__ import annotations

import logging
import os
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

import dstream as ds
from collectors import counting
from dstream.base.memory import Bound
from dstream.core import AbstractProcessor
from dstream.engine.inprocess import InProcessEngine
from dstream.engine.inprocess import engine as engine_here
from dstream.errors import SetupError, UnstableKeyError
from dstream.jobs.unbounded.epoch_runner import EpochRunner
from dstream.jobs.unbounded.placement import EpochLoad, EpochPlacement
from dstream.jobs.unbounded.ranges import no_items
from dstream.operators.rows.caches import Caches
from dstream.plan.operations.ends import Several, Write
from dstream.plan.operations.streams import Read
from dstream.testing.unbounded import epochs
from dstream.windows import tumbling
from reducers import to_ilist
from tests.jobs.unbounded.moving_epochs import ElsewhereEngine, with_two_engines
from tests.jobs.unbounded.streams import Feed, eventually, pipeline_of

EVENTS = 100_000


@pytest.fixture
def two(connect: Callable[..., ds.Context]) -> ds.Context:
    """A context with two engines, of which the one in the place of Spark runs."""
    context = with_two_engines(connect(), ElsewhereEngine)
    engine: Any = context.running_engine()
    eventually(lambda: engine.spark_status(start=True) == "running")
    return context


@pytest.fixture
def engines(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The engine of each epoch."""
    found: list[str] = []
    run = EpochRunner.run

    def noted(runner: EpochRunner, *args: Any) -> Any:
        found.append(args[-1])
        return run(runner, *args)

    monkeypatch.setattr(EpochRunner, "run", noted)
    return found


@pytest.fixture
def high(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the load of every epoch to a high one that lasts."""
    after = EpochPlacement.after

    def high_after(placement: EpochPlacement, load: EpochLoad) -> None:
        after(placement, load)
        placement._load = placement._arriving = 1.0

    monkeypatch.setattr(EpochPlacement, "after", high_after)


def weighed(number: int) -> int:
    """Return the number, after ten or twenty microseconds of work: less, and the burst is done here sooner."""
    return number + sum(range(1_500)) * 0


def test_a_burst_moves_to_spark_and_every_window_is_right(two: ds.Context, engines: list[str]) -> None:
    """Three epochs here at most; results and late items are those of one engine."""
    feed = Feed({"0": [], "1": []})
    stage = ds.Pipeline()
    events = stage.read_from(feed).map(weighed).add_timestamps(int, 0)
    windows = events.grouping_key(lambda number: number % 10).window(tumbling(1_000)).aggregate(counting())
    windows.map(lambda each: (each.start, each.key, each.result)).write_to(to_ilist("windows"))
    job = two.new_job(stage)
    for number in range(20):
        feed.give(number, to=str(number % 2))
        eventually(lambda number=number: job.epoch > number or job.status.has_ended)
    assert "spark" not in engines
    for name in ("0", "1"):
        feed.give(*range(20 + int(name), EVENTS, 2), to=name)
    calm = len(engines) + 1  # The next one may have taken its range before the burst was there.
    eventually(lambda: "spark" in engines or job.status.has_ended)
    feed.end()
    job.join(120)

    assert [*engines[calm:], "spark"].index("spark") <= 3
    assert "spark" in engines
    expected = Counter((number // 1_000 * 1_000, number % 10) for number in range(EVENTS))
    assert Counter(two.get_list("windows").copy()) == Counter((*place, count) for place, count in expected.items())
    assert job.metrics().epochs_by_engine == Counter(engines)


def run_numbers(context: ds.Context, *numbers: int, through: Callable[[Any], Any] = lambda stage: stage) -> ds.Job:
    """Run a job over some numbers, one in each epoch, to its end."""
    feed = Feed()
    job = context.new_job(pipeline_of(feed, to_ilist("out"), through=through))
    for done, number in enumerate(numbers, 1):
        feed.give(number)
        eventually(lambda done=done: job.epoch >= done or job.status.has_ended)
    feed.end()
    job.join(60)
    return job


def running_counts(stage: Any) -> Any:
    """Return how often each number came so far."""
    return stage.grouping_key(int).rolling_aggregate(counting()).map(tuple)


def test_a_state_goes_with_the_epochs(two: ds.Context, high: None, engines: list[str]) -> None:
    """The first epochs run here; what they cost is not known before the second one."""
    run_numbers(two, 1, 1, 2, 1, through=running_counts)

    assert two.get_list("out").copy() == [(1, 1), (1, 2), (2, 1), (1, 3)]
    assert (engines[:2], set(engines[2:])) == (["inprocess"] * 2, {"spark"})


def test_a_calm_job_does_not_ask_for_spark(
    two: ds.Context, engines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Java, or a server, would be asked as often as sources are."""
    asked: list[bool] = []
    monkeypatch.setattr(two.running_engine(), "is_lost", lambda: asked.append(True))
    run_numbers(two, 1, 1, 2, through=running_counts)

    assert (set(engines), asked) == ({"inprocess"}, [])


def test_epochs_move_to_the_spark_that_another_job_has_started_again(
    connect: Callable[..., ds.Context], high: None, engines: list[str]
) -> None:
    """The context has another engine then; the one before starts no Spark of its own."""
    context = with_two_engines(connect(), ElsewhereEngine)
    before: Any = context.running_engine()
    feed = Feed()
    job = context.new_job(pipeline_of(feed, to_ilist("out")))
    eventually(lambda: job.status is ds.JobStatus.RUNNING)
    after: Any = with_two_engines(context, ElsewhereEngine).running_engine()
    before.close()
    for number in range(4):
        feed.give(number)
        eventually(lambda number=number: job.epoch > number or job.status.has_ended)
    feed.end()
    job.join(60)

    assert (engines[-1], context.get_list("out").copy()) == ("spark", [0, 1, 2, 3])
    assert (before.spark_status(start=False), after.spark_status(start=False)) == ("stopped", "running")


def test_a_state_in_memory_stays(
    connect: Callable[..., ds.Context], high: None, engines: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    """No other process reaches it; Spark does not start for such a job, and the reason is logged once."""
    context = with_two_engines(connect(storage="memory:"), ElsewhereEngine)
    with caplog.at_level(logging.INFO, "dstream.jobs"):
        run_numbers(context, 1, 1, 2, through=running_counts)

    assert (set(engines), context.get_list("out").copy()) == ({"inprocess"}, [(1, 1), (1, 2), (2, 1)])
    engine: Any = context.running_engine()
    assert engine.spark_status(start=False) == "stopped"
    assert [each.getMessage() for each in caplog.records].count(
        next(each.getMessage() for each in caplog.records if "stay in this process" in each.getMessage())
    ) == 1


def test_a_backlog_that_is_soon_worked_off_starts_no_spark(
    connect: Callable[..., ds.Context], engines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would run when the backlog is gone; a Spark that runs would take it."""
    context = with_two_engines(connect(), ElsewhereEngine)
    loads: list[float] = []
    after = EpochPlacement.after

    def noted(placement: EpochPlacement, load: EpochLoad) -> None:
        after(placement, load)
        loads.append(placement._load)

    monkeypatch.setattr(EpochPlacement, "after", noted)
    feed = Feed({"0": range(50_000)})
    job = context.new_job(pipeline_of(feed, to_ilist("out"), through=lambda stage: stage.map(weighed).filter(bool)))
    feed.end()
    job.join(60)
    engine: Any = context.running_engine()

    assert (set(engines), engine.spark_status(start=False)) == ({"inprocess"}, "stopped")
    assert len(context.get_list("out")) == 49_999


class Remembering(AbstractProcessor):
    """Counts, and does not save."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def try_process(self, ordinal: int, item: Any) -> bool:
        """Emit how many items came."""
        if self.try_emit(self.count + 1):
            self.count += 1
            return True
        return False


def test_processors_that_do_not_save_stay(two: ds.Context, high: None, engines: list[str]) -> None:
    """A move would lose the state that they keep in memory."""
    run_numbers(two, 5, 5, 5, through=lambda stage: stage.custom_transform("counts", Remembering).map(int))

    assert set(engines) == {"inprocess"}
    assert sum(two.get_list("out")) >= 3


def test_a_job_without_spark_goes_on_here(
    connect: Callable[..., ds.Context], high: None, engines: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    """It says so once."""

    def start() -> Any:
        raise SetupError("there is no Java")

    context = with_two_engines(connect(), start)
    with caplog.at_level(logging.WARNING, "dstream.jobs"):
        run_numbers(context, *range(10))

    assert (set(engines), context.get_list("out").copy()) == ({"inprocess"}, list(range(10)))
    (said,) = [each.getMessage() for each in caplog.records if "no Java" in each.getMessage()]
    assert said.endswith("its epochs stay in this process: there is no Java")


class WithoutFiles(ElsewhereEngine):
    """An engine whose workers do not see a file, after so many runs."""

    runs_before: int = 0

    def _run(self, *args: Any) -> Any:
        if self.runs >= self.runs_before:
            raise FileNotFoundError("the state of the job")
        return super()._run(*args)


class WithoutFilesLater(WithoutFiles):
    """One whose workers see them at first."""

    runs_before = 1


def test_a_job_that_only_fails_on_spark_goes_on_here(
    connect: Callable[..., ds.Context], high: None, engines: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    """The epoch that failed there runs again here; the reason is logged."""
    context = with_two_engines(connect(), WithoutFiles)
    with caplog.at_level(logging.WARNING, "dstream.jobs"):
        run_numbers(context, 1, 1, 2, 1, through=running_counts)

    assert context.get_list("out").copy() == [(1, 1), (1, 2), (2, 1), (1, 3)]
    assert (engines.count("spark"), engines[-1]) == (1, "inprocess")
    (said,) = [each.getMessage() for each in caplog.records if "the first one on Spark failed" in each.getMessage()]
    assert said.endswith("the state of the job")


def test_a_job_that_has_run_on_spark_fails_there(
    connect: Callable[..., ds.Context], high: None, engines: list[str]
) -> None:
    """Its failure is no obstacle to moving."""
    with pytest.raises(FileNotFoundError):
        run_numbers(with_two_engines(connect(), WithoutFilesLater), *range(8))

    assert engines[-2:] == ["spark", "spark"]


def test_a_function_that_fails_on_spark_is_not_called_again_here(
    two: ds.Context, high: None, engines: list[str]
) -> None:
    """It would fail here, too."""

    def failing(number: int) -> int:
        if number == 2:
            raise ValueError("two")
        return number

    with pytest.raises(ValueError, match="two"):
        run_numbers(two, *range(8), through=lambda stage: stage.map(failing))

    assert engines == ["inprocess", "inprocess", "spark"]


class OwnKey:
    """A key with a hash of its own, which Python seeds anew in each process."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OwnKey) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)


class SeededEngine(ElsewhereEngine):
    """An engine whose workers have a seed for the hashes of texts."""

    def _run(self, *args: Any) -> Any:
        os.environ["PYTHONHASHSEED"] = "0"
        try:
            return super()._run(*args)
        finally:
            del os.environ["PYTHONHASHSEED"]


@pytest.fixture
def without_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run this process without a seed, as most drivers."""
    monkeypatch.delenv("PYTHONHASHSEED", raising=False)
    monkeypatch.setattr("dstream.keys.hashing._seeds", set())


def by_own_key(stage: Any) -> Any:
    """Return the counts of keys."""
    counts = stage.grouping_key(lambda number: OwnKey(str(number))).rolling_aggregate(counting())
    return counts.map(lambda each: (each.key.name, each.value))


@pytest.mark.skipif(not sys.flags.hash_randomization, reason="this Python has no seed of its own")
def test_keys_that_this_process_cannot_place_go_to_spark(
    connect: Callable[..., ds.Context], without_seed: None, engines: list[str]
) -> None:
    """Its workers have one seed; the epoch that failed here runs again there, and all behind it."""
    context = with_two_engines(connect(), SeededEngine)
    run_numbers(context, 1, 1, through=by_own_key)

    assert context.get_list("out").copy() == [("1", 1), ("1", 2)]
    assert (engines[0], set(engines[1:])) == ("inprocess", {"spark"})


@pytest.mark.skipif(not sys.flags.hash_randomization, reason="this Python has no seed of its own")
def test_keys_of_one_seed_stay(
    two: ds.Context, high: None, monkeypatch: pytest.MonkeyPatch, engines: list[str]
) -> None:
    """Workers have another one."""
    monkeypatch.setenv("PYTHONHASHSEED", "7")
    monkeypatch.setattr("dstream.keys.hashing._seeds", set())
    run_numbers(two, 1, 1, through=by_own_key)

    assert (set(engines), two.get_list("out").copy()) == ({"inprocess"}, [("1", 1), ("1", 2)])


def test_such_keys_fail_where_there_is_no_other_engine(connect: Callable[..., ds.Context], without_seed: None) -> None:
    """As before."""
    with pytest.raises(UnstableKeyError):
        run_numbers(connect(), 1, through=by_own_key)


@pytest.mark.skipif(not sys.flags.hash_randomization, reason="this Python has no seed of its own")
def test_such_keys_fail_by_themselves_where_spark_does_not_start(
    connect: Callable[..., ds.Context], without_seed: None
) -> None:
    """The user asked for no Spark, and learns what is wrong with the keys."""

    def start() -> Any:
        raise SetupError("there is no Java")

    with pytest.raises(UnstableKeyError, match="PYTHONHASHSEED"):
        run_numbers(with_two_engines(connect(), start), 1, through=by_own_key)


def test_epochs_of_a_cluster_stay_there(connect: Callable[..., ds.Context], engines: list[str]) -> None:
    """Unless the job asks for small ones here."""
    context = with_two_engines(connect(), ElsewhereEngine)
    engine: Any = context.running_engine()
    engine.keeps_epochs_on_spark = True
    for name, config, expected in (
        ("a", ds.JobConfig(), "spark"),
        ("b", ds.JobConfig(small_epochs="here"), "inprocess"),
    ):
        feed = Feed({"0": [1, 2]})
        feed.end()
        context.new_job(pipeline_of(feed, to_ilist(name)), config=config).join(60)

        assert (set(engines), context.get_list(name).copy()) == ({expected}, [1, 2])
        engines.clear()


@pytest.mark.parametrize("through", [lambda stage: stage.map(str), running_counts])
def test_explain_says_that_epochs_move(through: Callable[[Any], Any]) -> None:
    """With steps that keep a state, and without."""
    with ds.connect(engine="auto") as context:
        ds.set_default_context(context)
        try:
            pipeline = ds.Pipeline()
            through(pipeline.read_from(Feed())).write_to(to_ilist("out"))

            assert "each epoch runs in this process while that keeps up" in str(pipeline.explain("html"))
        finally:
            ds.set_default_context(None)


def test_a_side_that_spark_has_cached_is_fetched_once() -> None:
    """Epochs that return read it until it is due again."""

    class Rows(list[int]):
        __hash__ = object.__hash__
        reads = 0

        def __iter__(self) -> Any:
            self.reads += 1
            return super().__iter__()

    caches, rows = Caches(), Rows([1, 2, 3])
    for _ in range(3):
        assert list(caches.fetched(rows, Bound(2**20))) == [1, 2, 3]

    assert rows.reads == 1


def test_functions_of_epochs_are_judged_once(inprocess_context: ds.Context, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of another job are others; a function that holds what may change gets a copy in each epoch all the same."""
    judged: list[Any] = []
    monkeypatch.setattr(engine_here, "check_captures", judged.append)
    counts = []
    for seen in ([0], [10]):
        by_hand, pipeline = epochs(inprocess_context), ds.Pipeline()
        numbers = by_hand.source("numbers")
        pipeline.read_from(numbers).map(lambda number, seen=seen: seen.append(number) or len(seen)).write_to(
            to_ilist("o")
        )
        by_hand.of(pipeline)
        counts += [by_hand.cut({numbers: [number, number]})["write_to"] for number in range(3)]

        assert len(seen) == 1
    assert (counts, len(judged)) == ([[2, 3]] * 6, 2)


@dataclass(frozen=True)
class Collecting:
    """A writer that holds what may change."""

    rows: list[Any]

    def write(self, items: Any) -> Any:
        """Give all items that it ever got."""
        self.rows.extend(items)
        yield list(self.rows)


def test_writers_of_another_job_are_judged_for_themselves() -> None:
    """Two jobs without a function between source and sink have the same functions."""

    def epoch(writer: Any) -> Several:
        return Several((Write(Read(no_items), writer=writer, collector=None),), is_epoch=True)

    engine = InProcessEngine(2**20)

    assert [engine._judged(epoch(each)) for each in (None, Collecting([]), None)] == [True, False, True]
