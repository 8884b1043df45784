"""Compile gatherers.

A gatherer over several partitions needs to know something of the partitions around each. A first job keeps the items
on the workers, and each partition reports one row about them: how many there are with the first few, or their total, or
the state of an integrator. What follows reads the kept items, so that no user function before the gatherer runs twice.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from dstream.engine.compiler.called_functions import called_by
from dstream.engine.compiler.compiling import Compiling, Wide, across, compile_node
from dstream.engine.graph import output_ports
from dstream.engine.graph.decided import Decided, Gives, one_by_one
from dstream.engine.graph.decisions import Ask, Done, Move, Report, Totalled
from dstream.engine.graph.vertices import Items, Rows, Splits, Taken, Vertex, piped
from dstream.engine.kernels import gather as gather  # registers what each partition runs
from dstream.engine.kernels.core_operations import Operation, operation
from dstream.engine.kernels.gather import finish, state_of_part
from dstream.engine.kernels.item_batches import dumps_items, loads
from dstream.engine.worker.partition_summaries import (
    ReadByPlace,
    ReadRunning,
    WriteIntegrated,
    WriteWithHead,
    WriteWithTotal,
)
from dstream.engine.worker.read_ahead import ReadAhead
from dstream.engine.worker.readers import KeepRange
from dstream.engine.worker.rows import Row
from dstream.engine.worker.sinks import WriteItems
from dstream.plan.core import Chain, Core, Gather, Hint, Read
from dstream.plan.stages import SEVERAL_PARTITIONS
from dstream.plan.steps import Op, unchanged
from dstream.spi import AtEnd, ByPlace, ItemWise, RunningValue

__all__ = ["gives_windows", "reads_ahead"]

_LARGEST_TOGETHER = 16 * 2**20
"""How many bytes of what the partitions told may travel back to each task; beyond it one task does it all."""

_LARGEST_ALONE = 64 * 2**10
"""How many bytes a partition may tell in any case, however many partitions there are."""


@compile_node.register
def _(node: Gather, inputs: Sequence[Items], compiling: Compiling) -> Items:
    decided = called_by(node, compiling.facts)
    if isinstance(node.gatherer.parallel, ItemWise):
        return piped(inputs[0], node, operation(node), decided=decided)
    return across(node, inputs[0], compiling, lambda: _wide(node, decided), decided=decided)


def _wide(node: Gather, decided: Sequence[Decided]) -> Wide:
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
    """Say whether each partition may read the items that follow it itself, since nothing of the user's makes them."""
    kind = node.gatherer.parallel
    upstream: Core = node.upstream
    while isinstance(upstream, Chain | Hint):
        if isinstance(upstream, Chain) and not all(map(_is_unseen, upstream.ops)):
            return False
        upstream = upstream.upstream
    is_free = isinstance(upstream, Read) and getattr(upstream.source, "is_free_to_read", False)
    return is_free and isinstance(kind, ByPlace) and kind.gather_ahead is not None


def _is_unseen(op: Op) -> bool:
    """Say whether nobody can tell that a step ran twice on a number."""
    return op.action == "map" and any(op.fn is fn for fn in (unchanged, float, int, str, abs))


@dataclass(frozen=True, eq=False)
class Ahead(Wide):
    """The task of each piece reads on to the first items of the pieces behind it: no job has to come before."""

    node: Gather
    kind: ByPlace[Any, Any]
    counts = False

    def begin(self, inputs: Items, partitions: int) -> Move:
        (each,) = inputs
        assert isinstance(each, Splits), "what is free to read is a source"
        ahead = Splits((each,), for_each=ReadAhead(self.kind))
        note = "each partition reads on to the first items behind it"
        return Done(piped((ahead,), self.node, None, note, gives=gives_windows(self.kind)))


def gives_windows(kind: ByPlace[Any, Any], *, in_several: bool = False) -> Gives:
    """Return in what the windows stand that each partition makes of its own items and of some behind them.

    Args:
        kind: of the gatherer.
        in_several: that is so only if there are several, which the items before may tell.
    """
    if kind.window is None:
        return one_by_one()
    several = (SEVERAL_PARTITIONS.removeprefix("if "),) if in_several else ()
    return Gives(conditions=("all items are numbers of one type", *several))


@dataclass(frozen=True, eq=False)
class WithNeighbours(Wide):
    """Each partition gathers its items, knowing its place and the first items of those behind it."""

    node: Gather
    kind: ByPlace[Any, Any]
    partitions: int = 0

    def begin(self, inputs: Items, partitions: int) -> Move:
        largest = max(_LARGEST_TOGETHER // max(partitions, 1), _LARGEST_ALONE)
        step = self.node.step
        kept = Vertex(inputs, WriteWithHead(self.kind.following, largest), step, is_kept=True)
        first = f", and its first {self.kind.following:,}" if self.kind.following else ""
        purpose = f"how many items each partition has{first}"
        return Ask(replace(self, partitions=partitions), kept, "rows", output_ports.SUMMARY, step, purpose)

    def next(self, report: Report) -> Move:
        told: Sequence[Row] = report.rows
        heads = [bytes(row.payload) for row in told]
        if any(row.size < 0 for row in told[1:]) or sum(map(len, heads)) > _LARGEST_TOGETHER:
            together = Taken(report.vertex, output_ports.ITEMS_AND_BESIDE)
            return Done(_in_one_task(together, self.node, operation(self.node)))
        reader = ReadByPlace(self.kind, [row.sequence for row in told], heads)
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
    decided: Sequence[Decided] = (),
) -> Items:
    """Let one task take all items, or all states, in order."""
    return piped((Rows((rows,), 1, why=why),), node, whole, note, decided)


