"""Sources, caches, element-wise operations, forks and zips, compiled to inputs of the physical plan.

Writes that read one fork through steps that need one item only are fed by the tasks that compute the items of the fork,
if it has no other readers. Every other end is a separate graph; forks that several graphs read are stored like the
items of a `cache()`, so that they are computed once.

A zip takes two jobs. The first one stores the items of both sides, and counts those of each partition. Then the
positions are divided into ranges, one for each target, and the items of both sides are sent to the range of their
position. An endless side is read in one task, up to the end of the other one.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, chain
from typing import Any, NamedTuple, cast

from dstream.base.records import record
from dstream.engine.compiler.evaluation import read_op
from dstream.engine.compiler.walk import ClusterFacts, Compiling, OfOne, called_by, compile_end, compile_node, line_to
from dstream.engine.physical import vertices
from dstream.engine.physical.graph import (
    Ask,
    AskForKept,
    Done,
    Ending,
    Last,
    Move,
    PartitionCount,
    Report,
    Separated,
)
from dstream.engine.physical.vertices import (
    CachedInput,
    Evaluation,
    FromTable,
    Input,
    Items,
    Rows,
    SourceSplits,
    Splits,
    Taken,
    Vertex,
    in_one_task,
    one_after_another,
    piped,
)
from dstream.engine.tasks.readers import ReadPlaces, read_buckets
from dstream.engine.tasks.routing import RouteByPlaceAmongAll
from dstream.engine.tasks.sinks import Branch, WriteEach, WriteItems
from dstream.errors import UnsupportedError
from dstream.operators.joins.pairs import SideBySide, zipped_batches
from dstream.operators.rows import services as services
from dstream.operators.rows.caches import read_here
from dstream.operators.rows.guards import shipped
from dstream.operators.rows.operations import Task, operation, some
from dstream.plan.operations.elementwise import Chain, UsingBatches
from dstream.plan.operations.ends import Several, Write
from dstream.plan.operations.pairs import Zip
from dstream.plan.operations.streams import Cache, Concat, Fork, Hint, Read, ReadCache, Table
from dstream.plan.steps import Op, Step
from dstream.plan.walk import topological
from dstream.processors.tasks import ProcessorNumbers
from dstream.spi import InputSize, Writer
from dstream.spi.source import input_size

__all__ = [
    "GraphOfEnds",
    "Keep",
    "calls_on_branches",
    "chain_read",
    "in_the_caller",
    "nothing",
    "numbers",
    "ops_on_workers",
    "parts_of",
]


@compile_node.register
def _(node: Read, inputs: Sequence[Items], compiling: Compiling) -> Items:
    read = (Splits((SourceSplits(node, _divisor(node, compiling)),)),)
    return in_one_task(read) if compiling.facts.is_sequential else read


def _divisor(node: Read, compiling: Compiling) -> int:
    """Return into how many splits a source is to be divided."""
    if node.parts is not None:
        return node.parts
    facts = compiling.facts
    if facts.items_of_a_piece is None and not facts.most_pieces:
        return facts.parallelism
    return max(facts.parallelism, _small_pieces(input_size(node.source), facts))


def _small_pieces(size: InputSize, facts: ClusterFacts) -> int:
    """Return into how many splits a source is divided so that each is small; 0 if its size is unknown."""
    items = 0 if size.items is None or size.items == math.inf else int(size.items)
    if facts.items_of_a_piece is not None:
        return items // facts.items_of_a_piece if size.is_held else 0
    return min(facts.most_pieces, max(items // _ITEMS_OF_SMALL, (size.stored_bytes or 0) // _BYTES_OF_SMALL))


_ITEMS_OF_SMALL, _BYTES_OF_SMALL = 1_024, 2**20


@compile_node.register
def _(node: Concat, inputs: Sequence[Items], compiling: Compiling) -> Items:
    together = one_after_another(tuple(chain.from_iterable(inputs)))
    is_read = all(isinstance(each, Splits) for each in together)
    if len(together) == 1:
        together = piped(together, node, None, "one part after another; nothing moves")
    return in_one_task(together) if compiling.facts.is_sequential and is_read else together


@compile_node.register
def _(node: Hint, inputs: Sequence[Items], compiling: Compiling) -> Items:
    return piped(inputs[0], node, None)


@compile_node.register
def _(node: Chain, inputs: Sequence[Items], compiling: Compiling) -> Items:
    ops, read_as, decided = ops_on_workers(node, compiling)
    return piped(inputs[0], read_as, operation(dataclasses.replace(node, ops=ops)), decided=decided)


def ops_on_workers(node: Chain, compiling: Compiling) -> tuple[tuple[Op, ...], Chain, tuple[Evaluation | None, ...]]:
    """Return the steps of a chain as tasks run them, the chain as it was read, and the decisions on its functions.

    Actions and the destinations of dead letters, which remain in the caller's process, are left out.
    """
    read_as, decided = chain_read(node, compiling)
    ops = []
    for op in read_as.ops:
        if op.action in ("peek", "count"):
            op = in_the_caller(op, compiling, op.step.position if op.action == "peek" else None)
        ops.append(shipped(op) if op.guards else op)
    return tuple(ops), read_as, decided


def chain_read(node: Chain, compiling: Compiling) -> tuple[Chain, tuple[Evaluation | None, ...]]:
    """Return a chain with its functions read, as far as possible, and the decision on each."""
    if not compiling.facts.reads_functions:
        return node, ()
    is_verified = compiling.facts.columns == "verify"
    found = [read_op(op, compiling.namespaces, is_verified=is_verified) for op in node.ops]
    return dataclasses.replace(node, ops=tuple(each.op for each in found)), tuple(each.decided for each in found)


def numbers(count: int, step: Step) -> Items:
    """Return the numbers of processors, each for its own task: for processors without an input."""
    return (Splits((SourceSplits(Read(ProcessorNumbers(count), step=step), count),)),)


def nothing(items: Iterator[Any], task: Task) -> Iterator[Any]:
    """Return no items: the input only makes the task run."""
    return iter(())


def in_the_caller(op: Op, compiling: Compiling, channel: int | None = None) -> Op:
    """Return a step whose function runs in the caller's process, on rows that tasks send.

    Args:
        op: the step.
        compiling: the graph that is being made.
        channel: the number of a step of the user's; None: one that no such step has.
    """
    if channel is None:
        channel = _FIRST_OF_OURS + len(compiling.actions)
    compiling.actions[channel] = (op.step, op.fn)
    return dataclasses.replace(op, fn=_elsewhere, step=dataclasses.replace(op.step, position=channel))


_FIRST_OF_OURS = 2**20
"""The channels of peeks and guards are the numbers of their steps. What counts or sends receipts is no such step."""


def _elsewhere(item: Any) -> None:
    """Placeholder for a function called in the caller's process, such as the action of a `peek`."""


