"""Bounds for the items of a physical plan: partitions, stages of Python, and shuffles."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Sized
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from dstream.engine.physical.vertices import CachedInput, FromTable, Input, Items, Rows, SourceSplits, Splits, Vertex
from dstream.plan.operations.streams import ReadCache
from dstream.plan.stages import NOTHING, ONE, Amount, exactly, total
from dstream.plan.walk import inputs_first
from dstream.spi import Counted

__all__ = ["ANY", "MANY", "Cost", "Counting", "InputAlternatives", "OfEarlierJob", "amount", "may_read", "range_of"]


_GROWTH = 4

MANY = 2**62
"""Replaces an unknown number, where a graph needs one."""


def amount(number: int) -> Amount:
    """Return a number as an amount."""
    return exactly(number) if number < MANY else Amount(MANY, None)


def range_of(amounts: Iterable[Amount]) -> Amount:
    """Return the amount of one of these, which one is unknown."""
    of = list(amounts)
    most = [each.most for each in of]
    return Amount(min(each.least for each in of), None if None in most else max(filter(None, most), default=0))


@dataclass(frozen=True)
class Cost:
    """Numbers of jobs and tasks to run.

    Attributes:
        python_stages: how many stages of Python, each a `mapInArrow`.
    """

    jobs: Amount = NOTHING
    shuffles: Amount = NOTHING
    python_stages: Amount = NOTHING

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.jobs + other.jobs, self.shuffles + other.shuffles, self.python_stages + other.python_stages)

    def times(self, number: Amount) -> Cost:
        """Return the cost of `number` repetitions."""
        return Cost(_times(self.jobs, number), _times(self.shuffles, number), _times(self.python_stages, number))

    @staticmethod
    def one_of(costs: Sequence[Cost]) -> Cost:
        """Return the cost of an unknown one of several."""
        return Cost(
            range_of(each.jobs for each in costs),
            range_of(each.shuffles for each in costs),
            range_of(each.python_stages for each in costs),
        )


ANY = Cost(Amount(0, None), Amount(0, None), Amount(0, None))
"""The cost without any bound."""


def _times(cost: Amount, number: Amount) -> Amount:
    if cost.most == 0 or number.most == 0:
        return NOTHING
    return Amount(
        cost.least * number.least, None if cost.most is None or number.most is None else cost.most * number.most
    )


@dataclass(frozen=True, eq=False)
class InputAlternatives:
    """The possible inputs that a decision results in, one of which is drawn.

    Attributes:
        drawn: the inputs with the most work.
        partitions: the number of partitions of the items.
        segments: the number of inputs, each a separate frame.
        may_read: whether any of them may read sources.
        cost: the cost of computing the items from the inputs of the decision.
    """

    drawn: Items
    partitions: Amount
    segments: Amount
    may_read: bool
    cost: Cost


@dataclass(frozen=True, eq=False)
class OfEarlierJob:
    """Items of a fork that an earlier job of the same plan stores.

    Attributes:
        partitions: in how many they are.
        stages: which stages of the whole picture write them, counted from the first stage of the graph that reads them:
            -1 is the stage right before it.
    """

    partitions: Amount
    stages: tuple[int, ...] = ()


@dataclass
class Counting:
    """Counts without listing any source; each count is remembered."""

    _known: dict[tuple[object, ...], Amount] = field(default_factory=dict)
    _held: list[object] = field(default_factory=list)

    def partitions(self, items: Items) -> Amount:
        """Return how many partitions items have."""
        of = [self._partitions_of(each) for each in items]
        return of[0] if len(of) == 1 else total(of)

    def _partitions_of(self, each: Input) -> Amount:
        match each:
            case Splits():
                for part in inputs_first(each, self._unknown_parts):
                    self._remembered(part)
                return self._known[_key(each)]
            case Rows():
                return self._remembered(each)
            case CachedInput(InputAlternatives() as either):
                return either.partitions
            case CachedInput(ReadCache(items=OfEarlierJob() as earlier)):
                return earlier.partitions
            case CachedInput(ReadCache() as recall):
                return exactly(recall.items.partitions)
            case FromTable():
                return Amount(1, None, "one for each partition of the DataFrame")
        raise AssertionError("decisions are followed before their items are counted")

    def _unknown_parts(self, splits: Splits) -> Sequence[Splits]:
        if _key(splits) in self._known:
            return ()
        return [part for part in splits.parts if isinstance(part, Splits)]

    def _remembered(self, each: Splits | Rows) -> Amount:
        key = _key(each)
        if key not in self._known:
            self._known[key] = self._of_rows(each) if isinstance(each, Rows) else self._of_splits(each)
            # The key has an `id`, which no other object gets as long as this one is there.
            self._held.append(each)
        return self._known[key]

    def _of_rows(self, rows: Rows) -> Amount:
        if rows.targets is None:
            return total(self.partitions(taken.vertex.inputs) for taken in rows.taken)
        return amount(rows.targets)

    def _of_splits(self, splits: Splits) -> Amount:
        if splits.tasks is not None:
            return amount(splits.tasks) if splits.tasks < MANY else Amount(1, None, "one for each processor")
        parts = [
            split_count(part) if isinstance(part, SourceSplits) else self._known[_key(part)] for part in splits.parts
        ]
        count = parts[0] if len(parts) == 1 else total(parts)
        if splits.start == 0 and splits.stop is None:
            return count
        bounds = [_within(bound, splits) for bound in (count.least, count.most)]
        return Amount(bounds[0] or 0, bounds[1])

    def segments(self, items: Items) -> Amount:
        """Return how many frames these inputs become; neighbours that read sources are one."""
        # `one_after_another` makes one input of neighbours that read sources.
        merged = sum(may_read(left) and may_read(right) for left, right in pairwise(items))
        sum_of = total(map(_segments_of, items))
        return Amount(max(sum_of.least - merged, min(1, sum_of.least)), sum_of.most)

    def waves(self, items: Items) -> Amount:
        """Return the number of waves needed to find the end of a prefix, from one to all.

        Results of earlier jobs and shuffles are a wave each. Splits run in waves of 1, 4, 16, ...
        """
        partitions, segments = self.partitions(items), self.segments(items)
        most = None
        if partitions.most is not None and segments.most is not None:
            others = 0 if all(isinstance(each, Splits) for each in items) else segments.most
            most = others + (_waves_of_splits(partitions.most) if any(map(may_read, items)) else 0)
            most = min(most, partitions.most)  # Each wave has a partition.
        return Amount(min(1, partitions.least), most)

    def may_be_one(self, items: Items) -> bool | None:
        """Return whether all items are in one partition, or None if that is known only when the graph runs."""
        partitions, segments = self.partitions(items), self.segments(items)
        if partitions.least > 1 or segments.least > 1 or partitions.most == 0 or not items:
            return False
        return True if partitions == segments == ONE else None

    def cost_of(self, items: Items) -> tuple[Cost, frozenset[InputAlternatives]]:
        """Return the cost of a job up to items, and the decisions whose results must be known before."""
        seen: set[int] = set()
        reads: set[InputAlternatives] = set()
        cost, pending = Cost(), list(items)
        while pending:
            each = pending.pop()
            if isinstance(each, CachedInput) and isinstance(each.held, InputAlternatives):
                reads.add(each.held)
            # A shuffle that two inputs of one job read runs once.
            if not isinstance(each, Rows) or id(each.taken) in seen:
                continue
            seen.add(id(each.taken))
            cost += Cost(shuffles=NOTHING if each.targets is None else ONE)
            for vertex in (taken.vertex for taken in each.taken):
                if not vertex.is_kept and id(vertex) not in seen:
                    seen.add(id(vertex))
                    cost += Cost(python_stages=self._stages_of(vertex))
                    pending += vertex.inputs
        return cost, frozenset(reads)

    def cost_of_job(self, vertex: Vertex) -> tuple[Cost, frozenset[InputAlternatives]]:
        """Return the cost of the job that writes a vertex's rows, and the decisions whose results must be known."""
        cost, reads = self.cost_of(vertex.inputs)
        return Cost(jobs=ONE, python_stages=self._stages_of(vertex)) + cost, reads

    def _stages_of(self, vertex: Vertex) -> Amount:
        """Return how many stages of Python write the rows of a vertex; there is one also where nothing is read."""
        segments = self.segments(vertex.inputs)
        return Amount(max(segments.least, 1), None if segments.most is None else max(segments.most, 1))


