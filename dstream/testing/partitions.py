"""`Parts`: a source with exact partitions, reproducible divisions of items, and notes between processes."""

from __future__ import annotations

import os
import pickle
import random
import shutil
import sys
import tempfile
import time
import weakref
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Generic, TypeVar

from dstream.base.by_value import dumps_by_value
from dstream.base.threads import in_this_process
from dstream.failures import shown

__all__ = ["Partitioning", "Parts", "folder_for", "note", "notes", "partitionings", "task_name"]


_DRIVER = "driver"


def folder_for(owner: object) -> str:
    """Make a temporary folder that is removed when `owner` is no longer used."""
    folder = tempfile.mkdtemp(prefix="dstream-testing-")
    weakref.finalize(owner, in_this_process(shutil.rmtree, folder, ignore_errors=True))
    return folder


def note(folder: str, name: str, value: Any) -> None:
    """Append a value to the notes of that name, in one write."""
    data = dumps_by_value(value)
    with open(os.path.join(folder, name), "ab", buffering=0) as file:
        file.write(data)


def notes(folder: str) -> Iterator[tuple[str, Any]]:
    """Yield (name, value) of all notes, name by name, each in the order in which it was written."""
    for path in sorted(Path(folder).iterdir(), key=lambda path: (path.name != _DRIVER, path.name)):
        with path.open("rb") as file:
            while file.peek(1):
                yield path.name, pickle.load(file)


def task_name() -> str:
    """Return the name of the current Spark task, as stage-partition-attempt, or of this process outside of tasks."""
    module = sys.modules.get("pyspark.taskcontext")
    task = None if module is None else module.TaskContext.get()
    if task is None:
        return _DRIVER
    # With zeros, so that the names are in the order of the numbers.
    return f"{task.stageId():08}-{task.partitionId():08}-{task.attemptNumber():04}"


T = TypeVar("T")
U = TypeVar("U")


class Parts(Generic[T]):
    """A source with one partition for each argument, which counts the items read of it.

    Works on one machine: workers write what they read into a temporary folder.

    **Parallelism**: one split for each part, regardless of the engine.
    **Guarantee**: every item once, part by part.
    **On re-run**: the same items, and the counts continue.

    Args:
        parts: the items of each partition; an empty list is an empty partition.
        ordered: whether the items have an encounter order.
        in_caller: whether an engine may read them in the caller's process to move them in batches.
        raising: an exception for the number of an item, counted from 0 over all parts: raised instead of it.
        pausing: seconds for the number of an item: to wait before it is emitted.

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
        """Cut items before the positions `cuts`; a repeated position makes an empty part.

        Raises:
            ValueError: the positions are not ascending, or are outside the items.

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
        """Return one split for each part."""
        first, splits = 0, []
        for number, part in enumerate(self.parts):
            splits.append(PartSplit(part, number, first, self.raising, self.pausing, self._folder))
            first += len(part)
        return splits

    @property
    def items_read(self) -> int:
        """The number of items that were read so far, on every engine and in every process; again read counts again."""
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
    """Split of one part, sent to the worker that reads it."""

    items: list[T]
    number: int
    first: int
    raising: Mapping[int, Exception]
    pausing: Mapping[int, float]
    folder: str

    def read(self) -> Iterator[T]:
        """Yield the items, and note each one that is read."""
        self._note("part", self.number)
        for position, item in enumerate(self.items, self.first):
            # Before it is emitted: a reader that stops there does not resume.
            self._note("item", position)
            if position in self.pausing:
                time.sleep(self.pausing[position])
            if position in self.raising:
                raise self.raising[position]
            yield item

    def _note(self, kind: str, number: Any) -> None:
        note(self.folder, task_name(), (kind, number))


_MOST_SINGLE = 16


@dataclass(frozen=True)
class Partitioning:
    """Division of items into partitions.

    Attributes:
        count: how many partitions it has.
        order: the positions of the items in their order; shuffled if they have none.
        cuts: before which of these the cuts are.
    """

    count: int
    order: Sequence[int]
    cuts: Sequence[int]

    def of(self, items: Sequence[Any], like: Parts[Any]) -> Parts[Any]:
        """Return a source of the items, divided so; in all else it is like another one."""
        cut = Parts.cut([items[position] for position in self.order], *self.cuts)
        return Parts(
            *cut.parts, ordered=like.ordered, in_caller=like.in_caller, raising=like.raising, pausing=like.pausing
        )


def partitionings(size: int, ordered: bool, counts: Iterable[int], seed: object) -> Iterator[Partitioning]:
    """Yield partitionings of `size` items: with `counts` partitions, and with one item in each.

    The partitioning with most partitions has empty ones at the front, in the middle and at the end.
    """
    wanted = list(counts)
    for count in wanted:
        # A string is the same seed in each process, regardless of PYTHONHASHSEED.
        chance = random.Random(f"{seed}/{count}")
        order = list(range(size))
        if not ordered:
            chance.shuffle(order)
        yield Partitioning(count, order, _cuts(size, count, chance, with_empty=count == max(wanted)))
    if 0 < size <= _MOST_SINGLE and size not in wanted:
        yield Partitioning(size, range(size), range(1, size))


def _cuts(size: int, count: int, chance: random.Random, with_empty: bool) -> list[int]:
    """Choose the positions of cuts; a cut that occurs twice makes an empty partition."""
    needed = count - 1
    fixed: list[int] = []
    if with_empty and needed >= 4:
        middle = chance.randint(0, size)
        fixed = [0, middle, middle, size]
    return sorted([*fixed, *(chance.randint(0, size) for _ in range(needed - len(fixed)))])