@compile_node.register
def _(node: UsingBatches, inputs: Sequence[Items], compiling: Compiling) -> Items:
    return piped(inputs[0], node, operation(node), "some items at a time", called_by(node, compiling.facts))


@compile_node.register
def _(node: Table, inputs: Sequence[Items], compiling: Compiling) -> Items:
    return (FromTable(node),)


@compile_node.register
def _(node: ReadCache, inputs: Sequence[Items], compiling: Compiling) -> Items:
    read = read_here(node)
    # The local engine caches items in this process, which are read like any items of the caller.
    return (CachedInput(node),) if read is None else compile_node(read, (), compiling)


@compile_node.register
def _(node: Cache, inputs: Sequence[Items], compiling: Compiling) -> Items:
    return (compiling.decide(Keep(inputs[0], node)),)


@record(slots=False, eq=False)
class Keep(OfOne):
    """A decision on the items of a `cache()`: read them if they are cached, otherwise compute and cache them."""

    node: Cache

    def begin(self, inputs: tuple[Items, ...], partitions: tuple[PartitionCount, ...]) -> Move:
        return AskForKept(self, self.node, Vertex(inputs[0], WriteItems(), self.node.step, is_kept=True))

    def next(self, report: Input) -> Move:
        return Done(piped((report,), self.node, None))


