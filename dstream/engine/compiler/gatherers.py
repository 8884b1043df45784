"""Gatherers, compiled: windows, running values, and concurrent calls.

A gatherer over several partitions needs facts about the neighbours of each partition. A first job stores the items on
the workers, and each partition reports one row about them: their number with the first items, or their total, or the
state of an integrator. Later jobs read the stored items, so that no user function before the gatherer runs twice.

Calls without a rate and without a cache run where the items are. Concurrent tasks share a rate: each of *n* tasks may
call once in *n* intervals, so the step has at most one task per core. With a cache, equal items are shuffled to one
task, and their results are put back in the order of the items.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from dstream.base.records import record
from dstream.engine.compiler.keyed import back_in_place
from dstream.engine.compiler.walk import (
    ClusterFacts,
    Compiling,
    OfOne,
    Wide,
    across,
    called_by,
    compile_node,
    in_columns_alone,
    line_to,
)
from dstream.engine.physical import vertices
from dstream.engine.physical.graph import Ask, Done, Move, PartitionCount, Report, Totalled
from dstream.engine.physical.vertices import (
    Evaluation,
    Items,
    OutputFormat,
    Rows,
    Splits,
    Taken,
    Vertex,
    one_by_one,
    piped,
)
from dstream.engine.tasks.gatherers import (
    ReadAhead,
    ReadByPlace,
    ReadRunning,
    WriteIntegrated,
    WriteWithHead,
    WriteWithTotal,
)
from dstream.engine.tasks.readers import KeepRange, read_places, without_places
from dstream.engine.tasks.routing import RouteByInput, RouteTogether
from dstream.engine.tasks.rows import Row
from dstream.engine.tasks.sinks import RouteByPlace, WriteItems
from dstream.operators.rows import gatherers as gatherers
from dstream.operators.rows.batches import dumps_items, loads
from dstream.operators.rows.gatherers import called_once, calls_of, finish, state_of_part
from dstream.operators.rows.operations import Operation, operation
from dstream.plan.operations.elementwise import CallResults, Chain, Gather
from dstream.plan.operations.streams import Node, Read
from dstream.plan.properties import is_bounded
from dstream.plan.stages import SEVERAL_PARTITIONS
from dstream.plan.steps import Op, unchanged
from dstream.plan.walk import topological
from dstream.spi import AtEnd, ByPlace, ItemWise, RunningValue
from dstream.spi.columns import SourceTraits

__all__ = ["calls_run_first", "gives_windows", "reads_ahead"]


_LARGEST_TOGETHER = 16 * 2**20
"""The most bytes of the partitions' reports that travel back to each task; beyond it one task takes all items."""

_LARGEST_ALONE = 64 * 2**10
"""The most bytes that the report of one partition may have, however many partitions there are."""


@compile_node.register
def _(node: Gather, inputs: Sequence[Items], compiling: Compiling) -> Items:
    decided = called_by(node, compiling.facts)
    kind = node.gatherer.parallel
    if isinstance(kind, ItemWise):
        return piped(inputs[0], node, operation(node), decided=decided)
    if isinstance(kind, ByPlace):
        return in_columns_alone(node, inputs[0], compiling, lambda: _wide(node, decided), gives_windows(kind), decided)
    return across(node, inputs[0], compiling, lambda: _wide(node, decided), decided=decided)


def _wide(node: Gather, decided: Sequence[Evaluation]) -> Wide:
    match node.gatherer.parallel:
        case ByPlace() as kind if reads_ahead(node):
            return Ahead(node, kind)
        case ByPlace() as kind:
            return WithNeighbours(node, kind)
        case RunningValue() as kind:
            return FromTotals(node, kind, decided)
        case AtEnd() as kind:
            return StatesTogether(node, kind, decided)
    return Integrated(node, decided) if node.gatherer.combiner is not None else InOneTask(node, decided)


