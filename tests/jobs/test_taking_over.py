"""A driver that is gone, or was cut off: who goes on, and that the sinks of a job have one copy."""

from __future__ import annotations

import shutil
import sys
import time

import pytest

import dstream as ds
from dstream.errors import EngineError, IllegalStateError, JobExistsError, JobTakenOverError
from dstream.jobs import registry
from dstream.jobs.heartbeats import Rhythm
from dstream.jobs.lease import take_over
from dstream.jobs.records import JobRecords
from dstream.jobs.runs import written_plan
from dstream.jobs.state import forget_driver
from reducers import to_ilist, to_imap
from tests.jobs.planned import Gate, Interrupted, plan_of
from tests.jobs.unbounded.streams import eventually


class Broken(Exception):
    """What stops a driver between two commits."""


def broken(receipts):
    """Stop."""
    raise Broken


def lists(ctx, *names):
    """Return what is in some lists."""
    return [ctx.get_list(name).copy() for name in names]


def test_a_lost_job_runs_again_under_its_id(connect, gate):
    """From its sources, in the process that submits it again; the driver that was cut off throws its items away."""
    ctx, other = connect(), connect()
    cut_off = ctx.new_job(plan_of(ctx.stream([1]).map(gate), to_ilist("a"), to_ilist("b")), name="one")
    assert gate.was_reached.wait(10)
    forget_driver(cut_off.driver)
    again = other.new_job(plan_of(other.stream([2]), to_ilist("a"), to_ilist("b")), name="one")
    again.join(10)
    gate.is_open.set()
    with pytest.raises(JobTakenOverError, match="another driver has taken over"):
        cut_off.join(10)

    assert (again.id, again.status, lists(ctx, "a", "b")) == (cut_off.id, ds.JobStatus.COMPLETED, [[2], [2]])
    assert cut_off.status is ds.JobStatus.COMPLETED


def test_a_driver_that_was_cut_off_cannot_commit(connect, gate):
    """Although the one that took over has not come that far yet: to take over means to be the one who commits."""
    rare = Rhythm(look=60.0)
    ctx, other, second = connect(rhythm=rare), connect(), Gate()
    cut_off = ctx.new_job(plan_of(ctx.stream([1]).map(gate), to_ilist("a")), name="one")
    assert gate.was_reached.wait(10)
    forget_driver(cut_off.driver)
    again = other.new_job(plan_of(other.stream([2]).map(second), to_ilist("a")), name="one")
    assert second.was_reached.wait(10)
    gate.is_open.set()
    with pytest.raises(JobTakenOverError, match="what this one wrote is thrown away"):
        cut_off.join(10)
    second.is_open.set()
    again.join(10)

    assert lists(ctx, "a") == [[2]]


def test_a_driver_that_committed_before_it_was_taken_over_has_decided(connect):
    """Who takes over publishes what is left of that and reads nothing; both may publish at once."""
    ctx, other, publishing = connect(), connect(), Gate()
    cut_off = ctx.new_job(plan_of(ctx.stream([1]), to_ilist("a"), Interrupted(publishing)), name="one")
    assert publishing.was_reached.wait(10)
    forget_driver(cut_off.driver)
    again = other.new_job(plan_of(other.stream([2]).map(broken), to_ilist("a"), Interrupted(bool)), name="one")
    again.join(10)
    publishing.is_open.set()
    with pytest.raises(JobTakenOverError):
        cut_off.join(10)

    assert lists(ctx, "a", "interrupted") == [[1], [1]]


def test_a_job_that_broke_between_two_commits_is_finished(ctx):
    """Under its name: what is left is published, nothing is read, and the sinks have one copy each."""
    sinks = to_ilist("a"), Interrupted(broken), to_imap("m", str, int)
    job = ctx.new_job(plan_of(ctx.stream([1]), *sinks), name="one")
    with pytest.raises(Broken):
        job.join(10)
    assert (job.status, job.epoch, lists(ctx, "a", "interrupted")) == (ds.JobStatus.FAILED, 1, [[1], []])
    repaired = to_ilist("a"), Interrupted(bool), to_imap("m", str, int)
    again = ctx.new_job(plan_of(ctx.stream([2]).map(broken), *repaired), name="one")
    again.join(10)

    assert (again.id, lists(ctx, "a", "interrupted"), dict(ctx.get_map("m").items())) == (job.id, [[1], [1]], {"1": 1})


def test_what_is_left_of_another_pipeline_is_not_published(ctx):
    """Its receipts belong to the sinks that it had; the message says what to do."""
    with pytest.raises(Broken):
        ctx.new_job(plan_of(ctx.stream([1]), to_ilist("a"), Interrupted(broken)), name="one").join(10)
    with pytest.raises(IllegalStateError, match="'one' has still to publish what it wrote"):
        ctx.new_job(plan_of(ctx.stream([1]), to_ilist("b")), name="one")

    assert not ctx.job("one").cancel()


