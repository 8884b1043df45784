"""What windows mean, on one page: an epoch is items with their numbers of input and times, and two watermarks.

All items of an epoch are seen before the watermark moves. Nothing here is fast, in shards, or saved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from dstream.values.window_results import KeyedWindowResult

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
    """Events in the order of (input, partition, offset), and the watermark at the start and at the end."""

    events: list[Event]
    old: int
    new: int
    late: list[Event] = field(default_factory=list)


def frame_windows(epochs: Iterable[Epoch], size: int, by: int, reduction: Reduction) -> list[list[Any]]:
    """Return the results of each epoch, ordered by end."""
    kept: list[Event] = []
    results = []
    for epoch in epochs:
        for event in epoch.events:
            (epoch.late if _frame_end(event, by) <= epoch.old else kept).append(event)
        ends = {_frame_end(event, by) + more for event in kept for more in range(0, size, by)}
        closing = sorted(end for end in ends if epoch.old < end <= epoch.new)
        results.append([result for end in closing for result in _window(kept, end - size, end, by, reduction)])
    return results


def _window(kept: list[Event], start: int, end: int, by: int, reduction: Reduction) -> list[Any]:
    inside = [event for event in kept if start <= event.timestamp < end]
    inside.sort(key=lambda event: _frame_end(event, by))  # Inside of a frame they stay as they came.
    return [KeyedWindowResult(start, end, key, reduction(items)) for key, items in _by_key(inside).items()]


def session_windows(epochs: Iterable[Epoch], timeout: int, reduction: Reduction) -> list[list[Any]]:
    """Return the results of each epoch, ordered by end."""
    kept: list[Event] = []
    results = []
    for epoch in epochs:
        for event in epoch.events:
            (epoch.late if event.timestamp < epoch.old else kept).append(event)
        closing = [session for session in _sessions(kept, timeout) if session[-1].timestamp + timeout < epoch.new]
        kept = [event for event in kept if not any(event in session for session in closing)]
        results.append(sorted((_result(session, timeout, reduction) for session in closing), key=lambda each: each.end))
    return results


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


def _frame_end(event: Event, by: int) -> int:
    return event.timestamp // by * by + by


def _by_key(events: list[Event]) -> dict[Any, list[tuple[int, Any]]]:
    groups: dict[Any, list[tuple[int, Any]]] = {}
    for event in events:
        groups.setdefault(event.key, []).append((event.number, event.item))
    return groups
