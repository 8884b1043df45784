"""`could_set`: whether methods of the caller's classes could set attributes of objects that refuse to."""

from __future__ import annotations

import collections
import dataclasses
import enum
import re
import sys
from abc import ABC, ABCMeta
from collections.abc import Iterable
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from itertools import chain, islice
from opcode import opmap
from operator import attrgetter
from types import BuiltinFunctionType, CodeType, FunctionType, GetSetDescriptorType, MemberDescriptorType, ModuleType
from typing import Any, Generic, Protocol, TypeVar
from uuid import UUID

__all__ = ["HEAP_TYPE", "IMMUTABLE", "could_set"]


IMMUTABLE = frozenset(
    {bool, bytes, complex, date, datetime, Decimal, float, Fraction, int, str, time, timedelta, type(None), UUID}
)
HEAP_TYPE = 1 << 9


def could_set(*values: Any) -> bool:
    """Return whether values, or what they lead to, could set attributes of an object that refuses to.

    The result is True for everything that is not known to be harmless, and for values with many reachable values.
    """
    waiting, seen = list(values), dict[int, Any]()
    while waiting:
        value = waiting.pop()
        if type(value) in _HARMLESS or id(value) in seen:
            continue
        seen[id(value)] = value
        found = _led_to(value)
        if found is None or len(seen) > _MOST_LED_TO:
            return True
        waiting += found
    return False


_MOST_LED_TO = 512
_MOST_MEMBERS = 64
"""Maximal number of members of a container that are no numbers or strings; beyond it the result is True."""
_MOST_LOOKED_AT = 10_000


def _led_to(value: Any) -> list[Any] | None:
    """Return what a value leads to; None: it may set attributes, or nothing is known of it.

    No attribute of the value is read that its class may compute: a proxy would return the attribute of another value.
    """
    kind = type(value)
    if kind is FunctionType:
        return _led_to_by_function(value)
    if kind in (property, enum.property):
        return [value.fget, value.fset, value.fdel]
    if kind in (classmethod, staticmethod):
        return [value.__func__]
    if kind is BuiltinFunctionType:
        return [] if value.__module__ in _KNOWN and value.__name__ not in _SETTERS else None
    if kind in _CONTAINERS:
        parts = chain(value, value.values()) if kind is dict else iter(value)
        return _others(parts) if len(value) <= _MOST_LOOKED_AT else None
    return _led_to_by_class(value) if kind in _METACLASSES else _led_to_by_object(value)


def _others(parts: Iterable[Any]) -> list[Any] | None:
    found = list(islice((each for each in parts if type(each) not in _HARMLESS), _MOST_MEMBERS + 1))
    return found if len(found) <= _MOST_MEMBERS else None


def _led_to_by_class(kind: Any) -> list[Any] | None:
    found: list[Any] = []
    for each in kind.__mro__:
        if _is_known(each):
            continue
        if type(each) not in _METACLASSES:
            return None
        params = vars(each).get("__dataclass_params__")
        skipped = _UNSEEN | _REFUSING if params is not None and params.frozen else _UNSEEN
        found += [value for name, value in vars(each).items() if name not in skipped and type(value) not in _HARMLESS]
    return found if type(kind) is not enum.EnumMeta else _with_members(kind, found)


def _with_members(kind: Any, found: list[Any]) -> list[Any] | None:
    """Add the attributes of the members of an enumeration to what else it leads to."""
    members = chain.from_iterable(
        map(dict.values, map(attrgetter("__dict__"), vars(kind).get("_member_map_", {}).values()))
    )
    others = _others(each for each in members if each is not kind)
    return None if others is None else [*(each for each in found if type(each) is not kind), *others]


def _led_to_by_object(value: Any) -> list[Any] | None:
    kind = type(value)
    if type(kind) not in _METACLASSES or not all(each in _BASES or not _is_known(each) for each in kind.__mro__):
        return None
    found: list[Any] = [kind]
    members = [item for each in kind.__mro__ for item in vars(each).items()]
    for name, member in members:
        if type(member) is MemberDescriptorType:
            # Not by its name, which a class may have a method for; one that was never set is an AttributeError.
            found.append(member.__get__(value))
        elif type(member) is GetSetDescriptorType and name == "__dict__":
            found.append(member.__get__(value))
    has_all = not kind.__dictoffset__ or any(type(each) is dict for each in found)
    return found if has_all and kind.__flags__ & HEAP_TYPE else None


def _led_to_by_function(function: Any) -> list[Any] | None:
    code, module = function.__code__, function.__globals__.get("__name__")
    # Globals of another dictionary may call themselves a module of Python's.
    is_of_module = _is_known_name(module) and function.__globals__ is vars(sys.modules[module])
    if code is _WithRepr.__repr__.__code__:
        return [function.__wrapped__]
    # `__init__` as the decorator has made it sets fields, of an object without another reference.
    if _MADE in code.co_freevars or code in _OF_NAMED_TUPLES or _makes_named_tuples(function):
        return []
    if not {"__class__"}.issuperset(code.co_freevars):
        return None
    if is_of_module:
        return []
    names = _names_in(code)
    if not _SETTERS.isdisjoint(names) or any(map(_is_special, names)) or _imports(code):
        return None
    return _named(function, names)


