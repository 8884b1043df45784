"""A storage that does not answer while a job takes up the pipeline of an update: the request waits, nothing is lost."""

from __future__ import annotations

import pytest

import dstream as ds
from dstream.errors import EngineError
from dstream.jobs import JobStatus
from reducers import to_ilist
from tests.jobs.planned import lose_worker
from tests.jobs.unbounded.streams import Feed, eventually, pipeline_of


@pytest.fixture
def feed():
    """A source with one number."""
    return Feed({"0": [1]})


@pytest.fixture
def start(ctx, feed):
    """Start a job that has published one epoch, and is configured as the test says."""

    def started(**config):
        made = ctx.new_job(pipeline_of(feed, to_ilist("out")), config=ds.JobConfig(**config))
        eventually(lambda: made.epoch == 1)
        return made

    return started


@pytest.fixture
def failing(monkeypatch):
    """Fail the next reads of the log of a job; return how many are left to fail."""

    def set_up(job, times):
        records, left = job._execution._records.all, [times]

        def read(name, before=records.read):
            if name.startswith("job-logs") and left[0]:
                left[0] -= 1
                lose_worker()
            return before(name)

        monkeypatch.setattr(records, "read", read)
        return left

    return set_up


def updated(feed):
    """The pipeline with a second sink."""
    return pipeline_of(feed, to_ilist("out"), to_ilist("more"))


def check_both_sinks_are_written(ctx, feed, job):
    """The second number arrives in the sink of the old pipeline, and in that of the update."""
    feed.give(2)
    feed.end()
    job.join(10)
    assert (ctx.get_list("out").copy(), ctx.get_list("more").copy()) == ([1, 2], [2])


@pytest.mark.parametrize("is_suspended", [False, True])
@pytest.mark.parametrize("times", [1, 2])
def test_an_update_that_cannot_read_the_log_is_tried_again(ctx, feed, start, failing, is_suspended, times):
    """As often as the job may start again."""
    job = start(auto_restart=(times, 0))
    if is_suspended:
        job.suspend()
        eventually(lambda: job.status is JobStatus.SUSPENDED)
    left = failing(job, times)

    assert job._execution.ask("update", updated(feed))
    eventually(lambda: job.status is JobStatus.RUNNING and job.metrics().runs == 2)

    assert left == [0]
    check_both_sinks_are_written(ctx, feed, job)


def test_a_job_that_may_not_start_again_fails_with_the_error_of_the_storage(feed, start, failing):
    """Its failure is that of the read."""
    job = start(auto_restart=False)
    failing(job, 1)

    assert job._execution.ask("update", updated(feed))
    with pytest.raises(EngineError, match="a worker was lost"):
        job.join(10)

    assert job.status is JobStatus.FAILED


def test_a_job_that_is_suspended_on_failure_takes_the_update_up_when_it_is_resumed(ctx, feed, start, failing):
    """The failure shows why it is suspended."""
    job = start(suspend_on_failure=True)
    failing(job, 1)

    assert job._execution.ask("update", updated(feed))
    eventually(lambda: job.status is JobStatus.SUSPENDED)
    assert job.failure_text.message == "a worker was lost"
    assert job.resume()

    check_both_sinks_are_written(ctx, feed, job)


class Stuck(Feed):
    """A source that does not return until the gate of a test is open."""

    gate = None

    def reach(self, offsets, most=None):
        """Wait at the gate, if there is one."""
        if self.gate is not None:
            self.gate(None)
        return super().reach(offsets, most)


@pytest.mark.parametrize("is_suspended", [False, True])
def test_requests_to_a_run_that_is_left_behind_are_tried_again(ctx, gate, failing, is_suspended):
    """Neither the pipeline of the update is lost, nor that the job is to be suspended."""
    feed = Stuck({"0": [1]})
    job = ctx.new_job(pipeline_of(feed, to_ilist("out")), config=ds.JobConfig(auto_restart=(1, 0)))
    eventually(lambda: job.epoch == 1)
    feed.gate = gate
    assert gate.was_reached.wait(10)
    feed.gate, left = None, failing(job, 1)

    assert job._execution.ask("restart")
    assert job._execution.ask("update", updated(feed))
    if is_suspended:
        assert job._execution.ask("suspend")
        eventually(lambda: job.status is JobStatus.SUSPENDED)
        assert job.resume()

    check_both_sinks_are_written(ctx, feed, job)
    assert left == [0]
