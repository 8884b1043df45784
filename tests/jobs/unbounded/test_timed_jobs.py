"""Jobs whose steps know time and keep state from epoch to epoch."""

from __future__ import annotations

import pytest

import dstream as ds
from collectors import counting
from dstream.errors import IllegalStateError
from dstream.jobs import JobStatus
from dstream.jobs.unbounded.log import EpochLog
from dstream.windows import (
    limiting_lag,
    limiting_lag_and_delay,
    limiting_lag_and_lull,
    limiting_timestamp_and_wall_clock_lag,
    tumbling,
)
from reducers import to_ilist
from tests.jobs.planned import lose_worker
from tests.jobs.unbounded.streams import Feed, eventually, read_stream
from tests.jobs.unbounded.summing import FrameSums, Lagging
from tests.jobs.unbounded.timed_plans import summing_plan


def clock_at(seconds):
    """A clock that a test turns."""
    return lambda: seconds[0]


def submitted(ctx, feed, policy=Lagging, **config):
    """Submit the job that sums numbers by frames."""
    plan = summing_plan(feed, policy, FrameSums())
    return ctx.new_job(plan, name="sums", config=ds.JobConfig(**config))


def test_windows_close_while_the_job_goes_on(ctx):
    """As soon as the watermark passes them; the clock of the job is what is complete."""
    feed = Feed({"0": [2, 4], "1": [6, 12]})
    job = submitted(ctx, feed)
    eventually(lambda: job.epoch == 1)
    feed.give(15)
    eventually(lambda: job.epoch == 2)

    assert (ctx.get_list("out").copy(), job.clock) == ([(10, 12)], 12)
    assert job.metrics().watermarks == {"source": 12, "sums": 12}


POLICIES = [
    limiting_lag(2),
    limiting_lag_and_delay(2, 1000),
    limiting_timestamp_and_wall_clock_lag(2, 1e10),
    limiting_lag_and_lull(2, 1000),
]


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: type(policy).__name__)
def test_time_goes_on_where_only_plain_pickles_are_loaded(connect, policy):
    """As in a folder that others can write to, and on Redis: the records of epochs have policies in them."""
    ctx, feed = connect(pickle="restricted"), Feed()
    pipeline = ds.Pipeline()
    timed = read_stream(pipeline, feed).add_timestamps(lambda n: n, policy=policy)
    counted = timed.window(tumbling(10)).aggregate(counting())
    counted.map(lambda found: (found.start, found.result)).write_to(to_ilist("out"))
    job = ctx.new_job(pipeline)
    for number, item in enumerate((1, 5, 12), 1):
        feed.give(item)
        eventually(lambda number=number: job.epoch == number or job.status.has_ended)

    assert ctx.get_list("out").copy() == [(0, 2)]


def test_a_source_that_ends_closes_all_windows(ctx):
    """Then the job is complete."""
    feed = Feed({"0": [2, 14], "1": [26]})
    feed.end()
    job = submitted(ctx, feed)
    job.join(10)

    assert sorted(ctx.get_list("out")) == [(10, 2), (20, 14), (30, 26)]


def test_a_source_without_partitions_is_no_reason_to_end(ctx):
    """Unless it says that it ends, as a folder that is empty does not."""
    feed = Feed({})
    job = submitted(ctx, feed)
    eventually(lambda: feed.asked > 3)
    assert job.status is JobStatus.RUNNING
    feed.give(2, 14)
    eventually(lambda: job.epoch == 1)
    (mark,) = EpochLog(ctx._jobs._records.all, job.id, "").read(1).sources.values()

    assert (ctx.get_list("out").copy(), mark.has_ended) == ([(10, 2)], False)


def test_a_partition_that_comes_back_is_read_once(connect):
    """Also by the next driver."""
    feed, first = Feed({"0": [2], "1": [4]}), connect()
    job = submitted(first, feed)
    eventually(lambda: job.epoch == 1)
    away = feed.partitions.pop("1")
    feed.give(6)
    eventually(lambda: job.epoch == 2)
    first.close()
    feed.give(*away, 8, to="1")
    feed.end()
    ctx = connect()
    submitted(ctx, feed).join(10)

    assert ctx.get_list("out").copy() == [(10, 20)]


