"""Callables that are no Python functions, such as `itemgetter(1)` and `str.upper`, as expressions."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from types import BuiltinFunctionType, MethodDescriptorType
from typing import Any

from dstream.expressions.effects import CHANGING_NOTHING
from dstream.expressions.resolution import UnreadableName, constant_of, known_call
from dstream.expressions.tree import Argument, Attribute, Expression, Indexed, Method, Together

__all__ = ["object_read"]


_ITEM = Argument(0)


def object_read(fn: Any, arguments: int) -> Expression | None:
    """Return the result of a callable that is no Python function for arguments; None if that is not known."""
    if arguments == 1 and type(fn) in _MADE_BY_OPERATOR:
        # These objects show what they were made of to pickle alone.
        return _MADE_BY_OPERATOR[type(fn)](*fn.__reduce__())
    if isinstance(fn, BuiltinFunctionType) and type(fn.__self__) in (str, re.Pattern):
        bound = constant_of(fn.__self__)
        places = tuple(map(Argument, range(arguments)))
        return Method(bound, fn.__name__, places) if bound is not None and fn.__name__ in CHANGING_NOTHING else None
    if isinstance(fn, type | BuiltinFunctionType | MethodDescriptorType):
        try:
            return known_call(fn, fn.__name__, tuple(map(Argument, range(arguments))), ())
        except UnreadableName:
            return None
    return None


def _items(kind: Any, keys: tuple[Any, ...], *more: Any) -> Expression | None:
    constants = [each for each in map(constant_of, keys) if each is not None]
    if more or len(constants) < len(keys):
        return None
    found = tuple(Indexed(_ITEM, each) for each in constants)
    return found[0] if len(found) == 1 else Together(found)


def _attributes(kind: Any, paths: tuple[str, ...], *more: Any) -> Expression | None:
    found: list[Expression] = []
    for path in paths:
        value: Expression = _ITEM
        for name in path.split("."):
            value = Attribute(value, name)
        found.append(value)
    return None if more else found[0] if len(found) == 1 else Together(tuple(found))


def _method(kind: Any, given: tuple[Any, ...], *more: Any) -> Expression | None:
    name, *values = given
    constants = [each for each in map(constant_of, values) if each is not None]
    if more or kind is not operator.methodcaller or name not in CHANGING_NOTHING or len(constants) < len(values):
        return None
    return Method(_ITEM, name, tuple(constants))


_MADE_BY_OPERATOR: dict[type, Callable[..., Expression | None]] = {
    operator.itemgetter: _items,
    operator.attrgetter: _attributes,
    operator.methodcaller: _method,
}