def reads_ahead(node: Gather) -> bool:
    """Return whether each partition may itself read the items after it, since no user function computes them."""
    kind = node.gatherer.parallel
    *line, read = line_to(node.upstream)
    if not all(_is_unseen(op) for each in line if isinstance(each, Chain) for op in each.ops):
        return False
    is_free = isinstance(read, Read) and SourceTraits(read.source).is_free_to_read
    return is_free and isinstance(kind, ByPlace) and kind.gather_ahead is not None


def _is_unseen(op: Op) -> bool:
    """Return whether a second run of a step on a number has no visible effect."""
    return op.action == "map" and any(op.fn is fn for fn in (unchanged, float, int, str, abs))


@record(slots=False, eq=False)
class Ahead(Wide):
    """The execution in which the task of each piece also reads the first items of later pieces, in one job."""

    node: Gather
    kind: ByPlace[Any, Any]
    counts = False

    def begin(self, inputs: Items, partitions: int) -> Move:
        (each,) = inputs
        assert isinstance(each, Splits), "what is free to read is a source"
        ahead = Splits((each,), for_each=ReadAhead(self.kind))
        note = "each partition reads on to the first items behind it"
        return Done(piped((ahead,), self.node, None, note, gives=gives_windows(self.kind)))


def gives_windows(kind: ByPlace[Any, Any], *, in_several: bool = False) -> OutputFormat:
    """Return the format of the windows that each partition makes of its own items and of later ones.

    Args:
        kind: of the gatherer.
        in_several: that is so only if there are several, which is known from the items before.
    """
    if kind.window is None:
        return one_by_one()
    several = (SEVERAL_PARTITIONS.removeprefix("if "),) if in_several else ()
    return OutputFormat(conditions=("all items are numbers of one type", *several))


