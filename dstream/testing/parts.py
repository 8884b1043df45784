"""`Parts`: a source whose partitions are exactly those that a test wants."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Generic, TypeVar

from dstream.failures import shown
from dstream.testing.notes import folder_for, note, notes, task_name

__all__ = ["Parts"]

T = TypeVar("T")
U = TypeVar("U")


class Parts(Generic[T]):
    """A source with one partition for each argument, which counts what is read of it.

    Works on one machine: workers write what they read into a temporary folder.

    **Parallelism**: one split for each part, whatever the engine would like.
    **Guarantee**: every item once, part by part.
    **On re-run**: the same items, and the counts go on.

    Args:
        parts: the items of each partition; an empty list is an empty partition.
        ordered: whether the items have an encounter order.
        in_caller: whether an engine may read them in the caller's process to move them in batches.
        raising: an exception for the number of an item, counted from 0 over all parts: raised instead of it.
        pausing: seconds for the number of an item: to wait before it is given.

    Example:
        >>> source = Parts([1, 2], [], [3, 4])
        >>> with connect(engine="local") as ctx:
        ...     ctx.read(source).find_first().get()
        1
        >>> source.items_read, source.parts_read
        (1, [0])
    """

    bounded = True

    def __init__(
        self,
        *parts: Iterable[T],
        ordered: bool = True,
        in_caller: bool = False,
        raising: Mapping[int, Exception] | None = None,
        pausing: Mapping[int, float] | None = None,
    ) -> None:
        self.parts: list[list[T]] = [list(part) for part in parts] or [[]]
        self.ordered = ordered
        self.in_caller = in_caller
        self.raising = dict(raising or {})
        self.pausing = dict(pausing or {})
        self._folder = folder_for(self)

    @staticmethod
    def cut(items: Iterable[U], *cuts: int) -> Parts[U]:
        """Cut items before the positions `cuts`; the same position twice makes an empty part.

        Raises:
            ValueError: the positions do not go up, or lie outside the items.

        Example:
            >>> Parts.cut("abcd", 1, 1, 3)
            Parts(['a'], [], ['b', 'c'], ['d'])
        """
        held = list(items)
        ends = [0, *cuts, len(held)]
        if ends != sorted(ends):
            raise ValueError(f"cuts must go up from 0 to {len(held)}, the number of items, not {list(cuts)}")
        return Parts(*(held[start:stop] for start, stop in pairwise(ends)))

    def splits(self, parallelism: int) -> Sequence[PartSplit[T]]:
        """Give one split for each part."""
        first, splits = 0, []
        for number, part in enumerate(self.parts):
            splits.append(PartSplit(part, number, first, self.raising, self.pausing, self._folder))
            first += len(part)
        return splits

    @property
    def items_read(self) -> int:
        """How many items were asked for so far, on every engine and in every process; again read counts again."""
        return sum(kind == "item" for _, (kind, _) in notes(self._folder))

    @property
    def parts_read(self) -> list[int]:
        """The numbers of the parts that were opened so far, each as often as it was, sorted."""
        opened = Counter(number for _, (kind, number) in notes(self._folder) if kind == "part")
        return sorted(opened.elements())

    def __repr__(self) -> str:
        return f"Parts({', '.join(map(shown, self.parts))}{'' if self.ordered else ', ordered=False'})"


@dataclass(frozen=True)
class PartSplit(Generic[T]):
    """One part on its way to the worker that reads it."""

    items: list[T]
    number: int
    first: int
    raising: Mapping[int, Exception]
    pausing: Mapping[int, float]
    folder: str

    def read(self) -> Iterator[T]:
        """Give the items, and note each one that is asked for."""
        self._note("part", self.number)
        for position, item in enumerate(self.items, self.first):
            self._note("item", position)
            if position in self.pausing:
                time.sleep(self.pausing[position])
            if position in self.raising:
                raise self.raising[position]
            yield item

    def _note(self, kind: str, number: Any) -> None:
        note(self.folder, task_name(), (kind, number))
