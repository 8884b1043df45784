"""`job.wait_for`: waiting for a status."""

from __future__ import annotations

import pytest

import dstream as ds
from dstream.errors import IllegalStateError
from dstream.jobs.state import forget_driver
from reducers import to_ilist
from tests.jobs.planned import plan_of


def test_wait_for_returns_the_status_that_came(ctx, gate):
    """Of several, the one that the job has."""
    job = ctx.new_job(plan_of(ctx.stream([1]).map(gate), to_ilist("out")))

    running = job.wait_for(ds.JobStatus.SUSPENDED, ds.JobStatus.RUNNING, timeout=30)
    gate.is_open.set()
    assert (running, job.wait_for(ds.JobStatus.COMPLETED, timeout=30)) == (
        ds.JobStatus.RUNNING,
        ds.JobStatus.COMPLETED,
    )


def test_wait_for_sees_a_job_of_another_context(connect, gate):
    """Whoever drives it."""
    ctx, other = connect(), connect()
    ctx.new_job(plan_of(ctx.stream([1]).map(gate), to_ilist("out")), name="one")

    assert other.job("one").wait_for(ds.JobStatus.RUNNING, timeout=30) is ds.JobStatus.RUNNING


def test_wait_for_sees_no_loss_while_a_driver_ends(ctx, gate, monkeypatch):
    """Its driver may go between two looks; what was read before says nothing of that."""
    job = ctx.new_job(plan_of(ctx.stream([1]).map(gate), to_ilist("out")))
    job.wait_for(ds.JobStatus.RUNNING, timeout=30)
    looks = iter([False, True])
    monkeypatch.setattr(type(job._watch), "is_lost", lambda watch, state, is_here: next(looks))
    status = job.status
    monkeypatch.undo()
    gate.is_open.set()

    assert (status, job.wait_for(ds.JobStatus.COMPLETED, timeout=30)) == (
        ds.JobStatus.RUNNING,
        ds.JobStatus.COMPLETED,
    )


def test_wait_for_what_cannot_come_any_more_is_refused(ctx):
    """The job has failed; what it failed with is the cause."""
    job = ctx.new_job(plan_of(ctx.stream([0]).map(lambda n: 1 // n), to_ilist("out")), name="one")

    with pytest.raises(IllegalStateError, match="the job 'one' is FAILED, not SUSPENDED") as refused:
        job.wait_for(ds.JobStatus.SUSPENDED, timeout=30)
    assert isinstance(refused.value.__cause__, ZeroDivisionError)


def test_wait_for_a_job_whose_driver_is_gone_is_refused(connect, gate):
    """Nobody drives it on."""
    ctx, other = connect(), connect()
    job = ctx.new_job(plan_of(ctx.stream([1]).map(gate), to_ilist("out")), name="one")
    forget_driver(job.driver)

    with pytest.raises(IllegalStateError, match="the job 'one' is NOT_RUNNING, not COMPLETED"):
        other.job("one").wait_for(ds.JobStatus.COMPLETED, timeout=30)


def test_wait_for_waits_no_longer_than_it_is_told(ctx, gate):
    """The job goes on."""
    job = ctx.new_job(plan_of(ctx.stream([1]).map(gate), to_ilist("out")), name="one")

    with pytest.raises(TimeoutError, match="not COMPLETED, after 0 seconds; it goes on"):
        job.wait_for(ds.JobStatus.COMPLETED, timeout=0)
    assert not job.status.has_ended


@pytest.mark.parametrize("statuses", [(), ("RUNNING",)])
def test_wait_for_takes_statuses(ctx, statuses):
    """A name of one is none."""
    job = ctx.new_job(plan_of(ctx.stream([1]), to_ilist("out")))

    with pytest.raises(TypeError, match=r"takes statuses such as JobStatus\.RUNNING"):
        job.wait_for(*statuses)