@dataclass(frozen=True, eq=False)
class FromTotals(Wide):
    """Each partition goes over its items from the value of those before it."""

    node: Gather
    kind: RunningValue[Any, Any]
    decided: Sequence[Decided] = ()
    kept: Vertex | None = None

    def begin(self, inputs: Items, partitions: int) -> Move:
        step = self.node.step
        kept = Vertex(inputs, WriteWithTotal(self.kind, step, partitions - 1), step, is_kept=True)
        return Ask(replace(self, kept=kept), kept, "rows", output_ports.SUMMARY, step, "the value of each partition")

    def next(self, report: Any) -> Move:
        if isinstance(report, Report):
            totals = [row for row in report.rows if row.size]
            return Totalled(self, functools.partial(_values_before, self.kind), totals, self.node.step)
        assert self.kept is not None, "totals come from what is kept"
        if sum(map(len, report.values())) > _LARGEST_TOGETHER:
            return Done(_in_one_task(Taken(self.kept, output_ports.ITEMS_AND_BESIDE), self.node, operation(self.node)))
        reader = ReadRunning(self.kind, self.node.step, report)
        why = "the items stay where they are; this process learns the value of each partition"
        again = Rows((Taken(self.kept),), None, reader, why=why, notes=(_IF_LARGE,))
        return Done(piped((again,), self.node, None, "each partition starts from the value before it", self.decided))


def _values_before(kind: RunningValue[Any, Any], told: Sequence[Row]) -> dict[int, bytes]:
    """Return, for each partition but the first, the value of all items before it, pickled before it is changed."""
    before: dict[int, bytes] = {}
    value: list[Any] = []
    for row, following in pairwise(told):
        (total,) = loads(row.payload)
        value = [kind.combiner(value[0], total) if value else total]
        before[following.source] = dumps_items(value)
    return before


@dataclass(frozen=True, eq=False)
class StatesTogether(Wide):
    """Each partition makes a state of its items; one task combines the states, in order, and finishes."""

    node: Gather
    kind: AtEnd[Any, Any]
    decided: Sequence[Decided] = ()
    counts = False

    def begin(self, inputs: Items, partitions: int) -> Move:
        step = self.node.step
        state = functools.partial(state_of_part, self.kind, step)
        each = piped(inputs, self.node, state, "each partition on its own", self.decided)
        states = Vertex(each, WriteItems(), step)
        end = functools.partial(finish, self.node.gatherer, step)
        return Done(_in_one_task(Taken(states), self.node, end, _STATES, _COMBINES))


@dataclass(frozen=True, eq=False)
class Integrated(Wide):
    """Each partition integrates with a state of its own; one task combines the states and finishes.

    Where an integrator wanted no more, nothing of the partitions behind it is given.
    """

    node: Gather
    decided: Sequence[Decided] = ()
    counts = False

    def begin(self, inputs: Items, partitions: int) -> Move:
        step, integrated = self.node.step, WriteIntegrated(self.node.gatherer, self.node.step)
        does = "each partition with a state of its own"
        kept = Vertex(inputs, integrated, step, is_kept=True, does=does, decided=self.decided)
        return Ask(self, kept, "places", output_ports.SUMMARY, step, "whether its integrator wanted no more")

    def next(self, report: Report) -> Move:
        last = -1
        for source, _, _, has_stopped in report.rows:
            last = source
            if has_stopped:
                break
        wanted = KeepRange(dict.fromkeys(range(last + 1), (0, None)))
        pushed = Rows((Taken(report.vertex),), None, wanted, why="the items stay where they are")
        states = Taken(report.vertex, output_ports.SUMMARY.of_sources(0, last + 1), as_items=True)
        end = functools.partial(finish, self.node.gatherer, self.node.step)
        given = piped((pushed,), self.node, None, "up to where it wanted no more")
        return Done((*given, *_in_one_task(states, self.node, end, _STATES, _COMBINES)))


_STATES = "the state of each partition comes to one task"
_COMBINES = "combines the states in order, and finishes"


@dataclass(frozen=True, eq=False)
class InOneTask(Wide):
    """One task takes all items, one after another."""

    node: Gather
    decided: Sequence[Decided] = ()
    counts = False

    def begin(self, inputs: Items, partitions: int) -> Move:
        written = Vertex(inputs, WriteItems(), self.node.step)
        return Done(_in_one_task(Taken(written), self.node, operation(self.node), decided=self.decided))
