"""`MeasuredCosts`: the time that functions of users took in earlier runs of the session."""

from __future__ import annotations

import functools
import re
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from types import BuiltinFunctionType, ModuleType
from typing import Any, NamedTuple

from dstream.engine.physical.vertices import Items, SourceSplits, Splits, Vertex
from dstream.expressions.reader import read
from dstream.expressions.tree import Applied, Called, Constant, Expression
from dstream.failures import is_our_name
from dstream.operators.columns.capabilities import are_constants
from dstream.plan.operations.elementwise import Chain, ServiceFunction
from dstream.plan.operations.streams import Node
from dstream.plan.steps import Emitted
from dstream.plan.walk import inputs_first
from dstream.spi import Collector, Gatherer
from dstream.spi.columns import SourceTraits

__all__ = ["Calls", "MeasuredCosts", "calls_of"]


class Calls(NamedTuple):
    """The calls of a vertex, by which it is recognized in a later plan.

    Attributes:
        codes: the code objects of the functions that it calls; for C functions, the functions themselves.
        origins: the kinds of the sources that it reads: a row of a file costs more than a number of a range.
    """

    codes: frozenset[Any]
    origins: frozenset[Any]


_MOST = 1_000


class MeasuredCosts:
    """Measured seconds for each item that a vertex reads, by its functions and kinds of sources.

    A vertex that calls no function of the user's is not measured: its cost follows from the constants.

    Attributes:
        lost: how many seconds plans took longer, together, since packages of columns were not loaded for them: many
            small plans are worth what one of them is not.
    """

    def __init__(self) -> None:
        self._found: OrderedDict[Calls, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()
        self.lost = 0.0

    def took(self, of: Vertex | Items, items: float, seconds: float) -> None:
        """Record how long the tasks of a vertex took.

        Args:
            of: the vertex; the inputs of one that has no rows, as where the caller pulls items.
            items: how many its tasks have read from sources, or from other vertices.
            seconds: that this took, in one process.
        """
        calls = calls_of(of)
        if not calls.codes or items <= 0 or seconds < 0:
            return
        with self._lock:
            known = self._found.pop(calls, (0.0, 0.0))
            # Half of what was known counts: data change, and the first calls of a function may import something.
            self._found[calls] = (known[0] / 2 + items, known[1] / 2 + seconds)
            if len(self._found) > _MOST:
                self._found.popitem(last=False)

    def seconds_per_item(self, calls: Calls) -> float | None:
        """Return what an item took where these functions were called; None if that was not measured."""
        found = self._found.get(calls) if calls.codes and self._found else None
        return None if found is None else found[1] / found[0]

    def __bool__(self) -> bool:
        return bool(self._found)


def calls_of(of: Vertex | Items, node: Node | None = None) -> Calls:
    """Return the calls of functions of the user's by a vertex.

    Args:
        of: the vertex; its inputs, if it is not made yet.
        node: the operation that its output belongs to.
    """
    inputs: Items = of.inputs if isinstance(of, Vertex) else of
    found = {code for each in inputs for applied in each.applied for code in _codes_of_node(applied.node)}
    if isinstance(of, Vertex):
        found.update(_codes_in(of.output))
    found.update(_codes_of_node(node))
    return Calls(frozenset(found), frozenset(_origins(inputs)))


def _origins(inputs: Items) -> Iterator[Any]:
    """Return the kinds of the sources that inputs read."""
    splits = [each for each in inputs if isinstance(each, Splits)]
    parts = (part for each_splits in splits for each in inputs_first(each_splits, Splits.inner) for part in each.parts)
    return (_kind_of(part.node.source) for part in parts if isinstance(part, SourceSplits))


def _kind_of(source: Any) -> Any:
    traits = SourceTraits(source)
    items = traits.iterable
    first = type(items[0]) if type(items) in (list, tuple) and items else type(items)
    # By its name, since a class need not have a hash.
    return traits.maker, type(source), f"{first.__module__}.{first.__qualname__}"


def _codes_of_node(node: Node | None) -> Iterator[Any]:
    """Yield the code of each function that an operation calls, except those whose cost follows from operators."""
    if isinstance(node, Chain):
        for op in node.ops:
            # Library calls of an expression have a constant in the estimate.
            if not _is_bounded(op.evaluation.expression) and op.action not in ("peek", "count"):
                yield from _codes(op.fn)
    elif node is not None:
        yield from _codes_in(node)


def _has_known_cost(expression: Any) -> bool:
    """Return whether a function is an expression whose cost is that of its operators, in columns and in Python."""
    return _is_bounded(expression) and not any(map(_calls_library, expression.walk()))


def _is_bounded(expression: Any) -> bool:
    """Return whether a function is an expression whose cost does not grow with a number, as rounds of a loop do."""
    return isinstance(expression, Expression) and not any(map(_grows, expression.walk()))


def _grows(each: Expression) -> bool:
    if isinstance(each, Applied):
        return each.operator in ("**", "<<") and not isinstance(each.operands[1], Constant)
    return isinstance(each, Called) and each.function in _GROWING and not are_constants(each.arguments)


_GROWING = frozenset({"math.comb", "math.factorial", "math.perm", "pow", "range"})


def _calls_library(each: Expression) -> bool:
    if isinstance(each, Constant):
        return type(each.value) is re.Pattern
    return isinstance(each, Called) and each.function.partition(".")[0] in _LIBRARIES


_LIBRARIES = frozenset({"collections", "dataclasses", "datetime", "decimal", "json", "re"})


def _codes_in(value: Any) -> Iterator[Any]:
    """Yield the code objects of the functions in the fields of an operation or a sink."""
    if is_dataclass(value) and not isinstance(value, type):
        for name in _field_names(type(value)):
            field = getattr(value, name, None)
            if not (name == "key" and callable(field) and _has_known_cost(read(field))):
                yield from _codes_of_field(field)


@functools.lru_cache(maxsize=256)
def _field_names(kind: type) -> tuple[str, ...]:
    # Of the operations before this one, their own vertices speak.
    return tuple(each.name for each in fields(kind) if each.name not in _OTHERS)


_OTHERS = frozenset({"upstream", "upstreams", "left", "right", "step", "facts", "node", "end", "create", "take"})


def _codes_of_field(value: Any) -> Iterator[Any]:
    if isinstance(value, Collector):
        # Where items are objects of Python, a collector that columns take calls its functions, too.
        yield from _codes_of_all(fn for _, fn in value.functions if not _has_known_cost(read(fn)))
    elif isinstance(value, Gatherer):
        yield from _codes(value.integrator)
    elif isinstance(value, tuple):
        for each in value:
            yield from _codes_of_field(each)
    elif callable(value):
        yield from _codes(value)


def _codes_of_all(functions: Iterable[Any]) -> Iterator[Any]:
    for fn in functions:
        yield from _codes(fn)


def _codes(fn: Any) -> Iterator[Any]:
    """Yield the code objects of a function, and of user functions inside of one of dstream's."""
    if isinstance(fn, functools.partial):
        yield from _codes_of_all((fn.func, *filter(callable, fn.args)))
    elif isinstance(fn, ServiceFunction | Emitted):
        yield from _codes(fn.fn)
    elif (code := getattr(fn, "__code__", None)) is not None:
        if not is_our_name(getattr(fn, "__module__", None) or ""):
            yield code
    elif isinstance(fn, BuiltinFunctionType) and isinstance(fn.__self__, ModuleType):
        yield fn
    elif is_our_name(type(fn).__module__):
        # Such as the function that names a step in an exception.
        inner = getattr(fn, "fn", None)
        if callable(inner):
            yield from _codes(inner)
    elif callable(fn) and not isinstance(fn, type):
        found = getattr(getattr(fn, "__func__", None) or type(fn).__call__, "__code__", None)
        if found is not None:
            yield found
