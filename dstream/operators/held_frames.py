"""The frames that a shard holds, in the order of time, and what an epoch has changed in them."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from itertools import chain
from typing import Any

from dstream.operators.frame_partials import Frames, Groups
from dstream.spi import Collector
from dstream.values.blaming import in_group

__all__ = ["HeldFrames"]

_MISSING: Any = object()


class HeldFrames:
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
        """Return how many keys there are."""
        return len(self._frames_of_key)

    def items(self) -> Iterable[tuple[int, Groups]]:
        """Return the frames."""
        return self._frames.items()

    def take(self, end: int, groups: Groups) -> None:
        """Combine containers that come later with those of a frame; they are used up."""
        self._touched.setdefault(end, set()).update(groups)
        held = self._frames.get(end)
        if held is None:
            self._add(end, groups)
        else:
            self._combine(held, groups)

    def put(self, end: int, groups: Groups) -> None:
        """Let containers take the place of those of the same keys in a frame."""
        held = self._frames.get(end)
        if held is None:
            self._add(end, dict(groups))
        else:
            self._count(groups.keys() - held.keys())
            held.update(groups)

    def drop(self, until: int) -> bool:
        """Forget the frames that end at `until` or before; say whether there were any."""
        gone = bisect_right(self.ends, until)
        for end in self.ends[:gone]:
            self._uncount(self._frames.pop(end))
            self._touched.pop(end, None)
        del self.ends[:gone]
        return gone > 0

    def touched(self) -> Frames:
        """Return what is in the frames that was not there, or was different, when this was last called."""
        found = {end: {key: self._frames[end][key] for key in keys} for end, keys in self._touched.items()}
        self._touched = {}
        return found

    def of_keys(self) -> Iterator[tuple[Any, dict[int, Any]]]:
        """Give each key with its containers by the ends of their frames."""
        for key in self._frames_of_key:
            yield key, {end: self._frames[end][key] for end in self.ends if key in self._frames[end]}

    def load(self, frames: Frames) -> None:
        """Hold these, and nothing else."""
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
