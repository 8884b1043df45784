"""The sessions of one key that are open: intervals that neither overlap nor touch, in the order of time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

__all__ = ["EMPTY", "Session", "joined"]

Session: TypeAlias = list[Any]
"""The first and the last instant, both inside, and the container: a list, since it grows with each item."""

EMPTY: Any = object()
"""Stands for the container of a session that is new."""


def joined(sessions: list[Session], start: int, end: int, combined: Callable[[Any, Any], Any]) -> Session:
    """Return the session of `sessions` that holds `start` to `end`; those that it touches become one with it.

    Args:
        sessions: of one key; most items belong to the last, so it is looked at first.
        start: the first instant.
        end: the last instant.
        combined: combines the containers of sessions that become one, the earlier first.
    """
    high = len(sessions)
    while high and sessions[high - 1][0] > end:
        high -= 1
    low = high
    while low and sessions[low - 1][1] >= start:
        low -= 1
    if low == high:
        session: Session = [start, end, EMPTY]
        sessions.insert(low, session)
        return session
    session, *others = sessions[low:high]
    for other in others:
        session[2] = combined(session[2], other[2])
    session[0] = min(session[0], start)
    session[1] = max(sessions[high - 1][1], end)
    del sessions[low + 1 : high]
    return session
