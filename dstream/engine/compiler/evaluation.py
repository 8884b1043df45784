"""Functions of steps, collectors and entries, read as expressions."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import attrgetter, itemgetter, methodcaller
from types import FunctionType
from typing import Any, NamedTuple, TypeAlias, cast

from dstream.engine.physical.vertices import Evaluation
from dstream.expressions.effects import asks_for_truth
from dstream.expressions.reader import Unreadable, may_travel, name_of_callable, read
from dstream.expressions.resolution import Namespaces
from dstream.expressions.tree import (
    Applied,
    Argument,
    Attribute,
    Built,
    Called,
    Choice,
    Constant,
    Expression,
    ForTuples,
    Indexed,
    Let,
    Local,
    Method,
    Routine,
    Together,
    Tried,
    one_behind_another,
    substituted,
)
from dstream.failures import is_our_name
from dstream.operators.columns.capabilities import obstacle_to_step, operators_of, takes_whole_items, unsupported
from dstream.plan.operations.elementwise import ServiceFunction
from dstream.plan.steps import Emitted, KeyInColumns, Op, StepEvaluation, one_key, unchanged
from dstream.spi import Collector, InColumns
from dstream.values import Entry, Predicate
from dstream.values.entries import key_of, value_of
from dstream.values.fields import has_plain_fields
from dstream.values.time import MOST_INSTANT
from dstream.values.user_functions import shown_function

__all__ = [
    "PartsUsed",
    "Reading",
    "Shape",
    "called",
    "collector_read",
    "entry_read",
    "groups_read",
    "key_in_columns",
    "read_around",
    "read_op",
    "read_step",
    "step_evaluation",
    "timestamps_read",
]


_ITEM = Argument(0)
_KEY, _VALUE = Indexed(_ITEM, Constant(0)), Indexed(_ITEM, Constant(1))


def read_around(fn: Any, namespaces: Namespaces | None) -> Expression | Unreadable:
    """Return the expression of a function of dstream's, which describes by `around` its use of one of the user's."""
    around = getattr(type(fn), "around", None)
    if around is None:
        return Unreadable("stands in a call that does more with each item")
    if around == "swap":
        return entry_read("swap")
    if around == "starred":
        return _starred(fn.fn, namespaces)
    found = read(fn.fn, 1, namespaces)
    if isinstance(found, Unreadable):
        return found
    if around == "instant":
        return _instant(found, Local(0))
    if around == "end_of_frame":
        return _instant(found, _end_of_frame(Local(0), fn.window.by, fn.window.offset))
    if around == "key_by":
        return _entry(found, _ITEM)
    of_value = substituted(found, {0: _VALUE})
    if around == "on_value":
        return ForTuples(2, _entry(_KEY, of_value))
    # Once a function has returned its `and` or `or`, Python evaluates the truth of the value once more.
    condition = Let(of_value, 0, Local(0)) if asks_for_truth(of_value) else of_value
    return ForTuples(2, Choice(condition, Together((_entry(_KEY, _VALUE),)), Constant(())))


def _instant(of: Expression, then: Expression) -> Expression:
    """Return an expression of a timestamp that is local 0, for the ints that timestamps may be, and no other value."""
    is_int = Applied("is", (Called("type", (Local(0),)), Constant(int)))
    is_near = [Applied("<", (Constant(-MOST_INSTANT), Local(0))), Applied("<", (Local(0), Constant(MOST_INSTANT)))]
    # Any other value is left to the function: the expression has none for it.
    nothing = Indexed(Together(()), Constant(0))
    return Let(of, 0, Choice(Applied("and", (is_int, *is_near)), then, nothing))


def _end_of_frame(timestamp: Expression, by: int, offset: int) -> Expression:
    """Return the first border of a frame after a timestamp, as `FrameWindow.higher_frame` does."""
    into = Applied("%", (Applied("-", (timestamp, Constant(offset))), Constant(by)))
    return Applied("+", (Applied("-", (timestamp, into)), Constant(by)))


def entry_read(what: str) -> Expression:
    """Return the `"key"` or the `"value"` of an entry, or an entry of both exchanged: `"swap"`."""
    return ForTuples(2, {"key": _KEY, "value": _VALUE, "swap": _entry(_VALUE, _KEY)}[what])


def _entry(key: Expression, value: Expression) -> Expression:
    return Called("dstream.Entry", (Together((key, value)),))


def _starred(fn: Callable[..., Any], namespaces: Namespaces | None) -> Expression | Unreadable:
    """Return the expression of `fn(*item)` for tuples with one member per parameter of `fn`."""
    if type(fn) is not FunctionType:
        return Unreadable("takes an item apart for what is no lambda or def")
    size = fn.__code__.co_argcount
    found = read(fn, size, namespaces)
    if isinstance(found, Unreadable) or size == 0:
        return found if isinstance(found, Unreadable) else Unreadable("takes no arguments")
    # With defaults it may be called with fewer arguments: the function itself takes tuples of another size.
    return ForTuples(size, substituted(found, {index: Indexed(_ITEM, Constant(index)) for index in range(size)}))


class Reading(NamedTuple):
    """A step as the compiler has read it, and the decision on its function; None if no task calls one."""

    op: Op
    decided: Evaluation | None


def read_op(op: Op, namespaces: Namespaces | None = None, *, is_verified: bool = False) -> Reading:
    """Return a step with its evaluation in tasks, and the decision for `explain()`, with reasons.

    Args:
        op: the step.
        namespaces: the known values of globals, for all steps of a plan.
        is_verified: the results of columns are compared with those of the function.
    """
    found = read_step(op, namespaces)
    if namespaces is not None and isinstance(found, Expression):
        kinds = (each.kind for each in found.walk() if isinstance(each, Built))
        namespaces.classes.update(dict.fromkeys(filter(has_plain_fields, kinds)))
    evaluation = step_evaluation(op, found if isinstance(found, Expression) else None, is_verified=is_verified)
    read_as = dataclasses.replace(op, evaluation=evaluation)
    if not isinstance(found, Expression):
        return Reading(read_as, None if found is None else Evaluation(unread=found))
    obstacle, is_inlined, conditions = evaluation.obstacle or "", evaluation.is_inlined, evaluation.conditions
    if _is_worth_inlining(op.fn):
        why_called, name = next(filter(None, map(_why_called, found.walk())), ""), ""
    else:
        why_called, name = "is a class" if isinstance(op.fn, type) else "is written in C", name_of_callable(op.fn)
    return Reading(read_as, Evaluation("", None, obstacle, is_inlined, why_called, name, conditions))


def step_evaluation(op: Op, expression: Expression | None, *, is_verified: bool = False) -> StepEvaluation:
    """Decide how tasks evaluate the function of a step, by its expression."""
    obstacle = obstacle_to_step(op, Argument(0) if op.fn is unchanged else expression)
    if expression is None:
        return StepEvaluation(obstacle=obstacle)
    is_inlined = _is_worth_inlining(op.fn) and not any(map(_why_called, expression.walk()))
    conditions = ("its values repeat",) if obstacle is None and takes_whole_items(expression) else ()
    return StepEvaluation(expression, obstacle, is_inlined, operators_of(expression), is_verified, conditions)


def _why_called(part: Expression) -> str:
    """Return why a loop calls a function that has this part, in words; empty: it does not."""
    # Inside of an expression a `try` takes three calls, statements take one, and the function itself is one. An
    # exception of the user's is raised by the function alone, which also deals with items of other classes.
    match part:
        case Tried():
            return "has a `try`"
        case Routine():
            return "has statements that are no expression"
        case Choice(Called("dstream.is_of", _), _, Called("dstream.failed", ())):
            return "calls a method of its items' class"
        case Called("dstream.failed", ()):
            return "raises an exception of its own"
    return ""


def _is_worth_inlining(fn: Any) -> bool:
    return type(fn) in _WORTH_INLINING or hasattr(type(fn), "around")


_WORTH_INLINING = frozenset({FunctionType, functools.partial, itemgetter, attrgetter, methodcaller})
"""A function written in C is called as fast as it could be named."""


def collector_read(
    collector: Collector[Any, Any, Any], namespaces: Namespaces | None = None, *, is_verified: bool
) -> tuple[Collector[Any, Any, Any], tuple[Evaluation, ...]]:
    """Return a collector with its functions read, if columns can take it, and the decision on each of them.

    A collector that columns cannot take has nothing of columns any more.
    """
    known = collector.on_columns()
    if known is None:
        what = f"{collector.name or 'the collector'} takes items one by one"
        return collector, tuple(called(collector.functions, what))
    readings: dict[int, Expression | Unreadable] = {}
    read_as = _read(known, namespaces, is_verified, readings)
    return dataclasses.replace(collector, in_columns=read_as), tuple(_decided(collector, read_as, readings))


def groups_read(
    key: Callable[[Any], Any] | None,
    collector: Collector[Any, Any, Any],
    namespaces: Namespaces | None = None,
    *,
    is_verified: bool,
) -> tuple[InColumns | None, tuple[Evaluation, ...]]:
    """Return how columns group items by a key and collect each group, or None, and the decision on each function.

    Args:
        key: returns the key of an item; None: all items are one group.
        collector: collects the items of a group.
        namespaces: what the names in the functions mean.
        is_verified: whether columns are compared with the results of Python.
    """
    known, of_key = collector.on_columns(), () if key is None else (("key", key),)
    functions = (*of_key, *collector.functions)
    if known is None or not known.makes_containers:
        return None, tuple(called(functions, f"{collector.name or 'the collector'} takes items one by one"))
    downstream = dataclasses.replace(known, supplier=known.supplier or collector.supplier)
    groups = InColumns("groups", of=key or one_key, downstream=downstream, same_as=collector.accumulate_all)
    as_groups = dataclasses.replace(collector, in_columns=groups, functions=functions)
    read_as, decided = collector_read(as_groups, namespaces, is_verified=is_verified)
    return read_as.on_columns(), decided


def _decided(
    collector: Collector[Any, Any, Any], read_as: InColumns | None, readings: dict[int, Expression | Unreadable]
) -> Iterator[Evaluation]:
    """Yield the decision on each function: columns take all of them, or none."""
    gathers_items = read_as is not None and read_as.gathers_items
    conditions = ("the items are no records of a source or a join",) if gathers_items else ()
    for name, fn in collector.functions:
        # By identity: a callable of the user's may have no hash, or be equal to another one.
        found = readings.get(id(fn))
        if read_as is not None:
            yield Evaluation(name, conditions=conditions)
        elif isinstance(found, Unreadable):
            yield Evaluation(name, found)
        else:
            obstacle = None if found is None else unsupported(found)
            yield Evaluation(name, obstacle=obstacle or "columns do not take the function beside it")


def called(functions: Iterable[tuple[str, Callable[..., Any]]], obstacle: str) -> Iterator[Evaluation]:
    """Yield the decision on functions that are called for each item, since the obstacle is there."""
    return (Evaluation(name, obstacle=obstacle) for name, _ in functions)


def _read(
    known: InColumns,
    namespaces: Namespaces | None,
    is_verified: bool,
    readings: dict[int, Expression | Unreadable],
) -> InColumns | None:
    found, condition = _read_of(known, namespaces, readings)
    downstream = None if known.downstream is None else _read(known.downstream, namespaces, is_verified, readings)
    parts = [_read(part, namespaces, is_verified, readings) for part in known.parts]
    taken = tuple(part for part in parts if part is not None)
    has_values = _has_columns(found, may_give_lists=known.finds == "list")
    is_read = has_values and (condition is None or _has_columns(condition)) and len(taken) == len(parts)
    if not is_read or (downstream is None) != (known.downstream is None):
        return None
    return dataclasses.replace(
        known,
        expression=cast(Expression, found),
        condition=cast("Expression | None", condition),
        downstream=downstream,
        parts=taken,
        is_verified=is_verified,
    )


def _has_columns(found: Expression | Unreadable, *, may_give_lists: bool = False) -> bool:
    if not isinstance(found, Expression) or unsupported(found, may_give_lists=may_give_lists) is not None:
        return False
    # Columns look whether items are tuples before anything else, not in between.
    return not any(isinstance(each, ForTuples) for each in found.walk() if each is not found)


def _read_of(
    known: InColumns, namespaces: Namespaces | None, readings: dict[int, Expression | Unreadable]
) -> tuple[Expression | Unreadable, Expression | Unreadable | None]:
    """Return the value extracted from an item, after all earlier steps, and the condition on which it is; None: always.

    The expression of each function is recorded.
    """
    found: Expression | Unreadable = Argument(0)
    condition: Expression | Unreadable | None = None
    if known.of is not None:
        found = readings[id(known.of)] = _function_read(known.of, namespaces)
    for action, fn in reversed(known.before):
        first = readings[id(fn)] = _function_read(fn, namespaces)
        if action == "filter":
            condition = first if condition is None else _joined(lambda *both: Applied("and", both), first, condition)
            continue
        found = _joined(one_behind_another, first, found)
        condition = None if condition is None else _joined(one_behind_another, first, condition)
    return _that_travels(found), None if condition is None else _that_travels(condition)


def _joined(
    join: Callable[[Expression, Expression], Expression],
    first: Expression | Unreadable,
    second: Expression | Unreadable,
) -> Expression | Unreadable:
    if not isinstance(first, Expression) or not isinstance(second, Expression):
        return second if isinstance(first, Expression) else first
    return join(first, second)


def _that_travels(found: Expression | Unreadable) -> Expression | Unreadable:
    # pickle fails on a deeply nested expression, where it takes the function itself.
    return found if not isinstance(found, Expression) or may_travel(found) else Unreadable("is long")


def key_in_columns(
    key: Callable[[Any], Any] | None, condition: str, namespaces: Namespaces | None = None, *, is_verified: bool
) -> tuple[KeyInColumns, tuple[Evaluation, ...]]:
    """Return the facts known of a key function, and the decision on it; None is each item itself.

    Args:
        key: the function.
        condition: when keys can be stored in columns, as far as only the data decide it.
        namespaces: what the names in the function mean.
        is_verified: whether columns are compared with the results of Python.
    """
    if key is None:
        return KeyInColumns(Argument(0), is_verified), ()
    found, decided = _key_decided("key", read(key, 1, namespaces), condition)
    return KeyInColumns(found, is_verified), (decided,)


def timestamps_read(
    timestamp: Callable[[Any], int], namespaces: Namespaces | None = None, *, is_verified: bool
) -> tuple[KeyInColumns | None, tuple[Evaluation, ...]]:
    """Return a function of timestamps as it was read, or None if columns cannot take it, and the decision on it."""
    found, decided = _key_decided("fn", _function_read(timestamp, namespaces), "all timestamps are ints")
    return None if found is None else KeyInColumns(found, is_verified), (decided,)


def _key_decided(name: str, found: Expression | Unreadable, condition: str) -> tuple[Expression | None, Evaluation]:
    """Return the expression of a function if columns can take it, and the decision on it."""
    if isinstance(found, Unreadable):
        return None, Evaluation(name, found)
    obstacle = unsupported(found)
    if obstacle is not None:
        return None, Evaluation(name, obstacle=obstacle)
    return found, Evaluation(name, conditions=(condition,))


def read_step(op: Op, namespaces: Namespaces | None = None) -> Expression | Unreadable | None:
    """Return the expression of a step's function, or why it is unknown; None if a task calls none of the user's.

    A step that looks after its failures calls its function: what failed is known by the exception alone.
    """
    if op.action not in _READ or op.fn is unchanged:
        return None
    if isinstance(op.fn, ServiceFunction):
        return Unreadable("calls a service")
    if isinstance(op.fn, Emitted):
        return Unreadable("emits its items one by one", advice="return a tuple of them to flat_map()")
    if isinstance(op.fn, Predicate):
        return Unreadable(f"calls {shown_function(op.fn)}", advice="a lambda can be read")
    if op.guards:
        return Unreadable("is followed by a call that handles its failures")
    if is_our_name(type(op.fn).__module__):
        return read_around(op.fn, namespaces)
    return _function_read(op.fn, namespaces)


def _function_read(fn: Callable[..., Any], namespaces: Namespaces | None) -> Expression | Unreadable:
    """Return the expression of a function of an item: a user's function, or the key or value function of entries."""
    if fn is key_of or fn is value_of:
        return entry_read("key" if fn is key_of else "value")
    if is_our_name(type(fn).__module__) and hasattr(type(fn), "around"):
        return read_around(fn, namespaces)
    return read(fn, 1, namespaces)


