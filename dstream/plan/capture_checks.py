"""Checks of captured variables before the first job of a plan.

`check_captures` looks at every function of every step, also of steps that the first job would not
need, and reports the variables that cannot be pickled or are large. It looks into closures,
globals, defaults, partials, methods, attributes and containers by type, and pickles only what it cannot judge by type,
so that it costs a few microseconds for a simple lambda. `captures` implements the walk.
"""

from __future__ import annotations

import dataclasses
import dis
import enum
import functools
import operator
import types
import warnings
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, cast

from dstream.base.by_value import is_importable
from dstream.errors import LargeCaptureWarning, SerializationError
from dstream.failures import blame, is_our_name
from dstream.plan.captures import PLAIN, SMALL, Large, Obstacle, captures_of, global_names, look
from dstream.plan.operations.streams import Node, Read
from dstream.plan.steps import Step
from dstream.plan.walk import topological
from dstream.spi.suppliers import ProcessorSupplier

__all__ = ["check_captures", "has_immutable_captures", "holds_state", "shares_with_classes"]


_LARGE = 10 * 2**20


def check_captures(root: Node, *, travel: bool = True) -> None:
    """Refuse a plan whose functions capture values that workers cannot have; warn about large ones.

    Args:
        root: the last operation of the plan.
        travel: whether the functions will be pickled now; if not, sizes are not checked.

    Raises:
        SerializationError: a function captures something that cannot be pickled, or that can only be
            used in the caller's process, such as a context; the message names the variable.
    """
    # One for the whole plan: an object that several functions capture is checked and reported once.
    seen: dict[int, Any] = {}
    for each in topological(root):
        for step, value in each.shipped():
            for function in _functions(value):
                _judge(look(function, seen, _LARGE), step, travel)


def has_immutable_captures(root: Node, kind: type[Node] = Node) -> bool:
    """Return whether the functions of a plan may run uncopied in the caller's process without a visible difference.

    A function with mutable captures is copied, so that it changes a copy, as it does on a worker.

    Args:
        root: the last operation of the plan.
        kind: the class of the operations that are checked.
    """
    # The data of a source is in its splits, which are pickled anyway.
    return not any(
        holds_state(value)
        for each in topological(root)
        if isinstance(each, kind)
        for _, value in each.shipped()
        if not (isinstance(each, Read) and value is each.source)
    )


def holds_state(value: Any) -> bool:
    """Return whether a call of `value` may change an object that it has captured, or see a change of a shared one.

    True in doubt. Functions and classes that a worker imports do not count, since they are not copied.
    """
    seen: dict[int, Any] = {}
    pending = [value]
    while pending:
        value = pending.pop()
        kind = type(value)
        if (kind in PLAIN and kind is not bytearray) or isinstance(value, _BY_NAME) or id(value) in seen:
            continue
        seen[id(value)] = value
        parts = _parts_of_stateless(value)
        if parts is None:
            return True
        pending += parts
    return False


def _parts_of_stateless(value: Any) -> Iterable[Any] | None:
    """Return what an object that never changes has; None if it may change."""
    match value:
        case types.FunctionType():
            if is_importable(value):
                return ()
            # Attributes of a function, such as a count of its calls, are its own on a worker.
            if vars(value) or _assigns_to(value.__code__.co_freevars, value.__code__):
                return None
            return [captured for _, captured in captures_of(value)]
        case types.BuiltinFunctionType():  # Of a module, or bound to an object, which is checked, such as `", ".join`.
            return [value.__self__]
        case types.MethodDescriptorType() | types.WrapperDescriptorType() | types.ClassMethodDescriptorType():
            return ()
        case functools.partial() if not vars(value):
            return [value.func, *value.args, *value.keywords.values()]
        case operator.itemgetter() | operator.methodcaller():
            return value.__reduce__()
        case tuple() | frozenset() if not _has_attributes(value):
            return value
    if isinstance(value, _STATELESS) and not _has_attributes(value):
        return ()
    is_ours = is_our_name(type(value).__module__) and dataclasses.is_dataclass(value)
    return [getattr(value, each.name) for each in dataclasses.fields(cast(Any, value))] if is_ours else None


def _has_attributes(value: Any) -> bool:
    """Return whether an object of a subclass has attributes in addition to its value."""
    return bool(getattr(value, "__dict__", None))


_STATELESS = (*SMALL, operator.attrgetter)
_BY_NAME = (enum.Enum, type, types.ModuleType)
_ASSIGNMENTS = frozenset({"STORE_GLOBAL", "DELETE_GLOBAL", "STORE_DEREF", "DELETE_DEREF"})
_ASSIGNING = frozenset(dis.opmap[name] for name in _ASSIGNMENTS)