def test_a_pipeline_may_change_as_long_as_nothing_is_decided(connect, gate):
    """A job that died before its receipts were put is run again whatever its pipeline is now."""
    ctx, other = connect(), connect()
    job = ctx.new_job(plan_of(ctx.stream([1]).map(gate), to_ilist("a")), name="one")
    assert gate.was_reached.wait(10)
    forget_driver(job.driver)
    other.new_job(plan_of(other.stream([2]), to_ilist("b"), to_ilist("c")), name="one").join(10)

    assert lists(ctx, "a", "b", "c") == [[], [2], [2]]


def test_a_driver_that_decides_while_it_is_taken_over_is_not_overruled(connect, gate, monkeypatch):
    """What it wrote is that of its own pipeline, and another one does not publish it."""
    ctx, other, second = connect(rhythm=Rhythm(look=60.0)), connect(), Gate()
    job = ctx.new_job(plan_of(ctx.stream([1]).map(gate), Interrupted(second), to_ilist("b")), name="one")
    assert gate.was_reached.wait(10)
    forget_driver(job.driver)
    late = lambda *given: (gate.is_open.set(), second.was_reached.wait(10), take_over(*given))[2]  # noqa: E731
    monkeypatch.setattr(registry, "take_over", late)
    with pytest.raises(IllegalStateError, match="'one' has still to publish what it wrote"):
        other.new_job(plan_of(other.stream([2]), to_ilist("c")), name="one")
    assert other.job("one").is_lost

    assert lists(ctx, "interrupted", "b", "c") == [[], [], []]
    second.is_open.set()


def unanswered(*given):
    """Be a storage that does not answer."""
    raise EngineError("the storage does not answer")


def test_a_driver_that_fails_while_it_takes_over_leaves_the_job_lost(connect, gate, monkeypatch):
    """The record names it already, and whoever submits the pipeline again need not wait for its signs of life."""
    ctx, other = connect(), connect(rhythm=Rhythm(lost_after=60.0))
    job = ctx.new_job(plan_of(ctx.stream([1]).map(gate), to_ilist("a")), name="one")
    assert gate.was_reached.wait(10)
    forget_driver(job.driver)
    with monkeypatch.context() as patched:
        patched.setattr(JobRecords, "write_epoch", unanswered)
        with pytest.raises(EngineError, match="does not answer"):
            other.new_job(plan_of(other.stream([2]), to_ilist("a")), name="one")
    other.new_job(plan_of(other.stream([2]), to_ilist("a")), name="one").join(10)
    gate.is_open.set()

    assert lists(ctx, "a") == [[2]]


def test_what_cannot_be_published_any_more_is_run_again(ctx):
    """The files of a sink are gone after a day; sinks that have published keep what they have."""
    with pytest.raises(Broken):
        ctx.new_job(plan_of(ctx.stream([1]), to_ilist("a"), Interrupted(broken)), name="one").join(10)
    gone = []

    def once(receipts):
        if not gone:
            gone.append(receipts)
            raise IllegalStateError("the files are gone")

    ctx.new_job(plan_of(ctx.stream([2]), to_ilist("a"), Interrupted(once)), name="one").join(10)

    assert lists(ctx, "a", "interrupted") == [[1], [2]]


def test_a_driver_without_a_sign_of_life_counts_as_gone(connect, gate):
    """Also one whose process is there: it may be stopped, or on another machine."""
    silent = Rhythm(look=60.0)
    ctx, other = connect(rhythm=silent), connect(rhythm=Rhythm(lost_after=0.2))
    job = ctx.new_job(plan_of(ctx.stream([1]).map(gate), to_ilist("a")), name="one")
    with pytest.raises(JobExistsError):
        other.new_job(plan_of(other.stream([2]), to_ilist("a")), name="one")
    while not other.job("one").is_lost:
        assert not gate.is_open.wait(0.02)
    other.new_job(plan_of(other.stream([2]), to_ilist("a")), name="one").join(10)

    assert (job.id, lists(ctx, "a")) == (other.job("one").id, [[2]])
    gate.is_open.set()


