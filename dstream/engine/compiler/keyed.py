"""Operations by key on one stream, compiled: distinct, aggregates, stateful steps, and the spreading of items."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate, chain

from dstream.base.records import record
from dstream.engine.compiler.evaluation import called, collector_read
from dstream.engine.compiler.walk import ClusterFacts, Compiling, OfOne, Wide, across, called_by, compile_node
from dstream.engine.physical import vertices
from dstream.engine.physical.graph import Ask, Done, Move, PartitionCount, Report
from dstream.engine.physical.vertices import (
    Evaluation,
    Items,
    OutputFormat,
    Rows,
    Splits,
    Taken,
    Vertex,
    in_one_task,
    is_one_task,
    one_after_another,
    one_by_one,
    only_if,
    piped,
)
from dstream.engine.tasks.distinct import (
    RouteBack,
    RouteFirsts,
    RouteForward,
    back_in_order,
    distinct_in_task,
    first_of_each,
    first_of_forwarded,
    one_of_each,
    read_forwarded,
    read_placed,
)
from dstream.engine.tasks.readers import (
    first_of_keys,
    in_place_order,
    one_of_each_key,
    read_batches,
    read_columns_of_sources,
    read_places,
    without_places,
)
from dstream.engine.tasks.routing import (
    RouteByKeyAndPlace,
    RouteEvenly,
    RouteFirstOnes,
    RouteInTurn,
    RouteItems,
    RoutePartials,
)
from dstream.engine.tasks.sinks import RouteByKey, RouteByPlace, WriteItems
from dstream.engine.tasks.stage import Sink
from dstream.operators.rows.aggregates import at_places, calls_of, finishing, partial
from dstream.operators.rows.operations import guarded, operation
from dstream.plan.operations.keyed import Aggregate, Distinct, PartitionBy, Stateful
from dstream.plan.operations.streams import Node, Spread
from dstream.spi import identity

__all__ = ["NO_HOT_KEY", "back_in_place", "partials"]


@compile_node.register
def _(node: Distinct, inputs: Sequence[Items], compiling: Compiling) -> Items:
    is_ordered = compiling.is_ordered(node.upstream)
    decided = called_by(node, compiling.facts)
    wide = functools.partial(OneOfEachKey, node, compiling.facts, is_ordered, decided)
    in_columns = node.key is None and compiling.facts.reads_functions
    narrow = functools.partial(distinct_in_task, node.step) if in_columns else None
    gives = only_if("all items are numbers of one type, or strings") if in_columns else None
    return across(node, inputs[0], compiling, wide, narrow, decided, gives)


@record(slots=False, eq=False)
class OneOfEachKey(Wide):
    """One item of each key: of an ordered stream the first one, which is sent back to its position."""

    node: Distinct
    facts: ClusterFacts
    is_ordered: bool
    decided: Sequence[Evaluation] = ()

    def begin(self, inputs: Items, partitions: int) -> Move:
        node, step, targets = self.node, self.node.step, self.facts.targets(partitions)
        if self.is_ordered and partitions <= _FEW_PARTITIONS:
            return Done(self._forward(inputs, partitions))
        # With a key function items are always processed one by one.
        if node.key is None and self.facts.reads_functions:
            return Done(self._in_columns(inputs, partitions, targets))
        if not self.is_ordered:
            routed = Taken(Vertex(inputs, RouteFirstOnes(node.key, targets, step), step, decided=self.decided))
            met = Rows((routed,), targets, read_batches, is_ordered=False, why=_FIRSTS_MEET)
            return Done(piped((met,), node, functools.partial(one_of_each_key, step), _FIRSTS))
        key = guarded(node)
        routed = Taken(Vertex(inputs, RouteByKey(key, targets, step), step, decided=self.decided))
        met = Rows((routed,), targets, read_places, is_ordered=False, why=_FIRSTS_MEET)
        firsts = piped((met,), node, functools.partial(first_of_keys, key, step), _FIRSTS)
        back = Taken(Vertex(firsts, RouteByPlace(partitions, targets), step))
        return Done(back_in_place(node, back, targets))

    def _forward(self, inputs: Items, partitions: int) -> Items:
        """Remove from each partition the items of earlier ones: no item is sent to the task of its key and back."""
        key, step = guarded(self.node), self.node.step
        routed = Taken(Vertex(inputs, RouteForward(key, partitions, step), step, decided=self.decided))
        met = Rows((routed,), partitions, read_forwarded, is_ordered=True, why=_FORWARD)
        find, is_columnar = functools.partial(first_of_forwarded, key, step), key is None and self.facts.reads_functions
        gives = only_if("all items are numbers of one type, or strings") if is_columnar else one_by_one()
        return piped((met,), self.node, find, _OWN_FIRSTS, gives=gives)

    def _in_columns(self, inputs: Items, partitions: int, targets: int) -> Items:
        """Compile the step where items are their own keys, and may be stored in columns."""
        node, step, reader = self.node, self.node.step, read_placed if self.is_ordered else read_batches
        routed = Taken(Vertex(inputs, RouteFirsts(targets, step, self.is_ordered), step))
        met = Rows((routed,), targets, reader, is_ordered=False, why=_FIRSTS_MEET)
        find = functools.partial(first_of_each if self.is_ordered else one_of_each, step)
        firsts = piped((met,), node, find, _FIRSTS, gives=only_if("all items are numbers of one type, or strings"))
        if not self.is_ordered:
            return firsts
        back = Taken(Vertex(firsts, RouteBack(partitions, targets), step))
        placed = Rows((back,), targets, read_batches, is_ordered=True, why=_BACK)
        return piped((placed,), node, back_in_order, _IN_ORDER, gives=OutputFormat())


_FEW_PARTITIONS = 3
"""The number of partitions up to which items are sent at most twice on average: cheaper than by position."""
_FORWARD = "the first items of each partition also come to those behind it"
_OWN_FIRSTS = "the first item of each key that no partition before has"
_FIRSTS_MEET = "the first items of each key, one from each task, meet in one place"
_FIRSTS = "the first item of each key"


def back_in_place(node: Node, rows: Taken, targets: int) -> Items:
    """Return the items of (position, item) pairs in the order of their positions."""
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
    # Whether all items are in one partition already is known only by the run.
    if node.count == 1:
        return across(node, inputs[0], compiling, functools.partial(ToPartitions, node, decided), decided=decided)
    return (compiling.decide(Routed(inputs[0], node, decided)),)


@record(slots=False, eq=False)
class Routed(OfOne):
    """Sends each item to the partition of its key, from however many partitions."""

    node: PartitionBy
    decided: Sequence[Evaluation] = ()

    def begin(self, inputs: tuple[Items, ...], partitions: tuple[PartitionCount, ...]) -> Move:
        return Done(_to_partitions(self.node, inputs[0], self.decided))


@record(slots=False, eq=False)
class ToPartitions(Wide):
    """Sends each item to the partition of its key."""

    node: PartitionBy
    decided: Sequence[Evaluation] = ()
    counts = False

    def begin(self, inputs: Items, partitions: int) -> Move:
        return Done(_to_partitions(self.node, inputs, self.decided))


def _to_partitions(node: PartitionBy, items: Items, decided: Sequence[Evaluation]) -> Items:
    step, count = node.step, node.count
    assert count is not None, "the compiler has set it"
    routed = Vertex(items, RouteItems(node.key, count, step), step, decided=decided)
    met = Rows((Taken(routed),), count, is_ordered=False, why="equal keys come to one place")
    return piped((met,), node, None)


@compile_node.register
def _(node: Aggregate, inputs: Sequence[Items], compiling: Compiling) -> Items:
    node, decided = _read(node, compiling)
    items = _partials(node, decided, inputs, compiling, items_may_travel=True)
    wide = ByKey(node, compiling.facts) if node.is_keyed else AllTogether(node)
    return across(node, items, compiling, lambda: wide, gives=_given_by_groups(node))


def partials(node: Aggregate, inputs: Sequence[Items], compiling: Compiling) -> Items:
    """Return the containers of all inputs' tasks before the shuffle, as (keys, containers)."""
    node, decided = _read(node, compiling)
    # The tasks that write buckets of a map take containers alone.
    return _partials(node, decided, inputs, compiling, items_may_travel=False)