def _assigns_to(outer: tuple[str, ...], code: types.CodeType) -> bool:
    """Return whether a function, or one inside it, assigns to globals or to the variables `outer`."""
    # First a search at the speed of C: few functions have such instructions.
    if not _ASSIGNING.isdisjoint(code.co_code[::2]):
        for step in dis.get_instructions(code):
            if step.opname in _ASSIGNMENTS and (step.opname.endswith("GLOBAL") or step.argval in outer):
                return True
    return any(_assigns_to(outer, each) for each in code.co_consts if isinstance(each, types.CodeType))


def shares_with_classes(root: Node) -> bool:
    """Return whether functions of a plan use variables that methods of a class use which is not copied.

    A copy of such a function would use a copy of the variable, and so another one than the methods.

    Args:
        root: the last operation of the plan.
    """
    functions = _Reached()
    functions.look(value for each in topological(root) for _, value in each.shipped())
    if not functions.classes:
        return False
    methods = _Reached()
    methods.look(chain.from_iterable(vars(kind).values() for kind in functions.classes))
    assigned = functions.assigned | methods.assigned
    both = (functions.variables.keys() | functions.assigned) & (methods.variables.keys() | methods.assigned)
    return any(each in assigned or holds_state(functions.variables[each]) for each in both)


class _Reached:
    """The variables at which functions look, also by the functions that these call.

    Attributes:
        variables: their values by what identifies a variable: its cell, or its globals and name.
        assigned: the variables to which one of the functions assigns.
        classes: the classes that exist in this process only; their methods are not among the functions.
    """

    def __init__(self) -> None:
        self.variables: dict[Any, Any] = {}
        self.assigned: set[Any] = set()
        self.classes: list[type] = []

    def look(self, values: Iterable[Any]) -> None:
        """Add the functions and classes that are reachable from `values`."""
        seen: dict[int, Any] = {}
        pending = list(values)
        while pending:
            value = pending.pop()
            if id(value) not in seen and type(value) not in PLAIN:
                seen[id(value)] = value
                pending += self._behind(value)

    def _behind(self, value: Any) -> Iterable[Any]:
        match value:
            case types.FunctionType():
                return () if is_importable(value) else self._of_function(value)
            case type():
                self._of_class(value)
                return ()
            case staticmethod() | classmethod() | types.MethodType():
                return [value.__func__, getattr(value, "__self__", None)]
            case property():
                return [value.fget, value.fset]
            case functools.partial():
                return [value.func, *value.args, *value.keywords.values()]
            case tuple() | list() if len(value) < _MOST_MEMBERS:
                return value
        wrapped = [getattr(value, name, None) for name in ("__wrapped__", "func")] if callable(value) else []
        fields = dataclasses.fields(value) if dataclasses.is_dataclass(value) else ()
        return [type(value), *wrapped, *(getattr(value, each.name, None) for each in fields)]

    def _of_function(self, function: types.FunctionType) -> Iterator[Any]:
        code, around = function.__code__, function.__globals__
        cells = dict(zip(code.co_freevars, map(id, function.__closure__ or ()), strict=True))
        found = dict(captures_of(function))
        found |= {name: around[name] for name in global_names(code) if name in around}
        for name, value in found.items():
            self.variables[cells.get(name, (id(around), name))] = value
        self.assigned |= {cells.get(name, (id(around), name)) for name in _assigned_names(code)}
        return iter(found.values())

    def _of_class(self, kind: type) -> None:
        self.classes += [each for each in kind.__mro__ if not is_importable(each) and each not in self.classes]


_MOST_MEMBERS = 1000


def _assigned_names(code: types.CodeType) -> set[str]:
    """Return the globals and outer variables to which a function, or one inside it, assigns."""
    found = {step.argval for step in dis.get_instructions(code) if step.opname in _ASSIGNMENTS}
    return found.union(*(_assigned_names(each) for each in code.co_consts if isinstance(each, types.CodeType)))


def _judge(found: Iterable[Obstacle | Large], step: Step, travel: bool) -> None:
    for each in found:
        if isinstance(each, Obstacle):
            raise _refusal(each, step)
        if travel:
            _warn(each, step)


def _functions(value: Any) -> Iterator[Any]:
    """Yield the functions in a value: the value itself, or the functions in its fields."""
    if isinstance(value, type):
        return
    if callable(value):
        yield value
    elif dataclasses.is_dataclass(value) and is_our_name(type(value).__module__):
        for field in dataclasses.fields(value):
            yield from _functions(getattr(value, field.name))
    elif isinstance(value, ProcessorSupplier):
        yield value


def _refusal(found: Obstacle, step: Step) -> SerializationError:
    error = SerializationError(f"{step} cannot be sent to the workers: {found}")
    blame(error, step)
    return error


def _warn(found: Large, step: Step) -> None:
    where = step.where
    # In the name of the user's line, so that filters of warnings apply to it, and not to a line of dstream.
    warnings.warn_explicit(
        f"{found}; it travels to every task. Write it into a map or a file that the workers read, or let the function "
        "capture less",
        LargeCaptureWarning,
        "<unknown>" if where is None else where.file if where.cell is None else f"cell {where.cell}",
        1 if where is None else where.line,
    )