def test_a_job_that_this_process_drives_is_not_lost_while_its_signs_of_life_are_late(connect, gate):
    """On a machine without a free core they come late; others may take the job over, and who drives it can ask."""
    late = Rhythm(look=60.0, lost_after=0.05)
    ctx, other = connect(rhythm=late), connect(rhythm=late)
    job = ctx.new_job(plan_of(ctx.stream([1]).map(gate), to_ilist("a")), name="one")
    assert gate.was_reached.wait(10)
    time.sleep(0.1)
    seen = (job.is_lost, job.status, job.metrics().status, other.job("one").is_lost)
    gate.is_open.set()
    job.join(10)

    assert seen == (False, ds.JobStatus.RUNNING, "RUNNING", True)


def test_a_driver_gives_signs_of_life_by_a_clock_that_went_backwards(connect, gate):
    """Not only when it has come to where it was."""
    ctx, other = connect(), connect()
    job = ctx.new_job(plan_of(ctx.stream([1]).map(gate), to_ilist("a")), name="one")
    seen, last = other.job("one"), time.monotonic() + 5
    while seen.status is not ds.JobStatus.RUNNING:
        time.sleep(0.02)
    ctx._jobs._heart._clock = job._execution.lease._clock = lambda: time.time() - 3600
    while seen._state().beat_at > time.time() - 1800 and time.monotonic() < last:
        time.sleep(0.02)
    gate.is_open.set()
    job.join(10)

    assert time.monotonic() < last


def test_joining_a_lost_job_waits_for_another_driver(connect, gate):
    """If none comes for some time, it says what to do."""
    ctx, other = connect(), connect()
    job = ctx.new_job(plan_of(ctx.stream([1]).map(gate), to_ilist("a")), name="one")
    assert gate.was_reached.wait(10)
    waiting = other.job("one").future()
    forget_driver(job.driver)
    again = other.new_job(plan_of(other.stream([2]), to_ilist("a")), name="one")

    assert (waiting.result(10), again.status) == (None, ds.JobStatus.COMPLETED)


def test_joining_a_job_that_nobody_takes_over_ends(connect, gate):
    """After some time it says what to do."""
    ctx, other = connect(), connect()
    job = ctx.new_job(plan_of(ctx.stream([1]).map(gate), to_ilist("a")), name="one")
    assert gate.was_reached.wait(10)
    seen = other.job("one")
    forget_driver(job.driver)
    with pytest.raises(IllegalStateError, match="the driver of the job 'one' is gone; submit its pipeline"):
        seen.join(10)
    gate.is_open.set()


def test_an_exception_arrives_whole_in_another_process(connect):
    """Its type, message and notes; one whose class cannot be made there is told in words."""
    ctx, other = connect(), connect()
    job = ctx.new_job(plan_of(ctx.stream(["x"]).map(lambda text: int(text)), to_ilist("a")), name="one")
    with pytest.raises(ValueError, match="invalid literal") as here:
        job.join()
    with pytest.raises(ValueError, match="invalid literal") as there:
        other.job("one").join(10)

    assert there.value is not here.value
    assert there.value.__notes__ == here.value.__notes__
    assert other.job("one").failure_text.traceback.startswith("Traceback (most")


class Hostile:
    """Raises what no function expects when its pickle is loaded."""

    def __reduce__(self):
        return (exec, ("raise KeyboardInterrupt",))


class Strange(Exception):
    """An exception of which a part cannot be shown, or not be loaded."""

    def __init__(self, part):
        super().__init__("strange")
        self.part = part
        self.__notes__ = [self]
        self.load = Hostile() if part == "load" else None

    def __str__(self):
        raise KeyboardInterrupt

    def __bool__(self):
        raise self if self.part == "bool" else KeyboardInterrupt

    def __getattribute__(self, name):
        if name != "part" and BaseException.__getattribute__(self, "part") == "attribute":
            raise RuntimeError(name)
        return BaseException.__getattribute__(self, name)


@pytest.mark.parametrize("part", ["load", "bool", "attribute"])
def test_a_job_ends_whatever_its_exception_does(connect, part):
    """Here and in another process: nobody waits for ever."""
    ctx, other = connect(), connect()

    def fail(item):
        raise Strange(part)

    job = ctx.new_job(plan_of(ctx.stream([1]).map(fail), to_ilist("a")), name="one")
    assert isinstance(job.future().exception(10), RuntimeError if part == "attribute" else Strange)
    assert other.job("one").status is ds.JobStatus.FAILED
    assert isinstance(other.job("one").future().exception(10), RuntimeError | Strange | ds.errors.RemoteError)


def test_an_exception_that_may_not_be_loaded_is_told(connect):
    """The storage decides whether pickles are loaded; the texts are there in any case."""
    ctx, other = connect(), connect(pickle="never")
    job = ctx.new_job(plan_of(ctx.stream(["x"]).map(lambda text: int(text)), to_ilist("a")), name="one")
    with pytest.raises(ValueError, match="invalid literal"):
        job.join()
    with pytest.raises(ds.errors.RemoteError, match="ValueError: invalid literal for int") as caught:
        other.job("one").join(10)

    error = caught.value
    assert (error.type_name, len(error.notes), "Traceback" in error.traceback) == ("ValueError", 3, True)
    with pytest.raises(TypeError, match="never"):
        _ = other.job("one").pipeline