def _makes_named_tuples(function: Any) -> bool:
    # A function of the caller's may have another one under this name.
    return function.__code__.co_names == ("_tuple_new",) and function.__globals__.get("_tuple_new") is tuple.__new__


def _named(function: Any, names: set[str]) -> list[Any] | None:
    """Return the values that a function finds by `names`, also in modules, or as defaults of its arguments."""
    found = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values(), *vars(function).values()]
    waiting, modules = [function.__globals__[name] for name in names if name in function.__globals__], set[int]()
    while waiting:
        value = waiting.pop()
        if type(value) is not ModuleType:
            found.append(value)
        elif not _is_known_module(value) and id(value) not in modules:
            if _is_of_python(value.__name__) or "__getattr__" in vars(value):
                return None
            modules.add(id(value))
            waiting += [vars(value)[name] for name in names if name in vars(value)]
    return found


def _names_in(code: CodeType) -> set[str]:
    """Return the names and strings in the code of a function, and of those inside of it."""
    found = {*code.co_names, *(each for each in code.co_consts if type(each) is str)}
    return found.union(*(_names_in(each) for each in code.co_consts if type(each) is CodeType))


def _is_special(name: str) -> bool:
    """Return whether a name may be a special method or attribute of Python that gives access to others."""
    return name.startswith("__") and name.endswith("__") and name not in _HARMLESS_NAMES


def _imports(code: CodeType) -> bool:
    return opmap["IMPORT_NAME"] in code.co_code[::2] or any(
        _imports(each) for each in code.co_consts if type(each) is CodeType
    )


def _is_known(kind: Any) -> bool:
    """Return whether a class is one of Python's that are known to set no attributes; its name may be another one's."""
    module = kind.__module__
    return _is_known_name(module) and vars(sys.modules[module]).get(kind.__name__) is kind


def _is_known_module(module: Any) -> bool:
    return _is_known_name(module.__name__) and sys.modules[module.__name__] is module


def _is_known_name(module: Any) -> bool:
    return type(module) is str and module in sys.modules and (module in _KNOWN or module.startswith("dstream."))


def _is_of_python(module: Any) -> bool:
    return type(module) is not str or module.partition(".")[0] in sys.stdlib_module_names


@dataclasses.dataclass
class _WithRepr:
    """Sample of a class with a `__repr__` of the decorator, which is a function around another one."""


_MADE = "__dataclass_builtins_object__"
_SAMPLE = collections.namedtuple("_SAMPLE", "value")
_OF_NAMED_TUPLES = {
    getattr(each, "__func__", each).__code__
    for each in (vars(_SAMPLE)[name] for name in ("_make", "_replace", "_asdict", "__repr__", "__getnewargs__"))
}
_CONTAINERS = (dict, list, tuple, set, frozenset)
_METACLASSES = (type, ABCMeta, enum.EnumMeta, type(Protocol))
_BASES = {object, Generic, Protocol, ABC, int, str, float, bytes} | {
    *(enum.Enum, enum.IntEnum, enum.StrEnum, enum.ReprEnum, enum.Flag, enum.IntFlag),
}
"""Classes of Python whose objects have no parts besides attributes."""
_HARMLESS = IMMUTABLE | {
    *(MemberDescriptorType, GetSetDescriptorType, TypeVar, range, slice, re.Pattern, timezone),
    *(type(vars(_SAMPLE)["value"]), type(...), type(NotImplemented)),
}
_HARMLESS_NAMES = frozenset(
    {"__add__", "__bool__", "__class__", "__contains__", "__doc__", "__eq__", "__float__", "__format__", "__ge__"}
    | {"__gt__", "__hash__", "__index__", "__int__", "__iter__", "__le__", "__len__", "__lt__", "__main__", "__mul__"}
    | {"__name__", "__ne__", "__neg__", "__qualname__", "__radd__", "__repr__", "__str__", "__sub__", "__truediv__"}
)
_UNSEEN = frozenset(
    {"__annotations__", "__dataclass_fields__", "__dataclass_params__", "__orig_bases__", "__parameters__", "_abc_impl"}
    | {"__annotate__", "__annotate_func__", "__annotations_cache__", "__type_params__"}
    | {"_member_map_", "_value2member_map_", "_member_type_", "_new_member_", "_value_repr_"}
)
"""Members of classes that no method calls; one that names them could."""
_REFUSING = frozenset({"__setattr__", "__delattr__", "__setstate__"})
"""Methods of a frozen dataclass that refuse to set attributes, or do so before anybody has the object."""
_SETTERS = _UNSEEN | {
    *("breakpoint", "compile", "delattr", "eval", "exec", "getattr", "globals", "locals", "open", "setattr", "vars"),
    *("default_factory", "get_type_hints", "metadata", "update_wrapper", "wraps"),
}
"""Names that give access to attributes by names that are not in the code."""
_KNOWN = frozenset(
    {"_bisect", "_collections", "_datetime", "_decimal", "_functools", "_heapq", "_json", "abc", "bisect", "builtins"}
    | {"cmath", "collections", "collections.abc", "copy", "dataclasses", "datetime", "decimal", "enum", "fractions"}
    | {"functools", "heapq", "itertools", "json", "math", "ntpath", "numbers", "os", "posixpath", "re", "time"}
    | {"typing", "uuid"}
)
"""Modules of Python whose functions and classes set only attributes that are named in the calling code."""
