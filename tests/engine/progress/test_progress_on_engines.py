"""What the engines say about their jobs."""

from __future__ import annotations

import functools
import threading
from itertools import islice
from types import SimpleNamespace

import pytest

import dstream as ds
from collectors import counting, grouping_by
from dstream.engine.auto.border import SparkStart
from dstream.engine.calls import Progress
from dstream.engine.display import Board
from dstream.engine.spark.port.classic import ClassicPort
from dstream.engine.spark.run.stage_runner import ItemCounts, _Sums
from dstream.engine.tasks.runtime import CountItems, StageTask
from dstream.errors import SetupError


class Seen:
    """A board that asks for the facts at the end of each wait, and draws nothing."""

    def __init__(self):
        self.facts = []
        self.board = Board(start=lambda board: None)
        for way in ("leave", "settle"):
            setattr(self.board, way, functools.partial(self._end, getattr(self.board, way)))

    def _end(self, way, operation):
        self.facts.append(operation.facts())
        way(operation)

    def watch(self, monkeypatch, context):
        engine = context.running_engine()
        monkeypatch.setattr(engine, "_progress", Progress(True, self.board, lambda asked: SimpleNamespace(erase=int)))

    def titles(self):
        return [facts.title.partition(" test_")[0] for facts in self.facts]


@pytest.fixture
def seen(engine, monkeypatch):
    """Watch what the engine under test does."""
    watching = Seen()
    watching.watch(monkeypatch, engine.context)
    return watching


def test_items_are_counted(engine, seen):
    """Those that were read, on whichever worker; the place is the user's."""
    assert engine.stream(range(1000), 3).filter(lambda n: n > 500).count() == 499

    assert seen.facts[-1].items == 1000
    assert seen.facts[-1].title.startswith("count(")
    assert seen.facts[-1].title.rpartition(" ")[2].startswith("test_progress_on_engines.py:")


@pytest.mark.on_spark("title")
@pytest.mark.parametrize(
    ("run", "title"),
    [
        (lambda s: s.to_list(), "to_list()"),
        (lambda s: list(s), "iterating"),
        (lambda s: s.for_each(str), "for_each()"),
        (lambda s: s.head(1), "head()"),
        (lambda s: s.for_each_partition(list), "for_each_partition(list)"),
    ],
)
def test_a_job_is_named_after_the_users_call(engine, seen, run, title):
    """Whatever the engine is asked for."""
    run(engine.stream([1, 2, 3]))

    assert set(seen.titles()) == {title}


def test_an_iterator_that_is_given_up_waits_for_nothing(engine, seen):
    """Closed or collected, with others around it."""
    items = iter(engine.stream(range(100), 4))
    other = iter(engine.stream(range(5), 2))
    assert (next(items), next(other)) == (0, 0)
    items.close()
    del other

    assert not seen.board.tick()


def test_a_job_that_fails_waits_for_nothing(engine, seen):
    """The exception arrives as ever."""
    with pytest.raises(ZeroDivisionError):
        engine.stream([1, 0]).map(lambda n: 1 / n).to_list()

    assert seen.facts
    assert not seen.board.tick()


def test_a_failing_function_names_its_item_while_items_are_counted(engine, seen):
    """Counting puts a loop of ours above the user's function."""
    with pytest.raises(ZeroDivisionError) as caught:
        engine.stream([4, 2, 0, 1], 1).for_each_partition(lambda items: [1 / n for n in items])
    with pytest.raises(ZeroDivisionError) as also:
        engine.stream([4, 2, 0, 1], 1).map(lambda n: 1 / n).to_list()

    assert ds.failure(also.value).item == 0
    assert ds.failure(caught.value).item != 2


def jobs_of(context, since):
    """Return the jobs of a context that are newer than the number `since`, the oldest first."""
    context.spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    jobs = context.spark.sparkContext._jsc.sc().statusStore().jobsList(None)
    found = [jobs.apply(index) for index in range(jobs.size())]
    return sorted((job for job in found if job.jobId() > since), key=lambda job: job.jobId())


@pytest.fixture
def described(spark_context):
    """Return what Spark's jobs since the beginning of the test were for, and their groups."""
    before = max((job.jobId() for job in jobs_of(spark_context, -1)), default=-1)

    def read():
        found = jobs_of(spark_context, before)
        return [(job.description().get(), job.jobGroup().get()) for job in found]

    return read


def test_spark_jobs_carry_the_users_words(spark_context, described):
    """The first job of `sorted` says what it is for; the last one carries the terminal operation."""
    spark_context.stream(range(50), 3).sorted(key=str).collect(grouping_by(bool, counting()))
    names = [name.partition(" at test_progress_on_engines.py:") for name, _ in described()]

    assert names[0][0] == "sorted(key=str)"
    assert names[0][2].endswith(": sample of keys")
    assert names[-1][0].startswith("collect(")
    assert names[-1][2].isdecimal()


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (lambda s: s.limit(30), ("limit(30)", "looking for its end")),
        (lambda s: s.skip(30), ("skip(30)", "looking for its start")),
        (lambda s: s.take_while(bool), ("take_while(bool)", "looking for its end")),
        (lambda s: s.drop_while(bool), ("drop_while(bool)", "looking for its start")),
    ],
)
def test_the_jobs_of_a_prefix_say_what_they_are_for(spark_context, described, step, words):
    """Including those that Spark runs behind them, to keep the rows."""
    step(spark_context.stream(range(1, 50), 3)).map(str).to_list()
    names = [name for name, _ in described()]

    assert (names[0].partition(" at ")[0], names[0].partition(": ")[2]) == words
    assert names[-1].startswith("to_list() at ")


