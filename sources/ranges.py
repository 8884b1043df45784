"""Ranges of whole numbers, made where they are needed."""

from __future__ import annotations

from dataclasses import dataclass

from sources.memory import ItemsSplit, NamesOfStreams, cut, length, partition_count, split_count, whole

__all__ = ["Range"]


@dataclass(frozen=True, slots=True)
class Range(NamesOfStreams):
    """The whole numbers of `range(start, stop, step)`.

    **Parallelism**: `partitions` splits of nearly equal size, by default as many as keep every
    core busy. A split is a `range`; no list is ever built.
    **Guarantee**: ordered; every number once.
    **On re-run**: the same numbers.

    Raises:
        TypeError: `start`, `stop`, `step` or `partitions` is not an int.
        ValueError: `step` is 0, or `partitions` is below 1.

    Example:
        >>> [split.items for split in Range(0, 10).splits(3)]
        [range(0, 3), range(3, 6), range(6, 10)]
    """

    start: int
    stop: int
    step: int = 1
    partitions: int | None = None

    ordered = True
    bounded = True
    in_caller = False
    is_free_to_read = True
    """Reading some of it again costs nothing and runs nothing of the user's."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "start", whole(self.start, "start"))
        object.__setattr__(self, "stop", whole(self.stop, "stop"))
        object.__setattr__(self, "step", whole(self.step, "step"))
        if self.step == 0:
            raise ValueError("step must not be 0")
        object.__setattr__(self, "partitions", partition_count(self.partitions))

    def count_splits(self, parallelism: int) -> int:
        """Say how many splits there will be."""
        return split_count(self.count_items(), self.partitions, parallelism)

    def count_items(self) -> int:
        """Say how many numbers there are."""
        return length(range(self.start, self.stop, self.step))

    def size(self) -> int:
        """Say how many numbers there are."""
        return self.count_items()

    def splits(self, parallelism: int) -> list[ItemsSplit[int]]:
        """Cut the range into ranges."""
        return cut(range(self.start, self.stop, self.step), self.partitions, parallelism)
