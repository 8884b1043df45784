"""Cancelling and restarting: who does it, and that sinks stay whole."""

from __future__ import annotations

import threading
import time
from concurrent.futures import CancelledError, wait
from types import SimpleNamespace

import pytest

import dstream as ds
from dstream.errors import EngineError, IllegalStateError
from dstream.jobs.driver import Execution
from dstream.jobs.heartbeats import Heartbeats, Rhythm
from dstream.jobs.records import Request
from dstream.jobs.state import forget_driver
from reducers import to_ilist
from tests.jobs.planned import Gate, Interrupted, lose_worker, plan_of
from tests.jobs.unbounded.streams import eventually


def test_cancel_is_true_for_the_call_that_did_it(ctx, gate):
    """Sinks stay as they were, and whoever joins hears of it."""
    job = ctx.new_job(plan_of(ctx.stream([1]).map(gate), to_ilist("a"), to_ilist("b")))
    assert gate.was_reached.wait(10)
    assert [job.cancel(), job.cancel()] == [True, False]
    with pytest.raises(CancelledError, match=rf"^the job {job.id} was cancelled$"):
        job.join(5)
    gate.is_open.set()

    assert (job.status, job.cancel(), job.epoch) == (ds.JobStatus.CANCELLED, False, 0)
    assert [ctx.get_list(name).copy() for name in "ab"] == [[], []]


def test_cancel_while_a_function_sleeps_ends_the_job_in_time(ctx):
    """On the local engine its thread is left behind, and what it makes is thrown away."""
    sleeps, wake = threading.Event(), threading.Event()
    job = ctx.new_job(plan_of(ctx.stream([1]).map(lambda n: sleeps.set() or wake.wait(20)), to_ilist("out")))
    assert sleeps.wait(10)
    job.cancel()
    with pytest.raises(CancelledError):
        job.join(5)
    wake.set()

    assert (job.status, ctx.get_list("out").copy()) == (ds.JobStatus.CANCELLED, [])
    assert Rhythm().look + Rhythm().patience < 5


def test_cancel_comes_too_late_once_a_job_publishes(ctx):
    """It is decided then: cancel does nothing, and the job completes."""
    gate = Gate()
    job = ctx.new_job(plan_of(ctx.stream([1]), to_ilist("a"), Interrupted(gate)))
    assert gate.was_reached.wait(10)
    assert (job.status, job.cancel(), job.restart()) == (ds.JobStatus.COMPLETING, False, False)
    gate.is_open.set()
    job.join(10)

    assert [ctx.get_list(name).copy() for name in ("a", "interrupted")] == [[1], [1]]


def test_cancel_from_elsewhere_reaches_the_driver(connect, gate):
    """Another context on the storage, as any other process, asks by a record; one of two askers gets True."""
    ctx, other = connect(), connect()
    job = ctx.new_job(plan_of(ctx.stream([1]).map(gate), to_ilist("out")), name="one")
    assert gate.was_reached.wait(10)
    seen = other.job("one")
    assert [seen.cancel(), seen.cancel()] == [True, False]
    with pytest.raises(CancelledError, match=r"^the job 'one' was cancelled$"):
        seen.join(10)

    assert (seen.status, job.status) == (ds.JobStatus.CANCELLED, ds.JobStatus.CANCELLED)


def test_cancel_from_elsewhere_is_true_however_fast_the_job_ends(connect, gate, monkeypatch):
    """Whoever sees that the job has ended sees also whose request it was."""
    ctx, other = connect(), connect()
    job = ctx.new_job(plan_of(ctx.stream([1]).map(gate), to_ilist("out")), name="one")
    assert gate.was_reached.wait(10)
    ask = Execution.ask
    late = lambda self, want, _: (ask(self, want), gate.is_open.set(), wait([self.future], 0.5))[0]  # noqa: E731
    monkeypatch.setattr(Execution, "ask", late)

    assert other.job("one").cancel()
    assert wait([job.future()], 10).done