def test_the_jobs_of_an_iterator_carry_its_words(spark_context, described):
    """Also those that start while the caller does something else."""
    items = iter(spark_context.stream(range(40), 4).sorted())
    next(items)
    spark_context.stream([1]).count()
    assert list(items) == list(range(1, 40))
    names = {name.partition(" at ")[0] for name, _ in described()}

    assert names - {"count(...)", "count()"} == {"sorted()", "iterating"}


def test_the_jobs_of_one_operation_have_one_group(spark_context, described):
    """So that they can be cancelled together, and alone."""
    spark_context.stream(range(50), 3).sorted().to_list()
    first = {group for _, group in described()}
    spark_context.stream(range(50), 3).to_list()

    assert len(first) == 1
    assert len({group for _, group in described()}) == 2


def test_what_the_user_says_about_jobs_is_as_before(spark_context, described):
    """In this thread, also after a failure; a job group of the user's stays on our jobs too."""
    spark = spark_context.spark.sparkContext
    spark.setJobGroup("theirs", "their words")
    try:
        with pytest.raises(ZeroDivisionError):
            spark_context.stream([1, 0]).map(lambda n: 1 / n).to_list()
        assert spark.getLocalProperty("spark.job.description") == "their words"
        assert not spark.getLocalProperty("spark.job.tags")
        assert {group for _, group in described()} == {"theirs"}
    finally:
        spark.setLocalProperty("spark.jobGroup.id", None)
        spark.setLocalProperty("spark.job.description", None)
    spark_context.stream([1]).to_list()
    assert spark.getLocalProperty("spark.jobGroup.id") is spark.getLocalProperty("spark.job.description") is None


def test_facts_are_found_by_tag_in_a_group_of_the_users(spark_context, monkeypatch):
    """Stages and tasks of their job are not taken for ours."""
    seen = Seen()
    seen.watch(monkeypatch, spark_context)
    spark = spark_context.spark.sparkContext
    spark.setLocalProperty("spark.jobGroup.id", "theirs")
    try:
        spark_context.stream(range(10), 2).to_list()
    finally:
        spark.setLocalProperty("spark.jobGroup.id", None)

    assert seen.facts[-1].items == 10


def test_jobs_of_several_threads_keep_their_words(spark_context, described):
    """Each thread says what its own jobs are for."""
    spark_context.stream([1]).count()
    numbers = spark_context.stream(range(9)).map(abs)  # The size of a range alone is known without a job.
    runs = [numbers.count, numbers.to_list]
    threads = [threading.Thread(target=run) for run in runs]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]

    assert {name.partition("(")[0] for name, _ in described()} == {"count", "to_list"}


def test_counting_passes_items_on_and_adds_their_number():
    """Also of a task that stops early; the numbers of several tasks add up."""
    told = []
    counts = CountItems(SimpleNamespace(add=told.append), "a")
    for most in (None, 1):
        task = StageTask(0, 2**40)
        with task.ending():
            assert list(islice(counts(iter("xyz"), task), most)) == ["x", "y", "z"][:most]

    assert told == [{"a": 3}, {"a": 1}]
    assert _Sums().addInPlace(told[0], {"a": 1, "b": 2}) == {"a": 4, "b": 2}


def test_numbers_are_forgotten_with_their_operation(spark_context):
    """One accumulator serves for ever."""
    counts = ItemCounts(ClassicPort(spark_context.spark))
    first, second = counts.counting("a"), counts.counting("b")
    first.accumulator.add({"a": 3})
    assert (counts.of("a"), counts.of("b"), first.accumulator is second.accumulator) == (3, 0, True)
    counts.forget("a")

    assert counts.of("a") == 0


@pytest.mark.parametrize("is_begun", [False, True])
def test_a_start_of_spark_is_shown_while_a_plan_waits_for_it(is_begun):
    """Begun by the plan, or before it; it is shown until it ends, also if it fails."""
    seen, waiting = Seen(), []
    progress = Progress(True, seen.board, lambda asked: SimpleNamespace(erase=int))

    def start():
        waiting.append([each.facts().title for each in seen.board._waiting])
        raise SetupError("no Java")

    begun = functools.partial(start) if is_begun else None
    spark = SparkStart(start, lambda: None, print, begun, wait=progress.of_start)
    with pytest.raises(SetupError):
        spark.engine()

    assert waiting == [["starting Spark"]]
    assert [facts.title for facts in seen.facts] == ["starting Spark"]
    assert seen.board._waiting == []


@pytest.mark.parametrize("engine", ["spark", "auto"])
def test_a_context_shows_that_spark_starts(monkeypatch, engine):
    """Where a plan needs it."""

    def of_start(progress, start):
        raise SetupError("shown")

    monkeypatch.setattr(Progress, "of_start", of_start)

    with ds.connect(engine=engine, warm=False) as context, pytest.raises(SetupError, match="shown"):
        context.stream([1]).to_df()
