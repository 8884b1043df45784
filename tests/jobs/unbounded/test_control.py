"""Cancel, suspend, resume, restart of jobs without an end; two drivers; the end of a context."""

from __future__ import annotations

import threading
from concurrent.futures import CancelledError

import pytest

import dstream as ds
from dstream.errors import IllegalStateError, JobTakenOverError, SourceError
from dstream.jobs import JobStatus
from dstream.jobs.state import forget_driver
from dstream.jobs.unbounded.epoch_runner import EpochRunner
from dstream.jobs.unbounded.run import UnboundedRun
from reducers import to_ilist
from tests.jobs.unbounded.streams import Feed, eventually, pipeline_of


@pytest.fixture
def feed():
    """A source with two items."""
    return Feed({"0": [1, 2]})


@pytest.fixture
def job(ctx, feed):
    """A job that has written them."""
    made = ctx.new_job(pipeline_of(feed, to_ilist("out")), name="one")
    eventually(lambda: made.epoch == 1)
    return made


def test_a_suspended_job_reads_nothing_until_it_is_resumed(ctx, feed, job):
    """It goes on behind what it has read; each call is obeyed once."""
    assert (job.suspend(), job.suspend()) == (True, False)
    eventually(lambda: job.status is JobStatus.SUSPENDED)
    feed.give(3)
    asked = feed.asked
    assert (ctx.get_list("out").copy(), job.resume(), job.resume()) == ([1, 2], True, False)
    eventually(lambda: job.epoch == 2)

    assert (ctx.get_list("out").copy(), job.status) == ([1, 2, 3], JobStatus.RUNNING)
    assert feed.asked > asked


def test_another_process_suspends_and_resumes(connect, feed, job):
    """The driver looks at requests, and answers."""
    elsewhere = connect().job("one")
    assert elsewhere.suspend()
    eventually(lambda: elsewhere.status is JobStatus.SUSPENDED)
    assert elsewhere.resume()
    eventually(lambda: elsewhere.status is JobStatus.RUNNING)

    assert elsewhere.cancel()
    eventually(lambda: job.status is JobStatus.CANCELLED)


def test_a_suspended_job_can_be_cancelled(ctx, job):
    """Nobody has to resume it for that."""
    job.suspend()
    eventually(lambda: job.status is JobStatus.SUSPENDED)

    assert job.cancel()
    eventually(lambda: job.status is JobStatus.CANCELLED)


def test_a_restarted_job_goes_on_behind_its_last_epoch(ctx, feed, job):
    """Nothing is read twice."""
    assert job.restart()
    feed.give(3)
    feed.end()
    job.join(10)

    assert (ctx.get_list("out").copy(), job.metrics().runs) == ([1, 2, 3], 2)


def test_a_job_of_a_closed_context_goes_on_when_it_is_submitted_again(connect, feed):
    """Closing waits for the epoch, not for an end that may never come."""
    first = connect()
    left = first.new_job(pipeline_of(feed, to_ilist("out")), name="one")
    eventually(lambda: left.epoch == 1)
    first.close()
    feed.give(3)
    feed.end()
    ctx = connect()
    assert (ctx.job("one").status, ctx.job("one").is_lost) == (JobStatus.NOT_RUNNING, True)
    again = ctx.new_job(pipeline_of(feed, to_ilist("out")), name="one")
    again.join(10)

    assert (again.id, again.epoch, ctx.get_list("out").copy()) == (left.id, 2, [1, 2, 3])


def test_a_job_that_was_cancelled_starts_afresh(ctx, feed, job):
    """It is another one, and reads from the start."""
    job.cancel()
    with pytest.raises(CancelledError):
        job.join(10)
    feed.end()
    again = ctx.new_job(pipeline_of(feed, to_ilist("out")), name="one")
    again.join(10)

    assert (again.id == job.id, ctx.get_list("out").copy()) == (False, [1, 2, 1, 2])


def test_of_two_drivers_the_second_one_goes_on(connect, feed, job):
    """The first one ends, whether it finds its number taken or the state; nothing is written twice."""
    forget_driver(job.driver)
    ctx = connect()
    again = ctx.new_job(pipeline_of(feed, to_ilist("out")), name="one")
    eventually(lambda: again.status is JobStatus.RUNNING)
    feed.give(3)
    with pytest.raises(JobTakenOverError, match="another driver has taken over the job"):
        job._execution.future.result(10)
    eventually(lambda: len(ctx.get_list("out")) >= 3)

    assert ctx.get_list("out").copy() == [1, 2, 3]


