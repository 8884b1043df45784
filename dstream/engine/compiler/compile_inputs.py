"""Compile sources and kept items, which become inputs, and element-wise operations, which are appended to inputs."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from dstream.engine.compiler.called_functions import called_by
from dstream.engine.compiler.compiling import Compiling, OfOne, compile_node
from dstream.engine.compiler.reading_steps import read_op
from dstream.engine.graph.decided import Decided
from dstream.engine.graph.decisions import AskForKept, Done, Move, Several
from dstream.engine.graph.vertices import (
    FromTable,
    Input,
    Items,
    Kept,
    SourceSplits,
    Splits,
    Vertex,
    in_one_task,
    one_after_another,
    piped,
)
from dstream.engine.kernels import made_services as made_services  # it registers its operation
from dstream.engine.kernels.cached_items import read_here
from dstream.engine.kernels.core_operations import Task, operation
from dstream.engine.kernels.graph_processing import ProcessorNumbers
from dstream.engine.kernels.guards import shipped
from dstream.engine.worker.sinks import WriteItems
from dstream.plan.core import Cache, Chain, Concat, Hint, Read, Recall, Table
from dstream.plan.core_of_services import UsingBatches
from dstream.plan.steps import Op, Step
from dstream.spi import Held

__all__ = ["Keep", "chain_read", "in_the_caller", "nothing", "numbers", "ops_on_workers"]


@compile_node.register
def _(node: Read, inputs: Sequence[Items], compiling: Compiling) -> Items:
    read = (Splits((SourceSplits(node, _divisor(node, compiling)),)),)
    return in_one_task(read) if compiling.facts.is_sequential else read


def _divisor(node: Read, compiling: Compiling) -> int:
    """Return into how many splits a source is to be divided."""
    facts = compiling.facts
    few = facts.items_of_a_piece
    held = node.source.count_items() if few is not None and isinstance(node.source, Held) else None
    if few is None or held is None or held == math.inf:
        return facts.parallelism
    return max(facts.parallelism, int(held) // few)


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


def ops_on_workers(node: Chain, compiling: Compiling) -> tuple[tuple[Op, ...], Chain, tuple[Decided | None, ...]]:
    """Return the steps of a chain as tasks run them, the chain as it was read, and what was decided of its functions.

    What stays in the caller's process is left out: actions, and where dead letters go.
    """
    read_as, decided = chain_read(node, compiling)
    ops = []
    for op in read_as.ops:
        if op.action in ("peek", "count"):
            op = in_the_caller(op, compiling, op.step.position if op.action == "peek" else None)
        ops.append(shipped(op))
    return tuple(ops), read_as, decided


def chain_read(node: Chain, compiling: Compiling) -> tuple[Chain, tuple[Decided | None, ...]]:
    """Return a chain with what its functions give, as far as they can be read, and what was decided of each."""
    if not compiling.facts.reads_functions:
        return node, ()
    is_verified = compiling.facts.columns == "verify"
    found = [read_op(op, compiling.namespaces, is_verified=is_verified) for op in node.ops]
    return dataclasses.replace(node, ops=tuple(each.op for each in found)), tuple(each.decided for each in found)


def numbers(count: int, step: Step) -> Items:
    """Return the numbers of processors, each for a task of its own: for those that read nothing."""
    return (Splits((SourceSplits(Read(ProcessorNumbers(count), step=step), count),)),)


def nothing(items: Iterator[Any], task: Task) -> Iterator[Any]:
    """Give none of the items, which nobody needs but to have a task."""
    return iter(())


def in_the_caller(op: Op, compiling: Compiling, channel: int | None = None) -> Op:
    """Return a step whose function stays in the caller's process, which calls it with what tasks send on a channel.

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
    """Stand for what is called in the caller's process, such as the action of a `peek`."""


@compile_node.register
def _(node: UsingBatches, inputs: Sequence[Items], compiling: Compiling) -> Items:
    return piped(inputs[0], node, operation(node), "some items at a time", called_by(node, compiling.facts))


@compile_node.register
def _(node: Table, inputs: Sequence[Items], compiling: Compiling) -> Items:
    return (FromTable(node),)


@compile_node.register
def _(node: Recall, inputs: Sequence[Items], compiling: Compiling) -> Items:
    read = read_here(node)
    return (Kept(node),) if read is None else compile_node(read, (), compiling)


@compile_node.register
def _(node: Cache, inputs: Sequence[Items], compiling: Compiling) -> Items:
    return (compiling.decide(Keep(inputs[0], node)),)


@dataclass(frozen=True, eq=False)
class Keep(OfOne):
    """The items of a `cache()`: those that the engine keeps, or those that it keeps from now on."""

    node: Cache

    def begin(self, inputs: tuple[Items, ...], partitions: tuple[Several, ...]) -> Move:
        return AskForKept(self, self.node, Vertex(inputs[0], WriteItems(), self.node.step, is_kept=True))

    def next(self, report: Input) -> Move:
        return Done(piped((report,), self.node, None))
