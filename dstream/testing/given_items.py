"""`GivenItems`: a source without an end whose items a test gives, epoch by epoch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from dstream.stream.stream_arguments import kind_of

__all__ = ["GivenItems", "by_partition"]

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

    def give(self, given: Mapping[int, Sequence[T]]) -> None:
        """Add items to partitions; one that is not there yet comes up now."""
        more = {str(number): [*self.partitions.get(str(number), ()), *items] for number, items in given.items()}
        self.partitions = {**self.partitions, **more}

    def __repr__(self) -> str:
        return self.label


def by_partition(given: Any, read: Iterable[object]) -> dict[GivenItems[Any], dict[int, list[Any]]]:
    """Return what a test gives in an epoch, as lists by the numbers of partitions.

    Args:
        given: by source its items, or its items by the number of the partition.
        read: the sources of the pipeline.

    Raises:
        TypeError: it is something else.
        ValueError: the pipeline does not read one of the sources.
    """
    if not isinstance(given, Mapping):
        raise TypeError(f"cut() takes the items of each source, such as {{numbers: [1, 2]}}, not {kind_of(given)}")
    known = set(map(id, read))
    for source in given:
        if not isinstance(source, GivenItems):
            raise TypeError(f"cut() takes items of what source(...) returned, and {source!r} is {kind_of(source)}")
        if id(source) not in known:
            raise ValueError(f"the pipeline does not read {source!r}: nothing would become of its items")
    return {source: _lists(source, items) for source, items in given.items()}


def _lists(source: GivenItems[Any], items: Any) -> dict[int, list[Any]]:
    of_partitions = items if isinstance(items, Mapping) else {0: items}
    for number, some in of_partitions.items():
        if type(number) is not int or number < 0:
            raise TypeError(f"the partitions of {source!r} have numbers from 0 on, and {number!r} is none")
        if not isinstance(some, Iterable):
            raise TypeError(f"the items of {source!r} must be a list or another iterable, not {kind_of(some)}")
    return {number: list(some) for number, some in of_partitions.items()}
