"""What the driver knows of time between two epochs."""

from __future__ import annotations

import pickle

import pytest

import dstream as ds
from collectors import counting
from dstream.jobs.unbounded.log import LogRecord, PlaceTime, SourceMark, StepMark, TimedPartition
from dstream.jobs.unbounded.plans import open_plan
from dstream.jobs.unbounded.watermarks import EventTime
from dstream.operators.state.watermarks import next_watermark
from dstream.testing import epochs
from dstream.values.time import END_OF_TIME, NO_WATERMARK
from dstream.windows import (
    limiting_lag,
    limiting_lag_and_delay,
    limiting_lag_and_lull,
    limiting_timestamp_and_wall_clock_lag,
    tumbling,
)
from reducers import to_ilist
from tests.jobs.unbounded.streams import Feed
from tests.jobs.unbounded.summing import FrameSums, Lagging
from tests.jobs.unbounded.timed_plans import summing_plan

A, B = TimedPartition("time", "source", "a"), TimedPartition("time", "source", "b")


@pytest.fixture
def plan():
    """One source, whose partitions lead to one step."""
    with ds.connect(engine="local", storage="memory:") as ctx:
        yield open_plan(summing_plan(Feed(), Lagging, FrameSums()), ctx)


def at(
    plan,
    now,
    *,
    a=(5, 0.0),
    b=(9, 0.0),
    left="ab",
    left_out="",
    has_ended=False,
    deadline=None,
    started_at=0.0,
    kept=None,
):
    """Return the time of an epoch in which partitions a and b were at some watermarks, heard at some times."""
    policy = pickle.dumps(kept or Lagging())
    times = {A: PlaceTime(a[0], policy, a[1]), B: PlaceTime(b[0], policy, b[1])}
    steps = {"sums": StepMark(3, deadline, None)}
    before = LogRecord(
        7, "t", 0.0, sources={"source": SourceMark({"a": 1, "b": 1}, False, 0.0)}, times=times, steps=steps
    )
    marks = {"source": SourceMark(dict.fromkeys(left, 1), has_ended, 0.0, dict.fromkeys(left_out, now))}
    return EventTime(plan, before, marks, now, started_at)


def reached(time):
    """Return the watermark at the end of an epoch that reads nothing."""
    return next_watermark(time.step_time("sums", 8, ()), END_OF_TIME)


def test_unread_partitions_hold_time(plan):
    """The least of those that are not read; where all are read, none does."""
    time = at(plan, 1.0)

    assert [time.unread_watermark("sums", frozenset(read)) for read in ((), (A,), (B,), (A, B))] == [
        5,
        9,
        5,
        END_OF_TIME,
    ]


def test_idle_partitions_hold_nobody_while_others_are_read(plan):
    """After sixty seconds of the clock of records."""
    assert at(plan, 59.0, b=(9, 59.0)).unread_watermark("sums", frozenset([B])) == 5
    assert at(plan, 60.0, b=(9, 59.0)).unread_watermark("sums", frozenset([B])) == END_OF_TIME
    assert at(plan, 60.0).unread_watermark("sums", frozenset()) == END_OF_TIME


def test_if_all_are_idle_time_is_where_the_first_of_them_is(plan):
    """It does not end, also if one of them is read and gives no event."""
    time = at(plan, 60.0)

    assert (reached(time), next_watermark(time.step_time("sums", 8, [A]), END_OF_TIME)) == (9, 9)
    assert [time.partition_time(*A, False).counts, at(plan, 59.0).partition_time(*A, False).counts] == [False, True]


def test_what_is_left_out_holds_nobody_and_is_remembered(plan):
    """Where it was, for it may come back."""
    time = at(plan, 1.0, left_out="a")

    assert (reached(time), time.all_idle("sums")) == (9, 9)
    assert [time.after([], [])[place].watermark for place in (A, B)] == [5, 9]
    assert reached(at(plan, 1.0, left_out="ab")) == 3


def test_idle_time_begins_with_the_driver(plan):
    """A pause of a job says nothing of its sources."""
    assert at(plan, 1000.0, started_at=990.0).unread_watermark("sums", frozenset([B])) == 5


@pytest.mark.parametrize(("started_at", "counts"), [(0.0, [False, True]), (70.0, [True, True])])
def test_idle_time_of_partitions_without_an_epoch_begins_with_the_job(plan, started_at, counts):
    """That of one which comes up later begins then, and a driver that takes over waits for all of them again."""
    before = LogRecord(0, "t", 0.0, sources={"source": SourceMark({"a": 0}, False, 10.0)})
    marks = {"source": SourceMark({"a": 0, "b": 1}, False, 10.0)}
    time = EventTime(plan, before, marks, 75.0, started_at)

    assert [time.partition_time(*place, False).counts for place in (A, B)] == counts