def _partials(
    node: Aggregate,
    decided: Sequence[Sequence[Evaluation]],
    inputs: Sequence[Items],
    compiling: Compiling,
    *,
    items_may_travel: bool,
) -> Items:
    does = "each task first combines what it has" if node.combines else "each item as it is"
    gives = _given_by_groups(node) if items_may_travel else one_by_one()
    does_first = functools.partial(partial, node, items_may_travel=items_may_travel)
    parts = chain.from_iterable(
        piped(items, node, does_first(number), does, decided[number], gives=gives)
        for number, items in enumerate(inputs)
    )
    items = one_after_another(tuple(parts))
    if compiling.facts.is_sequential and all(isinstance(each, Splits) for each in items):
        return in_one_task(items)
    return items


def _read(node: Aggregate, compiling: Compiling) -> tuple[Aggregate, Sequence[Sequence[Evaluation]]]:
    """Return an aggregate with the functions of its reductions read, as far as columns can take them.

    It also has the decisions on the functions, for each input.
    """
    if not compiling.facts.reads_functions:
        return node, [()] * len(node.reductions)
    if not node.combines:
        what = "an operation that cannot combine takes items one by one"
        return node, [tuple(called(each.functions, what)) for each in node.reductions]
    is_verified = compiling.facts.columns == "verify"
    found = [collector_read(each, compiling.namespaces, is_verified=is_verified) for each in node.reductions]
    return replace(node, reductions=tuple(each for each, _ in found)), [decided for _, decided in found]


