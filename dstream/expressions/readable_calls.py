"""What calls of known functions and constructors give, and what callable objects of the standard library do."""

from __future__ import annotations

import dataclasses
import operator
import re
from collections.abc import Callable, Sequence
from types import BuiltinFunctionType, MemberDescriptorType, MethodDescriptorType
from typing import Any

from dstream.expressions.expression import (
    Applied,
    Argument,
    Attribute,
    Built,
    Called,
    Expression,
    Indexed,
    Method,
    Together,
)
from dstream.expressions.known_functions import CHANGING_NOTHING, OPERATORS, name_of
from dstream.expressions.names_of_function import CannotRead, constant_of
from dstream.expressions.order_of_evaluation import is_leaf
from dstream.values.entry import Entry
from dstream.values.fields import is_of_dataclass, is_of_named_tuple

__all__ = ["known_call", "object_read"]

_ITEM = Argument(0)


def known_call(fn: Any, written: str, arguments: Sequence[Expression], keywords: Sequence[str]) -> Expression | None:
    """Return what a function of the standard library, or a class, gives for arguments; None if it is neither.

    Raises:
        CannotRead: the class does more than to keep its arguments.
    """
    if fn is Entry and len(arguments) == 2 and not keywords:
        return Called("dstream.Entry", (Together(tuple(arguments)),))
    if isinstance(fn, type) and name_of(fn) is None:
        return _built(fn, written, tuple(arguments), tuple(keywords))
    if keywords:
        return None
    return _operated(fn, tuple(arguments)) or _named(fn, tuple(arguments))


def _operated(fn: Any, arguments: tuple[Expression, ...]) -> Expression | None:
    if type(fn) is not BuiltinFunctionType:
        return None
    symbol = OPERATORS.get(fn)
    if symbol is not None:
        wanted = 1 if symbol in ("neg", "pos", "invert") else 2
        return Applied(symbol, arguments) if len(arguments) == wanted else None
    if fn is operator.getitem and len(arguments) == 2:
        return Indexed(*arguments)
    if fn is operator.contains and len(arguments) == 2 and all(map(is_leaf, arguments)):
        return Applied("in", arguments[::-1])
    return None


def _named(fn: Any, arguments: tuple[Expression, ...]) -> Expression | None:
    name = name_of(fn)
    return None if name is None else Called(name, arguments)


# ------------------------------------------------------------------------------------------------------------- classes


def _built(kind: type, written: str, arguments: tuple[Expression, ...], keywords: tuple[str, ...]) -> Expression:
    defaults = _fields(kind)
    if defaults is None:
        raise CannotRead(f"calls {written}", "a dataclass without a __post_init__, or a named tuple, can be read")
    by_place = tuple(defaults)[: len(arguments) - len(keywords)]
    names = (*by_place, *keywords)
    if len(names) != len(arguments) or len(set(names)) < len(names) or not set(names) <= set(defaults):
        raise CannotRead(f"calls {written} with other arguments than it has fields")
    left = (name for name, default in defaults.items() if name not in names and constant_of(default) is None)
    if (missing := next(left, None)) is not None:
        raise CannotRead(f"calls {written} without {missing}")
    return Built(kind, names, arguments)


def _fields(kind: type) -> dict[str, Any] | None:
    """Return the fields of a class that keeps its arguments and does nothing else, with what they are by default."""
    if type(kind) is not type:
        return None
    if _is_named_tuple(kind):
        defaults: dict[str, Any] = kind._field_defaults  # type: ignore[attr-defined]
        return {name: defaults.get(name, _NONE_GIVEN) for name in kind._fields}  # type: ignore[attr-defined]
    if not _is_dataclass(kind):
        return None
    return {each.name: each.default for each in dataclasses.fields(kind)}


_NONE_GIVEN = object()


def _is_named_tuple(kind: type) -> bool:
    new, init = _makers(kind)
    return (
        issubclass(kind, tuple)
        and isinstance(getattr(kind, "_fields", None), tuple)
        and is_of_named_tuple(new)
        and init is object.__init__
    )


def _is_dataclass(kind: type) -> bool:
    new, init = _makers(kind)
    parameters: Any = getattr(kind, "__dataclass_params__", None)
    return (
        "__dataclass_fields__" in vars(kind)
        and all(
            each.init and not each.kw_only and not _is_computed(kind, each.name) for each in dataclasses.fields(kind)
        )
        and len(vars(kind)["__dataclass_fields__"]) == len(dataclasses.fields(kind))
        and is_of_dataclass(init)
        and "__init__" in vars(kind)
        and not hasattr(kind, "__post_init__")
        and new is object.__new__
        and (getattr(kind, "__setattr__", None) is object.__setattr__ or parameters.frozen)
    )


def _makers(kind: type) -> tuple[object, object]:
    """Return what makes objects of a class, and what sets them up."""
    return getattr(kind, "__new__", None), getattr(kind, "__init__", None)


def _is_computed(kind: type, name: str) -> bool:
    """Say whether a descriptor, such as a property, takes what is given to a field."""
    held = getattr(kind, name, None)
    return hasattr(type(held), "__set__") and not isinstance(held, MemberDescriptorType)


# ----------------------------------------------------------------------------------------------------- callable objects


def object_read(fn: Any, arguments: int) -> Expression | None:
    """Return what a callable that is no Python function gives for so many arguments; None if that is not known."""
    if arguments == 1 and type(fn) in _MADE_BY_OPERATOR:
        return _MADE_BY_OPERATOR[type(fn)](*fn.__reduce__())
    if isinstance(fn, BuiltinFunctionType) and type(fn.__self__) in (str, re.Pattern):
        bound = constant_of(fn.__self__)
        places = tuple(map(Argument, range(arguments)))
        return Method(bound, fn.__name__, places) if bound is not None and fn.__name__ in CHANGING_NOTHING else None
    if isinstance(fn, type | BuiltinFunctionType | MethodDescriptorType):
        try:
            return known_call(fn, fn.__name__, tuple(map(Argument, range(arguments))), ())
        except CannotRead:
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
