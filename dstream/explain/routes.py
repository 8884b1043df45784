"""Routes of user functions, in columns or called, and the formats of items between them.

A worker inspects the items that it receives. Their format follows from the compiled graph: the sources, the steps as
they were read, and the output format of each operation (`dstream.engine.physical.vertices`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

from dstream.engine.physical.vertices import ONE_BY_ONE, Evaluation, InputFormat, StageCall, Vertex
from dstream.engine.tasks.sinks import WriteEach
from dstream.expressions.reader import Unreadable
from dstream.failures import is_our_name
from dstream.operators.rows.blocks import fewest_items, has_column_type, is_worth_columns
from dstream.plan.operations.elementwise import Chain, ServiceFunction
from dstream.plan.operations.streams import Read
from dstream.plan.stages import Amount, Call
from dstream.plan.steps import Guard, Op, Step, column_steps, place_of_open_pairs
from dstream.spi.columns import SourceTraits
from dstream.spi.runtime import Service
from dstream.spi.source import input_size

__all__ = [
    "ItemFormat",
    "Route",
    "call_of_vertex",
    "calls_of",
    "calls_on_branches",
    "formats_before_steps",
    "formats_behind",
    "formats_in_tasks",
    "formats_of_batches",
    "formats_of_source",
    "route_of",
    "routes_of",
]


@dataclass(frozen=True, slots=True)
class Route:
    """The evaluation of a function by tasks, in words.

    Attributes:
        name: `"columns"`, also with the conditions on the data, `"inlined"`, or `"Python: "` with what in the function
            prevents columns.
        why: sentences: the reason, and a simple alternative if there is one.
    """

    name: str
    why: str


def route_of(decided: Evaluation, input_format: InputFormat) -> Route:
    """Return how tasks evaluate a function.

    Args:
        decided: what the compiler has decided.
        input_format: the format of its items.
    """
    if decided.unread is not None:
        return Route(f"Python: {decided.unread.reason}", _why_called(decided.unread))
    obstacle = decided.obstacle or input_format.obstacle
    if not obstacle:
        conditions = " and ".join(dict.fromkeys((*input_format.conditions, *decided.conditions)))
        return Route(f"columns if {conditions}" if conditions else "columns", _COLUMNS)
    if decided.is_inlined:
        return Route("inlined", f"Python evaluates it in the loop of the task, since {obstacle}.")
    if decided.name:
        return Route(f"Python: {obstacle}", f"The function is called for each item, since {obstacle}.")
    why = f"{decided.written or 'The function'} {decided.called}, and is called for each item, since {obstacle}."
    return Route(f"Python: {f'calls {decided.written}' if decided.written else decided.called}", why)


_COLUMNS = "It is evaluated for many items at a time, where that gives the same."


def routes_of(all_decided: Iterable[Evaluation | None], input_format: InputFormat) -> Route:
    """Return the routes of all functions of a call as one, each prefixed with the function's name."""
    functions: dict[Route, list[str]] = {}
    for each in all_decided:
        if each is not None:
            functions.setdefault(route_of(each, input_format), []).append(each.name)
    names = "; ".join(f"{', '.join(dict.fromkeys(of_route))}: {route.name}" for route, of_route in functions.items())
    return Route(names, " ".join(dict.fromkeys(route.why for route in functions)))


def _why_called(unread: Unreadable) -> str:
    index = f" at {unread.where}" if unread.where else ""
    advice = f" Instead: {unread.advice}." if unread.advice else ""
    return f"The function is called for each item, since it {unread.reason}{index}.{advice}"


@dataclass(frozen=True)
class ItemFormat:
    """A format in which items reach an operation; items of several sources may have several formats.

    Attributes:
        input_format: in columns or not, with conditions.
        listed: the first item of a list, which becomes columns if the first steps are worth it; None for other items.
        is_batch: the items are batches of another task, in the format that the receiving operation expects.
    """

    input_format: InputFormat = ONE_BY_ONE
    listed: tuple[Any, ...] | None = None
    is_batch: bool = False

    def only_if(self, condition: str) -> ItemFormat:
        """Return the format with one more condition for columns."""
        input_format = self.input_format
        return (
            self
            if input_format.obstacle
            else replace(self, input_format=InputFormat("", (*input_format.conditions, condition)))
        )

    def before(self, ops: Sequence[Op]) -> InputFormat:
        """Return the format of the items that the first step receives."""
        if any(isinstance(op.fn, ServiceFunction) for op in ops):
            return InputFormat("a step beside it takes a service, and so items one by one")
        if self.is_batch:
            return ONE_BY_ONE
        if self.listed is None or self.input_format.obstacle:
            return self.input_format
        # Weighed as tasks do it, by the same function.
        work = sum(op.evaluation.operators for op in column_steps(ops))
        return self.input_format if is_worth_columns(list(self.listed), work) else InputFormat(_NOT_WORTH_IT)

    def behind(self, applied: StageCall) -> ItemFormat:
        """Return the format of the results of an operation."""
        if isinstance(applied.node, Chain) and applied.gives is None:
            return self._behind_steps(applied.node.ops)
        if applied.gives is not None:
            return ItemFormat(applied.gives.of(ONE_BY_ONE if self.listed is not None else self.input_format))
        return self if applied.operation is None else ItemFormat()

    def _behind_steps(self, ops: Sequence[Op]) -> ItemFormat:
        before = self.before(ops)
        if not before.obstacle and len(column_steps(ops)) == len(ops) > 0:
            conditions = (condition for op in ops for condition in op.evaluation.conditions)
            return ItemFormat(InputFormat("", (*before.conditions, *conditions)))
        return self if all(op.action == "count" for op in ops) else ItemFormat()


