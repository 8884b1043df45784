"""Callables of the standard library and classes, such as `itemgetter(1)` and `str.upper`, as expressions."""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import operator
import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from types import (
    BuiltinFunctionType,
    FunctionType,
    MemberDescriptorType,
    MethodDescriptorType,
    WrapperDescriptorType,
)
from typing import Any

from dstream.base.copies import is_zone_info
from dstream.expressions.effects import CHANGING_NOTHING, KEYWORDS, KNOWN, OPERATORS, PARAMETERS, name_of
from dstream.expressions.resolution import UnreadableName, constant_of, is_plain_enumeration
from dstream.expressions.tree import (
    Applied,
    Argument,
    Attribute,
    Built,
    Called,
    Changed,
    Constant,
    Expression,
    Indexed,
    Keyword,
    Method,
    Together,
    is_leaf,
)
from dstream.values.entries import Entry
from dstream.values.fields import defaults_of_constructor, field_names, is_of_dataclass, is_of_named_tuple

__all__ = ["known_call", "member_function", "object_read", "stores_its_fields"]


_ITEM = Argument(0)


def object_read(fn: Any, arguments: int) -> Expression | None:
    """Return the result of a callable that is no Python function for arguments; None if that is not known."""
    if arguments == 1 and type(fn) in _MADE_BY_OPERATOR:
        # These objects show their arguments to pickle alone.
        return _MADE_BY_OPERATOR[type(fn)](*fn.__reduce__())
    if isinstance(fn, BuiltinFunctionType) and type(fn.__self__) in (str, re.Pattern):
        bound = constant_of(fn.__self__)
        places = tuple(map(Argument, range(arguments)))
        return Method(bound, fn.__name__, places) if bound is not None and fn.__name__ in CHANGING_NOTHING else None
    if isinstance(fn, type | BuiltinFunctionType | FunctionType | MethodDescriptorType):
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


def known_call(fn: Any, written: str, arguments: Sequence[Expression], keywords: Sequence[str]) -> Expression | None:
    """Return the result of a function of the standard library, or a class, for arguments; None if it is neither.

    Raises:
        UnreadableName: the class does more than store its arguments.
    """
    if fn is Entry and len(arguments) == 2 and not keywords:
        return Called("dstream.Entry", (Together(tuple(arguments)),))
    if is_plain_enumeration(fn) and len(arguments) == 1 and not keywords:
        return Called("dstream.member", (Constant(fn), *arguments))
    if is_zone_info(fn) and len(arguments) == 1 and isinstance(arguments[0], Constant) and not keywords:
        with contextlib.suppress(Exception):  # A zone that this process lacks may exist on a worker.
            return constant_of(fn(arguments[0].value))  # pyright: ignore[reportCallIssue]
    if isinstance(fn, type) and name_of(fn) is None:
        return _built(fn, written, tuple(arguments), tuple(keywords))
    if fn is dict and keywords and len(keywords) == len(arguments):
        return Built(dict, tuple(keywords), tuple(arguments))
    if fn is dataclasses.replace and len(arguments) == 1 + len(keywords):
        return Changed(arguments[0], "dataclass", tuple(keywords), tuple(arguments[1:]))
    name = name_of(fn)
    if keywords and name is not None and set(keywords) <= KEYWORDS.get(name, frozenset()):
        by_place = len(arguments) - len(keywords)
        by_name = map(Keyword, keywords, arguments[by_place:])
        return Called(name, (*arguments[:by_place], *by_name))
    if keywords:
        return _by_place(name, tuple(arguments), tuple(keywords))
    return _operated(fn, tuple(arguments)) or _named(fn, tuple(arguments))


def _by_place(name: str | None, arguments: tuple[Expression, ...], keywords: tuple[str, ...]) -> Expression | None:
    """Return a call with keywords as one without; None if the function is unknown, or the order would change."""
    parameters = PARAMETERS.get(name or "", {})
    places = [
        *range(len(arguments) - len(keywords)),
        *(list(parameters).index(each) for each in keywords if each in parameters),
    ]
    if name is None or len(places) < len(arguments) or any(one >= other for one, other in pairwise(places)):
        return None
    given: dict[int, Expression] = dict(zip(places, arguments, strict=True))
    defaults = list(parameters.values())
    return _called(name, tuple(given.get(place) or Constant(defaults[place]) for place in range(places[-1] + 1)))


def _called(name: str, arguments: tuple[Expression, ...]) -> Expression:
    """Return a call, or its result if it makes a constant of constants."""
    values = [each.value for each in arguments if isinstance(each, Constant)]
    if name.startswith(("datetime.", "decimal.")) and len(values) == len(arguments):
        with contextlib.suppress(Exception):  # It raises for each item that is reached.
            return constant_of(KNOWN[name](*values)) or Called(name, arguments)
    return Called(name, arguments)