@record(slots=False, eq=False)
class WithNeighbours(Wide):
    """The execution in which each partition knows its position and the first items of later partitions."""

    node: Gather
    kind: ByPlace[Any, Any]
    partitions: int = 0

    def begin(self, inputs: Items, partitions: int) -> Move:
        # The limit of one task's report: all reports are sent to this process, and from it to each task.
        largest = max(_LARGEST_TOGETHER // max(partitions, 1), _LARGEST_ALONE)
        step = self.node.step
        stored = Vertex(inputs, WriteWithHead(self.kind.following, largest), step, is_kept=True)
        first = f", and its first {self.kind.following:,}" if self.kind.following else ""
        purpose = f"how many items each partition has{first}"
        return Ask(replace(self, partitions=partitions), stored, "rows", vertices.SUMMARY, step, purpose)

    def next(self, report: Report) -> Move:
        summaries: Sequence[Row] = report.rows
        heads = [bytes(row.payload) for row in summaries]
        # The head of the first partition does not matter: no partition before it reads on into it.
        if any(row.size < 0 for row in summaries[1:]) or sum(map(len, heads)) > _LARGEST_TOGETHER:
            together = Taken(report.vertex, vertices.ITEMS_AND_BESIDE)
            return Done(_in_one_task(together, self.node, operation(self.node)))
        reader = ReadByPlace(self.kind, [row.sequence for row in summaries], heads)
        why = "the items stay where they are; this process learns how many each partition has"
        again = Rows((Taken(report.vertex),), None, reader, why=why, notes=(_IF_LARGE,) if self.kind.following else ())
        return Done(piped((again,), self.node, None, "each partition knows its place"))


_IF_LARGE = "if that is more than 16 MB together, one task takes all items in order, which is not counted"


def _in_one_task(
    rows: Taken,
    node: Gather,
    whole: Operation,
    why: str = "all items come to one task, in order",
    note: str = "one item after another, in one task",
    decided: Sequence[Evaluation] = (),
) -> Items:
    """Compile to one task that reads all items, or all states, in order."""
    return piped((Rows((rows,), 1, why=why),), node, whole, note, decided)


@record(slots=False, eq=False)
class FromTotals(Wide):
    """Each partition folds its items from the value of those before it."""

    node: Gather
    kind: RunningValue[Any, Any]
    decided: Sequence[Evaluation] = ()
    kept: Vertex | None = None

    def begin(self, inputs: Items, partitions: int) -> Move:
        step = self.node.step
        stored = Vertex(inputs, WriteWithTotal(self.kind, step, partitions - 1), step, is_kept=True)
        return Ask(replace(self, kept=stored), stored, "rows", vertices.SUMMARY, step, "the value of each partition")

    def next(self, report: Any) -> Move:
        if isinstance(report, Report):
            totals = [row for row in report.rows if row.size]
            return Totalled(self, functools.partial(_values_before, self.kind), totals, self.node.step)
        assert self.kept is not None, "totals come from what is kept"
        if sum(map(len, report.values())) > _LARGEST_TOGETHER:
            return Done(_in_one_task(Taken(self.kept, vertices.ITEMS_AND_BESIDE), self.node, operation(self.node)))
        reader = ReadRunning(self.kind, self.node.step, report)
        why = "the items stay where they are; this process learns the value of each partition"
        again = Rows((Taken(self.kept),), None, reader, why=why, notes=(_IF_LARGE,))
        return Done(piped((again,), self.node, None, "each partition starts from the value before it", self.decided))


def _values_before(kind: RunningValue[Any, Any], summaries: Sequence[Row]) -> dict[int, bytes]:
    """Return, for each partition but the first, the value of all items before it, pickled before it is changed."""
    before: dict[int, bytes] = {}
    value: list[Any] = []
    # The last total is left out: no partition follows it.
    for row, following in pairwise(summaries):
        (total,) = loads(row.payload)
        value = [kind.combiner(value[0], total) if value else total]
        before[following.source] = dumps_items(value)
    return before


@record(slots=False, eq=False)
class StatesTogether(Wide):
    """Each partition makes a state of its items; one task combines the states, in order, and finishes."""

    node: Gather
    kind: AtEnd[Any, Any]
    decided: Sequence[Evaluation] = ()
    counts = False

    def begin(self, inputs: Items, partitions: int) -> Move:
        step = self.node.step
        state = functools.partial(state_of_part, self.kind, step)
        each = piped(inputs, self.node, state, "each partition on its own", self.decided)
        states = Vertex(each, WriteItems(), step)
        end = functools.partial(finish, self.node.gatherer, step)
        return Done(_in_one_task(Taken(states), self.node, end, _STATES, _COMBINES))


@record(slots=False, eq=False)
class Integrated(Wide):
    """The execution in which each partition integrates with its own state; one task combines the states and finishes.

    After an integrator has stopped, items of later partitions are dropped.
    """

    node: Gather
    decided: Sequence[Evaluation] = ()
    counts = False

    def begin(self, inputs: Items, partitions: int) -> Move:
        step, integrated = self.node.step, WriteIntegrated(self.node.gatherer, self.node.step)
        does = "each partition with a state of its own"
        stored = Vertex(inputs, integrated, step, is_kept=True, does=does, decided=self.decided)
        return Ask(self, stored, "places", vertices.SUMMARY, step, "whether its integrator wanted no more")

    def next(self, report: Report) -> Move:
        last = -1
        for source, _, _, has_stopped in report.rows:
            last = source
            if has_stopped:
                break
        # Later partitions have run as well; the items that they pushed are not read.
        wanted = KeepRange(dict.fromkeys(range(last + 1), (0, None)))
        pushed = Rows((Taken(report.vertex),), None, wanted, why="the items stay where they are")
        states = Taken(report.vertex, vertices.SUMMARY.of_sources(0, last + 1), as_items=True)
        end = functools.partial(finish, self.node.gatherer, self.node.step)
        given = piped((pushed,), self.node, None, "up to where it wanted no more")
        return Done((*given, *_in_one_task(states, self.node, end, _STATES, _COMBINES)))


_STATES = "the state of each partition comes to one task"
_COMBINES = "combines the states in order, and finishes"


@record(slots=False, eq=False)
class InOneTask(Wide):
    """One task takes all items, one after another."""

    node: Gather
    decided: Sequence[Evaluation] = ()
    counts = False

    def begin(self, inputs: Items, partitions: int) -> Move:
        written = Vertex(inputs, WriteItems(), self.node.step)
        return Done(_in_one_task(Taken(written), self.node, operation(self.node), decided=self.decided))


@compile_node.register
def _(node: CallResults, inputs: Sequence[Items], compiling: Compiling) -> Items:
    decided = called_by(node, compiling.facts)
    if not node.calling.is_shared:
        return piped(inputs[0], node, operation(node), "several calls at a time in each task", decided)
    wide = CalledOnce if node.calling.cache else AtRate
    items = across(
        node,
        inputs[0],
        compiling,
        functools.partial(wide, node, compiling.facts, compiling.is_ordered(node.upstream)),
        decided=decided,
    )
    return (compiling.decide(CallsFirst(items, node)),) if calls_run_first(node, compiling.root) else items


def calls_run_first(node: CallResults, root: Node) -> bool:
    """Return whether calls that have a rate or a cache run in a job of their own: several paths lead from them."""
    # Readers come first in the reversed order, so all paths into a node are counted before the paths through it.
    paths = {id(root): 1}
    for each in reversed(topological(root)):
        for upstream in each.inputs():
            paths[id(upstream)] = paths.get(id(upstream), 0) + paths[id(each)]
    return paths[id(node)] > 1 and is_bounded(node)


@record(slots=False, eq=False)
class AtRate(Wide):
    """Makes the calls in no more tasks than can run at once, which share the rate; neighbouring partitions together."""

    node: CallResults
    facts: ClusterFacts
    is_ordered: bool

    def begin(self, inputs: Items, partitions: int) -> Move:
        targets, step = self.facts.cores, self.node.step
        if partitions <= targets:
            return Done(
                piped(inputs, self.node, operation(replace(self.node, slots=partitions)), self._rate(), self._decided())
            )
        together = Vertex(inputs, RouteTogether(partitions, targets), step)
        why = "neighbouring partitions come together, as many as can run at once"
        some = Rows((Taken(together),), targets, why=why, counted="one for each core")
        return Done(
            piped((some,), self.node, operation(replace(self.node, slots=targets)), self._rate(), self._decided())
        )

    def _decided(self) -> Sequence[Evaluation]:
        return called_by(self.node, self.facts)

    def _rate(self) -> str:
        return f"{self.node.calling.rate:g} calls a second at most, which the tasks share"


@record(slots=False, eq=False)
class CalledOnce(Wide):
    """Makes one call for equal items, which meet in one task."""

    node: CallResults
    facts: ClusterFacts
    is_ordered: bool

    def begin(self, inputs: Items, partitions: int) -> Move:
        node, step = self.node, self.node.step
        targets = self.facts.targets(partitions)
        if node.calling.rate is not None:
            # Only tasks that run at the same time can share a rate.
            targets = min(targets, self.facts.cores)
        routed = Taken(Vertex(inputs, RouteByInput(targets, step), step))
        calls = functools.partial(called_once, calls_of(replace(node, slots=targets)))
        met = Rows((routed,), targets, read_places, is_ordered=False, why="equal items meet in one place")
        results = piped((met,), node, calls, "one call for equal items", called_by(node, self.facts))
        if not self.is_ordered:
            return Done(piped(results, None, without_places))
        back = Taken(Vertex(results, RouteByPlace(partitions, targets), step))
        return Done(back_in_place(node, back, targets))


@record(slots=False, eq=False)
class CallsFirst(OfOne):
    """A decision that runs the calls first and stores the results, since several readers would repeat them."""

    node: CallResults

    def begin(self, inputs: tuple[Items, ...], partitions: tuple[PartitionCount, ...]) -> Move:
        step = self.node.step
        results = Vertex(inputs[0], WriteItems(), step, is_kept=True)
        return Ask(self, results, "places", vertices.ITEMS, step, "calls, for several that read the results")

    def next(self, report: Report) -> Move:
        return Done((Rows((Taken(report.vertex),), None, why="the results stay where they are"),))
