"""The number of tasks changes, from engine to engine and from epoch to epoch; the shards of the state do not."""

from __future__ import annotations

import pytest

import dstream as ds
from dstream.engine.compiler import stateful_steps
from dstream.engine.spark.run.backend import SparkBackend
from dstream.jobs.unbounded import epoch_runner as epochs_of_jobs
from tests.jobs.unbounded.changing import counts, written
from tests.jobs.unbounded.streams import Feed, eventually

WORDS = "abcdefghij"


@pytest.fixture
def tasks(monkeypatch):
    """In how many tasks each epoch on Spark had its state, where no epoch is so small that one task takes it."""
    seen, routing = [], stateful_steps.RouteToShards

    def route(targets, *given):
        seen.append(targets)
        return routing(targets, *given)

    monkeypatch.setattr(stateful_steps, "RouteToShards", route)
    monkeypatch.setattr(epochs_of_jobs, "_QUICK", 0.0)
    monkeypatch.setattr(SparkBackend, "cores", property(lambda cluster: 3))
    return seen


def test_a_job_keeps_its_state_in_any_number_of_tasks(spark_context, data, tasks, tmp_path):
    """It counts on the local engine, then in 2 tasks of Spark, then in 8; then it is counted what there was."""
    feed, name = Feed({"0": list(WORDS)}), tmp_path.name
    with ds.connect(engine="local", storage=data) as here:
        first = here.new_job(counts(feed, sink=name), name=name)
        eventually(lambda: first.epoch == 1)
    job = spark_context.new_job(counts(feed, sink=name), name=name)
    for epoch, partitions in ((2, 2), (3, 8)):
        feed.partitions |= {
            str(number): [*feed.partitions.get(str(number), ()), *WORDS] for number in range(partitions)
        }
        eventually(lambda epoch=epoch: job.epoch == epoch)
    feed.end()
    job.join(240)

    found = written(spark_context, name)
    assert [max(count for word, count in found if word == each) for each in WORDS] == [11] * 10
    assert (job.id, len(found), {2, 8} <= set(tasks)) == (first.id, 110, True)
