"""`ctx.new_job`: what it registers, what it refuses, and how one waits for a job."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from dataclasses import replace
from functools import partial

import pytest

import dstream as ds
from dstream.errors import IllegalStateError, JobExistsError, UnsupportedError
from dstream.jobs.driver import Execution
from dstream.jobs.records import JobRecords
from dstream.plan import Read
from dstream.plan.operations.streams import Fork
from dstream.testing import assert_ordered
from reducers import to_ilist, to_imap
from sources import Items
from tests.jobs.planned import plan_of


def test_new_job_runs_beside_the_caller(ctx, gate):
    """It returns while the pipeline runs; `join` returns when its sinks are written."""
    job = ctx.new_job(plan_of(ctx.stream([1, 2, 3]).map(gate), to_ilist("out")))
    assert gate.was_reached.wait(10)
    assert (job.status, ctx.get_list("out").copy()) == (ds.JobStatus.RUNNING, [])
    gate.is_open.set()
    job.join()

    assert (job.status, ctx.get_list("out").copy()) == (ds.JobStatus.COMPLETED, [1, 2, 3])


def test_new_job_says_what_is_known_of_it(ctx):
    """Name, configuration, times and epoch; they stay when the job has ended."""
    job = ctx.new_job(plan_of(ctx.stream([1]), to_ilist("out")), name="one", config=ds.JobConfig(auto_restart=0))
    job.join()

    assert (job.name, job.config, job.epoch, job.failure) == ("one", ds.JobConfig(name="one", auto_restart=0), 1, None)
    assert job.submitted_at <= job.started_at <= job.ended_at
    assert repr(job) == "<job 'one', COMPLETED>"


def test_new_job_takes_a_pipeline(ctx):
    """Anything with `plan()` is one; all else is refused before anything is registered."""
    planned = type("Planned", (), {"plan": lambda self: plan_of(ctx.stream([1]), to_ilist("out"))})()
    ctx.new_job(planned).join()
    with pytest.raises(TypeError, match=r"new_job\(\) takes a pipeline, not 3"):
        ctx.new_job(3)
    with pytest.raises(ValueError, match="writes to none"):
        ctx.new_job(plan_of(ctx.stream([1])))

    assert len(ctx.jobs()) == 1


def test_new_job_of_a_name_that_runs_is_refused(ctx, gate):
    """One job of a name runs at a time; the message says where."""
    plan = plan_of(ctx.stream([1]).map(gate), to_ilist("out"))
    job = ctx.new_job(plan, name="one")
    with pytest.raises(JobExistsError, match=r"the job 'one' is running already, in process \d+"):
        ctx.new_job(plan, name="one")

    assert ctx.new_job_if_absent(plan, name="one") == job
    assert ctx.jobs() == [job]


def test_new_job_of_a_name_that_has_ended_is_another_one(ctx):
    """Each has its id; the latest of the name is found by it."""
    plan = plan_of(ctx.stream([1]), to_ilist("out"))
    first = ctx.new_job(plan, name="one")
    first.join()
    second = ctx.new_job_if_absent(plan, name="one")
    second.join()

    assert (ctx.jobs("one"), ctx.job("one"), ctx.job(first.id)) == ([second, first], second, first)
    assert (ctx.get_list("out").copy(), ctx.jobs("two"), ctx.job("two")) == ([1, 1], [], None)


def test_new_job_has_one_name(ctx):
    """That of the argument and that of the configuration must be equal."""
    plan = plan_of(ctx.stream([1]), to_ilist("out"))
    with pytest.raises(ValueError, match="two names: name='a', and 'b' in its config"):
        ctx.new_job(plan, name="a", config=ds.JobConfig(name="b"))

    assert ctx.new_job(plan, name="a", config=ds.JobConfig(name="a")).name == "a"
    assert ctx.new_job(plan, config=ds.JobConfig(name="c")).name == "c"


def test_new_job_writes_to_each_of_its_sinks(ctx):
    """Two sinks that write into one list leave two copies, the first in front."""
    stream = ctx.stream(["a", "b"])
    ctx.new_job(plan_of(stream, to_ilist("out"), to_imap("ages", str, len), to_ilist("out"))).join()

    assert ctx.get_list("out").copy() == ["a", "b", "a", "b"]
    assert dict(ctx.get_map("ages").items()) == {"a": 1, "b": 1}


class Customers:
    """Stands for the list `customers` until a job starts."""

    def opened(self, context):
        """Return what reads the list of that context."""
        return Items(context.get_list("customers"))


def test_what_a_pipeline_knows_by_its_name_is_opened_in_the_context(ctx):
    """When the job starts, so that a pipeline needs none before."""
    ctx.get_list("customers").extend(["Ada", "Grace"])
    plan = plan_of(ds.Stream.of(1), to_ilist("out"))
    read = Read(Customers())
    ctx.new_job(plan.with_writes([replace(write, node=read) for write in plan.writes])).join(10)

    assert ctx.get_list("out").copy() == ["Ada", "Grace"]


def test_join_raises_what_the_job_failed_with(ctx):
    """The user's own exception, with its notes, each time it is asked for; nothing is written."""
    job = ctx.new_job(plan_of(ctx.stream([1, 0]).map(lambda n: 1 // n), to_ilist("out"), to_ilist("too")))
    depths = []
    for _ in range(2):
        with pytest.raises(ZeroDivisionError) as caught:
            job.join()
        depths.append(len(caught.traceback))

    assert "on the item 0" in caught.value.__notes__[1]
    assert ".map(lambda) at tests/jobs/test_new_job.py:" in caught.value.__notes__[1]
    assert (job.status, job.failure, depths[0]) == (ds.JobStatus.FAILED, caught.value, depths[1])
    assert (ctx.get_list("out").copy(), ctx.get_list("too").copy(), job.epoch) == ([], [], 0)


def test_join_waits_no_longer_than_it_is_told(ctx, gate):
    """The job goes on."""
    job = ctx.new_job(plan_of(ctx.stream([1]).map(gate), to_ilist("out")), name="one")
    with pytest.raises(TimeoutError, match=r"the job 'one' has not ended within 0\.01 seconds; it goes on"):
        job.join(timeout=0.01)
    gate.is_open.set()
    job.join(timeout=10)

    assert ctx.get_list("out").copy() == [1]


def test_join_takes_seconds(ctx, gate):
    """Any number of them, and nothing else."""
    job = ctx.new_job(plan_of(ctx.stream([1]).map(gate), to_ilist("out")), name="slow")
    for wrong in ("1", True, float("nan")):
        with pytest.raises(TypeError, match=r"join\(\) takes seconds, not"):
            job.join(wrong)
    with pytest.raises(TimeoutError):
        job.join(-1)
    gate.is_open.set()
    job.join(float("inf"))


def test_a_context_is_closed_in_a_callback_of_its_job(connect):
    """The thread of the job does not wait for itself."""
    ctx, problems, has_ended = connect(), [], threading.Event()

    def close(_):
        try:
            ctx.close()
        except RuntimeError as error:
            problems.append(error)
        has_ended.set()

    ctx.new_job(plan_of(ctx.stream([1]), to_ilist("out"))).future().add_done_callback(close)
    assert has_ended.wait(10)
    assert problems == []


def test_future_is_awaitable(ctx):
    """A job that completes gives None; its own future cannot be cancelled."""
    job = ctx.new_job(plan_of(ctx.stream([1]), to_ilist("out")))

    async def wait() -> None:
        return await asyncio.wrap_future(job.future())

    assert asyncio.run(wait()) is None
    assert isinstance(job.future(), Future)
    assert (job.future().cancel(), job.future().exception()) == (False, None)


def test_future_of_a_cancelled_job_is_cancelled(ctx, gate):
    """Also for who awaits it, who may have stopped to wait before."""
    job = ctx.new_job(plan_of(ctx.stream([1]).map(gate), to_ilist("out")))

    async def wait() -> None:
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(asyncio.wrap_future(job.future()), 0.01)
        assert job.cancel()
        await asyncio.wrap_future(job.future())

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(wait())
    with pytest.raises(CancelledError):
        job.join()


def test_a_block_joins_and_cancels(ctx, gate):
    """At its end the job is joined; if an exception leaves it, the job is cancelled."""
    with ctx.new_job(plan_of(ctx.stream([1]), to_ilist("out"))) as done:
        pass
    with pytest.raises(KeyError), ctx.new_job(plan_of(ctx.stream([1]).map(gate), to_ilist("out"))) as left:
        raise KeyError

    with pytest.raises(CancelledError):
        left.join(10)
    assert (done.status, ctx.get_list("out").copy()) == (ds.JobStatus.COMPLETED, [1])


def test_a_block_that_cancels_its_job_ends_as_it_asked(ctx, gate):
    """What the block has asked for is no error of it."""
    with ctx.new_job(plan_of(ctx.stream([1]).map(gate), to_ilist("out"))) as job:
        assert job.cancel()

    assert job.status is ds.JobStatus.CANCELLED


def test_a_block_says_that_somebody_else_cancelled_its_job(ctx, gate):
    """The block has not asked for it, and what it waits for did not come."""
    pipeline = plan_of(ctx.stream([1]).map(gate), to_ilist("out"))
    with pytest.raises(CancelledError), ctx.new_job(pipeline, name="one"):
        assert ctx.job("one").cancel()


def test_ten_jobs_run_at_once(ctx):
    """Each waits for all others, so that none could run behind another."""
    together = threading.Barrier(10)

    def meet(item: int) -> int:
        together.wait(20)
        return item

    jobs = [ctx.new_job(plan_of(ctx.stream([n]).map(meet), to_ilist("out"))) for n in range(10)]
    for job in jobs:
        job.join(20)

    assert sorted(ctx.get_list("out").copy()) == list(range(10))


def test_closing_a_context_joins_its_jobs(connect, gate, caplog):
    """A job that fails without anybody asking is told in the log."""
    ctx, other = connect(), connect()
    job = ctx.new_job(plan_of(ctx.stream([1]).map(gate), to_ilist("out")))
    ctx.new_job(plan_of(ctx.stream([1]).map(lambda n: n / 0), to_ilist("out")), name="bad")
    threading.Timer(0.05, gate.is_open.set).start()
    ctx.close()

    assert other.job(job.id).status is ds.JobStatus.COMPLETED
    assert [record.getMessage() for record in caplog.records] == [
        "the job 'bad' has failed, and nobody asked for its end: ZeroDivisionError('division by zero')"
    ]


@pytest.mark.parametrize("name", ["suspend", "resume", "export_snapshot", "cancel_and_export_snapshot", "update"])
def test_what_bounded_jobs_do_not_do_is_refused(ctx, gate, name):
    """Before anything stops: the job goes on."""
    job = ctx.new_job(plan_of(ctx.stream([1]).map(gate), to_ilist("out")))
    with pytest.raises(UnsupportedError, match=rf"{name}\(\) does not exist for bounded jobs"):
        getattr(job, name)(*([] if name in ("suspend", "resume") else ["x"]))
    gate.is_open.set()
    job.join()

    assert ctx.get_list("out").copy() == [1]


def test_an_endless_pipeline_is_refused(ctx):
    """Before it is registered."""
    with pytest.raises(UnsupportedError, match="takes items that never end, and cannot be read range by range"):
        ctx.new_job(plan_of(ds.Stream.iterate(1, lambda n: n + 1), to_ilist("out")))

    assert ctx.jobs() == []


def test_an_endless_fork_is_refused(ctx):
    """A limit behind a step behind it makes an end, and the fork is read without one all the same."""
    endless = ds.Stream(Fork(ds.Stream.iterate(1, lambda n: n + 1)._node), None).map(str).limit(3)
    with pytest.raises(IllegalStateError, match="cannot be read by several stages of a pipeline"):
        ctx.new_job(plan_of(endless, to_ilist("out")))

    assert ctx.jobs() == []


def test_a_sink_of_several_that_cannot_commit_is_the_one_to_blame(ctx):
    """Its step is counted in the whole pipeline, not in its own branch."""
    pipeline = ds.Pipeline()
    numbers = pipeline.read_from(Items([1, 2]))
    numbers.write_to(to_ilist("out"))
    numbers.map(str).write_to(assert_ordered(["bad"]))
    with pytest.raises(AssertionError) as caught:
        ctx.new_job(pipeline).join()
    notes = "\n".join(caught.value.__notes__)

    assert "Where: step 4 of 4, .write_to(assert_ordered(['bad']))" in notes
    assert ".write_to(assert_ordered(['bad'])) ended with AssertionError" in notes


def test_the_pipeline_of_a_job_is_kept_before_it_runs(ctx, monkeypatch):
    """A process that dies in between leaves a job that has read nothing."""
    order = []
    for kind, method, what in ((JobRecords, "keep_pickle", "kept"), (Execution, "_start_thread", "started")):
        monkeypatch.setattr(kind, method, _noting(getattr(kind, method), partial(order.append, what)))

    ctx.new_job(plan_of(ctx.stream([1]), to_ilist("out"))).join(10)

    assert order == ["kept", "started"]


def test_a_job_that_is_interrupted_before_it_runs_has_failed(ctx, monkeypatch):
    """Its name is free again."""

    def interrupted(*args):
        raise KeyboardInterrupt

    pipeline = plan_of(ctx.stream([1]), to_ilist("out"))
    monkeypatch.setattr(Execution, "_start_thread", interrupted)
    with pytest.raises(KeyboardInterrupt):
        ctx.new_job(pipeline, name="one")
    monkeypatch.undo()

    assert ctx.job("one").status is ds.JobStatus.FAILED
    ctx.new_job(pipeline, name="one").join(10)


def test_a_job_that_is_interrupted_while_it_is_registered_is_lost(ctx, monkeypatch):
    """Nobody drives it, and its name may be taken."""
    pipeline = plan_of(ctx.stream([1]), to_ilist("out"))
    take_name = JobRecords.take_name

    def interrupted(*args):
        take_name(*args)
        raise KeyboardInterrupt

    monkeypatch.setattr(JobRecords, "take_name", interrupted)
    with pytest.raises(KeyboardInterrupt):
        ctx.new_job(pipeline, name="one")
    monkeypatch.undo()

    assert ctx.job("one").is_lost
    ctx.new_job(pipeline, name="one").join(10)


def test_a_job_whose_submission_is_interrupted_writes_nothing(connect, monkeypatch, gate):
    """Also if its driver has begun: what it makes is thrown away."""
    ctx, start_thread = connect(), Execution._start_thread

    def interrupted(execution):
        start_thread(execution)
        assert gate.was_reached.wait(10)
        raise KeyboardInterrupt

    monkeypatch.setattr(Execution, "_start_thread", interrupted)
    with pytest.raises(KeyboardInterrupt):
        ctx.new_job(plan_of(ctx.stream([1, 2]).map(gate), to_ilist("out")), name="one")
    gate.is_open.set()

    assert ctx.job("one").status is ds.JobStatus.FAILED
    ctx.close()
    assert list(connect().get_list("out")) == []


def test_a_job_that_ends_while_its_status_is_read_has_that_end(ctx, monkeypatch):
    """Its driver has gone then, and what was read before says that it runs."""
    job = ctx.new_job(plan_of(ctx.stream([1]), to_ilist("out")))
    before = job._state()
    job.join(10)
    states = iter([replace(before, status=ds.JobStatus.RUNNING)])
    monkeypatch.setattr(job, "_state", lambda state=job._state: next(states, None) or state())

    assert job.status is ds.JobStatus.COMPLETED


def _noting(method, note):
    """Return a method that says when it is called."""

    def noting(*args):
        note()
        return method(*args)

    return noting