class GraphOfEnds(NamedTuple):
    """The part of a plan with several ends that is one graph.

    Attributes:
        end: one of its ends, or several that one job feeds.
        numbers: their indexes among all ends.
    """

    end: Write | Several
    numbers: tuple[int, ...]


def parts_of(several: Several) -> list[GraphOfEnds]:
    """Return the graphs of a plan, in the order of their first ends."""
    readers = Counter(id(upstream) for each in topological(several) for upstream in each.inputs())
    together: dict[int, list[int]] = defaultdict(list)
    for number, end in enumerate(several.ends):
        fork = _fork_of(end, readers)
        together[id(end if fork is None else fork)].append(number)
    return [_part(several, tuple(numbers)) for numbers in sorted(_fed_together(together, readers))]


def _fed_together(together: dict[int, list[int]], readers: Counter[int]) -> Iterator[tuple[int, ...]]:
    """Yield the numbers of the ends of each graph: the ends of a fork, if all its readers are among them."""
    for found, numbers in together.items():
        if len(numbers) == readers[found]:
            yield tuple(numbers)
        else:
            yield from ((number,) for number in numbers)


def _part(several: Several, numbers: tuple[int, ...]) -> GraphOfEnds:
    ends = tuple(several.ends[number] for number in numbers)
    return GraphOfEnds(ends[0] if len(ends) == 1 else Several(ends, step=several.step), numbers)


def _fork_of(end: Write, readers: Counter[int]) -> Fork | None:
    """Return the fork that a write hangs on by steps that nothing else reads and that need one item only."""
    # Parts of a group have to be combined before they are written, so the tasks of the fork cannot feed such an end.
    if end.collector is not None:
        return None
    *line, node = line_to(end.upstream)
    # A fork with another reader is stored for both: inside of the tasks of this end it would run twice.
    return node if isinstance(node, Fork) and all(readers[id(each)] == 1 for each in line) else None


@compile_end.register
def _(end: Several, compiling: Compiling) -> Ending:
    fork = line_to(end.ends[0].upstream)[-1]
    assert isinstance(fork, Fork), "what one job feeds hangs on a fork"
    branches = [_ops(each, compiling) for each in end.ends]
    sink = WriteEach(
        tuple(
            Branch(ops, cast(Writer, each.writer), each.step) for each, (ops, _) in zip(end.ends, branches, strict=True)
        )
    )
    decided = tuple(each for _, of_branch in branches for each in of_branch)
    items = piped(compiling.items_of(fork.upstream), fork, None, "each task hands its items to one sink after another")
    return Last(
        Vertex(items, sink, fork.step, notes=tuple(calls_on_branches(end)), decided=decided), Separated(len(end.ends))
    )


def calls_on_branches(end: Several) -> list[str]:
    """Return the calls between the fork and each end, with the end, as the user wrote them."""
    return ["".join(node.label() for node in (*line_to(each.upstream)[-2::-1], each)) for each in end.ends]


def _ops(end: Write, compiling: Compiling) -> tuple[tuple[Op, ...], tuple[Evaluation | None, ...]]:
    """Return the steps between the fork and an end, and the decision on each."""
    chains = [node for node in reversed(line_to(end.upstream)) if isinstance(node, Chain)]
    found = [ops_on_workers(node, compiling) for node in chains]
    return tuple(op for ops, _, _ in found for op in ops), tuple(each for *_, decided in found for each in decided)


@compile_node.register
def _(node: Zip, inputs: Sequence[Items], compiling: Compiling) -> Items:
    left, right = inputs
    ends = (compiling.is_bounded(node.left), compiling.is_bounded(node.right))
    if not any(ends) or not compiling.is_bounded(node):
        raise UnsupportedError(
            f"the Spark engine does not run {node.label()} of an endless stream where the result has no end: "
            "limit(n) right behind it, or limit() the endless side before"
        )
    left, right = (each if is_end else _endless(node, each) for each, is_end in zip((left, right), ends, strict=True))
    return (compiling.decide(ZipByPosition(node, left, right, compiling.facts, ends)),)


def _endless(node: Zip, items: Items) -> Items:
    if all(isinstance(each, Splits) for each in items):
        return in_one_task(items)
    raise UnsupportedError(
        f"the Spark engine does not run {node.label()} on an infinite stream that follows one with a shuffle "
        "(sorted, distinct); limit() it before"
    )