@record(slots=False, eq=False)
class ByKey(Wide):
    """The containers of a key meet in one task, which combines and finishes them."""

    node: Aggregate
    facts: ClusterFacts

    def begin(self, inputs: Items, partitions: int) -> Move:
        step, targets = self.node.step, self.facts.targets(partitions)
        routed = Vertex(inputs, RoutePartials(targets, step), step)
        why, note, does = (_MEET, NO_HOT_KEY, _COMBINES) if self.node.combines else (_ALL_MEET, _HOT_KEY, _ACCUMULATES)
        met = Rows((Taken(routed),), targets, read_batches, is_ordered=False, why=why, notes=(note,))
        return Done(piped((met,), self.node, finishing(self.node), does, gives=_given_by_groups(self.node)))


def _given_by_groups(node: Aggregate) -> OutputFormat:
    """Return the format of groups, and of the entries made of them: in columns, if the tasks count or add up there."""
    reduction, known = node.reductions[0], node.reductions[0].on_columns()
    if not node.is_keyed or reduction.keyed is None:
        return one_by_one()
    if known is None or known.expression is None or known.downstream is None:
        return one_by_one()
    downstream, finisher = known.downstream, reduction.keyed.downstream.finisher
    counts = downstream.finds == "count" and finisher is identity
    adds_up = downstream.finds == "sum" and finisher in (downstream.total, downstream.average)
    # A container of several inputs, and a function of the user's, make objects.
    stand_in_columns = len(node.reductions) == 1 and node.to is None and (counts or adds_up)
    return only_if("all keys are ints, or all are texts") if stand_in_columns else one_by_one()


_MEET = "what the tasks have of a key meets in one place"
NO_HOT_KEY = "a hot key is split: each task sends one container for it, not its items"
_COMBINES = "combines and finishes each key"
_ALL_MEET = "the operation has no combine, so all items of a key come to one place"
_HOT_KEY = "all items of a hot key come to one task, which holds them in memory"
_ACCUMULATES = "accumulates the items of each key, in order, and finishes"


@record(slots=False, eq=False)
class AllTogether(Wide):
    """The containers of all partitions, or all items if they cannot be combined, are sent to one task."""

    node: Aggregate
    counts = False

    def begin(self, inputs: Items, partitions: int) -> Move:
        combines = self.node.combines
        written = Vertex(inputs, WriteItems(), self.node.step)
        why = "the containers come to one task" if combines else "all items come to one task, in order"
        note = "combines the containers in order, and finishes" if combines else "one item after another, in one task"
        return Done(piped((Rows((Taken(written),), 1, why=why),), self.node, finishing(self.node), note))