def _operated(fn: Any, arguments: tuple[Expression, ...]) -> Expression | None:
    if type(fn) is not BuiltinFunctionType:
        return None
    symbol = OPERATORS.get(fn)
    if symbol is not None:
        wanted = 1 if symbol in ("neg", "pos", "invert") else 2
        return Applied(symbol, arguments) if len(arguments) == wanted else None
    if fn is operator.getitem and len(arguments) == 2:
        return Indexed(*arguments)
    # The operands change places: of leaves, the order of evaluation cannot be observed.
    if fn is operator.contains and len(arguments) == 2 and all(map(is_leaf, arguments)):
        return Applied("in", arguments[::-1])
    return None


def _named(fn: Any, arguments: tuple[Expression, ...]) -> Expression | None:
    name = name_of(fn)
    return None if name is None else _of_pattern(name, arguments) or _called(name, arguments)


def _of_pattern(name: str, arguments: tuple[Expression, ...]) -> Expression | None:
    """Return a function of `re` as the method of its constant pattern; None if it is no such function."""
    match arguments:
        case (Constant(str() as pattern), *others) if name in _OF_PATTERNS and len(others) == _OF_PATTERNS[name]:
            with contextlib.suppress(Exception):  # Python reports a wrong pattern when it is used.
                return Method(Constant(re.compile(pattern)), name.removeprefix("re."), tuple(others))
    return None


_OF_PATTERNS = {"re.findall": 1, "re.fullmatch": 1, "re.match": 1, "re.search": 1, "re.sub": 2}
"""Functions of `re`, with the number of their arguments behind the pattern; further ones are flags and bounds."""


def _built(kind: type, written: str, arguments: tuple[Expression, ...], keywords: tuple[str, ...]) -> Expression:
    defaults = _fields(kind)
    if defaults is None:
        raise UnreadableName(f"calls {written}", "a dataclass without a __post_init__, or a named tuple, can be read")
    by_place = tuple(defaults)[: len(arguments) - len(keywords)]
    names = (*by_place, *keywords)
    if len(names) != len(arguments) or len(set(names)) < len(names) or not set(names) <= set(defaults):
        raise UnreadableName(f"calls {written} with other arguments than it has fields")
    left = (name for name, default in defaults.items() if name not in names and constant_of(default) is None)
    if (missing := next(left, None)) is not None:
        raise UnreadableName(f"calls {written} without {missing}")
    return Built(kind, names, arguments)


def stores_its_fields(kind: object) -> bool:
    """Return whether something is a dataclass or named tuple that stores its arguments and does nothing else."""
    return isinstance(kind, type) and _fields(kind) is not None


def member_function(kind: type, name: str, *, is_property: bool) -> FunctionType | None:
    """Return the function of a method or a property that the source of a class defines; None if there is no such.

    An object may answer otherwise: by a field, by a lookup of its own, or as a member of an enumeration.
    """
    members = kind.__members__.values() if issubclass(kind, enum.Enum) else ()
    if name in field_names(kind) or _has_own_lookups(kind) or any(name in vars(each) for each in members):
        return None
    owner = next((each for each in kind.__mro__ if name in vars(each)), object)
    found = vars(owner).get(name)
    if is_property:
        found = found.fget if type(found) is property else None
    if type(found) is not FunctionType or found.__module__ != owner.__module__:
        return None
    return found if found.__qualname__ == f"{owner.__qualname__}.{name}" else None


def _has_own_lookups(kind: type) -> bool:
    lookups = [vars(each).get(name) for each in kind.__mro__ for name in ("__getattribute__", "__getattr__")]
    return any(lookup is not None and type(lookup) is not WrapperDescriptorType for lookup in lookups)


def _fields(kind: type) -> dict[str, Any] | None:
    """Return the fields of a class that stores its arguments and does nothing else, with their defaults."""
    # A metaclass may do anything when its class is called.
    if type(kind) is not type:
        return None
    if _is_named_tuple(kind):
        names = kind._fields  # type: ignore[attr-defined]
    elif _is_dataclass(kind):
        names = tuple(each.name for each in dataclasses.fields(kind))
    else:
        return None
    defaults = defaults_of_constructor(kind)
    return {name: defaults.get(name, _NONE_GIVEN) for name in names}


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
        # Pseudo-fields, such as an `InitVar`, are in this dictionary and not among `fields()`.
        and len(vars(kind)["__dataclass_fields__"]) == len(dataclasses.fields(kind))
        and is_of_dataclass(init)
        and "__init__" in vars(kind)
        and not hasattr(kind, "__post_init__")
        and new is object.__new__
        and (getattr(kind, "__setattr__", None) is object.__setattr__ or parameters.frozen)
    )


def _makers(kind: type) -> tuple[object, object]:
    """Return the functions that make and initialize objects of a class."""
    return getattr(kind, "__new__", None), getattr(kind, "__init__", None)


def _is_computed(kind: type, name: str) -> bool:
    """Return whether a descriptor, such as a property, takes the values assigned to a field."""
    held = getattr(kind, name, None)
    return hasattr(type(held), "__set__") and not isinstance(held, MemberDescriptorType)