_NOT_WORTH_IT = "to make columns of a list takes longer than so few operators"


def formats_behind(formats: Iterable[ItemFormat], applied: StageCall) -> tuple[ItemFormat, ...]:
    """Return the formats of the results of an operation, each once."""
    return tuple(dict.fromkeys(item_format.behind(applied) for item_format in formats))


def formats_before_steps(item_format: ItemFormat, ops: Sequence[Op]) -> Iterable[InputFormat]:
    """Yield the format of the items before each step."""
    input_format = item_format.before(ops)
    apart = place_of_open_pairs(list(takewhile(lambda op: op.evaluation.obstacle is None, ops)))
    for index, op in enumerate(ops):
        if index == apart and not input_format.obstacle:
            input_format = InputFormat("a step behind it takes items one by one, with their timestamps")
        yield input_format
        if not input_format.obstacle:
            obstacle, conditions = op.evaluation.obstacle, op.evaluation.conditions
            input_format = (
                InputFormat("", (*input_format.conditions, *conditions)) if obstacle is None else InputFormat(obstacle)
            )


def formats_of_batches(stages: Iterable[Iterable[ItemFormat]], *, are_batches: bool) -> tuple[ItemFormat, ...]:
    """Return the item formats of other tasks' output from the formats of their items."""
    if not are_batches:
        return (ItemFormat(),)
    input_formats = (
        ONE_BY_ONE if item_format.listed is not None else item_format.input_format
        for formats in stages
        for item_format in formats
    )
    return tuple(ItemFormat(input_format, is_batch=True) for input_format in dict.fromkeys(input_formats))


def formats_in_tasks(formats: Sequence[ItemFormat], pieces: Amount) -> tuple[ItemFormat, ...]:
    """Return the formats of items that a task reads one part after another, from the number of parts of all.

    A list among several parts does not become columns.
    """
    if pieces == Amount(1, 1):
        return tuple(formats)
    return tuple(dict.fromkeys(item_format if item_format.listed is None else ItemFormat() for item_format in formats))


def formats_of_source(node: Read, pieces: Amount) -> tuple[ItemFormat, ...]:
    """Return the formats in which a source may emit its items.

    Args:
        node: the source.
        pieces: into how many parts it is divided.
    """
    source: Any = node.source
    if node.guards:
        return (ItemFormat(InputFormat("bad records are looked after one by one")),)
    traits = SourceTraits(source)
    if traits.gives_texts or traits.has_columns:
        condition = traits.columns_if
        return (ItemFormat(InputFormat("", (condition,) if condition else ())),)
    if traits.is_free_to_read or isinstance(traits.iterable, range):
        return (ItemFormat(_of_sizes(_item_count(source), pieces)),)
    if traits.is_of_functions or not is_our_name(type(source).__module__):
        return ItemFormat(_if_given("range")), ItemFormat(_if_given("list of numbers of one type"), (0,))
    return (_of_list(source, pieces),) if traits.iterable is not None else (ItemFormat(),)


def _if_given(sequence: str) -> InputFormat:
    return InputFormat("", (f"the source gives iter() of a {sequence}", f"a task has {fewest_items():,} items or more"))


def _of_list(source: Any, pieces: Amount) -> ItemFormat:
    """Return the format of items that the caller has or makes."""
    is_seen = type(source.iterable) in (list, tuple)
    first = tuple(source.iterable[:1]) if is_seen else (0,)
    if not first or not has_column_type(first[0]):
        return ItemFormat()
    kind = type(first[0]).__name__ if is_seen else "numbers of one type"
    conditions = f"all items are {kind}", "those of a task take at most 1 MB"
    return ItemFormat(_of_sizes(_item_count(source), pieces, *conditions), first)


