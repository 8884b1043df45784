"""`GivenItems`: a source without an end whose items a test gives, epoch by epoch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

__all__ = ["GivenItems"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Stretch(Generic[T]):
    """Some items of one partition; they travel to the task."""

    items: Sequence[T]

    def read(self) -> Iterator[T]:
        return iter(self.items)


@dataclass(eq=False)
class GivenItems(Generic[T]):
    """What `epochs().source(...)` returns. An offset is how many items of the partition have been read.

    Attributes:
        name: for messages.
        partitions: the items of each, as far as they were given.
    """

    name: str
    partitions: dict[str, list[T]] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The source, for messages."""
        return f"source({self.name!r})"

    def begin(self) -> Mapping[str, int]:
        """Begin with the first item."""
        return dict.fromkeys(self.partitions, 0)

    def reach(self, offsets: Mapping[str, int], most: int | None = None) -> Mapping[str, int]:
        """Return how many items were given."""
        return {name: len(items) for name, items in self.partitions.items()}

    def split(self, partition: str, start: int | None, stop: int) -> _Stretch[T]:
        """Return the items of a range."""
        return _Stretch(self.partitions[partition][start or 0 : stop])

    def timestamp(self, item: T) -> int | None:
        """Return the `timestamp` of an item that has one."""
        found: int | None = getattr(item, "timestamp", None)
        return found

    def give(self, partition: str, items: Sequence[Any]) -> None:
        """Add items to a partition; one that is not there yet comes up now."""
        self.partitions.setdefault(partition, []).extend(items)

    def __repr__(self) -> str:
        return self.label
