"""`ItemUse`: the use that a run makes of the caller's items, and whether it copies them; read from its operations."""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import BuiltinFunctionType, FunctionType, MethodDescriptorType
from typing import Any, Literal, cast

from dstream.base.copies import are_plain
from dstream.base.records import record
from dstream.base.threads import is_only_thread
from dstream.engine.compiler import ClusterFacts
from dstream.engine.compiler.evaluation import PartsUsed, Shape, collector_read, read_step
from dstream.engine.physical.graph import Graph, Last, Pulled
from dstream.engine.physical.vertices import Items, SourceSplits, Splits, StageCall
from dstream.engine.tasks.sinks import Accumulate, WriteGroups, WriteItems
from dstream.engine.tasks.stage import Sink
from dstream.expressions.reader import Unreadable
from dstream.expressions.tree import Constant, Expression, Method
from dstream.failures.attribution import is_our_name
from dstream.plan.operations.elementwise import Chain
from dstream.plan.operations.keyed import Distinct
from dstream.plan.operations.sort_limit import DropWhile, Limit, Skip, TakeWhile, Top
from dstream.plan.operations.streams import Hint, Node
from dstream.plan.steps import NO_CALL, Op, Step
from dstream.spi import Collector, InColumns, Source, identity
from dstream.spi.source import input_size

__all__ = ["ItemUse", "use_of_items"]


@record
class ItemUse:
    """The use that a run makes of the caller's items.

    Attributes:
        is_once: one task reads each of them, once.
        parts: the names of the parts that functions read, if these change nothing and retain only whole items; None:
            functions may do anything.
        copied: when items are copied: all of a batch before a task reads the first one; when a task reads them, since
            nothing can change an item before and a run may read only some of them; or only if reading one of `parts`
            may run a user's function.
        gives_items: the results are a subset of the items.
        is_pure: all functions are expressions that change nothing, and capture nothing mutable.
        most: the largest number of items that are read, the first ones of a split; None: unknown.
    """

    is_once: bool = False
    parts: frozenset[str] | None = None
    copied: Literal["before", "when read", "if needed"] = "before"
    gives_items: bool = False
    is_pure: bool = False
    most: int | None = None


def use_of_items(graph: Graph, facts: ClusterFacts, *, may_read: bool, is_loop: bool = False) -> ItemUse:
    """Return what a run of a graph does with the items of the caller's that it reads.

    Args:
        graph: the graph of the run.
        facts: the facts for which it was compiled.
        may_read: functions may be read.
        is_loop: the caller gets one result while the next one is not read.
    """
    ending = graph.ending
    if graph.decisions or not isinstance(ending, Last | Pulled):
        return ItemUse()
    line = _line_behind_source(ending.vertex.inputs if isinstance(ending, Last) else ending.inputs)
    if line is None:
        return ItemUse()
    source, applied = line
    # Reading functions takes as long as copying about a hundred items. Another thread might change items between two
    # reads.
    is_worth_it = (
        may_read and is_only_thread() and source.in_caller and (input_size(source).items or 0) >= _WORTH_READING
    )
    use = ItemUse(is_once=True, most=_most_read(applied, ending)) if facts.is_sequential else ItemUse()
    if isinstance(ending, Pulled):
        is_page = ending.limit is not None and (not is_loop or ending.limit.count == 1)
        is_unseen = is_worth_it and is_page and use.most is None and _Seen().all_of(applied, None)
        return replace(use, copied="when read") if is_unseen else use
    if not facts.is_sequential:
        return use
    is_leaving = all(_leaves_items(each.node) for each in applied)
    use = replace(use, gives_items=isinstance(ending.vertex.output, WriteItems) and is_leaving)
    seen = _Seen()
    if not is_worth_it or not seen.all_of(applied, ending.vertex.output):
        return use
    # All items in another order, or in lists, are looked at sooner before.
    are_all = seen.is_pure and (seen.keeps_all or (use.gives_items and all(map(_gives_all, applied))))
    parts = seen.parts.of(True)
    return replace(use, is_pure=seen.is_pure, parts=parts, copied="before" if are_all or parts is None else "if needed")


_WORTH_READING = 1_024


def _line_behind_source(inputs: Items) -> tuple[Source[Any], Sequence[StageCall]] | None:
    """Return the only source of inputs, with the operations of its task; None: there may be other sources."""
    applied: list[StageCall] = []
    while len(inputs) == 1 and isinstance(splits := inputs[0], Splits):
        if len(splits.parts) != 1 or (splits.start, splits.stop, splits.for_each) != (0, None, None):
            return None
        applied = [*splits.applied, *applied]
        (part,) = splits.parts
        if isinstance(part, SourceSplits):
            return part.node.source, applied
        inputs = (part,)
    return None


def _most_read(applied: Sequence[StageCall], ending: Last | Pulled) -> int | None:
    """Return how many of the first items of a source are read at most; None if that depends on them, or all are."""
    skipped = 0
    for each in applied:
        match each.node:
            case Limit(count=count):
                return skipped + count
            case Skip(count=count):
                skipped += count
            case Chain(ops=ops) if all(op.action in ("map", "peek", "count") and not op.guards for op in ops):
                pass
            case _:
                return None
    if isinstance(ending, Pulled) and ending.limit is not None:
        return skipped + ending.limit.count
    return None


def _leaves_items(node: Node | None) -> bool:
    """Return whether an operation emits a subset of its items unchanged."""
    if isinstance(node, Chain):
        return all(op.action == "filter" and not op.guards for op in node.ops)
    return _is_order(node) or isinstance(node, Limit | Skip | TakeWhile | DropWhile | Distinct | Hint)


def _gives_all(applied: StageCall) -> bool:
    return isinstance(applied.node, Hint) or (_is_order(applied.node) and not isinstance(applied.node, Top))


