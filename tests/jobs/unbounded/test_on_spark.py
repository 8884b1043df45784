"""Jobs without an end whose epochs run on Spark."""

from __future__ import annotations

import pytest

import dstream as ds
from dstream.jobs import JobStatus
from dstream.testing.epochs_by_hand import epochs
from reducers import to_ilist, to_imap
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
    job.join(60)

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
    job.join(60)

    assert sorted(spark_context.get_list(name)) == [(10, 5), (10, 6), (20, 12), (20, 15), (30, 27)]


def test_an_exception_on_a_worker_arrives_at_join(spark_context, tmp_path):
    """The user's own, with the item in its notes; the epoch left nothing."""
    job = spark_context.new_job(
        pipeline_of(
            Feed({"0": [1], "1": [0]}), to_ilist(tmp_path.name), through=lambda stage: stage.map(lambda n: 1 / n)
        )
    )
    with pytest.raises(ZeroDivisionError) as caught:
        job.join(60)

    assert "on the item 0" in caught.value.__notes__[1]
    assert spark_context.get_list(tmp_path.name).copy() == []


def test_epochs_are_cut_on_spark(spark_context):
    """As on the local engine."""
    by_hand = epochs(spark_context)
    numbers = by_hand.source("numbers", partitions=2)
    by_hand.of(summing_plan(numbers, Lagging, FrameSums()))

    assert by_hand.cut({numbers: {0: [2, 4], 1: [6]}}) == {"sink": []}
    assert by_hand.cut({numbers: {0: [12], 1: [10]}}) == {"sink": [(10, 12)]}
