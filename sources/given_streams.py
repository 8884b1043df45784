"""Items that are there already, read as a source without an end would be: what `stream_of` gives."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from dstream.errors import SourceError
from dstream.spi import Reached
from sources.memory import ItemsSplit, NamesOfStreams

__all__ = ["GivenStream"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True, repr=False)
class GivenStream(NamesOfStreams, Generic[T]):
    """Items in partitions that end; an offset is how many of a partition have been read."""

    items: tuple[T, ...]
    partitions: int

    ends = True
    """Behind the last partition that is left out nothing comes, so that a job completes."""

    @property
    def label(self) -> str:
        """The call."""
        more = "" if self.partitions == 1 else f", partitions={self.partitions}"
        return f"stream_of({reprlib.repr(list(self.items))}{more})"

    def begin(self) -> Mapping[str, int]:
        """Begin with the first item of each partition."""
        return {str(partition): 0 for partition in range(self.partitions)}

    def reach(self, offsets: Mapping[str, Any], most: int | None = None) -> Mapping[str, int]:
        """Leave out what has been read to its end.

        Raises:
            SourceError: the offsets are those of other items.
        """
        read = {name: self._checked(offset) for name, offset in offsets.items()}
        sizes = {name: len(self._of(name)) for name in read}
        reached = {
            name: sizes[name] if most is None else min(sizes[name], read[name] + most)
            for name in read
            if read[name] < sizes[name]
        }
        return Reached(reached, sum(sizes[name] - offset for name, offset in reached.items()))

    def split(self, partition: str, start: Any, stop: Any) -> ItemsSplit[T]:
        """Return some items, which travel."""
        return ItemsSplit(self._of(partition)[self._checked(start) : self._checked(stop)])

    def _of(self, partition: str) -> tuple[T, ...]:
        if partition not in self.begin():
            raise SourceError(f"{self.label}: there is no partition {partition!r}")
        return self.items[int(partition) :: self.partitions]

    def _checked(self, offset: Any) -> int:
        if not isinstance(offset, int) or isinstance(offset, bool) or offset < 0:
            raise SourceError(f"{self.label}: {offset!r} is no offset of an item")
        return offset

    def __repr__(self) -> str:
        return self.label