def test_state_survives_a_driver(connect):
    """The next one adds to the sums of the one before."""
    feed, first = Feed({"0": [2, 4]}), connect()
    job = submitted(first, feed)
    eventually(lambda: job.epoch == 1)
    first.close()
    feed.give(6, 11)
    ctx = connect()
    again = submitted(ctx, feed)
    eventually(lambda: again.epoch == 2)

    assert (again.id, ctx.get_list("out").copy()) == (job.id, [(10, 12)])


def test_late_items_stand_in_the_metrics(ctx):
    """Also after several epochs."""
    feed = Feed({"0": [30]})
    job = submitted(ctx, feed)
    eventually(lambda: job.epoch == 1)
    feed.give(5)
    eventually(lambda: job.epoch == 2)

    assert job.metrics().stages["sums"].late == 1


def test_the_clock_closes_windows_without_an_item(ctx):
    """An epoch runs when what a policy makes of the clock passes the end of a window."""
    seconds = [3.0]
    feed = Feed({"0": [2]})
    job = submitted(ctx, feed, lambda: Lagging(by_clock=True), clock=clock_at(seconds))
    eventually(lambda: job.epoch == 1)
    asked = feed.asked
    eventually(lambda: feed.asked > asked + 2)
    assert (job.epoch, ctx.get_list("out").copy()) == (1, [])
    seconds[0] = 10.0
    eventually(lambda: job.epoch == 2)

    assert ctx.get_list("out").copy() == [(10, 2)]


def test_a_step_of_another_kind_is_refused(connect):
    """Its state would be that of something else."""
    feed, first = Feed({"0": [2, 4]}), connect()
    job = submitted(first, feed)
    eventually(lambda: job.epoch == 1)
    first.close()
    other = FrameSums()
    object.__setattr__(other, "signature", (20,))
    ctx = connect()
    again = ctx.new_job(summing_plan(feed, Lagging, other), name="sums")

    with pytest.raises(IllegalStateError, match="the state of step 'sums' is that of a sums of 10"):
        again.join(10)
    assert again.status is JobStatus.FAILED


def test_an_error_of_a_step_leaves_the_state_as_it_was(ctx):
    """The epoch is taken again as a whole when the job is resumed."""
    feed = Feed({"0": [2]})
    job = submitted(ctx, feed, suspend_on_failure=True)
    eventually(lambda: job.epoch == 1)
    feed.give(4, "six")
    eventually(lambda: job.status is JobStatus.SUSPENDED)
    feed.partitions["0"][2:] = [6, 11]
    job.resume()
    eventually(lambda: job.epoch == 2)

    assert ctx.get_list("out").copy() == [(10, 12)]


def test_the_state_of_a_step_can_be_looked_at(connect):
    """From any process, as of the last epoch; a stage that keeps none is named."""
    feed = Feed({"0": [2, 5, 14]})
    job = submitted(connect(), feed, lambda: Lagging(20))
    eventually(lambda: job.epoch == 1)
    elsewhere = connect().job("sums")

    assert sorted(elsewhere.state("sums").to_list()) == [(10, 2), (10, 5), (20, 14)]
    with pytest.raises(ValueError, match="no state of a stage 'time'; stages that keep state: 'sums'"):
        job.state("time")


def test_an_engine_that_is_lost_is_a_reason_to_go_on_from_the_last_record(ctx, monkeypatch):
    """Nothing is lost or doubled; a job that got on may lose it again."""
    feed, engine = Feed({"0": [2]}), ctx.running_engine()
    job = submitted(ctx, feed, auto_restart=(1, 0.0))
    eventually(lambda: job.epoch == 1)
    submit, left = engine.submit, [1, 1]

    def fail_twice(end):
        if left and len(left) == 3 - job.epoch:
            left.pop()
            lose_worker()
        return submit(end)

    monkeypatch.setattr(engine, "submit", fail_twice)
    for number, item in ((2, 4), (3, 11)):
        feed.give(item)
        eventually(lambda number=number: job.epoch == number)

    assert (ctx.get_list("out").copy(), job.metrics().runs, left) == ([(10, 6)], 3, [])


def test_a_clock_that_goes_back_stands_still(ctx):
    """Records have times that only go on."""
    seconds, feed = [10.0], Feed({"0": [2]})
    job = submitted(ctx, feed, clock=clock_at(seconds))
    eventually(lambda: job.epoch == 1)
    seconds[0] = 5.0
    feed.give(4)
    eventually(lambda: job.epoch == 2)

    assert EpochLog(ctx._jobs._records.all, job.id, "").read(2).now == 10.0
