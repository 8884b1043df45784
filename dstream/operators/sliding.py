"""A window that moves over closed frames: how what is inside is kept while frames come in and go out.

What is kept here can be made again of the frames, and is no part of what is saved.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterator
from typing import Any, Protocol

from dstream.operators.frame_partials import Groups
from dstream.operators.held_frames import HeldFrames
from dstream.operators.independent_copies import Copies
from dstream.spi import Collector
from dstream.values.event_time import NO_WATERMARK

__all__ = ["Slide", "inside_of"]

_MISSING: Any = object()


class Slide:
    """The window of one shard, which goes from end to end over its frames.

    Args:
        size: the length of the window.
        by: the length of a frame.
        inside: keeps what is inside of it.
    """

    def __init__(self, size: int, by: int, inside: Inside) -> None:
        self._size = size
        self._by = by
        self._inside = inside
        self._ends: deque[int] = deque()
        self._entered = NO_WATERMARK

    def windows(self, frames: HeldFrames, first: int, last: int) -> Iterator[tuple[int, Groups]]:
        """Give the windows that end from `first` to `last` and have items, ascending, as (end, containers).

        The containers may be looked at until the next window is asked for.
        """
        end = first
        while end <= last:
            self.leave(frames, end - self._size)
            ahead = self._enter(frames, end)
            if self._ends:
                yield end, self._inside.groups()
                end += self._by
            elif ahead < len(frames.ends):
                end = frames.ends[ahead]  # There may be years without an item.
            else:
                return

    def leave(self, frames: HeldFrames, until: int) -> None:
        """Let the frames go out that end at `until` or before."""
        while self._ends and self._ends[0] <= until:
            self._inside.leave(frames[self._ends.popleft()])

    def _enter(self, frames: HeldFrames, until: int) -> int:
        """Let the frames come in that end at `until` or before; return the place of the one behind them."""
        ahead = bisect_right(frames.ends, self._entered)
        while ahead < len(frames.ends) and frames.ends[ahead] <= until:
            self._entered = frames.ends[ahead]
            self._ends.append(self._entered)
            self._inside.enter(frames[self._entered])
            ahead += 1
        return ahead


class Inside(Protocol):
    """The containers of the keys in a window, out of those of the frames in it."""

    def enter(self, groups: Groups) -> None:
        """Take a frame behind those that are inside; it is left as it is."""
        ...

    def leave(self, groups: Groups) -> None:
        """Let the first frame go."""
        ...

    def groups(self) -> Groups:
        """Return the containers; they are not to be changed, and change later."""
        ...


def inside_of(is_tumbling: bool, collector: Collector[Any, Any, Any], copies: Copies) -> Inside:
    """Return what keeps a window of one frame, or of several."""
    if is_tumbling:
        return _OneFrame()
    return _Deducting(collector, copies) if collector.deduct is not None else _Recombining(collector, copies)


class _OneFrame:
    def __init__(self) -> None:
        self._groups: Groups = {}

    def enter(self, groups: Groups) -> None:
        self._groups = groups

    def leave(self, groups: Groups) -> None:
        self._groups = {}

    def groups(self) -> Groups:
        return self._groups


class _Deducting:
    """One container for each key; a key leaves with its last frame, whatever is left in its container."""

    def __init__(self, collector: Collector[Any, Any, Any], copies: Copies) -> None:
        self._collector = collector
        self._copies = copies
        self._groups: Groups = {}
        self._frames: dict[Any, int] = {}

    def enter(self, groups: Groups) -> None:
        inside, frames, combined = self._groups, self._frames, self._collector.combined
        for key, container in zip(groups, self._copies(groups.values()), strict=True):
            if key in inside:
                inside[key] = combined(inside[key], container)
                frames[key] += 1
            else:
                inside[key] = container
                frames[key] = 1

    def leave(self, groups: Groups) -> None:
        inside, frames, deducted = self._groups, self._frames, self._collector.deducted
        for key, container in groups.items():
            if frames[key] == 1:
                del inside[key], frames[key]
            else:
                inside[key] = deducted(inside[key], container)
                frames[key] -= 1

    def groups(self) -> Groups:
        return self._groups


class _Recombining:
    """Two stacks: each frame is combined about three times, however many a window has.

    The older half of the window stands on one, with all that is newer in that half combined into each frame. The newer
    half is combined as it comes. When the older one is used up, the newer one is turned over and takes its place.
    """

    def __init__(self, collector: Collector[Any, Any, Any], copies: Copies) -> None:
        self._collector = collector
        self._copies = copies
        self._older: list[Groups] = []
        self._newer: list[Groups] = []
        self._of_newer: Groups = {}

    def enter(self, groups: Groups) -> None:
        self._newer.append(groups)
        combined = self._collector.combined
        for key, container in zip(groups, self._copies(groups.values()), strict=True):
            before = self._of_newer.get(key, _MISSING)
            self._of_newer[key] = container if before is _MISSING else combined(before, container)

    def leave(self, groups: Groups) -> None:
        if not self._older:
            self._turn_over()
        self._older.pop()

    def groups(self) -> Groups:
        return self._both(self._older[-1], self._of_newer) if self._older else self._of_newer

    def _turn_over(self) -> None:
        following: Groups = {}
        for groups in reversed(self._newer):
            following = self._both(groups, following)
            self._older.append(following)
        self._newer, self._of_newer = [], {}

    def _both(self, left: Groups, right: Groups) -> Groups:
        """Return the containers of earlier and later frames, combined where a key is in both; neither changes."""
        shared = left.keys() & right.keys()
        mine, theirs = (self._copies([groups[key] for key in shared]) for groups in (left, right))
        return {**left, **right, **dict(zip(shared, map(self._collector.combined, mine, theirs), strict=True))}
