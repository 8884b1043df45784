"""When the end of a job is seen, and what callbacks and log handlers may do that hear of it."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable

import pytest

import dstream as ds
from dstream.jobs.records import JobRecords
from reducers import to_ilist
from tests.jobs.planned import plan_of
from tests.jobs.unbounded.streams import Feed, eventually, pipeline_of


@pytest.mark.parametrize(("items", "end"), [([1], "COMPLETED"), ([0], "FAILED")])
def test_an_end_is_seen_here_once_it_is_written(ctx, connect, gate, monkeypatch, items, end):
    """Whoever sees it here and acts on it through another context meets no job that still runs."""
    write, seen = JobRecords.write, []

    def writing(self, state, version):
        if state.status.has_ended:
            seen.append((job.status.has_ended, other.status.has_ended))
        done = write(self, state, version)
        if state.status.has_ended:
            seen.append(other.status.name)
        return done

    job = ctx.new_job(plan_of(ctx.stream(items).map(gate).map(lambda n: 1 // n), to_ilist("out")), name="ends")
    other = connect().job("ends")
    monkeypatch.setattr(JobRecords, "write", writing)
    gate.is_open.set()
    if end == "FAILED":
        with pytest.raises(ZeroDivisionError):
            job.join(20)
    else:
        job.join(20)

    assert (seen, job.status) == ([(False, False), end], ds.JobStatus[end])


def test_a_callback_of_the_end_may_wait_for_a_thread_that_asks_the_job(ctx):
    """It holds no lock that the thread needs: the request is answered, and changes nothing any more."""
    feed, answers = Feed({"0": [1]}), []
    job = ctx.new_job(pipeline_of(feed, to_ilist("out")))

    def called(_: object) -> None:
        asking = threading.Thread(target=lambda: answers.append(job.cancel()))
        asking.start()
        asking.join(10)
        answers.append("called")

    job.future().add_done_callback(called)
    feed.end()
    job.join(20)
    eventually(lambda: "called" in answers)

    assert answers == [False, "called"]


def test_a_callback_that_exits_ends_nothing_but_itself(ctx, gate, caplog):
    """The job is complete, and has failed with nothing; the log has the exception."""
    job = ctx.new_job(plan_of(ctx.stream([1]).map(gate), to_ilist("out")))
    job.future().add_done_callback(lambda _: sys.exit(3))
    gate.is_open.set()
    job.join(20)
    eventually(lambda: "a callback of the future of the job" in caplog.text)

    assert (job.status, job.failure_text) == (ds.JobStatus.COMPLETED, None)


@pytest.fixture
def heard(caplog):
    """Functions that are called with what the log of jobs says."""
    handler = _Calling()
    caplog.set_level(logging.INFO, "dstream.jobs")
    logging.getLogger("dstream.jobs").addHandler(handler)
    yield handler.calls
    logging.getLogger("dstream.jobs").removeHandler(handler)


class _Calling(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.calls: list[Callable[[str], object]] = []

    def emit(self, record: logging.LogRecord) -> None:
        for call in self.calls:
            call(record.getMessage())


def test_a_log_handler_may_ask_the_job_whose_status_it_hears(ctx, heard):
    """One that suspends a job as soon as it runs, and resumes it when it is suspended, stops nothing."""
    feed, answers = Feed({"0": [1, 2]}), []

    def hear(line: str) -> None:
        if line.endswith("is RUNNING") and not answers:
            answers.append(job.suspend())
        if "is SUSPENDED" in line:
            answers.append(job.resume())

    job = ctx.new_job(pipeline_of(feed, to_ilist("out")))
    job.wait_for(ds.JobStatus.RUNNING, timeout=20)
    heard.append(hear)
    job.restart()
    eventually(lambda: len(answers) == 2)
    feed.end()
    job.join(20)

    assert (answers, ctx.get_list("out").copy()) == ([True, True], [1, 2])


def test_a_log_handler_sees_with_what_a_job_has_failed(ctx, heard, gate):
    """The failure is there as soon as the status says so."""
    seen = []
    job = ctx.new_job(plan_of(ctx.stream([0]).map(gate).map(lambda n: 1 // n), to_ilist("out")))
    heard.append(lambda line: "is FAILED" in line and seen.append(type(job.failure)))
    gate.is_open.set()
    with pytest.raises(ZeroDivisionError):
        job.join(20)

    assert seen == [ZeroDivisionError]
