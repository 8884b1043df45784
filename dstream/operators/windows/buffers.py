"""Window buffers: containers of open frames and sessions, and the incremental sliding window.

The incremental windows can be rebuilt from the frames, and are no part of the saved state.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import chain
from typing import Any, Protocol, TypeAlias

from dstream.failures.attribution import in_group
from dstream.operators.rows.blocks import given
from dstream.operators.windows.arrivals import Arrivals, Batch, LateItems, by_shard
from dstream.operators.windows.results import Copies
from dstream.spi import Collector, InColumns
from dstream.spi.epochs import TaskPartials
from dstream.values.time import NO_WATERMARK
from dstream.windows import FrameWindow

__all__ = [
    "EMPTY",
    "FrameBuffer",
    "FramePartial",
    "Frames",
    "Groups",
    "Session",
    "Slide",
    "inside_of",
    "joined",
    "partial_frames",
]


Groups: TypeAlias = dict[Any, Any]
"""Containers by canonical key."""

Frames: TypeAlias = dict[int, Groups]
"""Groups by the end of their frame."""

FramePartial: TypeAlias = tuple[Frames, LateItems]
"""Input of one shard: frames, and late items to emit."""

# Not None, which may be a container.
_MISSING: Any = object()


def partial_frames(
    arrivals: Arrivals,
    window: FrameWindow,
    collector: Collector[Any, Any, Any],
    shards: int,
    is_keyed: bool,
    known: InColumns | None = None,
) -> TaskPartials:
    """Accumulate items in the frames of a window; `known` groups by their keys in columns, where possible."""
    frames: Frames = {}
    if known is None:
        _accumulate(arrivals, window, collector, frames)
    else:
        _accumulate_blocks(arrivals, window, collector, frames, is_keyed, known)
    of_shards: dict[int, Frames] = {}
    for end, groups in frames.items():
        for shard, part in by_shard(groups, shards, is_keyed).items():
            of_shards.setdefault(shard, {})[end] = part
    late = arrivals.late_by_shard(shards)
    found = {shard: (of_shards.get(shard, {}), late.get(shard, [])) for shard in {**of_shards, **late}}
    return TaskPartials(found, arrivals.items, arrivals.late)


def _accumulate_blocks(
    arrivals: Arrivals,
    window: FrameWindow,
    collector: Collector[Any, Any, Any],
    frames: Frames,
    is_keyed: bool,
    known: InColumns,
) -> None:
    from dstream.operators.columns.windows import BlockFrames  # loads NumPy

    def by_items(items: Iterable[Any]) -> Frames:
        found: Frames = {}
        _accumulate(arrivals.again().of(items), window, collector, found)
        return found

    in_columns = BlockFrames(known, window, arrivals.time, collector, is_keyed, by_items)
    for block in arrivals.blocks():
        size = in_columns.take(block, frames)
        if size is None:
            _accumulate(arrivals.of(given(block)), window, collector, frames)
        else:
            arrivals.items += size


def _accumulate(
    batches: Iterable[Batch], window: FrameWindow, collector: Collector[Any, Any, Any], frames: Frames
) -> None:
    create, accumulate = collector.create, collector.accumulates[0]
    start = end = 0  # No timestamp lies between.
    groups: Groups = {}
    for timestamps, keys, items in batches:
        # A failure finds `item` by its name.
        for timestamp, key, item in zip(timestamps, keys, items):  # noqa: B905  # Without keys, they have no end.
            if not start <= timestamp < end:
                start = window.floor_frame(timestamp)
                end = start + window.by
                groups = frames.setdefault(end, {})
            container = groups.get(key, _MISSING)
            if container is _MISSING:
                container = groups[key] = create()
            following = accumulate(container, item)
            if following is not None:
                groups[key] = following


class FrameBuffer:
    """Frames with the containers of their keys.

    Args:
        collector: combines containers.

    Attributes:
        ends: the ends of the frames, ascending.
    """

    def __init__(self, collector: Collector[Any, Any, Any]) -> None:
        self.ends: list[int] = []
        self._combined = collector.combined
        self._frames: Frames = {}
        self._frames_of_key: Counter[Any] = Counter()
        self._touched: dict[int, set[Any]] = {}

    def __getitem__(self, end: int) -> Groups:
        """Return the containers of the frame that ends at `end`."""
        return self._frames[end]

    def __len__(self) -> int:
        """Return the number of keys."""
        return len(self._frames_of_key)

    def items(self) -> Iterable[tuple[int, Groups]]:
        """Return the frames."""
        return self._frames.items()

    def take(self, end: int, groups: Groups) -> None:
        """Combine later containers with the containers of a frame; the later ones are consumed."""
        self._touched.setdefault(end, set()).update(groups)
        held = self._frames.get(end)
        if held is None:
            self._add(end, groups)
        else:
            self._combine(held, groups)

    def put(self, end: int, groups: Groups) -> None:
        """Replace the containers of the same keys in a frame."""
        held = self._frames.get(end)
        if held is None:
            self._add(end, dict(groups))
        else:
            self._count(groups.keys() - held.keys())
            held.update(groups)

    def drop(self, until: int) -> bool:
        """Drop the frames that end at `until` or before; return whether there were any."""
        gone = bisect_right(self.ends, until)
        for end in self.ends[:gone]:
            self._uncount(self._frames.pop(end))
            # A dropped frame is not written: a delta contains only frames that are still needed.
            self._touched.pop(end, None)
        del self.ends[:gone]
        return gone > 0

    def touched(self) -> Frames:
        """Return the contents of frames that are new or different since the last call."""
        found = {end: {key: self._frames[end][key] for key in keys} for end, keys in self._touched.items()}
        self._touched = {}
        return found

    def of_keys(self) -> Iterator[tuple[Any, dict[int, Any]]]:
        """Yield each key with its containers by the ends of their frames."""
        for key in self._frames_of_key:
            yield key, {end: self._frames[end][key] for end in self.ends if key in self._frames[end]}

    def load(self, frames: Frames) -> None:
        """Replace all frames."""
        self._frames = frames
        self.ends = sorted(frames)
        self._frames_of_key = Counter(chain.from_iterable(frames.values()))

    def _add(self, end: int, groups: Groups) -> None:
        insort(self.ends, end)
        self._frames[end] = groups
        self._count(groups.keys())

    def _combine(self, held: Groups, groups: Groups) -> None:
        combined = self._combined
        new = []
        for key, container in groups.items():
            before = held.get(key, _MISSING)
            if before is _MISSING:
                held[key] = container
                new.append(key)
                continue
            try:
                held[key] = combined(before, container)
            except Exception as error:
                in_group(error, key)
                raise
        self._count(new)

    def _count(self, keys: Collection[Any]) -> None:
        self._frames_of_key.update(keys)

    def _uncount(self, keys: Iterable[Any]) -> None:
        counts = self._frames_of_key
        for key in keys:
            if counts[key] == 1:
                del counts[key]
            else:
                counts[key] -= 1


class Slide:
    """Sliding window of one shard, which moves over its frames.

    Args:
        size: the length of the window.
        by: the length of a frame.
        inside: the containers of the frames in the window.
    """

    def __init__(self, size: int, by: int, inside: SlidingContainer) -> None:
        self._size = size
        self._by = by
        self._inside = inside
        self._ends: deque[int] = deque()
        self._entered = NO_WATERMARK

    def windows(self, frames: FrameBuffer, first: int, last: int) -> Iterator[tuple[int, Groups]]:
        """Yield the windows that end from `first` to `last` and have items, ascending, as (end, containers).

        The containers are valid until the next window is requested.
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

    def leave(self, frames: FrameBuffer, until: int) -> None:
        """Remove the frames that end at `until` or before."""
        while self._ends and self._ends[0] <= until:
            self._inside.leave(frames[self._ends.popleft()])

    def _enter(self, frames: FrameBuffer, until: int) -> int:
        """Add the frames that end at `until` or before; return the index of the next frame."""
        ahead = bisect_right(frames.ends, self._entered)
        while ahead < len(frames.ends) and frames.ends[ahead] <= until:
            self._entered = frames.ends[ahead]
            self._ends.append(self._entered)
            self._inside.enter(frames[self._entered])
            ahead += 1
        return ahead


