"""Window definitions: tumbling, sliding and session windows as values.

A *frame* is the part of time by which a sliding window moves; a tumbling window is one frame. Frames are half-open,
begin at multiples of their length, shifted by an optional offset, and are identified by their end.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from datetime import timedelta
from typing import Self, TypeAlias

from dstream.values.time import milliseconds, seconds

__all__ = ["FrameWindow", "SessionWindow", "Window", "session", "sliding", "tumbling"]


def tumbling(size: int | timedelta) -> FrameWindow:
    """Divide time into consecutive windows of one length.

    An item belongs to the window `[start, end)` that contains its timestamp.

    Args:
        size: the length of a window: milliseconds, or a timedelta; at least 1 ms.

    Raises:
        TypeError: it is neither.
        ValueError: it is not positive.

    Example:
        >>> tumbling(10_000)
        tumbling(10000)
    """
    length = _positive(size, "size")
    return FrameWindow(length, length)


def sliding(size: int | timedelta, by: int | timedelta) -> FrameWindow:
    """Move a window over time in steps: an item belongs to the `size / by` windows that contain its timestamp.

    Args:
        size: the length of a window: milliseconds, or a timedelta; a multiple of `by`.
        by: the distance from one window to the next: milliseconds, or a timedelta.

    Raises:
        TypeError: an argument is neither.
        ValueError: an argument is not positive, or `size` is no multiple of `by`.

    Example:
        >>> sliding(timedelta(minutes=1), by=timedelta(seconds=10))
        sliding(60000, by=10000)
    """
    length, step = _positive(size, "size"), _positive(by, "by")
    if length % step:
        raise ValueError(f"size must be a multiple of by: {length} ms is no multiple of {step} ms")
    return FrameWindow(length, step)


def session(timeout: int | timedelta) -> SessionWindow:
    """Gather the items of a key that follow each other closely: a session ends after `timeout` without an item.

    An item at `timestamp` covers `[timestamp, timestamp + timeout]`; overlapping or touching intervals are one session.

    Args:
        timeout: the longest pause inside a session: milliseconds, or a timedelta; at least 1 ms.

    Raises:
        TypeError: it is neither.
        ValueError: it is not positive.

    Example:
        >>> session(timedelta(minutes=30)).early_results(every=10)
        session(1800000).early_results(10.0)
    """
    return SessionWindow(_positive(timeout, "timeout"))


@dataclass(frozen=True, slots=True, repr=False)
class FrameWindow:
    """A window that moves over time by its frames; `tumbling` and `sliding` return it.

    Attributes:
        size: its length in milliseconds.
        by: the length of a frame in milliseconds.
        early: the period of early results before the window closes, in seconds of the clock; None: there are none.
        offset: the offset of the start of frames from multiples of their length, in milliseconds.
    """

    size: int
    by: int
    early: float | None = None
    offset: int = 0

    @property
    def is_tumbling(self) -> bool:
        """Return whether a window is one frame."""
        return self.size == self.by

    def floor_frame(self, timestamp: int) -> int:
        """Return the last border between frames that is not after `timestamp`: the start of its frame.

        Example:
            >>> tumbling(10).floor_frame(9), tumbling(10).floor_frame(10), tumbling(10).floor_frame(-1)
            (0, 10, -10)
        """
        # `%` rounds down in Python, so frames before 1970 begin at the same multiples.
        return timestamp - (timestamp - self.offset) % self.by

    def higher_frame(self, timestamp: int) -> int:
        """Return the first border between frames after `timestamp`: the end of its frame.

        Example:
            >>> tumbling(10).higher_frame(9), tumbling(10).higher_frame(10), tumbling(10).higher_frame(-1)
            (10, 20, 0)
        """
        return self.floor_frame(timestamp) + self.by

    def with_offset(self, offset: int | timedelta) -> Self:
        """Return a copy of the window with frames that begin later, as days do that begin at six in the morning.

        Args:
            offset: milliseconds, or a timedelta; shorter than a frame.

        Raises:
            TypeError: it is neither.
            ValueError: it is negative, or not shorter than a frame.

        Example:
            >>> tumbling(10).with_offset(3).floor_frame(12)
            3
        """
        found = milliseconds(offset, "offset")
        # A longer offset would result in the frames of a shorter one, with another signature of the same state.
        if found >= self.by:
            raise ValueError(f"offset must be shorter than a frame of {self.by} ms, not {found} ms")
        return dataclasses.replace(self, offset=found)

    def of_frames(self) -> Self:
        """Return the tumbling window whose windows are the frames of this window, without early results."""
        return dataclasses.replace(self, size=self.by, early=None)

    def early_results(self, every: float | timedelta) -> Self:
        """Return a copy of the window that also emits results of windows that are still open.

        They are emitted in the first epoch at or past each period of the clock, for every open window with items, and
        have `is_early=True`.

        Args:
            every: the period in seconds, or as a timedelta.

        Raises:
            TypeError: it is neither.
            ValueError: it is not positive, or infinite.
        """
        return dataclasses.replace(self, early=_period(every))

    def __repr__(self) -> str:
        shown = f"tumbling({self.size})" if self.is_tumbling else f"sliding({self.size}, by={self.by})"
        return shown + (f".with_offset({self.offset})" if self.offset else "") + _shown_early(self.early)


@dataclass(frozen=True, slots=True, repr=False)
class SessionWindow:
    """A window that lasts as long as items follow each other closely; `session` returns it.

    Attributes:
        timeout: the longest pause inside, in milliseconds.
        early: the period of early results before the window closes, in seconds of the clock; None: there are none.
    """

    timeout: int
    early: float | None = None

    def early_results(self, every: float | timedelta) -> Self:
        """Return a copy of the window that also emits results of open sessions, as `FrameWindow.early_results`."""
        return dataclasses.replace(self, early=_period(every))

    def __repr__(self) -> str:
        return f"session({self.timeout})" + _shown_early(self.early)


Window: TypeAlias = FrameWindow | SessionWindow
"""The argument of `stage.window(...)`."""


def _positive(value: int | timedelta, name: str) -> int:
    found = milliseconds(value, name)
    if found == 0:
        raise ValueError(f"{name} must be at least 1 ms, not 0")
    return found


def _period(every: float | timedelta) -> float:
    found = seconds(every, "every")
    if found == 0:
        raise ValueError("every must be longer than 0 seconds")
    return found


def _shown_early(early: float | None) -> str:
    return "" if early is None else f".early_results({early})"
