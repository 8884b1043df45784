"""Items that are due at a steady rate, as `item_stream` and `long_stream` give them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from dstream.errors import SourceError
from dstream.spi import Reached
from sources.memory import NamesOfStreams

__all__ = ["Pace", "PacedItems", "PacedSplit", "SimpleEvent"]

T = TypeVar("T")


class SimpleEvent(NamedTuple):
    """What `item_stream` gives.

    Attributes:
        timestamp: when it was due, in milliseconds since 1970.
        sequence: its number, from 0.
    """

    timestamp: int
    sequence: int


@dataclass(frozen=True, slots=True)
class Pace:
    """When which item is due.

    Attributes:
        shown: how the call began, for messages.
        start: of item 0, in milliseconds; None: when a job begins.
    """

    shown: str
    per_second: float
    start: int | None
    partitions: int
    clock: Callable[[], float]

    def now(self) -> int:
        """Return what the clock says, in milliseconds."""
        return math.floor(self.clock() * 1000)

    def due(self, start: int, partition: int) -> int:
        """Return how many items of a partition are due by now."""
        passed = self.now() - start
        if passed < 0:
            return 0
        return max(0, (math.floor(passed * self.per_second / 1000) - partition) // self.partitions + 1)

    def timestamp(self, start: int, sequence: int) -> int:
        """Return when an item is due."""
        return start + math.floor(sequence * 1000 / self.per_second)


@dataclass(frozen=True, slots=True, repr=False)
class PacedItems(NamesOfStreams, Generic[T]):
    """What `item_stream` and `long_stream` return.

    An offset is the start, in milliseconds, and how many items of the partition have been read. So a job that goes on
    keeps the start that it had.
    """

    pace: Pace
    make: Callable[[int, int], T]

    has_times_beside = True

    @property
    def label(self) -> str:
        """The call."""
        more = "" if self.pace.partitions == 1 else f", partitions={self.pace.partitions}"
        return f"{self.pace.shown}{more})"

    def begin(self) -> Mapping[str, list[int]]:
        """Begin with item 0."""
        start = self.pace.now() if self.pace.start is None else self.pace.start
        return {str(partition): [start, 0] for partition in range(self.pace.partitions)}

    def shown_offset(self, offset: Any) -> str:
        """Return how many items were made."""
        return f"item {self._checked(offset)[1]:,}"

    def reach(self, offsets: Mapping[str, Any], most: int | None = None) -> Mapping[str, list[int]]:
        """Ask the clock; never go back behind what was read, as a clock may.

        Raises:
            SourceError: there were other partitions, or an offset is none.
        """
        if set(offsets) != {str(partition) for partition in range(self.pace.partitions)}:
            raise SourceError(
                f"{self.label}: the job was begun with {len(offsets)} partitions, and there are "
                f"{self.pace.partitions}: items would come twice; give it another name to begin anew"
            )
        reached, left = {}, 0
        for name, offset in offsets.items():
            start, read = self._checked(offset)
            due = max(read, self.pace.due(start, int(name)))
            taken = due if most is None else min(due, read + most)
            reached[name], left = [start, taken], left + due - taken
        return Reached(reached, left)

    def split(self, partition: str, start: Any, stop: Any) -> PacedSplit[T]:
        """Return some items, which a worker makes."""
        (_, first), (begun, end) = self._checked(start), self._checked(stop)
        pace = dataclasses.replace(self.pace, start=begun)
        return PacedSplit(pace, self.make, int(partition), first, end)

    def _checked(self, offset: Any) -> tuple[int, int]:
        if not isinstance(offset, list | tuple) or [type(each) for each in offset] != [int, int]:
            raise SourceError(f"{self.label}: {offset!r} is no offset of it")
        return offset[0], offset[1]

    def __repr__(self) -> str:
        return self.label


@dataclass(frozen=True, slots=True, repr=False)
class PacedSplit(Generic[T]):
    """The items of one partition from `first` up to, not including, `end`."""

    pace: Pace
    make: Callable[[int, int], T]
    partition: int
    first: int
    end: int

    def read(self) -> Iterator[T]:
        """Make them."""
        return (made for _, made in self.read_timed())

    def read_timed(self) -> Iterator[tuple[int, T]]:
        """Make them, each behind the time at which it was due, in milliseconds."""
        pace, begun = self.pace, self.pace.start
        assert begun is not None  # A range has the start of its offset.
        for number in range(self.first, self.end):
            item = number * pace.partitions + self.partition  # An exception of the user's function names it so.
            timestamp = pace.timestamp(begun, item)
            yield timestamp, self.make(timestamp, item)