class SlidingContainer(Protocol):
    """The containers of the keys in a window, combined from the containers of its frames."""

    def enter(self, groups: Groups) -> None:
        """Add the next frame, which is not changed."""
        ...

    def leave(self, groups: Groups) -> None:
        """Remove the first frame."""
        ...

    def groups(self) -> Groups:
        """Return the containers; they are not to be changed, and change later."""
        ...


def inside_of(is_tumbling: bool, collector: Collector[Any, Any, Any], copies: Copies) -> SlidingContainer:
    """Return the container of a window of one frame, or of several."""
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
    """One container for each key; a key is removed with its last frame, even if its container is not empty."""

    def __init__(self, collector: Collector[Any, Any, Any], copies: Copies) -> None:
        self._collector = collector
        self._copies = copies
        self._groups: Groups = {}
        self._frames: dict[Any, int] = {}

    def enter(self, groups: Groups) -> None:
        inside, frames, combined = self._groups, self._frames, self._collector.combined
        # Copies, since combining may change a container in place, and the frame retains its own.
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
            # By frames, not by the container: a deducted container may differ from an empty one, as with floats.
            if frames[key] == 1:
                del inside[key], frames[key]
            else:
                inside[key] = deducted(inside[key], container)
                frames[key] -= 1

    def groups(self) -> Groups:
        return self._groups


class _Recombining:
    """Window of two stacks: each frame is combined about three times, for any number of frames in a window.

    The older half of the window is on one stack, with all newer frames of that half combined into each frame. The newer
    half is combined as it arrives. When the older half is used up, the newer half is reversed and replaces it.
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


Session: TypeAlias = list[Any]
"""The first and the last instant, both inside, and the container: a list, since it grows with each item."""

EMPTY: Any = object()
"""The placeholder of the container of a new session."""


def joined(sessions: list[Session], start: int, end: int, combined: Callable[[Any, Any], Any]) -> Session:
    """Return the session of `sessions` that covers `start` to `end`; sessions that it touches are merged into it.

    Args:
        sessions: the sessions of one key; most items belong to the last, so it is checked first.
        start: the first instant.
        end: the last instant.
        combined: combines the containers of merged sessions, the earlier first.
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
