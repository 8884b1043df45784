"""Units of time: what is taken for a duration or an instant, and what is refused."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone

import numpy
import pytest

from dstream.values.time import instant, milliseconds, seconds


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0, 0), (250, 250), (timedelta(seconds=2), 2000), (timedelta(0), 0), (numpy.int64(7), 7)],
)
def test_milliseconds_takes_int_and_timedelta(value, expected):
    """A duration of event time is milliseconds as int."""
    assert (milliseconds(value, "size"), type(milliseconds(value, "size"))) == (expected, int)


@pytest.mark.parametrize("value", [1.0, True, "1", None, [0] * 100])
def test_milliseconds_refuses_other_types(value):
    """A float may be meant as seconds, so it is no duration of event time."""
    with pytest.raises(TypeError, match="size must be milliseconds as int, or a timedelta, not "):
        milliseconds(value, "size")


@pytest.mark.parametrize("value", [-1, timedelta(seconds=-1), 2**62])
def test_milliseconds_refuses_what_is_no_length(value):
    """A duration is not negative, and sums with it stay before the end of time."""
    with pytest.raises(ValueError, match=r"timeout must be from 0 up to 2\*\*62 milliseconds"):
        milliseconds(value, "timeout")


def test_milliseconds_refuses_parts_of_one():
    """Time is counted in whole milliseconds, and nothing is rounded in silence."""
    with pytest.raises(ValueError, match="by must be whole milliseconds"):
        milliseconds(timedelta(microseconds=1500), "by")


@pytest.mark.parametrize(("value", "expected"), [(1, 1.0), (0.2, 0.2), (timedelta(minutes=1), 60.0), (0, 0.0)])
def test_seconds_takes_numbers_and_timedelta(value, expected):
    """A duration of the clock is seconds as float."""
    assert (seconds(value, "every"), type(seconds(value, "every"))) == (expected, float)


@pytest.mark.parametrize("value", [True, "1", None])
def test_seconds_refuses_other_types(value):
    """A bool is a mistake."""
    with pytest.raises(TypeError, match="every must be seconds as a number, or a timedelta, not "):
        seconds(value, "every")


@pytest.mark.parametrize("value", [-0.1, float("inf"), float("nan"), timedelta(seconds=-1)])
def test_seconds_refuses_what_is_no_length(value):
    """A duration of the clock is finite and not negative."""
    with pytest.raises(ValueError, match="every must be a finite number of seconds, at least 0"):
        seconds(value, "every")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (-5, -5),
        (numpy.int64(7), 7),
        (datetime(1970, 1, 1, 0, 0, 1, 999_999, tzinfo=UTC), 1999),
        (datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC), -1),
        (datetime(1970, 1, 1, 1, tzinfo=timezone(timedelta(hours=1))), 0),
    ],
)
def test_instant_takes_int_and_aware_datetime(value, expected):
    """A timestamp is the whole milliseconds since 1970, in any time zone, rounded down before it too."""
    assert (instant(value), type(instant(value))) == (expected, int)


@pytest.mark.parametrize("value", [1.0, True, None, "2020-01-01", date(2020, 1, 1)])
def test_instant_refuses_other_types(value):
    """A float may be seconds, and a date has no time zone."""
    with pytest.raises(TypeError, match="must be milliseconds since 1970 as int, or a datetime with a time zone"):
        instant(value)


def test_instant_refuses_a_datetime_without_a_time_zone():
    """It would mean another instant on each machine."""
    with pytest.raises(ValueError, match=r"needs a time zone, .*: datetime.datetime\(2020, 1, 1, 0, 0\)"):
        instant(datetime(2020, 1, 1))


@pytest.mark.parametrize("value", [2**62, -(2**62)])
def test_instant_refuses_what_is_out_of_reach(value):
    """A window around a timestamp ends before the end of time."""
    with pytest.raises(ValueError, match=r"less than 2\*\*62 milliseconds away from 1970"):
        instant(value)
