"""Jobs whose pipelines run on Spark."""

from __future__ import annotations

import os
import signal
import time
from concurrent.futures import CancelledError

import pytest

import dstream as ds
from reducers import to_ilist, to_imap
from tests.jobs.planned import plan_of


def test_a_job_on_spark_writes_to_each_sink(spark_context, tmp_path):
    """Items of several partitions, in order."""
    name = tmp_path.name
    numbers = spark_context.stream(range(6), 3).map(lambda n: n * n)
    spark_context.new_job(plan_of(numbers, to_ilist(name), to_imap(name, str, int))).join(240)

    assert spark_context.get_list(name).copy() == [0, 1, 4, 9, 16, 25]
    assert len(spark_context.get_map(name)) == 6


def test_a_job_on_spark_is_cancelled_while_its_tasks_sleep(spark_context, tmp_path):
    """Within five seconds; the context goes on."""
    reached = tmp_path / "reached"

    def sleep(n):
        reached.touch()
        time.sleep(30)
        return n

    job = spark_context.new_job(plan_of(spark_context.stream([1, 2], 2).map(sleep), to_ilist(tmp_path.name)))
    until = time.monotonic() + 60
    while not reached.exists():
        assert time.monotonic() < until
        time.sleep(0.02)
    began = time.monotonic()
    assert job.cancel()
    with pytest.raises(CancelledError):
        job.join(10)

    assert (time.monotonic() - began < 5, job.status) == (True, ds.JobStatus.CANCELLED)
    assert spark_context.get_list(tmp_path.name).copy() == []


def test_an_exception_on_a_worker_arrives_at_join(spark_context, tmp_path):
    """The user's own, with the item in its notes."""
    job = spark_context.new_job(plan_of(spark_context.stream([1, 0], 2).map(lambda n: 1 / n), to_ilist(tmp_path.name)))
    with pytest.raises(ZeroDivisionError) as caught:
        job.join(240)

    assert "on the item 0" in caught.value.__notes__[1]


def test_a_worker_that_is_killed_is_a_reason_to_start_again(spark_context, tmp_path):
    """The job completes in its second run; its sink has one copy."""
    killed = tmp_path / "killed"

    def kill_once(n):
        if not killed.exists():
            killed.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return n

    plan = plan_of(spark_context.stream(range(4), 2).map(kill_once), to_ilist(tmp_path.name))
    job = spark_context.new_job(plan, config=ds.JobConfig(auto_restart=(2, 0.1)))
    job.join(240)

    assert (job.metrics().runs >= 1, spark_context.get_list(tmp_path.name).copy()) == (True, [0, 1, 2, 3])
