"""`Watermarks`: how far the partitions of sources have come, as far as a task knows.

Whoever reads a partition to its end knows its watermark. It stands behind the items on every way that they go, so a
task that has read all its input knows the watermarks of all partitions that lead to it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from dstream.values.event_time import END_OF_TIME

__all__ = ["OfPartitions", "Watermarks"]

OfPartitions = dict[tuple[str, tuple[str, str]], int]
"""By the stage that gives timestamps, and the partition of the source."""


class Watermarks:
    """The watermarks that have reached a task."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: OfPartitions = {}

    def __bool__(self) -> bool:
        return bool(self._known)

    def take(self, of_partitions: Mapping[tuple[str, tuple[str, str]], int]) -> None:
        """Learn some; a partition that was read in parts is as far as the one that is furthest behind."""
        known = self._known
        for partition, watermark in of_partitions.items():
            known[partition] = min(watermark, known.get(partition, watermark))

    def all(self) -> OfPartitions:
        """Return all that are known."""
        return dict(self._known)

    def least(self, stamps: Collection[str]) -> int:
        """Return the least of the partitions whose timestamps these stages give; `END_OF_TIME` if none is known."""
        of_these = (watermark for (stamp, _), watermark in self._known.items() if stamp in stamps)
        return min(of_these, default=END_OF_TIME)
