"""Operations by key on one stream: equal keys meet in one task."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from dataclasses import dataclass

from dstream.engine.compiler.called_functions import called_by
from dstream.engine.compiler.compiling import Compiling, Facts, OfOne, Wide, across, compile_node
from dstream.engine.graph.decided import Decided, Gives, only_if
from dstream.engine.graph.decisions import Done, Move, Several
from dstream.engine.graph.vertices import Items, Rows, Taken, Vertex, is_one_task, piped
from dstream.engine.kernels.core_operations import guarded, operation
from dstream.engine.worker.distinct_routing import (
    RouteBack,
    RouteFirsts,
    back_in_order,
    first_of_each,
    one_of_each,
    read_placed,
)
from dstream.engine.worker.readers import (
    first_of_keys,
    in_place_order,
    one_of_each_key,
    read_batches,
    read_columns,
    read_places,
)
from dstream.engine.worker.routing import RouteFirstOnes, RouteItems
from dstream.engine.worker.sinks import RouteByKey, RouteByPlace
from dstream.plan.core import Core, Distinct, PartitionBy

__all__ = ["back_in_place"]


@compile_node.register
def _(node: Distinct, inputs: Sequence[Items], compiling: Compiling) -> Items:
    is_ordered = compiling.is_ordered(node.upstream)
    decided = called_by(node, compiling.facts)
    wide = functools.partial(OneOfEachKey, node, compiling.facts, is_ordered, decided)
    return across(node, inputs[0], compiling, wide, decided=decided)


@dataclass(frozen=True, eq=False)
class OneOfEachKey(Wide):
    """One item of each key: of an ordered stream the first one, which goes back to its place."""

    node: Distinct
    facts: Facts
    is_ordered: bool
    decided: Sequence[Decided] = ()

    def begin(self, inputs: Items, partitions: int) -> Move:
        node, step, targets = self.node, self.node.step, self.facts.targets(partitions)
        if node.key is None and self.facts.reads_functions:
            return Done(self._in_columns(inputs, partitions, targets))
        if not self.is_ordered:
            routed = Taken(Vertex(inputs, RouteFirstOnes(node.key, targets, step), step, decided=self.decided))
            met = Rows((routed,), targets, read_columns, is_ordered=False, why=_FIRSTS_MEET)
            return Done(piped((met,), node, functools.partial(one_of_each_key, step), _FIRSTS))
        key = guarded(node)
        routed = Taken(Vertex(inputs, RouteByKey(key, targets, step), step, decided=self.decided))
        met = Rows((routed,), targets, read_places, is_ordered=False, why=_FIRSTS_MEET)
        firsts = piped((met,), node, functools.partial(first_of_keys, key, step), _FIRSTS)
        back = Taken(Vertex(firsts, RouteByPlace(partitions, targets), step))
        return Done(back_in_place(node, back, targets))

    def _in_columns(self, inputs: Items, partitions: int, targets: int) -> Items:
        """Do the same where items are their own keys, and may stand in columns."""
        node, step, reader = self.node, self.node.step, read_placed if self.is_ordered else read_columns
        routed = Taken(Vertex(inputs, RouteFirsts(targets, step, self.is_ordered), step))
        met = Rows((routed,), targets, reader, is_ordered=False, why=_FIRSTS_MEET)
        find = functools.partial(first_of_each if self.is_ordered else one_of_each, step)
        firsts = piped((met,), node, find, _FIRSTS, gives=only_if("all items are numbers of one type"))
        if not self.is_ordered:
            return firsts
        back = Taken(Vertex(firsts, RouteBack(partitions, targets), step))
        placed = Rows((back,), targets, read_batches, is_ordered=True, why=_BACK)
        return piped((placed,), node, back_in_order, _IN_ORDER, gives=Gives())


_FIRSTS_MEET = "the first items of each key, one from each task, meet in one place"
_FIRSTS = "the first item of each key"


def back_in_place(node: Core, rows: Taken, targets: int) -> Items:
    """Return the items of (place, item) pairs in the order of their places."""
    placed = Rows((rows,), targets, is_ordered=True, why=_BACK)
    return piped((placed,), node, in_place_order, _IN_ORDER)


_BACK = "back to their place, to keep the order"
_IN_ORDER = "in the order that they had"


@compile_node.register
def _(node: PartitionBy, inputs: Sequence[Items], compiling: Compiling) -> Items:
    if node.count is None:
        node = dataclasses.replace(node, count=compiling.facts.parallelism)
    if compiling.facts.is_sequential or (node.count == 1 and is_one_task(inputs[0])):
        return piped(inputs[0], node, operation(node), decided=called_by(node, compiling.facts))
    decided = called_by(node, compiling.facts)
    if node.count == 1:
        return across(node, inputs[0], compiling, functools.partial(ToPartitions, node, decided), decided=decided)
    return (compiling.decide(Routed(inputs[0], node, decided)),)


@dataclass(frozen=True, eq=False)
class Routed(OfOne):
    """Sends each item to the partition of its key, from however many partitions."""

    node: PartitionBy
    decided: Sequence[Decided] = ()

    def begin(self, inputs: tuple[Items, ...], partitions: tuple[Several, ...]) -> Move:
        return Done(_to_partitions(self.node, inputs[0], self.decided))


@dataclass(frozen=True, eq=False)
class ToPartitions(Wide):
    """Sends each item to the partition of its key."""

    node: PartitionBy
    decided: Sequence[Decided] = ()
    counts = False

    def begin(self, inputs: Items, partitions: int) -> Move:
        return Done(_to_partitions(self.node, inputs, self.decided))


def _to_partitions(node: PartitionBy, items: Items, decided: Sequence[Decided]) -> Items:
    step, count = node.step, node.count
    assert count is not None, "the compiler has set it"
    routed = Vertex(items, RouteItems(node.key, count, step), step, decided=decided)
    met = Rows((Taken(routed),), count, is_ordered=False, why="equal keys come to one place")
    return piped((met,), node, None)