def test_restart_runs_the_job_again(connect, gate):
    """Under the same id, from its sources; what the run before has made is thrown away."""
    ctx, other = connect(), connect()
    calls = []

    def first_waits(item):
        calls.append(item)
        return gate(item) if len(calls) == 1 else item

    job = ctx.new_job(plan_of(ctx.stream([1, 2]).map(first_waits), to_ilist("out")), name="one")
    assert gate.was_reached.wait(10)
    assert other.job("one").restart()
    job.join(10)
    gate.is_open.set()

    assert (calls[:3], ctx.get_list("out").copy(), job.metrics().runs) == ([1, 1, 2], [1, 2], 2)
    with pytest.raises(IllegalStateError, match="'one' has ended: it is COMPLETED"):
        job.restart()


def test_cancel_ends_a_job_whose_driver_is_gone(connect, gate):
    """At once; nobody can restart it from elsewhere, since the pipeline is with who submits it."""
    ctx, other = connect(), connect()
    job = ctx.new_job(plan_of(ctx.stream([1]).map(gate), to_ilist("out")), name="one")
    assert gate.was_reached.wait(10)
    other.job("one").is_lost  # noqa: B018 - it is not, yet
    forget_driver(job.driver)
    lost = other.job("one")
    assert (lost.is_lost, lost.status) == (True, ds.JobStatus.NOT_RUNNING)
    with pytest.raises(IllegalStateError, match="the driver of the job 'one' is gone"):
        lost.restart()

    assert [lost.cancel(), lost.cancel()] == [True, False]
    assert lost.status is ds.JobStatus.CANCELLED


def test_a_job_starts_again_when_the_engine_was_lost(ctx):
    """As often as it is allowed to; its sinks have one copy."""
    calls = []

    def fails_twice(item):
        calls.append(item)
        if len(calls) < 3:
            lose_worker()
        return item

    config = ds.JobConfig(auto_restart=(2, 0))
    job = ctx.new_job(plan_of(ctx.stream([7]).map(fails_twice), to_ilist("out")), config=config)
    job.join(10)

    assert (ctx.get_list("out").copy(), job.metrics().runs, job.failure) == ([7], 3, None)


def test_a_job_fails_when_it_has_started_again_too_often(ctx):
    """With the exception of the last run."""

    def fails(item):
        lose_worker()

    job = ctx.new_job(plan_of(ctx.stream([7]).map(fails), to_ilist("out")), config=ds.JobConfig(auto_restart=(1, 0)))
    with pytest.raises(EngineError, match="a worker was lost"):
        job.join(10)

    assert (job.metrics().runs, job.status) == (2, ds.JobStatus.FAILED)


@pytest.mark.parametrize("kind", [ConnectionError, EngineError])
def test_an_exception_of_the_users_fails_a_job_at_once(ctx, kind):
    """Whatever `auto_restart` says, also for a lost connection of their own, and for what an engine raises."""

    def fails(item):
        raise kind("theirs")

    job = ctx.new_job(plan_of(ctx.stream([7]).map(fails), to_ilist("out")))
    with pytest.raises(kind, match="theirs"):
        job.join(10)

    assert job.metrics().runs == 1


def test_cancel_ends_the_pause_before_a_restart(ctx):
    """A job that waits for the engine to come back can be cancelled."""
    failed = threading.Event()

    def fails(item):
        failed.set()
        lose_worker()

    job = ctx.new_job(plan_of(ctx.stream([7]).map(fails), to_ilist("out")), config=ds.JobConfig(auto_restart=(1, 50)))
    assert failed.wait(10)
    assert job.cancel()
    with pytest.raises(CancelledError):
        job.join(5)

    assert job.status is ds.JobStatus.CANCELLED


def test_a_restart_while_the_engine_is_renewed_leaves_one_driver(ctx, gate, monkeypatch):
    """The job goes on in another thread; the one that comes back from the engine ends, and runs nothing."""
    renewing, calls = Gate(), []

    def work(item):
        calls.append(item)
        return lose_worker() if len(calls) == 1 else gate(item)

    monkeypatch.setattr(ctx, "renew_engine", lambda: renewing(None))
    job = ctx.new_job(plan_of(ctx.stream([1]).map(work), to_ilist("a")), config=ds.JobConfig(auto_restart=(3, 0.01)))
    driver = job._execution._left
    assert renewing.was_reached.wait(10)
    assert job.restart()
    assert gate.was_reached.wait(10)
    renewing.is_open.set()
    assert driver.wait(10)
    gate.is_open.set()
    job.join(10)

    assert (calls, list(ctx.get_list("a")), job.metrics().runs) == ([1, 1], [1], 2)


