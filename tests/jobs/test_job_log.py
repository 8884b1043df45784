"""The log of a job: a line for each change of its status, with the reason."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

import pytest

from dstream.jobs import JobConfig, JobStatus
from dstream.jobs.outcomes import show_lines_of_jobs
from reducers import to_ilist
from tests.jobs.planned import plan_of
from tests.jobs.unbounded.streams import Breaking, Feed, eventually, pipeline_of


@pytest.fixture
def lines(caplog):
    """Return what was logged of jobs so far, without what is different each time."""
    caplog.set_level(logging.INFO, "dstream.jobs")
    return lambda: [text.split(" of 0")[0] for text in caplog.messages]


def test_a_job_that_completes_has_a_line_for_each_status(ctx, lines):
    """In the order in which it reached them."""
    ctx.new_job(plan_of(ctx.stream([1]), to_ilist("out")), name="sales").join()

    assert lines() == [
        "the job 'sales' is STARTING: run 1",
        "the job 'sales' is RUNNING",
        "the job 'sales' is COMPLETING",
        "the job 'sales' is COMPLETED",
    ]


def test_a_job_that_fails_says_why(ctx, lines):
    """With the exception in one line."""
    job = ctx.new_job(plan_of(ctx.stream([0]).map(lambda n: 1 // n), to_ilist("out")), name="sales")
    job.future().exception()

    assert lines()[-1] == "the job 'sales' is FAILED: ZeroDivisionError: integer division or modulo by zero"


def test_a_job_that_suspends_on_a_failure_says_why(ctx, lines):
    """It waits then, and its log is where a user looks."""
    pipeline = pipeline_of(Feed({"0": [0]}), to_ilist("out"), through=lambda stage: stage.map(lambda n: 1 // n))
    job = ctx.new_job(pipeline, name="sales", config=JobConfig(suspend_on_failure=True))
    job.wait_for(JobStatus.SUSPENDED, timeout=20)

    failure = "it failed: ZeroDivisionError: integer division or modulo by zero"
    # Whoever waits for the status may see it before the line is written.
    eventually(lambda: lines()[-1] == f"the job 'sales' is SUSPENDED: {failure}")


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        ("suspend", JobStatus.SUSPENDED),
        ("restart", JobStatus.RESTARTING),
        ("update", JobStatus.RESTARTING),
        ("cancel", JobStatus.CANCELLED),
    ],
)
def test_each_change_that_a_user_asks_for_says_so(ctx, lines, request_, status):
    """By the method that was called, whichever process called it."""
    feed = Feed({"0": [1]})
    job = ctx.new_job(pipeline_of(feed, to_ilist("out")), name="sales")
    job.wait_for(JobStatus.RUNNING, timeout=20)
    arguments = [pipeline_of(feed, to_ilist("out"))] if request_ == "update" else []
    getattr(job, request_)(*arguments)
    eventually(lambda: any(line.startswith(f"the job 'sales' is {status.name}: {request_}() was") for line in lines()))


def test_a_job_that_is_resumed_says_so(ctx, lines):
    """And runs."""
    job = ctx.new_job(pipeline_of(Feed({"0": [1]}), to_ilist("out")), name="sales")
    job.suspend()
    job.wait_for(JobStatus.SUSPENDED, timeout=20)
    job.resume()
    eventually(lambda: lines()[-1] == "the job 'sales' is RUNNING")

    assert lines()[-3:-1] == [
        "the job 'sales' is SUSPENDED: suspend() was called",
        "the job 'sales' is STARTING: resume() was called",
    ]


def test_a_job_that_starts_again_by_itself_says_why(ctx, lines):
    """As a warning, with the pause and how often it may do so."""
    feed = Breaking()
    ctx.new_job(pipeline_of(feed, to_ilist("out")), name="sales", config=JobConfig(auto_restart=(3, 0.0)))
    eventually(lambda: ctx.get_list("out").copy() == [1, 2])
    feed.is_down = True
    again = "the job 'sales' is RESTARTING: it starts again in 0 s, restarts left: 2"
    failure = "dstream.errors.SourceUnavailableError: the source does not answer"
    eventually(lambda: f"{again}: {failure}" in lines())


def test_a_handler_that_fails_fails_no_job(ctx, lines, monkeypatch):
    """What a program does with its log is no part of the job."""
    monkeypatch.setattr(logging.getLogger("dstream.jobs"), "log", lambda *_: 1 // 0)

    ctx.new_job(plan_of(ctx.stream([1]), to_ilist("out"))).join()


@pytest.fixture
def shown(capsys) -> Iterator[Callable[[], list[str]]]:
    """Return what a process that shows its lines has written to stderr, without the times."""
    logger = logging.getLogger("dstream.jobs")
    before, level = [*logger.handlers], logger.level
    show_lines_of_jobs()
    yield lambda: [line[len("2026-01-01 00:00:00 ") :] for line in capsys.readouterr().err.splitlines()]
    logger.handlers[:] = before
    logger.setLevel(level)


def test_a_driver_shows_its_lines(ctx, shown, monkeypatch):
    """On stderr, with the time and the level; a program that sets up its logging gets them there instead."""
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    ctx.new_job(plan_of(ctx.stream([1]), to_ilist("out")), name="sales").join()
    monkeypatch.undo()
    ctx.new_job(plan_of(ctx.stream([1]), to_ilist("out")), name="other").join()

    assert shown()[1:] == [f"INFO the job 'sales' is {each}" for each in ("RUNNING", "COMPLETING", "COMPLETED")]