def test_a_pipeline_that_forgets_something_is_refused(connect, feed, job):
    """Unless the user says that it may: then the source of another name begins at its start."""
    job._execution.ask("leave")
    job._execution.leave(30)  # A driver that is slow may look lost before it has left.
    eventually(lambda: job.is_lost)
    other = ds.Pipeline()
    other.read_from(feed, "numbers").map(str).write_to(to_ilist("out"))
    ctx = connect()
    with pytest.raises(IllegalStateError, match="of the stage 'read_from', how far it was read is forgotten"):
        ctx.new_job(other, name="one")
    feed.end()
    ctx.new_job(other, name="one", config=ds.JobConfig(force=True)).join(10)

    assert ctx.get_list("out").copy() == [1, 2, "1", "2"]


def test_a_pipeline_that_forgets_nothing_goes_on(connect, feed, job):
    """It may have other steps and sinks, as long as what was read and kept is of use to it."""
    job._execution.ask("leave")
    job._execution.leave(30)  # A driver that is slow may look lost before it has left.
    eventually(lambda: job.is_lost)
    feed.give(3)
    feed.end()
    ctx = connect()
    ctx.new_job(pipeline_of(feed, to_ilist("out"), through=lambda stage: stage.map(str)), name="one").join(10)

    assert ctx.get_list("out").copy() == [1, 2, "3"]


def test_another_pipeline_waits_for_what_the_last_one_has_to_publish(connect, feed, job, monkeypatch):
    """What an epoch wrote for the sinks of a pipeline is for these alone, also with force."""
    monkeypatch.setattr(EpochRunner, "publish", lambda *given: exit("the driver dies"))
    feed.give(3)
    with pytest.raises(SystemExit):  # Its end stands in the record then, for other contexts too.
        job.join(20)
    monkeypatch.undo()
    other = pipeline_of(feed, to_ilist("else"))
    ctx = connect()
    with pytest.raises(IllegalStateError, match="may have still to publish what its last epoch wrote"):
        ctx.new_job(other, name="one", config=ds.JobConfig(force=True))
    feed.end()
    ctx.new_job(job.pipeline, name="one").join(10)

    assert ctx.get_list("out").copy() == [1, 2, 3]


