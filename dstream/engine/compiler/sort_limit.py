"""Operations by position, compiled: `limit`, `skip`, `take_while`, `drop_while`, `sorted`.

Where a prefix ends is known only when the partitions before are known. So partitions run in waves, the first one
alone, until the end is found; their output is stored where it was computed, and read again with the range of items to
emit for each partition. No user function runs twice, and partitions after the end of a `limit` or `take_while` do not
run at all.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from dataclasses import field, replace

from dstream.base.records import record
from dstream.engine.compiler.evaluation import key_in_columns
from dstream.engine.compiler.walk import (
    ClusterFacts,
    Compiling,
    Wide,
    across,
    called_by,
    compile_node,
    in_columns_alone,
    line_to,
)
from dstream.engine.physical import vertices
from dstream.engine.physical.graph import Ask, Done, Move, Outcome, Report
from dstream.engine.physical.vertices import (
    Evaluation,
    Items,
    OutputFormat,
    Rows,
    Splits,
    Taken,
    Vertex,
    one_after_another,
    one_by_one,
    only_if,
    piped,
)
from dstream.engine.tasks.readers import KeepRange, read_batches
from dstream.engine.tasks.rows import ITEMS, SAMPLE, STOPPED, Row
from dstream.engine.tasks.sinks import WriteItems, WritePrefix
from dstream.engine.tasks.sorting import RouteByRange, SortAlone, SortRuns, merge_ranges
from dstream.engine.tasks.stage import Piece, Sink
from dstream.operators.rows.operations import Operation, operation
from dstream.plan.operations.sort_limit import DropWhile, Limit, Skip, Sorted, TakeWhile, Top
from dstream.plan.operations.streams import Node, Read
from dstream.plan.steps import KeyInColumns

__all__ = ["is_generated"]


_GROWTH = 4
_ITEMS_WORTH_A_TARGET = 10_000
_RUNS_LOOKED_AT = 4096

Ranges = dict[int, tuple[int, int | None]]

Place = tuple[int, int, int, int]
"""The origin and the size of a row: (source, sequence, channel, size)."""


@compile_node.register
def _(node: Limit, inputs: Sequence[Items], compiling: Compiling) -> Items:
    if is_generated(node.upstream) and not compiling.facts.is_sequential:
        (each,) = inputs[0]
        assert isinstance(each, Splits), "what is generated is read from a source"
        shares: Items = (Splits((each,), for_each=Share(node)),)
        return piped(shares, node, None, "each partition gives its share", gives=one_by_one())
    # Each partition is cut at the limit before it is written, since no more of it can be wanted.
    wide = functools.partial(IncrementalScan, node, FirstItems(node.count), WriteItems(), before=operation(node))
    return across(node, inputs[0], compiling, wide)


def is_generated(node: Node) -> bool:
    """Return whether each partition of `node` is endless by itself: a `generate`, step by step."""
    read = line_to(node)[-1]
    return isinstance(read, Read) and not (read.source.bounded or read.source.ordered)


@record(slots=False)
class Share:
    """The operation of each piece of an infinite unordered stream: its share of a limit."""

    limit: Limit

    def __call__(self, pieces: tuple[Piece, ...]) -> Callable[[int], Operation]:
        count = self.limit.count
        # So the shares add up to the count, for any number of pieces.
        return lambda number: operation(dataclasses.replace(self.limit, count=(count + number) // len(pieces)))


@compile_node.register
def _(node: Skip, inputs: Sequence[Items], compiling: Compiling) -> Items:
    wide = functools.partial(IncrementalScan, node, Behind(node.count), WriteItems())
    return in_columns_alone(node, inputs[0], compiling, wide, OutputFormat())


@compile_node.register(TakeWhile)
@compile_node.register(DropWhile)
def _(node: TakeWhile | DropWhile, inputs: Sequence[Items], compiling: Compiling) -> Items:
    is_rest = isinstance(node, DropWhile)

    def wide() -> Wide:
        sink = WritePrefix(node.step.guard(node.predicate, is_predicate=True), keep_rest=is_rest)
        return IncrementalScan(node, FromMark() if is_rest else UpToMark(), sink, decided=decided)

    decided = called_by(node, compiling.facts)
    return across(node, inputs[0], compiling, wide, decided=decided)


@record(slots=False)
class _Counted:
    """A prefix of a number of items.

    Attributes:
        left: how many are still to be found.
    """

    left: int

    @property
    def is_found(self) -> bool:
        """Whether no partition has to run any more."""
        return self.left <= 0

    def found_in(self, source: int) -> tuple[Place, ...]:
        """Return the report of a partition in which it is found."""
        return ((source, 0, ITEMS, self.left),)


@record(slots=False)
class _Marked:
    """A prefix that ends at the first mark."""

    is_found: bool = False

    def found_in(self, source: int) -> tuple[Place, ...]:
        """Return the report of a partition in which it is found."""
        return ((source, 0, STOPPED, 0),)


class FirstItems(_Counted):
    """The first items of all partitions together."""

    reads_rest = False

    def after(self, size: int, mark: int | None) -> tuple[Prefix, tuple[int, int | None] | None]:
        """Return the rest after a partition, and the range of its items to emit."""
        if self.is_found:
            return self, None
        return FirstItems(self.left - size), (0, min(size, self.left))


class Behind(_Counted):
    """The items after the first ones, which are left out."""

    reads_rest = True

    def after(self, size: int, mark: int | None) -> tuple[Prefix, tuple[int, int | None] | None]:
        return Behind(max(self.left - size, 0)), (self.left, None) if size > self.left else None


class UpToMark(_Marked):
    """The items before the first mark."""

    reads_rest = False

    def after(self, size: int, mark: int | None) -> tuple[Prefix, tuple[int, int | None] | None]:
        return UpToMark(self.is_found or mark is not None), None if self.is_found else (0, None)


class FromMark(_Marked):
    """The items from the first mark on."""

    reads_rest = True

    def after(self, size: int, mark: int | None) -> tuple[Prefix, tuple[int, int | None] | None]:
        if self.is_found:
            return self, (0, None)
        return FromMark(mark is not None), None if mark is None else (mark, None)


Prefix = FirstItems | Behind | UpToMark | FromMark


@record(slots=False, eq=False)
class IncrementalScan(Wide):
    """A scan that runs partitions, more in each wave, until a prefix is found.

    Attributes:
        prefix: the prefix that is sought, reduced by what was found.
        sink: writes the items of a partition, and a mark where its own prefix ends.
        before: what each partition does before.
        ranges: of each partition that ran, which items are wanted.
        ran: the vertices of the waves so far.
        place: the index of the first piece of the first input that has not run.
        size: the number of pieces of the next wave.
        decided: the decisions on the functions of the sink.
    """

    node: Limit | Skip | TakeWhile | DropWhile
    prefix: Prefix
    sink: Sink
    before: Operation | None = None
    inputs: Items = ()
    ranges: Ranges = field(default_factory=dict)
    ran: tuple[Vertex, ...] = ()
    partitions: int = 0
    place: int = 0
    size: int = 1
    decided: Sequence[Evaluation] = ()

    counts = False

    def begin(self, inputs: Items, partitions: int) -> Move:
        each_first = inputs if self.before is None else piped(inputs, None, self.before)
        return replace(self, inputs=each_first)._go_on()

    def _go_on(self) -> Move:
        if self.prefix.is_found or not self.inputs:
            return self._found()
        each = self.inputs[0]
        some = each.between(self.place, self.place + self.size) if isinstance(each, Splits) else each
        step = self.node.step
        vertex = Vertex((some,), self.sink, step, is_kept=True, first=self.partitions, decided=self.decided)
        outcomes = (Outcome(self.prefix.found_in(self.partitions)), Outcome())
        purpose = f"looking for its {self._wanted()}"
        port = vertices.ITEMS_AND_MARKS
        return Ask(self, vertex, "places", port, step, purpose, unless_empty=True, outcomes=outcomes)

    def _wanted(self) -> str:
        return "start" if self.prefix.reads_rest else "end"

    def next(self, report: Report) -> Move:
        is_read, rest = isinstance(self.inputs[0], Splits), self.inputs[1:]
        # How many pieces a source has is unknown before a wave that finds none.
        if is_read and report.partitions == 0:
            return replace(self, inputs=rest, place=0)._go_on()
        prefix, ranges = self._with(report)
        ran = replace(
            self,
            prefix=prefix,
            ranges=self.ranges | ranges,
            ran=(*self.ran, report.vertex),
            partitions=self.partitions + report.partitions,
        )
        if is_read:
            # Growing waves: few jobs if the prefix is long, and few superfluous pieces if it is short.
            return replace(ran, place=self.place + self.size, size=self.size * _GROWTH)._go_on()
        return replace(ran, inputs=rest)._go_on()

    def _with(self, report: Report) -> tuple[Prefix, Ranges]:
        # A partition without items has sent no row, and counts too.
        sizes = dict.fromkeys(range(self.partitions, self.partitions + report.partitions), 0)
        marks: dict[int, int] = {}
        for source, sequence, channel, size in report.rows:
            if channel == STOPPED:
                marks[source] = sequence
            else:
                sizes[source] += size
        prefix, ranges = self.prefix, Ranges()
        for source, size in sizes.items():
            prefix, wanted = prefix.after(size, marks.get(source))
            if wanted is not None:
                ranges[source] = wanted
        return prefix, ranges

    def _found(self) -> Move:
        taken = tuple(map(Taken, self.ran))
        why = f"{_AGAIN}; {_BEHIND}" if self.prefix.reads_rest else _AGAIN
        has_rest = self.prefix.reads_rest
        again: Items = (Rows(taken, None, KeepRange(self.ranges), why=why, has_rest=has_rest),) if taken else ()
        if self.prefix.reads_rest and self.inputs:
            first, *others = self.inputs
            # Its first pieces have run in waves, and are read from there.
            if isinstance(first, Splits) and self.place:
                first = first.between(self.place, None)
            again = one_after_another((*again, first, *others))
        return Done(piped(again, self.node, None, f"its {self._wanted()} is known from the waves"))


_AGAIN = (
    "partitions run in waves of 1, 4, 16, ...; what they write stays where it is, to be read again as far as wanted"
)
_BEHIND = "those behind the last wave run with what follows"


@compile_node.register
def _(node: Sorted, inputs: Sequence[Items], compiling: Compiling) -> Items:
    columns, decided = _columns(node, compiling.facts)
    alone = operation(node)
    if columns is not None:
        alone = SortAlone(node.key, node.reverse, node.step, columns, node.looks, alone)
    wide = functools.partial(Sort, node, compiling.facts)
    return across(node, inputs[0], compiling, wide, alone, decided, _sorted_format(columns))


def _sorted_format(columns: KeyInColumns | None) -> OutputFormat:
    return one_by_one() if columns is None or columns.expression is None else only_if(_NUMBERS)


@record(slots=False, eq=False)
class Sort(Wide):
    """Writes sorted runs, looks at a sample of their keys, and cuts them into ranges of keys, one for each target."""

    node: Sorted
    facts: ClusterFacts
    runs: Vertex | None = None
    sources: int = 0

    def begin(self, inputs: Items, partitions: int) -> Move:
        node, step = self.node, self.node.step
        columns, decided = _columns(node, self.facts)
        runs = Vertex(
            inputs, SortRuns(node.key, node.reverse, step, columns, node.looks), step, is_kept=True, decided=decided
        )
        looking = replace(self, runs=runs, sources=partitions)
        many = (Row(0, 0, 0, SAMPLE, _ITEMS_WORTH_A_TARGET * partitions, b""),)
        outcomes = (Outcome(), Outcome(many))
        return Ask(
            looking,
            runs,
            "rows",
            vertices.SAMPLE,
            step,
            "sample of keys",
            outcomes=outcomes,
        )

    def next(self, report: Report) -> Move:
        assert self.runs is not None, "the runs are written before the sample is seen"
        samples: Sequence[Row] = report.rows
        node, step, total = self.node, self.node.step, sum(row.size for row in samples)
        targets = min(self.facts.targets(self.sources), 1 + total // _ITEMS_WORTH_A_TARGET)
        runs = Taken(self.runs, vertices.SORTED_RUNS)
        if targets > 1:
            # The sample travels to every task that cuts runs, so its size has a bound, however many runs there are.
            chosen = tuple(bytes(row.payload) for row in samples[:: 1 + len(samples) // _RUNS_LOOKED_AT])
            by_range = RouteByRange(node.key, node.reverse, chosen, targets, step, _columns(node, self.facts)[0])
            again = Rows((runs,), None, read_batches, is_ordered=False, why=_SAMPLED)
            runs = Taken(Vertex((again,), by_range, step, does="cuts the runs at the borders of the ranges"))
        why = "items are cut into ranges of keys"
        ranges = Rows((runs,), targets, read_batches, is_ordered=True, why=why, counted=_A_TARGET)
        merge = functools.partial(merge_ranges, node.key, node.reverse, step)
        gives = _sorted_format(_columns(node, self.facts)[0])
        return Done(piped((ranges,), node, merge, "sorts each range", gives=gives))


def _columns(node: Sorted | Top, facts: ClusterFacts) -> tuple[KeyInColumns | None, tuple[Evaluation, ...]]:
    """Return the column form of the keys, and the decision on their function; None: the user has disabled columns."""
    if not facts.reads_functions:
        return None, ()
    condition = _NUMBERS if isinstance(node, Sorted) else f"{_NUMBERS}, or texts"
    return key_in_columns(node.key, condition, is_verified=facts.columns == "verify")


_NUMBERS = "all keys are numbers of one type"


_SAMPLED = "sorted runs stay where they are; a sample comes to this process, which chooses the ranges"
_A_TARGET = f"one for each {_ITEMS_WORTH_A_TARGET:,} items"


@compile_node.register
def _(node: Top, inputs: Sequence[Items], compiling: Compiling) -> Items:
    columns, decided = _columns(node, compiling.facts)
    of_one = operation(replace(node, columns=columns))
    return across(node, inputs[0], compiling, lambda: FirstOfEach(node, of_one, decided), of_one, decided)


@record(slots=False, eq=False)
class FirstOfEach(Wide):
    """The first items of each partition meet in one task.

    Attributes:
        of_one: finds the items of one partition.
        decided: the decisions on the function that it calls.
    """

    node: Top
    of_one: Operation
    decided: Sequence[Evaluation]
    counts = False

    def begin(self, inputs: Items, partitions: int) -> Move:
        top, step = operation(self.node), self.node.step
        first = f"the first {self.node.count:,}"
        of_partitions = piped(inputs, self.node, self.of_one, f"{first} of each partition", self.decided)
        candidates = Vertex(of_partitions, WriteItems(), step)
        met = Rows((Taken(candidates),), 1, is_ordered=True, why=f"{first} of each partition meet in one task")
        return Done(piped((met,), self.node, top, f"{first} of them"))