@compile_node.register
def _(node: Stateful, inputs: Sequence[Items], compiling: Compiling) -> Items:
    is_ordered = compiling.is_ordered(node.upstream)
    decided = called_by(node, compiling.facts)
    wide = (
        OneAfterAnother(node, compiling.facts)
        if node.key is None
        else StateOfEachKey(node, compiling.facts, is_ordered)
    )
    return across(node, inputs[0], compiling, lambda: wide, decided=decided)


@record(slots=False, eq=False)
class OneAfterAnother(Wide):
    """One task lets all items pass."""

    node: Stateful
    facts: ClusterFacts
    counts = False

    def begin(self, inputs: Items, partitions: int) -> Move:
        written = Vertex(inputs, WriteItems(), self.node.step)
        all_items = Rows((Taken(written),), 1, why="all items come to one task, in order")
        note, decided = "one item after another, in one task", called_by(self.node, self.facts)
        return Done(piped((all_items,), self.node, operation(self.node), note, decided))


@record(slots=False, eq=False)
class StateOfEachKey(Wide):
    """A shuffle of items to the state of their key, in order; results of ordered streams are shuffled back."""

    node: Stateful
    facts: ClusterFacts
    is_ordered: bool

    def begin(self, inputs: Items, partitions: int) -> Move:
        node, step, targets = self.node, self.node.step, self.facts.targets(partitions)
        assert node.key is not None, "a state of each key has a key"
        routed = Taken(Vertex(inputs, RouteByKeyAndPlace(node.key, targets, step), step))
        why = "the items of a key come to one place"
        met = Rows((routed,), targets, read_columns_of_sources, is_ordered=False, why=why, notes=(_STATES,))
        passing = functools.partial(at_places, calls_of(node))
        results = piped(
            (met,), node, passing, "each item passes the state of its key, in order", called_by(node, self.facts)
        )
        if not self.is_ordered:
            return Done(piped(results, None, without_places))
        back = Taken(Vertex(results, RouteByPlace(partitions, targets), step))
        return Done(back_in_place(node, back, targets))


_STATES = "a task holds the states of all of its keys in memory"


@compile_node.register
def _(node: Spread, inputs: Sequence[Items], compiling: Compiling) -> Items:
    if compiling.facts.is_sequential or (node.count == 1 and is_one_task(inputs[0])):
        return piped(inputs[0], node, None)
    count = node.count or compiling.facts.targets(compiling.facts.parallelism)
    return (compiling.decide(Spreading(inputs[0], node, count, compiling.is_ordered(node.upstream))),)


@record(slots=False, eq=False)
class Spreading(OfOne):
    """A decision that spreads neighbouring items evenly over partitions, once their number is known.

    Items without an order are sent to the partitions in turn.
    """

    node: Spread
    count: int
    is_ordered: bool

    def begin(self, inputs: tuple[Items, ...], partitions: tuple[PartitionCount, ...]) -> Move:
        step = self.node.step
        if self.count == 1:
            return self._spread(inputs[0], WriteItems(), "all items come to one task")
        # Without an order the number of items is not needed, which saves a job.
        if not self.is_ordered:
            why = f"each task sends its items to the {self.count} partitions in turn"
            return self._spread(inputs[0], RouteInTurn(self.count), why)
        # Written once: the job that sends the items reads what the one that counts them has written.
        stored = Vertex(inputs[0], WriteItems(), step, is_kept=True)
        asking = replace(self, items=inputs[0])
        return Ask(asking, stored, "places", vertices.ITEMS, step, "how many items each partition has")

    def next(self, report: Report) -> Move:
        # A partition without items has sent no row, and counts too.
        sizes = [0] * report.partitions
        for source, _, _, size in report.rows:
            sizes[source] += size
        before = list(accumulate(sizes, initial=0))
        stored = Rows((Taken(report.vertex),), None, why="the items stay where they are")
        why = f"neighbouring items go to one of {self.count} partitions"
        return self._spread((stored,), RouteEvenly(before, self.count), why)

    def _spread(self, items: Items, route: Sink, why: str) -> Done:
        sent, is_ordered = Taken(Vertex(items, route, self.node.step)), None if self.is_ordered else False
        return Done(piped((Rows((sent,), self.count, is_ordered=is_ordered, why=why),), self.node, None))