def _is_order(node: Node | None) -> bool:
    """Return whether an operation emits its items, or the first of them, in the order of their keys."""
    return node is not None and node.needs_all == "sorted" and len(node.inputs()) == 1


class _UnknownUse(Exception):
    """A function that cannot be read, or an operation that may do anything."""


class _PartsSeen(PartsUsed):
    """The parts of items that functions read, if whole items are copied as results.

    Attributes:
        asks_for_get: a function calls `get`, which an object may override.
    """

    asks_for_get = False

    def of(self, side: bool) -> frozenset[str] | None:
        found = super().of(side)
        return found | {"get"} if found is not None and self.asks_for_get else found

    def collected(self, known: InColumns | None, items: Shape) -> None:
        if known is None or known.expression is None or known.finds != "first":
            super().collected(known, items)
            return
        for each in (known.expression, known.condition):
            if each is not None:
                self.take(self.result(each, items))


class _Seen:
    """The parts of a source's items that downstream operations use.

    Attributes:
        parts: the parts that are used; items may also be emitted unchanged, since results are copied.
        is_pure: no function has a mutable object that it might emit.
        keeps_all: a collector stores all items in lists.
    """

    def __init__(self) -> None:
        self.parts = _PartsSeen((True,))
        self.is_pure = True
        self.keeps_all = False

    def all_of(self, applied: Sequence[StageCall], output: Sink | None) -> bool:
        """Record the parts that operations and the sink after them use; return whether these are all that is used."""
        items: Shape = True
        try:
            for each in applied:
                items = self._behind(each.node, items)
            if isinstance(output, Accumulate | WriteGroups):
                self._collected(output.collector, items)
        except _UnknownUse:
            return False
        return output is None or isinstance(output, Accumulate | WriteGroups | WriteItems)

    def _behind(self, node: Node | None, items: Shape) -> Shape:
        """Record what an operation uses of its items, and return the shape of its results."""
        match node:
            case Chain():
                for op in node.ops:
                    items = self._behind_step(op, items)
            case Distinct(key=key):
                self._keyed(key, node.step, items)
            case _ if _is_order(node):
                self._keyed(cast(Any, node).key, cast(Node, node).step, items)
            case Limit() | Skip() | Hint():
                pass
            case _:
                raise _UnknownUse
        return items

    def _keyed(self, key: Callable[[Any], Any] | None, step: Step, items: Shape) -> None:
        self.parts.take(items if key is None else self._result(Op("map", key, None, step), items))

    def _behind_step(self, op: Op, items: Shape) -> Shape:
        if op.action not in ("map", "filter", "flat_map"):
            raise _UnknownUse
        found = self._result(op, items)
        if op.action == "map" and op.kind is None:
            return found
        self.parts.take(found)
        return items if op.action == "filter" else None

    def _result(self, op: Op, items: Shape) -> Shape:
        expression = read_step(op)
        if isinstance(expression, Unreadable):
            raise _UnknownUse
        if expression is None:
            return items
        self._check(expression)
        return self.parts.result(expression, items)

    def _collected(self, collector: Collector[Any, Any, Any], items: Shape) -> None:
        """Record what a collector uses of its items, if all its functions are read, as where columns could take it."""
        known = collector_read(collector, is_verified=False)[0].on_columns()
        if known is None or known.expression is None:
            self._collected_by_items(collector, items)
            return
        pending = [known]
        while pending:
            each = pending.pop()
            for expression in (each.expression, each.condition):
                if expression is not None:
                    self._check(expression)
            pending += [*each.parts, *(() if each.downstream is None else (each.downstream,))]
        self.parts.collected(known, items)

    def _collected_by_items(self, collector: Collector[Any, Any, Any], items: Shape) -> None:
        """Record what groups of lists, and collectors without functions of the user's, use of their items."""
        downstream = collector
        while (keyed := downstream.keyed) is not None:
            functions, others = downstream.functions, keyed.downstream.functions
            key = getattr(getattr(keyed.classifier, "__self__", None), "classifier", None)
            if len(functions) != len(others) + 1 or functions[0][1] is not key or not _is_ours(keyed.assemble):
                raise _UnknownUse
            self._keyed(key, NO_CALL, items)
            downstream = keyed.downstream
        parts = (downstream.supplier, downstream.accumulator, downstream.combiner, downstream.finisher)
        if downstream.functions or not all(map(_is_ours, (*parts, downstream.accumulate_all))):
            raise _UnknownUse
        if downstream.accumulator is list.append and downstream.finisher is identity:
            self.keeps_all |= items is True
        else:
            self.parts.take(items)

    def _check(self, expression: Expression) -> None:
        """Refuse constants that may have operators of a user's."""
        constants = [each.value for each in expression.walk() if isinstance(each, Constant)]
        if not all(map(_is_plain, constants)):
            raise _UnknownUse
        self.is_pure &= not any(isinstance(each, list | set | dict) for each in constants)
        if any(isinstance(each, Method) and each.name == "get" for each in expression.walk()):
            self.parts.asks_for_get = True


def _is_ours(function: Any) -> bool:
    """Return whether a function calls none of the user's that it has got as an argument."""
    if isinstance(function, functools.partial):
        return not function.keywords and all(map(_is_ours, (function.func, *function.args)))
    if type(function) in (type, BuiltinFunctionType, MethodDescriptorType):
        return function in (dict, int, list, operator.add, list.append, list.extend)
    return function is None or (type(function) is FunctionType and is_our_name(function.__module__))


def _is_plain(value: Any) -> bool:
    if type(value) is dict:
        value = [*value, *value.values()]
    return are_plain(value if type(value) in (list, tuple, set, frozenset) else [value]) or type(value) is re.Pattern