def _key(each: Splits | Rows) -> tuple[object, ...]:
    """Return a key that distinguishes inputs whose calls do not matter."""
    if isinstance(each, Rows):
        return id(each.taken), each.targets
    return id(each.parts), each.start, each.stop, each.tasks


def _within(bound: int | None, splits: Splits) -> int | None:
    """Return how many of `bound` pieces are in the range of `splits`."""
    if bound is None:
        return None if splits.stop is None else splits.stop - splits.start
    stop = bound if splits.stop is None else min(bound, splits.stop)
    return max(stop - splits.start, 0)


def _segments_of(each: Input) -> Amount:
    return each.held.segments if isinstance(each, CachedInput) and isinstance(each.held, InputAlternatives) else ONE


def may_read(each: Input) -> bool:
    """Return whether parts of an input may be read from sources."""
    return isinstance(each, Splits) or (
        isinstance(each, CachedInput) and isinstance(each.held, InputAlternatives) and each.held.may_read
    )


def split_count(source: SourceSplits) -> Amount:
    """Return the number of splits of a source, as far as it is known without I/O."""
    of: Any = source.node.source
    is_known = source.divisor < MANY
    if isinstance(of, Counted):
        least, most = of.count_splits(source.divisor if is_known else 1), of.count_splits(source.divisor)
        if least is None or most is None:
            return Amount(1, None, "one for each chunk of the items")
        if least == MANY:
            return Amount(1, None, "one for each processor")
        return Amount(least, most if most < MANY else None, "" if least == most else "one for each core")
    # The caller's items are divided at once; other sources might have to query a server or list files.
    if of.in_caller and is_known:
        splits = of.splits(source.divisor)
        if isinstance(splits, Sized):
            return exactly(len(splits))
    return Amount(0, None, "one for each split of the source")


def _waves_of_splits(count: int) -> int:
    number, seen, size = 0, 0, 1
    while seen < count:
        number, seen, size = number + 1, seen + size, size * _GROWTH
    return number
