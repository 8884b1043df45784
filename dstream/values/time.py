"""Event time: units, instants, timestamped and late items, and results of windows.

Instants are milliseconds since 1970 as int. Instants and durations are below 2**62, so that their sums and differences
never reach `END_OF_TIME` or `NO_WATERMARK`. In a plan with a step over epochs, every item is represented as the pair
`(timestamp, item)`; the timestamp may be None.
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Generic, NamedTuple, TypeVar

__all__ = [
    "END_OF_TIME",
    "MOST_INSTANT",
    "NO_WATERMARK",
    "KeyedWindowResult",
    "Late",
    "Timed",
    "WindowResult",
    "instant",
    "milliseconds",
    "seconds",
    "shown_time",
]


_1970 = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
MOST_INSTANT = 2**62
"""Instants and durations are less than this number of milliseconds."""


def milliseconds(value: int | timedelta, name: str) -> int:
    """Return a duration of event time in milliseconds.

    Args:
        value: milliseconds as int, or a timedelta of whole milliseconds; 0 is allowed.
        name: the name of the argument, for messages.

    Raises:
        TypeError: it is neither.
        ValueError: it is negative, too long, or has parts of a millisecond.

    Example:
        >>> milliseconds(timedelta(seconds=2), "size"), milliseconds(250, "size")
        (2000, 250)
    """
    found = _whole_milliseconds(value, name) if isinstance(value, timedelta) else _integer(value)
    if found is None:
        raise TypeError(f"{name} must be milliseconds as int, or a timedelta, not {_shown(value)}")
    if not 0 <= found < MOST_INSTANT:
        raise ValueError(f"{name} must be from 0 up to 2**62 milliseconds, not {value!r}")
    return found


def seconds(value: float | timedelta, name: str) -> float:
    """Return a duration of the clock in seconds.

    Args:
        value: seconds, or a timedelta; 0 is allowed.
        name: the name of the argument, for messages.

    Raises:
        TypeError: it is neither.
        ValueError: it is negative, infinite or NaN.

    Example:
        >>> seconds(timedelta(minutes=1), "every"), seconds(0.2, "every")
        (60.0, 0.2)
    """
    if isinstance(value, timedelta):
        value = value.total_seconds()
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name} must be seconds as a number, or a timedelta, not {_shown(value)}")
    if not 0 <= value < math.inf:
        raise ValueError(f"{name} must be a finite number of seconds, at least 0, not {value!r}")
    return float(value)


def instant(value: Any) -> int:
    """Return a timestamp in milliseconds since 1970; for a datetime the elapsed milliseconds, rounded down.

    Args:
        value: milliseconds as int, or a datetime with a time zone.

    Raises:
        TypeError: it is neither.
        ValueError: it is a datetime without a time zone, or 2**62 milliseconds and more away from 1970.

    Example:
        >>> instant(datetime(1970, 1, 1, 0, 0, 5, tzinfo=UTC)), instant(5000)
        (5000, 5000)
    """
    found = value if type(value) is int else _of_datetime(value) if isinstance(value, datetime) else _integer(value)
    if found is None:
        raise TypeError(
            f"a timestamp must be milliseconds since 1970 as int, or a datetime with a time zone, not {_shown(value)}"
        )
    if not -MOST_INSTANT < found < MOST_INSTANT:
        raise ValueError(f"a timestamp must be less than 2**62 milliseconds away from 1970, not {value!r}")
    return found


def _of_datetime(value: datetime) -> int:
    if value.utcoffset() is None:
        raise ValueError(f"a timestamp needs a time zone, as value.replace(tzinfo=UTC) gives it one: {value!r}")
    return (value - _1970) // _MILLISECOND


def _whole_milliseconds(value: timedelta, name: str) -> int:
    found, rest = divmod(value, _MILLISECOND)
    if rest:
        raise ValueError(f"{name} must be whole milliseconds, not {value!r}")
    return found


def _integer(value: Any) -> int | None:
    """Return an int, also of an integer of NumPy; a bool is a mistake, and a float may be seconds."""
    if isinstance(value, bool):
        return None
    try:
        return operator.index(value)
    except TypeError:
        return None


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else type(value).__name__


NO_WATERMARK = -(2**63)
"""The watermark before the first event."""

END_OF_TIME = 2**63 - 1
"""The watermark of what has ended: every window closes."""

Timed = tuple[int | None, Any]
"""A timestamp and an item."""


def shown_time(milliseconds: int | None) -> str:
    """Return an instant for people, such as `2026-01-31 23:59:00.250Z`; one that no calendar has as the number."""
    if milliseconds is None or milliseconds == NO_WATERMARK:
        return ""
    if milliseconds == END_OF_TIME:
        return "the end"
    try:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return str(milliseconds)
    return moment.replace(tzinfo=None).isoformat(" ", "milliseconds") + "Z"


@dataclass(frozen=True, slots=True)
class Late:
    """An item that arrived after its watermark, for the output of late items.

    Attributes:
        item: as it reached the step.
    """

    item: Any


K = TypeVar("K")
R = TypeVar("R")


class WindowResult(NamedTuple, Generic[R]):
    """The result of the items of a window.

    Attributes:
        start: the first instant of the window, in milliseconds.
        end: the first instant after it; for a session, its last instant.
        result: the result of the items whose timestamps are in the window.
        is_early: more items may arrive; another result of the same window follows.

    Example:
        >>> WindowResult(0, 1000, 3)
        WindowResult(start=0, end=1000, result=3, is_early=False)
    """

    start: int
    end: int
    result: R
    is_early: bool = False


class KeyedWindowResult(NamedTuple, Generic[K, R]):
    """The result of the items of one key in a window.

    Attributes:
        start: the first instant of the window, in milliseconds.
        end: the first instant after it; for a session, its last instant.
        key: the key of the items.
        result: the result of its items whose timestamps are in the window.
        is_early: more items may arrive; another result of the same window follows.

    Example:
        >>> KeyedWindowResult(0, 1000, "whale", 3).result
        3
    """

    start: int
    end: int
    key: K
    result: R
    is_early: bool = False