def test_a_failure_fails_the_job(ctx, feed):
    """The user's exception arrives, with the item; the epoch left nothing."""
    job = ctx.new_job(pipeline_of(feed, to_ilist("out"), through=lambda stage: stage.map(lambda n: 1 // (n - 2))))
    with pytest.raises(ZeroDivisionError) as caught:
        job.join(10)

    assert (job.status, ctx.get_list("out").copy()) == (JobStatus.FAILED, [])
    assert any("on the item 2" in note for note in caught.value.__notes__)


def test_a_job_may_be_suspended_where_it_would_fail(ctx, feed):
    """It goes on with the same epoch when it is resumed, as after the cause was removed."""
    bad = [2]
    plan = pipeline_of(feed, to_ilist("out"), through=lambda stage: stage.map(lambda n: 1 // (n not in bad)))
    job = ctx.new_job(plan, config=ds.JobConfig(suspend_on_failure=True))
    eventually(lambda: job.status is JobStatus.SUSPENDED)
    assert job.failure_text.type_name == "ZeroDivisionError"
    bad.clear()
    job.resume()
    eventually(lambda: job.epoch == 1)

    assert ctx.get_list("out").copy() == [1, 1]


def test_a_source_that_lost_items_is_an_error(ctx, feed):
    """What it says is what the job failed with."""
    feed.lost_before = 5
    with pytest.raises(SourceError, match="the items before 5 are gone"):
        ctx.new_job(pipeline_of(feed, to_ilist("out"))).join(10)


def test_an_idle_job_runs_nothing(ctx, feed, job, monkeypatch):
    """Sources are asked, less and less often, and no engine is."""
    engine, asked = ctx.running_engine(), feed.asked
    monkeypatch.setattr(engine, "submit", lambda end: pytest.fail("it runs a plan of nothing"))
    eventually(lambda: feed.asked > asked + 5)

    assert (job.epoch, job.status) == (1, JobStatus.RUNNING)


def test_cancel_ends_a_function_that_does_not_return(ctx, gate):
    """The thread is left behind, and what it makes is thrown away."""
    job = ctx.new_job(pipeline_of(Feed({"0": [1]}), to_ilist("out"), through=lambda stage: stage.map(gate)))
    assert gate.was_reached.wait(10)
    assert job.cancel()
    eventually(lambda: job.status is JobStatus.CANCELLED)
    gate.is_open.set()
    job._execution.leave(5)

    assert ctx.get_list("out").copy() == []


@pytest.mark.parametrize("is_behind", [False, True], ids=["before it claims", "behind its claim"])
def test_a_run_that_was_left_behind_takes_nothing_from_the_next_one(ctx, feed, gate, monkeypatch, is_behind):
    """It could not stop while it began; when it goes on, the job belongs to another run of the same driver."""
    claim, work, runs, has_ended = UnboundedRun._claim, UnboundedRun.work, [], threading.Event()

    def slow_claim(run):
        runs.append(run)
        is_first = len(runs) == 1
        if is_first and not is_behind:
            monkeypatch.setattr(run, "_first_record", lambda made=run._first_record: gate(made()))
        claim(run)
        if is_first and is_behind:
            gate(None)
        elif is_behind:
            gate.is_open.set()
            has_ended.wait(10)

    def watched(run):
        try:
            work(run)
        finally:
            has_ended.set()

    monkeypatch.setattr(UnboundedRun, "_claim", slow_claim)
    monkeypatch.setattr(UnboundedRun, "work", watched)
    job = ctx.new_job(pipeline_of(feed, to_ilist("out")))
    assert gate.was_reached.wait(10)
    assert job.restart()
    eventually(lambda: job.epoch == 1)
    gate.is_open.set()
    assert has_ended.wait(10)
    feed.give(3)
    feed.end()
    job.join(10)

    assert ctx.get_list("out").copy() == [1, 2, 3]


def test_a_context_with_a_suspended_job_can_be_closed(connect, feed):
    """The job goes on when it is submitted again."""
    first = connect()
    job = first.new_job(pipeline_of(feed, to_ilist("out")), name="one")
    eventually(lambda: job.epoch == 1)
    job.suspend()
    eventually(lambda: job.status is JobStatus.SUSPENDED)
    first.close()
    feed.end()
    ctx = connect()
    ctx.new_job(pipeline_of(feed, to_ilist("out")), name="one").join(10)

    assert ctx.get_list("out").copy() == [1, 2]


@pytest.mark.parametrize("storage", ["lake", "sqlite:jobs.db", "memory:"])
def test_a_handle_whose_context_was_closed_shows_what_became_of_the_job(storage, connect, feed, tmp_path, monkeypatch):
    """It was left, then cancelled: the handle says so, as one that another context gives."""
    monkeypatch.chdir(tmp_path)
    context = connect(storage=storage)
    job = context.new_job(pipeline_of(feed, to_ilist("out")), name="left")
    context.close()
    with pytest.raises(IllegalStateError, match="this context is closed"):
        job.join(5)
    assert (job.status, job.is_lost, job.cancel(), job.status) == (
        JobStatus.NOT_RUNNING,
        True,
        True,
        JobStatus.CANCELLED,
    )
    with pytest.raises(CancelledError, match="the job 'left' was cancelled"):
        job.join(5)
    with pytest.raises(IllegalStateError, match="the job 'left' has ended: it is CANCELLED"):
        job.suspend()


def test_a_handle_whose_context_was_closed_follows_the_job_to_its_next_driver(connect, feed):
    """It is asked there, and joined there."""
    first, second = connect(), connect()
    job = first.new_job(pipeline_of(feed, to_ilist("out")), name="moved")
    first.close()
    again = second.new_job(pipeline_of(feed, to_ilist("out")), name="moved")
    assert job.suspend()
    job.wait_for(JobStatus.SUSPENDED, timeout=20)
    assert job.resume()
    feed.end()
    job.join(20)

    assert (job.status, job.id) == (JobStatus.COMPLETED, again.id)