def no_thread(*given):
    """Refuse a thread as Python does."""
    raise RuntimeError("can't start new thread")


def is_waited_for(execution):
    """Return whether the end of a context waits for the thread of a job."""
    began = time.monotonic()
    execution.leave(5)
    return time.monotonic() - began >= 5


def test_a_job_that_gets_no_thread_for_its_next_run_fails(ctx, gate, monkeypatch):
    """Whoever waits for its end hears why; nothing would run it."""
    job = ctx.new_job(plan_of(ctx.stream([1]).map(gate), to_ilist("out")))
    assert gate.was_reached.wait(10)
    monkeypatch.setattr("dstream.jobs.driver.in_a_thread", no_thread)
    assert job.restart()
    with pytest.raises(RuntimeError, match="can't start new thread"):
        job.join(10)

    assert job.status is ds.JobStatus.FAILED
    assert not is_waited_for(job._execution)


def test_a_job_that_gets_no_thread_for_its_first_run_is_not_waited_for(ctx, monkeypatch):
    """Nor one whose pipeline cannot be stored."""
    made = []
    monkeypatch.setattr("dstream.jobs.registry.Execution", lambda *given: made.append(Execution(*given)) or made[-1])
    for part in ("in_a_thread", "keep_plan"):
        with monkeypatch.context() as patched:
            patched.setattr(f"dstream.jobs.driver.{part}", no_thread)
            with pytest.raises(RuntimeError, match="can't start new thread"):
                ctx.new_job(plan_of(ctx.stream([1]), to_ilist("out")))

    assert list(map(is_waited_for, made)) == [False, False]


def test_a_job_that_nothing_can_look_after_fails(connect, gate, monkeypatch):
    """As its submission does; other jobs run, and the context can be closed."""
    ctx, start = connect(), threading.Thread.start
    with monkeypatch.context() as patched:
        patched.setattr(
            threading.Thread, "start", lambda self: no_thread() if self.name == "dstream-jobs" else start(self)
        )
        with pytest.raises(RuntimeError, match="can't start new thread"):
            ctx.new_job(plan_of(ctx.stream([1]).map(gate), to_ilist("out")), name="one")
        gate.is_open.set()
        assert ctx.job("one").status is ds.JobStatus.FAILED
        ctx.close()

    again = connect()
    again.new_job(plan_of(again.stream([2]), to_ilist("out")), name="one").join(10)
    assert list(again.get_list("out")) == [2]


class Looked:
    """A job as the thread sees it that looks after all of them."""

    has_ended = False

    def __init__(self, *requests):
        self.records, self.looks, self.answered = SimpleNamespace(requests=lambda identity: requests), 0, []
        self.lease = SimpleNamespace(state=SimpleNamespace(id="one", answered=0))

    def abandon_run(self, after):
        """Count the looks."""
        self.looks += 1

    def answer(self, requests):
        """Take the answer down."""
        self.answered += requests


def test_jobs_are_looked_after_when_there_are_threads_again(monkeypatch):
    """Also one that came while there were none."""
    heartbeats, first, second = Heartbeats(None, Rhythm(look=0.01), float), Looked(), Looked()
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", no_thread)
        with pytest.raises(RuntimeError):
            heartbeats.add(first)
    heartbeats.add(second)
    eventually(lambda: first.looks and second.looks, 10)
    heartbeats.stop(10)


def test_an_update_is_answered_when_there_is_a_thread_for_it_again(monkeypatch):
    """Until then the job hears other requests, and the update stays where it is."""
    update = Request(1, "update", "mark")
    job = Looked(update)
    heartbeats = Heartbeats(job.records, Rhythm(), float)
    with monkeypatch.context() as patched:
        patched.setattr("dstream.jobs.heartbeats.in_a_thread", no_thread)
        heartbeats._look_after(job)
    heartbeats._look_after(job)

    eventually(lambda: job.answered == [update], 10)