def test_the_pipeline_of_a_job_can_be_submitted_elsewhere(connect):
    """It is kept in the storage, with the lambdas in it."""
    ctx, other = connect(), connect()
    ctx.new_job(plan_of(ctx.stream([1]).map(lambda n: n + 1), to_ilist("a")), name="one").join()
    other.new_job(other.job("one").pipeline).join()

    assert lists(ctx, "a") == [[2, 2]]


@pytest.mark.parametrize("travels", [True, False])
def test_the_pipeline_of_a_job_is_that_of_its_last_run(connect, gate, travels):
    """The one of a driver before is not mistaken for it; one that cannot travel, as a lock cannot, is not there."""
    ctx, other, third = connect(), connect(), connect()
    job = ctx.new_job(plan_of(ctx.stream([1]), to_ilist("a"), Interrupted(broken)), name="one")
    assert isinstance(job.future().exception(10), Broken)
    ctx._jobs._records.keep_pickle(job.id, "plan", written_plan(plan_of(ctx.stream([1]), to_ilist("old"))))
    gate.is_open.set()
    other.new_job(
        plan_of(other.stream([2]).map(str if travels else gate), to_ilist("a"), Interrupted(bool)), name="one"
    ).join(10)
    if travels:
        assert len(third.job("one").pipeline.writes) == 2
    else:
        with pytest.raises(IllegalStateError, match="the pipeline of the job 'one' is not in the storage"):
            _ = third.job("one").pipeline


@pytest.mark.parametrize("by", ["dstream 0.0.1 on Python 3.11", "another version of dstream"])
def test_a_pipeline_of_other_versions_is_submitted_again(ctx, connect, by):
    """It is code, whose modules and bytes are others there; nothing of it is loaded."""
    job = ctx.new_job(plan_of(ctx.stream([1]), to_ilist("a")), name="one")
    job.join(10)
    ctx._jobs._records.keep_pickle(job.id, "plan", f"{by}\n".encode() + b"no pickle")

    with pytest.raises(IllegalStateError) as refused:
        _ = connect().job("one").pipeline
    assert str(refused.value) == (
        f"the pipeline of the job 'one' was stored by {by}, and this is dstream {ds.__version__} on Python "
        f"{sys.version_info.major}.{sys.version_info.minor}: submit it again"
    )


def test_a_lost_job_that_publishes_is_not_cancelled_and_waits_for_its_driver_still(ctx, connect, gate):
    """Whoever asked is not its driver for others, for whom it would run for ten seconds."""
    job = ctx.new_job(plan_of(ctx.stream([1]), Interrupted(gate)), name="decided")
    assert gate.was_reached.wait(10)
    forget_driver(job.driver)
    other = connect()
    seen = other.job("decided")
    assert not seen.cancel()
    gate.is_open.set()

    assert seen._state().status is ds.JobStatus.NOT_RUNNING


def test_a_job_whose_requests_are_damaged_is_alive_and_says_so(ctx, connect, gate, caplog):
    """Others see its signs of life, so that none of them takes it over; the log names the record, once."""
    records = ctx._jobs._records.all
    job = ctx.new_job(plan_of(ctx.stream([1]).map(gate), to_ilist("out")), name="deaf")
    assert records.write(f"jobs/{job.id}/request", b"torn", 1)
    seen = connect().job("deaf")
    beat_at = seen._state().beat_at
    eventually(lambda: seen._state().beat_at > beat_at + 0.3)
    with pytest.raises(IllegalStateError, match=f"the request to the job {job.id} is damaged"):
        seen.cancel()

    assert (seen.status, seen.is_lost) == (ds.JobStatus.RUNNING, False)
    assert caplog.text.count("the job 'deaf' hears no other process, since requests cannot be read") == 1


def test_a_driver_whose_storage_was_removed_says_so(ctx, place, gate):
    """No other driver is to blame, and nothing waits for ever."""
    job = ctx.new_job(plan_of(ctx.stream([1]).map(gate), to_ilist("out")), name="removed")
    assert gate.was_reached.wait(10)
    shutil.rmtree(place)
    with pytest.raises(JobTakenOverError, match=f"the record of the job {job.id} is gone.* its storage was removed"):
        job.join(20)
    with pytest.raises(IllegalStateError, match=f"there is no record of the job {job.id} any more"):
        job.cancel()
