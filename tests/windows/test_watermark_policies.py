"""Policies: Jet's cases for each, with a clock that stands in the call."""

from __future__ import annotations

import pickle
from datetime import timedelta

import pytest

from dstream.spi.epochs import WatermarkPolicy
from dstream.values.time import NO_WATERMARK
from dstream.windows import (
    limiting_lag,
    limiting_lag_and_delay,
    limiting_lag_and_lull,
    limiting_timestamp_and_wall_clock_lag,
)

ALL = [
    limiting_lag(3),
    limiting_lag_and_delay(3, 2),
    limiting_lag_and_lull(3, 2),
    limiting_timestamp_and_wall_clock_lag(3, 2),
]


@pytest.mark.parametrize("policy", ALL, ids=lambda policy: type(policy).__name__)
def test_policies_are_told_the_greatest_timestamp_only_and_survive_pickling(policy):
    """They are kept in the record of each epoch, as they were left."""
    policy.report(10_000, 1.0)
    copy = pickle.loads(pickle.dumps(policy))

    assert isinstance(policy, WatermarkPolicy)
    assert policy.greatest_only
    assert copy == policy
    assert copy.watermark(2.0) == policy.watermark(2.0)


@pytest.mark.parametrize("policy", [limiting_lag(3), limiting_lag_and_delay(3, 2), limiting_lag_and_lull(3, 2)])
def test_policies_know_no_time_before_the_first_event(policy):
    """However late it is by the clock."""
    assert policy.watermark(1e9) == NO_WATERMARK


@pytest.mark.parametrize("policy", ALL, ids=lambda policy: type(policy).__name__)
def test_events_out_of_order_move_no_policy_back(policy):
    """Jet: when_outOfOrderEvents_then_monotonicWm, of each of them; one at the time of the clock moves it on."""
    kept = pickle.loads(pickle.dumps(policy))
    seen = []
    for timestamp in (10_000, 9_000, 8_000, 7_000, 11_000):
        kept.report(timestamp, 1.0)
        seen.append(kept.watermark(1.0))

    assert seen == [9997, 9997, 9997, 9997, 10_997]


def test_limiting_lag_stops_with_the_events():
    """Jet: when_eventsStop_then_wmStops, however the clock goes on."""
    policy = limiting_lag(10)
    policy.report(10, 0.0)

    assert {policy.watermark(now) for now in (0.0, 1.0, 1e9)} == {0}


def test_limiting_lag_follows_the_greatest_timestamp():
    """An event out of order moves nothing back."""
    policy = limiting_lag(timedelta(milliseconds=3))
    seen = []
    for timestamp in (5, 2, 6, 6, 4, 20):
        policy.report(timestamp, 0.0)
        seen.append(policy.watermark(0.0))

    assert seen == [2, 2, 3, 3, 3, 17]


def test_limiting_lag_and_delay_lets_no_event_wait_longer():
    """When the delay has passed since the greatest timestamp came, the watermark reaches it."""
    policy = limiting_lag_and_delay(100, max_delay=10)
    policy.report(1000, 50.0)
    policy.report(1040, 55.0)

    assert [policy.watermark(now) for now in (55.0, 59.9, 60.0, 64.9, 65.0, 1e6)] == [940, 940, 1000, 1000, 1040, 1040]


def test_limiting_lag_and_delay_does_not_wait_where_events_are_ahead():
    """The lag decides as long as time in the events goes as fast as the clock."""
    policy = limiting_lag_and_delay(100, max_delay=10)
    policy.report(1000, 50.0)
    policy.report(9000, 51.0)

    assert policy.watermark(60.0) == 8900


def test_limiting_lag_and_delay_stays_small():
    """A thousand timestamps within the delay are kept as 17 at most, and none counts early for that."""
    policy = limiting_lag_and_delay(10_000, max_delay=10)
    for number in range(1000):
        policy.report(number, number / 100)

    assert len(pickle.dumps(policy)) < 600
    assert policy.watermark(10.0) == -9001
    assert 430 < policy.watermark(15.0) <= 500


def test_limiting_lag_and_delay_of_no_delay_has_no_lag():
    """A delay of 0 makes the lag void."""
    policy = limiting_lag_and_delay(100, max_delay=0)
    policy.report(1000, 50.0)

    assert policy.watermark(50.0) == 1000


def test_limiting_wall_clock_lag_follows_whichever_is_ahead():
    """The clock counts before the first event, too."""
    policy = limiting_timestamp_and_wall_clock_lag(3, wall_lag=timedelta(seconds=2))
    before = policy.watermark(7.0)
    policy.report(6000, 7.0)

    assert before == 5000
    assert [policy.watermark(now) for now in (7.0, 7.5, 8.0, 9.0)] == [5997, 5997, 6000, 7000]


def test_limiting_lag_and_lull_goes_on_with_the_clock():
    """After a pause the watermark moves as fast as the clock; an event ends the pause."""
    policy = limiting_lag_and_lull(3, max_lull=5)
    policy.report(1000, 100.0)
    during = [policy.watermark(now) for now in (100.0, 105.0, 105.5, 107.0)]
    policy.report(4000, 107.0)

    assert during == [997, 997, 1497, 2997]
    assert [policy.watermark(now) for now in (107.0, 112.0, 113.0)] == [3997, 3997, 4997]


@pytest.mark.parametrize(
    "make", [lambda: limiting_lag(-1), lambda: limiting_lag_and_delay(0, -1), lambda: limiting_lag_and_lull(0, -1)]
)
def test_policies_refuse_negative_durations(make):
    """The message names the argument."""
    with pytest.raises(ValueError, match=r"lag must be|max_delay must be|max_lull must be"):
        make()
