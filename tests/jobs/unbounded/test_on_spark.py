"""Jobs without an end whose epochs run on Spark."""

from __future__ import annotations

import time

import pytest

import dstream as ds
from collectors import counting
from dstream.core import DAG, Edge, processors, whole_item
from dstream.errors import SourceUnavailableError
from dstream.jobs import JobStatus
from dstream.jobs.unbounded import placement
from dstream.testing.unbounded import epochs
from dstream.windows import limiting_lag, tumbling
from reducers import to_ilist, to_imap
from sources import text_files
from tests.jobs.unbounded.counting_processors import Totals
from tests.jobs.unbounded.moving_epochs import with_two_engines
from tests.jobs.unbounded.restarted_graph import some_numbers_over_a_restart
from tests.jobs.unbounded.streams import Feed, eventually, pipeline_of
from tests.jobs.unbounded.summing import FrameSums, Lagging
from tests.jobs.unbounded.timed_plans import summing_plan

SOON = ds.JobConfig(epoch_length=0.05)


def test_items_reach_every_sink(spark_context, tmp_path):
    """Each epoch has the ranges of several partitions, in their order."""
    name, feed = tmp_path.name, Feed({"0": [1, 2], "1": [3], "2": []})
    squares = pipeline_of(
        feed, to_ilist(name), to_imap(name, str, int), through=lambda stage: stage.map(lambda n: n * n)
    )
    job = spark_context.new_job(squares, config=SOON)
    eventually(lambda: job.epoch == 1)
    feed.give(4, to="2")
    eventually(lambda: job.epoch == 2)
    feed.end()
    job.join(240)

    assert (spark_context.get_list(name).copy(), job.status) == ([1, 4, 9, 16], JobStatus.COMPLETED)
    assert spark_context.get_map(name).copy() == {"1": 1, "4": 4, "9": 9, "16": 16}


def test_windows_close_in_the_epoch_that_passes_them(spark_context, tmp_path):
    """Watermarks of all partitions reach the step; state goes from epoch to epoch, and to the next driver."""
    name, feed = tmp_path.name, Feed({"0": [2, 4], "1": [5, 12]})
    job = spark_context.new_job(summing_plan(feed, Lagging, FrameSums(), to_ilist(name)), name=name, config=SOON)
    eventually(lambda: job.epoch == 1)
    feed.give(15)
    eventually(lambda: job.epoch == 2)
    assert sorted(spark_context.get_list(name)) == [(10, 5), (10, 6)]
    job.restart()
    feed.give(27)
    feed.end()
    job.join(240)

    assert sorted(spark_context.get_list(name)) == [(10, 5), (10, 6), (20, 12), (20, 15), (30, 27)]


class OnceAway(Feed):
    """A feed whose server does not answer the first task that reads it."""

    def __init__(self, mark, *items):
        super().__init__({"0": list(items)})
        self.mark = mark

    def split(self, partition, start, stop):
        """Return a range that fails as long as a file is there."""
        return AwayRange(self.mark, super().split(partition, start, stop))


class AwayRange:
    """What a task reads."""

    def __init__(self, mark, inner):
        self.mark, self.inner = mark, inner

    def read(self):
        """Fail once."""
        if self.mark.exists():
            self.mark.unlink()
            raise SourceUnavailableError("away()")
        return self.inner.read()


def test_a_job_starts_again_when_a_task_gets_no_answer(spark_context, tmp_path):
    """The error of a worker is known for what it is; the items are there once."""
    mark = tmp_path / "away"
    mark.touch()
    feed = OnceAway(mark, 1, 2)
    job = spark_context.new_job(
        pipeline_of(feed, to_ilist(tmp_path.name)), config=ds.JobConfig(auto_restart=(1, 0.01), epoch_length=0.05)
    )
    eventually(lambda: job.epoch == 1)
    job.cancel()

    assert (spark_context.get_list(tmp_path.name).copy(), job.metrics().runs) == ([1, 2], 2)


def test_an_exception_on_a_worker_arrives_at_join(spark_context, tmp_path):
    """The user's own, with the item in its notes; the epoch left nothing."""
    job = spark_context.new_job(
        pipeline_of(
            Feed({"0": [1], "1": [0]}), to_ilist(tmp_path.name), through=lambda stage: stage.map(lambda n: 1 / n)
        )
    )
    with pytest.raises(ZeroDivisionError) as caught:
        job.join(240)

    assert "on the item 0" in caught.value.__notes__[1]
    assert spark_context.get_list(tmp_path.name).copy() == []


def test_epochs_are_cut_on_spark(spark_context):
    """As on the local engine."""
    by_hand = epochs(spark_context)
    numbers = by_hand.source("numbers", partitions=2)
    by_hand.of(summing_plan(numbers, Lagging, FrameSums()))

    assert by_hand.cut({numbers: {0: [2, 4], 1: [6]}}) == {"sink": []}
    assert by_hand.cut({numbers: {0: [12], 1: [10]}}) == {"sink": [(10, 12)]}


def test_a_side_of_a_hash_join_is_read_again_on_spark(spark_context, tmp_path):
    """By the first epoch that begins so much later, not before; what the executors keep of it is what is read then."""
    by_hand, path, found = epochs(spark_context), tmp_path / "names.txt", []
    letters, pipeline = by_hand.source("letters", partitions=2), ds.Pipeline()
    names = pipeline.read_from(text_files(path))
    joined = pipeline.read_from(letters).inner_hash_join(names, (bool, bool), lambda a, b: a + b, refresh_every=60)
    joined.write_to(to_ilist("out"))
    by_hand.of(pipeline)
    for number, now in enumerate([100.0, 159.0, 160.0]):
        path.write_text(str(number))
        found.append(by_hand.cut({letters: {0: ["a"], 1: ["b"]}}, now)["write_to"])

    assert found == [["a0", "b0"], ["a0", "b0"], ["a2", "b2"]]


