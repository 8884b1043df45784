"""What windows mean, on one page: an epoch is items with their numbers of input and times, and two watermarks.

All items of an epoch are seen before the watermark moves. Nothing here is fast, in shards, or saved.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from dstream.values.time import KeyedWindowResult

__all__ = ["Epoch", "Event", "frame_windows", "session_windows"]

Reduction = Callable[[list[tuple[int, Any]]], Any]
"""Makes a result of items that come with the number of their input."""


@dataclass(frozen=True)
class Event:
    """An item: a pair of key and value, with its timestamp and the number of its input."""

    timestamp: int
    key: Any
    value: Any
    number: int = 0
    partition: int = 0

    @property
    def item(self) -> tuple[Any, Any]:
        return self.key, self.value


@dataclass(frozen=True)
class Epoch:
    """Events in the order of (input, partition, offset), and the watermark at the start and at the end.

    Attributes:
        now: the reading of the clock.
    """

    events: list[Event]
    old: int
    new: int
    now: float = 0.0
    late: list[Event] = field(default_factory=list)


def frame_windows(
    epochs: Iterable[Epoch],
    size: int,
    by: int,
    reduction: Reduction,
    offset: int = 0,
    early: float | None = None,
) -> list[list[Any]]:
    """Return the results of each epoch, ordered by end; early ones, every so many seconds, behind the others."""
    kept: list[Event] = []
    results, due = [], _Due(early)
    for epoch in epochs:
        for event in epoch.events:
            (epoch.late if _frame_end(event, by, offset) <= epoch.old else kept).append(event)
        ends = {_frame_end(event, by, offset) + more for event in kept for more in range(0, size, by)}
        closing = sorted(end for end in ends if epoch.old < end <= epoch.new)
        still_open = sorted(end for end in ends if end > epoch.new)
        is_early = due.passes(epoch.now, any(end > epoch.old for end in ends), bool(still_open))
        results.append(
            [
                result._replace(is_early=end > epoch.new)
                for end in closing + still_open * is_early
                for result in _window(kept, end - size, end, by, offset, reduction)
            ]
        )
    return results


class _Due:
    """When early results are due: in the first epoch at or past the end of a period in which there was something."""

    def __init__(self, every: float | None) -> None:
        self._every, self._next = every, math.inf

    def passes(self, now: float, is_any_before: bool, is_any_left: bool) -> bool:
        """Say whether they are due, where windows were open before time went on, or are still open."""
        if self._every is None:
            return False
        period_end = (now // self._every + 1) * self._every
        if is_any_before:
            self._next = min(self._next, period_end)
        is_due = now >= self._next
        self._next = math.inf if not is_any_left else period_end if is_due else self._next
        return is_due and is_any_left


def _window(kept: list[Event], start: int, end: int, by: int, offset: int, reduction: Reduction) -> list[Any]:
    inside = [event for event in kept if start <= event.timestamp < end]
    inside.sort(key=lambda event: _frame_end(event, by, offset))  # Inside of a frame they stay as they came.
    return [KeyedWindowResult(start, end, key, reduction(items)) for key, items in _by_key(inside).items()]


def session_windows(
    epochs: Iterable[Epoch], timeout: int, reduction: Reduction, early: float | None = None
) -> list[list[Any]]:
    """Return the results of each epoch, ordered by end; early ones, every so many seconds, behind the others."""
    kept: list[Event] = []
    results, due = [], _Due(early)
    for epoch in epochs:
        for event in epoch.events:
            (epoch.late if event.timestamp < epoch.old else kept).append(event)
        sessions = [_result(session, timeout, reduction) for session in _sessions(kept, timeout)]
        closing = sorted((each for each in sessions if each.end < epoch.new), key=lambda each: each.end)
        still_open = [each._replace(is_early=True) for each in sessions if each.end >= epoch.new]
        results.append(closing + still_open * due.passes(epoch.now, bool(kept), bool(still_open)))
        intervals = {(each.key, each.start, each.end) for each in closing}
        kept = [event for event in kept if not any(_is_in(event, *interval) for interval in intervals)]
    return results


def _is_in(event: Event, key: Any, start: int, end: int) -> bool:
    return bool(event.key == key) and start <= event.timestamp <= end


def _result(session: list[Event], timeout: int, reduction: Reduction) -> Any:
    [(key, items)] = _by_key(session).items()
    return KeyedWindowResult(session[0].timestamp, session[-1].timestamp + timeout, key, reduction(items))


def _sessions(kept: list[Event], timeout: int) -> list[list[Event]]:
    sessions: list[list[Event]] = []
    for event in sorted(kept, key=lambda event: (event.key, event.timestamp)):
        last = sessions[-1][-1] if sessions else None
        if last is not None and last.key == event.key and event.timestamp <= last.timestamp + timeout:
            sessions[-1].append(event)
        else:
            sessions.append([event])
    return sessions


def _frame_end(event: Event, by: int, offset: int) -> int:
    return (event.timestamp - offset) // by * by + offset + by


def _by_key(events: list[Event]) -> dict[Any, list[tuple[int, Any]]]:
    groups: dict[Any, list[tuple[int, Any]]] = {}
    for event in events:
        groups.setdefault(event.key, []).append((event.number, event.item))
    return groups