_READ = ("map", "filter", "flat_map")


Shape: TypeAlias = "bool | tuple[Shape, ...] | None"
"""Source of items: a row of the left side (True) or of the right one, a tuple or an entry, or something else."""


class PartsUsed:
    """The parts of the rows of a join that the steps after it use, as far as columns evaluate these.

    A task reads them ahead. Other parts are read again when needed, so that no result depends on this choice.

    Args:
        sides: those whose rows are looked for.
    """

    def __init__(self, sides: Iterable[bool]) -> None:
        self._found: dict[bool, set[str] | None] = {side: set() for side in sides}

    def of(self, side: bool) -> frozenset[str] | None:
        """Return the names of the parts of a side; None if rows are needed as a whole."""
        found = self._found.get(side)
        return None if found is None else frozenset(found)

    def take(self, items: Shape) -> None:
        """Record that items are used as they are."""
        if isinstance(items, bool):
            self._found[items] = None
        for each in items if isinstance(items, tuple) else ():
            self.take(each)

    def behind(self, op: Op, items: Shape) -> Shape:
        """Record what a step uses of its items, and return the shape of its results."""
        expression = op.evaluation.expression
        if op.action == "count" or (op.fn is unchanged and op.kind is None):
            return items
        if op.evaluation.obstacle is not None or expression is None:
            self.take(items)
            return None
        found = self.result(expression, items)
        if op.action == "map" and op.kind is None:
            return found
        self.take(found)
        return items if op.action == "filter" else None

    def collected(self, known: InColumns | None, items: Shape) -> None:
        """Record what a collector uses of its items."""
        if known is None or known.expression is None or known.finds == "first":
            self.take(items)
            return
        if known.condition is not None:
            self.take(self.result(known.condition, items))
        for each in (*known.parts, known.downstream):
            if each is not None:
                self.collected(each, items)
        found = self.result(known.expression, items)
        if known.finds not in ("count", "several"):
            self.take(found)

    def result(self, expression: Expression, items: Shape) -> Shape:
        """Record what an expression uses of its argument, and return the shape of its results."""
        if expression.extent()[1] <= _MOST_LEVELS:
            return self._result(expression, items, {})
        self.take(items)
        return None

    def _result(self, expression: Expression, items: Shape, named: Mapping[int, Shape]) -> Shape:
        inside = functools.partial(self._result, items=items, named=named)
        match expression:
            case Argument():
                return items
            case Local(number):
                return named.get(number)
            case Let(value, number, within):
                return self._result(within, items, {**named, number: inside(value)})
            case ForTuples(_, of) | Called("dstream.Entry", (of,)):
                return inside(of)
            case Together(members):
                return tuple(map(inside, members))
            case Attribute(of, str() | int() as part) | Indexed(of, Constant(str() | int() as part)):
                return self._part(inside(of), part)
            case Method(of, "get", (Constant(str() as part), *others)):
                self.take(tuple(map(inside, others)))
                return self._part(inside(of), part)
            case Choice(condition, chosen, otherwise):
                self.take(inside(condition))
                found = inside(chosen), inside(otherwise)
                if found[0] == found[1]:
                    return found[0]
                self.take(found)
                return None
        self.take(tuple(map(inside, expression.parts())))
        return None

    def _part(self, of: Shape, part: str | int) -> Shape:
        if isinstance(of, tuple):
            index = Entry._fields.index(part) if part in Entry._fields else part
            if isinstance(index, int) and -len(of) <= index < len(of):
                return of[index]
        found = self._found.get(of) if isinstance(of, bool) else None
        if found is None or isinstance(part, int):
            self.take(of)
        else:
            found.add(part)
        return None


_MOST_LEVELS = 100
"""A deeper expression is not looked into: each level takes a call."""