def test_an_input_that_is_behind_is_waited_for_so_long_on_spark(spark_context, tmp_path):
    """The watermarks of tasks reach the driver, which lets windows close that the slow source holds."""
    now, fast, slow, pipeline = [1000.0], Feed(), Feed(), ds.Pipeline()
    stages = [pipeline.read_from(feed).add_timestamps(int) for feed in (fast, slow)]
    counts = stages[0].merge(stages[1]).window(tumbling(10)).aggregate(counting(), lambda start, end, n: (end, n))
    counts.write_to(to_ilist(tmp_path.name))
    config = ds.JobConfig(epoch_length=0.05, clock=lambda: now[0], max_watermark_retain=5)
    job = spark_context.new_job(pipeline, config=config)
    slow.give(1)
    fast.give(2, 25)
    eventually(lambda: job.epoch >= 1 and job.clock == 1)
    assert spark_context.get_list(tmp_path.name).copy() == []
    now[0] += 5
    eventually(lambda: len(spark_context.get_list(tmp_path.name)) == 1)
    job.cancel()

    assert spark_context.get_list(tmp_path.name).copy() == [(10, 2)]


def test_parts_of_a_graph_go_on_from_epoch_to_epoch(spark_context):
    """Three processors send by key to two others, watermarks to all; each has what it saved in the epoch before."""
    by_hand = epochs(spark_context)
    words = by_hand.source("words", partitions=2)
    dag = DAG()
    source = dag.new_vertex("words", processors.read(words))
    stamped = processors.insert_watermarks(timestamps=len, policy=limiting_lag(0))
    time = dag.new_vertex("time", stamped).local_parallelism(1)
    one = dag.new_vertex("one", Totals).local_parallelism(3)
    two = dag.new_vertex("two", Totals).local_parallelism(2)
    sink = dag.new_vertex("sink", processors.write(to_ilist("out")))
    dag.edge(Edge.between(source, time)).edge(Edge.between(time, one).partitioned(whole_item))
    dag.edge(Edge.between(one, two).partitioned(lambda pair: pair[0])).edge(Edge.between(two, sink))
    by_hand.of(dag)

    first = by_hand.cut({words: {0: ["a", "bb"], 1: ["a"]}})["sink"]
    second = by_hand.cut({words: {0: ["a"], 1: ["bb", "ccc"]}})["sink"]

    words_of = ([each for each in some if each[0] != "until" and each[0][0] != "until"] for some in (first, second))
    assert list(map(sorted, words_of)) == [
        [(("a", 1), 1), (("a", 2), 1), (("bb", 1), 1)],
        [(("a", 3), 1), (("bb", 2), 1), (("ccc", 1), 1)],
    ]
    assert [sorted(until for what, until in some if what == "until") for some in (first, second)] == [
        [1, 1, 2, 2],
        [3, 3],
    ]


def test_a_graph_with_a_source_of_its_own_goes_on_with_what_it_saved(spark_context, tmp_path):
    """In a job that is restarted, so that all its workers make their processors anew; exactly once."""
    found = some_numbers_over_a_restart(spark_context, tmp_path.name)

    assert found == [[500 * n for n in range(len(each))] for each in found]
    assert all(len(each) > 2 for each in found)


def test_a_burst_moves_to_the_workers_of_spark_and_back(spark_context, tmp_path, monkeypatch):
    """Running totals of keys are right behind each move; metrics tell which epochs ran where."""
    monkeypatch.setattr(placement, "_STAY", 0.5)
    spark, feed = spark_context.running_engine(), Feed({"0": [], "1": []})
    with ds.connect(engine="local", storage=tmp_path) as context:
        with_two_engines(context, lambda: spark, spark._backend.caches)
        context.running_engine().spark_status(start=True)
        job = context.new_job(pipeline_of(feed, to_ilist("totals"), through=totals))
        for number in range(5):
            feed.give(number)
            eventually(lambda number=number: job.epoch > number or job.status.has_ended)
        for name in ("0", "1"):
            feed.give(*range(50_000), to=name)
        eventually(lambda: job.metrics().epochs_by_engine.get("spark", 0) > 0 or job.status.has_ended)
        here = job.metrics().epochs_by_engine["inprocess"]
        eventually(lambda: len(context.get_list("totals")) == 100_005 or job.status.has_ended)
        eventually(lambda: _given(feed, job) > here or job.status.has_ended)
        feed.end()
        job.join(240)
        found, engines = context.get_list("totals").copy(), job.metrics().epochs_by_engine
        context._engine = None  # That of Spark is for other tests, too.

    last = {key: max(count for each, count in found if each == key) for key in range(10)}
    assert sorted(found) == sorted((key, count) for key, most in last.items() for count in range(1, most + 1))
    assert sum(last.values()) == len(found) > 100_005
    assert (engines["spark"] > 0, engines["inprocess"] > here) == (True, True)


def _given(feed, job):
    """Give an item, and return how many epochs have run in this process."""
    feed.give(7)
    time.sleep(0.05)
    return job.metrics().epochs_by_engine["inprocess"]


def totals(stage):
    """Return the running counts of ten keys."""
    weighed = stage.map(lambda number: (number + sum(range(300)) * 0) % 10)
    return weighed.grouping_key(int).rolling_aggregate(counting()).map(tuple)
