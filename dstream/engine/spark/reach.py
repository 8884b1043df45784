"""`Reach`: how far a drawn plan has come; and the arithmetic of partitions, tasks and waves.

What `flow` is to a plan that is lowered, this is to one that is drawn: numbers instead of pieces and
frames, since some of them are known only when the plan runs.
"""

from __future__ import annotations

from collections.abc import Sequence, Sized
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from dstream.engine.recovering import guards_of
from dstream.plan import Node, Read, bounded_nodes, ordered_nodes, parallelism
from dstream.plan.sketch import Sketch
from dstream.plan.stages import ONE, Amount, Call, Exchange, How, exactly, total
from dstream.spi import Counted

__all__ = ["Drawn", "Reach", "split_count", "together", "waves"]

_ENDLESS = 2**62
_GROWTH = 4


@dataclass(frozen=True)
class Reach:
    """The items that a stage gives, as partitions.

    Attributes:
        stage: the number of the stage.
        partitions: how many there are.
        segments: how many stages of Python it would take to end here: one for all that reads sources,
            one for each result of an earlier job or shuffle.
        starts_with_splits: whether the first segment reads a source.
        ends_with_splits: whether the last one does.
        may_read: whether any may do, which is known only when the plan runs.
    """

    stage: int
    partitions: Amount
    segments: Amount = ONE
    starts_with_splits: bool = True
    ends_with_splits: bool = True
    may_read: bool = False

    @property
    def has_one_partition(self) -> bool | None:
        """Whether all items stand in one partition; None if that is known only when the plan runs."""
        if self.partitions.least > 1 or self.segments.least > 1 or self.partitions.most == 0:
            return False
        return True if self.partitions == self.segments == ONE else None

    @property
    def only_splits(self) -> bool:
        """Whether all of it reads sources."""
        return self.starts_with_splits and self.ends_with_splits and self.segments.most == 1

    def to(self, how: How, why: str) -> Exchange:
        """Return how these items come to a stage that begins after this one."""
        return Exchange(self.stage, how, why, self.has_one_partition is False, self.segments)


def frame(stage: int, partitions: Amount, segments: Amount = ONE) -> Reach:
    """Return the reach of a stage that reads what an earlier one wrote."""
    return Reach(stage, partitions, segments, starts_with_splits=False, ends_with_splits=False)


@dataclass
class Drawn:
    """A plan that is being drawn.

    Attributes:
        root: its last core node.
        cores: how many tasks run at the same time; None if that is known only when Spark runs.
    """

    root: Node
    cores: int | None

    def __post_init__(self) -> None:
        self.sketch = Sketch()
        self.ordered = ordered_nodes(self.root)
        self.bounded = bounded_nodes(self.root)
        self.has_letters = any(guard.treatment == "sent" for guard in guards_of(self.root))
        asked = parallelism(self.root)
        self.is_sequential = asked == 1
        self.parallelism = self._amount_of_cores(1) if asked is None else exactly(asked)

    def targets(self, partitions: Amount) -> Amount:
        """Return in how many partitions to shuffle what stands in `partitions` partitions."""
        asked, busy = self.parallelism, self._amount_of_cores(3)
        most = None if asked.most is None or busy.most is None else max(asked.most, busy.most)
        targets = partitions.up_to(Amount(max(asked.least, busy.least), most))
        return Amount(max(1, targets.least), _at_least_one(targets.most))

    def _amount_of_cores(self, factor: int) -> Amount:
        return Amount(factor, None) if self.cores is None else exactly(factor * self.cores)

    def runs_in_place(self, reach: Reach, *calls: Call) -> Reach:
        """Let calls run at the end of each partition."""
        return replace(reach, stage=self.sketch.call(reach.stage, calls))

    def begins(self, tasks: Amount, calls: Sequence[Call], *inputs: Exchange) -> Reach:
        """Begin a stage that reads what others wrote."""
        stage = self.sketch.stage(tasks, *inputs)
        self.sketch.call(stage, calls)
        return frame(stage, tasks)


def _at_least_one(bound: int | None) -> int | None:
    return None if bound is None else max(1, bound)


def split_count(node: Read, parallelism: Amount) -> Amount:
    """Return into how many splits a source will be divided, as far as it can say so for nothing."""
    source: Any = node.source
    if isinstance(source, Counted):
        least, most = source.count_splits(parallelism.least), source.count_splits(parallelism.most or _ENDLESS)
        if least is None or most is None:
            return Amount(1, None, "one for each chunk of the items")
        return Amount(least, None if most >= _ENDLESS else most, "" if least == most else "one for each core")
    if source.in_caller and parallelism.is_known:
        splits = source.splits(parallelism.least)
        if isinstance(splits, Sized):
            return exactly(len(splits))
    return Amount(0, None, "one for each split of the source")


def together(stage: int, parts: Sequence[Reach]) -> Reach:
    """Return the items of all parts, one part after another; neighbouring splits become one segment."""
    borders = sum(left.ends_with_splits and right.starts_with_splits for left, right in pairwise(parts))
    segments = total(part.segments for part in parts)
    merged = Amount(
        max(segments.least - borders, 0), None if segments.most is None else max(segments.most - borders, 0)
    )
    partitions = total(part.partitions for part in parts)
    return Reach(stage, partitions, merged, parts[0].starts_with_splits, parts[-1].ends_with_splits)


def waves(reach: Reach) -> Amount:
    """Return how many waves it takes to find the end of a prefix: at least one, at most all of them.

    Results of earlier jobs and shuffles are a wave each. Splits come in waves of 1, 4, 16, ...
    """
    most = None
    if reach.partitions.most is not None and reach.segments.most is not None:
        others = 0 if reach.only_splits else reach.segments.most
        reads = reach.starts_with_splits or reach.ends_with_splits or reach.may_read
        most = others + (_waves_of_splits(reach.partitions.most) if reads else 0)
        most = min(most, reach.partitions.most)  # Each wave has a partition.
    return Amount(min(1, reach.partitions.least), most)


def _waves_of_splits(count: int) -> int:
    number, seen, size = 0, 0, 1
    while seen < count:
        number, seen, size = number + 1, seen + size, size * _GROWTH
    return number