def _item_count(source: Any) -> float:
    items = input_size(source).items
    return math.inf if items is None else items


def _of_sizes(items: float, pieces: Amount, *conditions: str) -> InputFormat:
    """Return the format of *n* items; tasks with too few items do not use columns."""
    fewest = fewest_items()
    # Splits are even, so the largest one has the average, rounded up.
    if items / max(pieces.least, 1) <= fewest - 1:
        return InputFormat(f"a task has fewer than {fewest:,} items")
    are_enough = pieces.most is not None and items // max(pieces.most, 1) >= fewest
    return InputFormat("", conditions if are_enough else (*conditions, f"a task has {fewest:,} items or more"))


_IN_THIS_PROCESS = "runs in this process, after the job, on what passed here"
_TREATMENTS = {
    "ignored": "leaves out the items that the step before fails on",
    "resolved": "replaces the items that the step before fails on",
    "sent": "sends away the items that the step before fails on; this process commits them at the end",
}


def calls_of(applied: StageCall, formats: Sequence[ItemFormat] = ()) -> Iterator[Call]:
    """Yield the user's calls of one operation; some belong to the call of another one.

    Args:
        applied: the operation.
        formats: the formats of its items.
    """
    return (call for call in _calls_of(applied, formats) if call.label)


def _calls_of(applied: StageCall, formats: Sequence[ItemFormat]) -> Iterator[Call]:
    node, note = applied.node, applied.note
    match node:
        case None:
            return
        case Chain(ops=ops):
            routes = _routes_of_steps(ops, applied.decided, formats)
            for op, route in zip(ops, routes, strict=True):
                seen = _IN_THIS_PROCESS if op.action == "peek" else _of_service(op.fn) or note
                yield _call(op.step, seen, route)
                yield from _guarded(op.guards)
        case _:
            yield _call(node.step, note, _route(applied.decided, formats), node.label())
            yield from _guarded(node.all_guards())


def _call(step: Step, note: str, route: Route | None, label: str | None = None) -> Call:
    label = step.label if label is None else label
    if route is None:
        return Call(label, step.where, note)
    return Call(label, step.where, "; ".join(filter(None, (note, route.name))), route.why)


def _routes_of_steps(
    ops: Sequence[Op], decided: Sequence[Evaluation | None], formats: Sequence[ItemFormat]
) -> list[Route | None]:
    """Return the route of each step, None if it has none."""
    if not decided:
        return [None] * len(ops)
    input_formats = zip(*(formats_before_steps(item_format, ops) for item_format in formats), strict=True)
    return [
        None if each is None else _one_of(route_of(each, input_format) for input_format in of_formats)
        for each, of_formats in zip(decided, input_formats, strict=True)
    ]


def _one_of(routes: Iterable[Route]) -> Route:
    """Return one route for all formats of the items."""
    found = list(dict.fromkeys(routes))
    names, reasons = dict.fromkeys(each.name for each in found), dict.fromkeys(each.why for each in found)
    among = ["It depends on where the items come from."] if len(names) > 1 else []
    return Route(" or ".join(names), " ".join([*among, *reasons]))


def _route(decided: Sequence[Evaluation | None], formats: Sequence[ItemFormat]) -> Route | None:
    """Return the routes of the functions of a call that is no step; None if it has none."""
    if not decided:
        return None
    return _one_of(
        routes_of(
            decided, ONE_BY_ONE if item_format.is_batch or item_format.listed is not None else item_format.input_format
        )
        for item_format in formats
    )


def call_of_vertex(vertex: Vertex, formats: Sequence[ItemFormat]) -> Call | None:
    """Return the call of the output of a vertex, if it has a note or a route."""
    route = _route(vertex.decided, formats)
    return _call(vertex.step, vertex.does, route) if vertex.does or route is not None else None


def calls_on_branches(output: WriteEach, decided: Sequence[Evaluation | None]) -> list[Call]:
    """Return the calls between a fork and its ends whose functions have a route; the notes have all calls."""
    steps = [op.step for branch in output.branches for op in branch.ops]
    return [
        _call(step, "", route_of(each, ONE_BY_ONE))
        for step, each in zip(steps, decided, strict=bool(decided))
        if each is not None
    ]


def _of_service(fn: object) -> str:
    """Return a sentence on how often a service is made, if a step needs one."""
    match fn:
        case ServiceFunction(service=Service(shared=is_shared)):
            return "its service is made once " + ("for the run in each process" if is_shared else "in each task")
        case ServiceFunction():
            return "its service is opened when the plan runs for a context"
    return ""


def _guarded(guards: Iterable[Guard]) -> Iterator[Call]:
    for each in guards:
        if each.step.label:
            yield Call(each.step.label, each.step.where, _TREATMENTS[each.treatment])
