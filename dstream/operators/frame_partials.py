"""Frames where the items are: accumulated by key, then cut into shards."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from dstream.operators.arrivals import Arrivals, Batch, LateItems, by_shard
from dstream.spi import Collector
from dstream.spi.state_operator import Partials
from dstream.windows import FrameWindow

__all__ = ["FramePartial", "Frames", "Groups", "partial_frames"]

Groups: TypeAlias = dict[Any, Any]
"""Containers by canonical key."""

Frames: TypeAlias = dict[int, Groups]
"""Groups by the end of their frame."""

FramePartial: TypeAlias = tuple[Frames, LateItems]
"""What comes to one shard: frames, and late items that travel on."""

_MISSING: Any = object()


def partial_frames(
    arrivals: Arrivals, window: FrameWindow, collector: Collector[Any, Any, Any], shards: int, is_keyed: bool
) -> Partials:
    """Accumulate items in the frames of a window."""
    frames = _accumulated(arrivals, window, collector.create, collector.accumulates[0])
    of_shards: dict[int, Frames] = {}
    for end, groups in frames.items():
        for shard, part in by_shard(groups, shards, is_keyed).items():
            of_shards.setdefault(shard, {})[end] = part
    late = arrivals.late_by_shard(shards)
    found = {shard: (of_shards.get(shard, {}), late.get(shard, [])) for shard in {**of_shards, **late}}
    return Partials(found, arrivals.items, arrivals.late)


def _accumulated(
    batches: Iterable[Batch], window: FrameWindow, create: Callable[[], Any], accumulate: Callable[[Any, Any], Any]
) -> Frames:
    frames: Frames = {}
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
    return frames
