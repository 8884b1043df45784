"""Requests to a job that meet: every pair at every moment, and random ones of several threads and processes."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator

import pytest

import dstream as ds
from dstream.errors import IllegalStateError
from dstream.jobs import JobConfig, JobStatus
from dstream.jobs.handle import Job
from dstream.jobs.state import Goal, goal_after
from reducers import to_ilist
from tests.jobs.unbounded.streams import Breaking, Feed, eventually, pipeline_of

REQUESTS = ("restart", "suspend", "resume", "update", "cancel")
PAIRS = [(first, second) for first in REQUESTS for second in REQUESTS]


def request(job: Job, feed: Feed, name: str) -> bool | None:
    """Ask a job for something; None: it has ended."""
    try:
        if name == "update":
            job.update(pipeline_of(feed, to_ilist(job.name)))
            return True
        return getattr(job, name)()
    except IllegalStateError:
        assert job.status.has_ended or job.status is JobStatus.CANCELLED or name == "update"
        return None


def started(ctx: ds.Context, name: str, feed: Breaking, moment: str) -> tuple[Job, Goal]:
    """Return a job that has written two items, at a moment of its life, and its goal."""
    job = ctx.new_job(pipeline_of(feed, to_ilist(name)), name=name, config=JobConfig(auto_restart=(9, 30.0)))
    eventually(lambda: job.epoch == 1)
    if moment == "suspended":
        job.suspend()
        job.wait_for(JobStatus.SUSPENDED, timeout=20)
        return job, Goal.SUSPEND
    if moment == "in the pause before a restart":
        feed.is_down = True
        job.wait_for(JobStatus.RESTARTING, timeout=20)
        feed.is_down = False
    return job, Goal.RUN


def ended(ctx: ds.Context, job: Job, feed: Feed, goal: Goal) -> list[int]:
    """Wait until a job has done the request, add one item unless it is cancelled, and return the items."""
    if goal is Goal.CANCEL:
        job.wait_for(JobStatus.CANCELLED, timeout=20)
        return [*ctx.get_list(job.name), 3]
    if goal is Goal.SUSPEND:
        job.wait_for(JobStatus.SUSPENDED, timeout=20)
        assert job.resume()
    elif job.status is JobStatus.RESTARTING:  # Nothing was asked that ends the pause.
        job.restart()
    feed.give(3)
    feed.end()
    job.join(20)
    return ctx.get_list(job.name).copy()


@pytest.mark.parametrize("moment", ["running", "suspended", "in the pause before a restart"])
def test_of_every_pair_of_requests_the_table_holds(ctx, moment):
    """Each answers as the table says, the job comes to the last goal, and no item is lost or there twice."""
    for first, second in PAIRS:
        feed = Breaking()
        job, goal = started(ctx, f"{first}-{second}", feed, moment)
        for name in (first, second):
            after = goal_after(goal, name)
            answer = request(job, feed, name)
            if goal is Goal.CANCEL:
                assert not answer, (first, second)
            elif goal is not Goal.RESTART:  # By the second one it may run again already.
                assert answer is (after is not None) or name == "update", (first, second)
            goal = after or goal
        assert ended(ctx, job, feed, goal) == [1, 2, 3], (first, second)


@pytest.mark.parametrize("second", ["cancel", "resume", "restart"])
def test_requests_of_another_process_meet_those_of_the_driver(ctx, connect, second):
    """A suspend of the driver and what another context asks right behind it."""
    feed = Breaking()
    job, _ = started(ctx, "shared", feed, "running")
    elsewhere = connect().job("shared")
    assert job.suspend()
    assert request(elsewhere, feed, second)
    goal = goal_after(Goal.SUSPEND, second)

    assert ended(ctx, job, feed, goal) == [1, 2, 3]


def asking(job: Job, feed: Feed, seed: int, times: int) -> Callable[[], None]:
    """Return what asks a job for this and that, again and again."""

    def ask() -> None:
        chosen = random.Random(seed)
        for _ in range(times):
            request(job, feed, chosen.choice(REQUESTS[:-1]))

    return ask


def together(*functions: Callable[[], None]) -> Iterator[threading.Thread]:
    """Run functions in threads of their own, and give each that has ended."""
    threads = [threading.Thread(target=each) for each in functions]
    for each in threads:
        each.start()
    for each in threads:
        each.join(240)
        yield each


@pytest.mark.parametrize("seed", [1, 2])
def test_random_requests_of_threads_and_contexts_neither_fail_a_job_nor_stop_it_for_ever(ctx, connect, seed):
    """Two threads of the driver, and another context: the job goes on, and has each item once."""
    feed = Breaking()
    job, _ = started(ctx, "asked", feed, "running")
    elsewhere = connect().job("asked")
    functions = (asking(job, feed, seed, 15), asking(job, feed, -seed, 15))
    others = (lambda: [request(elsewhere, feed, name) for name in ("suspend", "resume", "restart")],)
    assert not any(each.is_alive() for each in together(*functions, *others))
    request(job, feed, "resume")  # If it is, or is about to be, suspended.
    feed.give(3)
    feed.end()
    job.join(20)

    assert ctx.get_list("asked").copy() == [1, 2, 3]