def test_a_source_without_partitions_is_awaited_as_long_as_each_stage_says():
    """Another stage may wait for it longer."""
    by_hand, pipeline = epochs(), ds.Pipeline()
    numbers, nothing = by_hand.source("numbers"), by_hand.source("nothing", 0)
    read = pipeline.read_from(nothing)
    read.add_timestamps(int, idle_timeout=60).window(tumbling(10)).aggregate(counting()).write_to(to_ilist("slow"))
    both = pipeline.read_from(numbers).add_timestamps(int).merge(read.add_timestamps(int, idle_timeout=1))
    both.window(tumbling(10)).aggregate(counting(), to=lambda *found: found).write_to(to_ilist("quick"))
    cut = by_hand.of(pipeline).cut

    assert [list(cut(*each).values())[1] for each in (({numbers: [5, 25]}, 0.5), ({}, 1.5))] == [[], [(0, 10, 1)]]


def test_the_time_of_a_step_never_goes_back(plan):
    """A partition that is new, or comes back, may be behind it."""
    assert reached(at(plan, 1.0, a=(1, 0.0))) == 3


def test_a_partition_that_has_ended_is_not_the_time_where_others_are_idle(plan):
    """Time would end with it, though the other one may go on."""
    assert at(plan, 60.0, left="a").all_idle("sums") == 5


@pytest.mark.parametrize(("now", "started_at", "awaited"), [(59.9, 0.0, True), (60.0, 0.0, False), (75.0, 20.0, True)])
def test_a_source_without_partitions_is_awaited_until_its_timeout(plan, now, started_at, awaited):
    """Its time begins with the source, or with the driver."""
    marks = {"source": SourceMark({}, False, 0.0)}
    time = EventTime(plan, LogRecord(0, "t", 0.0, sources=marks), marks, now, started_at)

    assert time.unread_watermark("sums", frozenset()) == (NO_WATERMARK if awaited else END_OF_TIME)


def test_what_has_ended_holds_nobody(plan):
    """Of one partition, of both, and of the source."""
    assert reached(at(plan, 1.0, left="b")) == 9
    assert reached(at(plan, 1.0, left="", has_ended=True)) == END_OF_TIME
    assert at(plan, 1.0, left="").unread_watermark("sums", frozenset()) == NO_WATERMARK
    assert reached(at(plan, 1.0, left="")) == 3


@pytest.mark.parametrize(("deadline", "is_due"), [(None, False), (5, True), (6, False)])
def test_a_step_is_due_when_time_can_pass_its_deadline(plan, deadline, is_due):
    """Without an item."""
    assert at(plan, 1.0, deadline=deadline).is_due() is is_due


def test_the_time_of_a_step_contains_how_it_was_left(plan):
    """And which stages tell it the time."""
    time = at(plan, 1.0).step_time("sums", 8, [A])

    assert (time.epoch, time.now, time.old, time.unread_watermark, time.stamps) == (8, 1.0, 3, 9, frozenset(["time"]))


def seen(policy, timestamp):
    """Return a policy that has seen an event."""
    policy.report(timestamp, 0.0)
    return policy


@pytest.mark.parametrize(
    ("kept", "planned", "watermark"),
    [
        (limiting_lag(10), limiting_lag(2), 98),
        (limiting_lag(10), limiting_lag(200), 5),
        (limiting_lag_and_lull(10, 50), limiting_lag_and_lull(2, 0), 1098),
        (limiting_lag(10), limiting_lag_and_delay(2, 5), 5),
        (limiting_lag_and_delay(10, 50), limiting_lag_and_delay(10, 1), 100),
        (limiting_timestamp_and_wall_clock_lag(10, 50), limiting_timestamp_and_wall_clock_lag(10, 0.5), 500),
    ],
)
def test_a_policy_that_was_changed_counts_for_known_partitions(kept, planned, watermark):
    """What it has seen stays, and time does not go back; one of another kind begins anew."""
    with ds.connect(engine="local", storage="memory:") as ctx:
        plan = open_plan(summing_plan(Feed(), lambda: planned, FrameSums()), ctx)
        assert at(plan, 1.0, kept=seen(kept, 100)).unread_watermark("sums", frozenset([B])) == watermark