@record(slots=False, eq=False)
class ZipByPosition:
    """A zip that counts the items of each partition, and routes the items of both sides by their positions.

    Attributes:
        ends: which of the sides end.
        partitions: how many partitions each side has.
    """

    node: Zip
    left: Items
    right: Items
    facts: ClusterFacts
    ends: tuple[bool, bool]
    partitions: tuple[int, int] = (0, 0)

    counts = True

    @property
    def inputs(self) -> tuple[Items, ...]:
        return self.left, self.right

    def begin(self, inputs: tuple[Items, ...], partitions: tuple[PartitionCount, ...]) -> Move:
        left, right = (number or 0 for number in partitions)
        begun = replace(self, left=inputs[0], right=inputs[1], partitions=(left, right))
        if all(self.ends) and (self.facts.is_sequential or left == right == 1):
            return begun._in_one_task()
        return begun._ask()

    def _in_one_task(self) -> Move:
        step = self.node.step
        first = Vertex(self.left, WriteItems(), step)
        second = Vertex(self.right, WriteItems(), step)
        return self._met((Taken(first), Taken(second, behind=1)), 1, 0, "both sides come to one task")

    def _ask(self) -> Move:
        # One vertex for both sides, so that one job counts all partitions.
        sides = (self.left if self.ends[0] else ()) + (self.right if self.ends[1] else ())
        stored = Vertex(sides, WriteItems(), self.node.step, is_kept=True)
        purpose = f"how many items each partition {'of both sides ' if all(self.ends) else ''}has"
        return Ask(self, stored, "places", vertices.ITEMS, self.node.step, purpose)

    def next(self, report: Report) -> Move:
        left, right = self.partitions
        counted = [left if self.ends[0] else 0, right if self.ends[1] else 0]
        found = [0] * sum(counted)
        for source, _, _, size in report.rows:
            found[source] += size
        lefts, rights = found[: counted[0]], found[counted[0] :]
        totals = [sum(side) for side, is_end in zip((lefts, rights), self.ends, strict=True) if is_end]
        most_pairs = max(totals) if self.node.how in ("longest", "interleaved") else min(totals)
        targets = 1 if self.facts.is_sequential else self.facts.targets(max(counted))
        # One more than wanted of the longer side shows that it is longer.
        most = most_pairs + (self.node.how == "strict")
        sides = (self.left, lefts, 0), (self.right, rights, counted[0])
        placed = [
            self._stored_positions(report.vertex, first, sizes, most) if is_end else _numbered_items(items, most)
            for is_end, (items, sizes, first) in zip(self.ends, sides, strict=True)
        ]
        route = RouteByPlaceAmongAll(most_pairs, targets)
        first, second = (Taken(Vertex(items, route, self.node.step)) for items in placed)
        taken = (first, replace(second, behind=targets))
        return self._met(taken, targets, most_pairs, "items of both sides go to the stretch of their place")

    def _stored_positions(self, stored: Vertex, first: int, sizes: Sequence[int], most: int) -> Items:
        """Return the stored items of a side with their positions."""
        port = vertices.ITEMS.of_sources(first, first + len(sizes))
        reader = ReadPlaces(first, tuple(accumulate(sizes, initial=0)), most)
        return (Rows((Taken(stored, port),), None, reader, why=_STAY),)

    def _met(self, taken: tuple[Taken, ...], targets: int, most_pairs: int, why: str) -> Done:
        met = Rows(taken, targets, read_buckets, why=why)
        does = functools.partial(zipped_batches, SideBySide.of(self.node), targets, most_pairs)
        return Done(piped((met,), self.node, does, "puts both sides together; the left one is held"))


_STAY = "the items stay where they are; this process learns how many each partition has"


def _numbered_items(items: Items, most: int) -> Items:
    """Return the items of an endless side with their positions; one task reads as many as needed."""
    return piped(items, None, functools.partial(_numbered, most))


def _numbered(most: int, items: Iterator[Any], task: Task) -> Iterator[tuple[int, Any]]:
    return enumerate(some(items, 0, most))
