"""Copies of the caller's items: of those alone that somebody could change, the usual ones without pickling."""

from __future__ import annotations

import contextlib
import copyreg
import dataclasses
import enum
import functools
import gc
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import chain, islice, repeat
from opcode import opmap
from operator import attrgetter
from types import BuiltinFunctionType, CodeType, FunctionType, GetSetDescriptorType, MemberDescriptorType, ModuleType
from typing import Any
from uuid import UUID

__all__ = ["Copier", "are_plain", "copied_dicts", "copier_of", "have_plain_parts", "without_garbage_collection"]


_IMMUTABLE = frozenset(
    {bool, bytes, complex, date, datetime, Decimal, float, Fraction, int, str, time, timedelta, type(None), UUID}
)
_MOST_LEVELS = 8
_MOST_PARTS = 100_000
"""Containers inside of items beyond which a pickle, which copies each of them once, is the simpler way."""
_FEW_MEMBERS = 8
_HEAP_TYPE = 1 << 9
_GET_STATE, _SET_STATE = (getattr(dataclasses, f"_dataclass_{name}state", None) for name in ("get", "set"))
"""The methods of frozen dataclasses with slots, which do as usual."""

Copier = Callable[[list[Any]], list[Any]]
Parts = Callable[[], Iterable[Any]]
"""Gives values, as often as it is called."""


def copier_of(items: list[Any]) -> Copier | None:
    """Return what copies some items as a pickle would, without one; None where only a pickle knows how.

    Items that nobody can change are their own copies: numbers, strings, and tuples, named tuples and frozen dataclasses
    of them. What is there twice is one object in both.
    """
    try:
        return _copier_of(items)
    except TypeError:
        # The class of an item has no hash, by its metaclass, and a pickle names that item.
        return None


def _copier_of(items: list[Any]) -> Copier | None:
    kinds: set[Any] = set(map(type, items))
    if kinds <= _IMMUTABLE:
        return list
    kind = next(iter(kinds))
    meta: Any = type(kind)
    # Of equal classes a set has one.
    if len(kinds) != 1 or meta.__eq__ is not object.__eq__:
        return list if _are_immutable(lambda: items) else None
    if kind not in _CHANGEABLE and _are_frozen(kind, items, _MOST_LEVELS):
        return list
    return _copier_of_kind(kind, items) if len(set(map(id, items))) == len(items) else None


def are_plain(items: list[Any]) -> bool:
    """Say whether all items are numbers, strings and the like, which have no parts."""
    try:
        return set(map(type, items)) <= _IMMUTABLE
    except TypeError:
        return False  # A class without a hash, by its metaclass.


def have_plain_parts(items: list[Any], names: Iterable[str]) -> bool:
    """Say whether to look at some parts of items runs no code of a user's, nor do operators on these parts.

    That holds for dictionaries, and for attributes of objects that are no more than these, where each part is a number,
    a string or the like.

    Args:
        items: the items.
        names: of attributes, or keys of dictionaries that may be absent.
    """
    try:
        return _have_plain_parts(items, names)
    except (AttributeError, TypeError):
        # Such as a class without a hash, by its metaclass.
        return False


def _have_plain_parts(items: list[Any], names: Iterable[str]) -> bool:
    kinds: set[Any] = set(map(type, items))
    if kinds == {dict}:
        parts = [map(dict.get, items, repeat(name)) for name in names]
    elif len(kinds) == 1 and _has_plain_attributes(kinds.pop(), names):
        parts = [map(attrgetter(name), items) for name in names]
    else:
        return False
    return all(set(map(type, each)) <= _IMMUTABLE for each in parts)


def _has_plain_attributes(kind: Any, names: Iterable[str]) -> bool:
    """Say whether attributes of a class, if there are such, are those of its objects, which have no parts by key."""
    found = [each for name in names for each in _of_class(kind, name)]
    return (
        _is_heap_type(kind)
        and _is_plain(kind)
        and bool(kind.__dictoffset__ or _slots_of(kind))
        and not hasattr(kind, "get")
        and not hasattr(kind, "__getitem__")
        and all(type(each) is MemberDescriptorType or not hasattr(type(each), "__get__") for each in found)
    )


def _of_class(kind: Any, name: str) -> Iterator[Any]:
    return (vars(each)[name] for each in kind.__mro__ if name in vars(each))


_CHANGEABLE = (dict, list, set)


def _copier_of_kind(kind: Any, items: list[Any]) -> Copier | None:
    """Return what copies different items of one type, if it is enough to copy the items and not their parts."""
    if kind in _CHANGEABLE:
        members: tuple[Parts, ...] = (lambda: chain.from_iterable(items),)
        if kind is dict:
            members += (lambda: chain.from_iterable(map(dict.values, items)),)
        if kind is dict and all(set(map(type, parts())) <= _IMMUTABLE for parts in members):
            return copied_dicts
        return functools.partial(_copied, kind.copy) if all(map(_are_immutable, members)) else None
    if not _is_heap_type(kind) or not _is_plain(kind):
        return None
    if kind.__dictoffset__:
        attributes: Parts = lambda: chain.from_iterable(map(dict.values, map(_VARS, items)))  # noqa: E731
        return functools.partial(_copied_objects, kind) if _are_immutable(attributes) else None
    names = _slots_of(kind)
    if not names or not all(all(map(hasattr, items, repeat(name))) for name in names):
        return None
    return functools.partial(_copied_slots, kind, names) if _are_fields_immutable(names, items, _MOST_LEVELS) else None


def _copied(copy: Callable[[Any], Any], items: list[Any]) -> list[Any]:
    with without_garbage_collection():
        return list(map(copy, items))


copied_dicts: Copier = functools.partial(_copied, dict.copy)
"""Copies dictionaries of numbers, strings and the like, none of which has a method of a user's."""

_VARS: Callable[[Any], dict[str, Any]] = attrgetter("__dict__")


def _copied_objects(kind: Any, items: list[Any]) -> list[Any]:
    with without_garbage_collection():
        found = list(map(object.__new__, repeat(kind, len(items))))
        # Not by assignment, which a class may have a method for.
        any(map(object.__setattr__, found, repeat("__dict__"), map(dict.copy, map(_VARS, items))))
    return found


def _copied_slots(kind: Any, names: Sequence[str], items: list[Any]) -> list[Any]:
    with without_garbage_collection():
        found = list(map(object.__new__, repeat(kind, len(items))))
        for name in names:
            any(map(object.__setattr__, found, repeat(name), map(attrgetter(name), items)))
    return found


@contextlib.contextmanager
def without_garbage_collection() -> Iterator[None]:
    """Pause the collector of cyclic garbage, while many objects are made that all stay.

    It would look at all that is there again and again: a million entries take a third of the time (CPython 3.11).
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _are_immutable(parts: Parts, levels: int = _MOST_LEVELS) -> bool:
    """Say whether nobody can change any of some values, which may be nested in so many levels."""
    kinds: set[Any] = set(map(type, parts()))
    if kinds <= _IMMUTABLE or (kinds - _IMMUTABLE == {tuple} and _are_short_tuples(parts)):
        return True
    others = (value for value in parts() if type(value) not in _IMMUTABLE)
    # An object that is part of many items is looked at once.
    found = list({id(value): value for value in islice(others, _MOST_PARTS)}.values())
    if levels == 0 or next(others, None) is not None:
        return False
    told: Iterable[Any] = {id(type(value)): type(value) for value in found}.values()
    return all(_are_frozen(kind, [value for value in found if type(value) is kind], levels - 1) for kind in told)


def _are_short_tuples(parts: Parts) -> bool:
    """Say whether the tuples among some values have few members, such as pairs, and of these nobody can change any."""
    tuples = [value for value in parts() if type(value) is tuple]
    return (
        sum(map(len, tuples)) <= _FEW_MEMBERS * len(tuples)
        and set(map(type, chain.from_iterable(tuples))) <= _IMMUTABLE
    )


def _are_frozen(kind: Any, values: list[Any], levels: int) -> bool:
    """Say the same of the values of one type that has parts."""
    if issubclass(kind, enum.Enum):
        return True
    if kind is tuple or kind is frozenset or (issubclass(kind, tuple) and _is_named_tuple(kind)):
        return _are_immutable(lambda: chain.from_iterable(values), levels)
    if not _is_frozen(kind):
        return False
    names = [each.name for each in dataclasses.fields(kind)]
    return _has_fields_alone(kind, set(names), values) and _are_fields_immutable(names, values, levels)


def _has_fields_alone(kind: Any, names: set[str], values: list[Any]) -> bool:
    """Say whether no object of a dataclass has an attribute beside its fields: whoever set that one may set more."""
    slots = copyreg._slotnames(kind)  # type: ignore[attr-defined]  # What `copy` and `pickle` take.
    return names.issuperset(chain.from_iterable(map(_VARS, values)) if kind.__dictoffset__ else slots)


def _are_fields_immutable(names: Sequence[str], values: list[Any], levels: int) -> bool:
    """Say the same of the attributes of these names."""
    # One attribute of all objects after another, in C: most have numbers and strings alone.
    others = [each for each in names if not set(map(type, _attributes(each, values))) <= _IMMUTABLE]
    return not others or _are_immutable(
        lambda: chain.from_iterable(_attributes(each, values) for each in others), levels
    )


def _attributes(name: str, values: list[Any]) -> Iterator[Any]:
    # A field that was never set is None here.
    return map(getattr, values, repeat(name), repeat(None))


def _is_named_tuple(kind: Any) -> bool:
    return kind.__dictoffset__ == 0 and _is_usual(kind) and kind.__iter__ is tuple.__iter__


def _is_frozen(kind: Any) -> bool:
    """Say whether a class is a frozen dataclass itself, and no method gets around that, or adds to the fields."""
    params = vars(kind).get("__dataclass_params__")
    return (
        params is not None and params.frozen and _is_plain(kind) and not any(map(_sets_attributes, kind.__mro__[:-1]))
    )


def _sets_attributes(kind: type) -> bool:
    """Say whether a member of a class could set attributes of an object that refuses to.

    Functions that its methods name are looked at, too, and those of modules and classes that they name.
    """
    seen: set[int] = set()
    members = ((name, value) for name, value in vars(kind).items() if name not in _NO_SETTERS)
    return any(name == "__post_init__" or _is_setter(value, seen) for name, value in members)


_NO_SETTERS = frozenset({"__setattr__", "__delattr__", "__setstate__", "__class_getitem__", "__init_subclass__"})
"""Methods of a frozen dataclass that refuse to set attributes, do so before anybody has the object, or get a class."""


def _is_setter(value: Any, seen: set[int]) -> bool:
    if type(value) is property:
        return any(_is_setter(each, seen) for each in (value.fget, value.fset, value.fdel))
    if type(value) in (classmethod, staticmethod):
        return _is_setter(value.__func__, seen)
    if isinstance(value, FunctionType):
        return _is_setting_function(value, seen)
    if isinstance(value, BuiltinFunctionType):
        return value.__name__ in _SETTERS
    if type(value) in (MemberDescriptorType, GetSetDescriptorType):
        return False
    # Such as a cached property.
    return hasattr(type(value), "__get__") or _holds_setter(value, seen)


def _holds_setter(value: Any, seen: set[int]) -> bool:
    """Say whether a class, an object or a container could set attributes of an object that it is given."""
    if type(value) in _IMMUTABLE or isinstance(value, ModuleType) or id(value) in seen:
        return False
    seen.add(id(value))
    if type(value) in (dict, *_CONTAINERS):
        parts = [*value, *value.values()] if type(value) is dict else list(value)
        return not set(map(type, parts)) <= _IMMUTABLE and any(_is_setter(each, seen) for each in parts)
    kind = value if isinstance(value, type) else type(value)
    own = [each for each in kind.__mro__ if not _is_of_python(each.__module__)]
    members = (item for each in own for item in vars(each).items())
    if not own and callable(value) and kind is not value:
        return kind.__module__ not in _OF_TYPES  # Such as a partial function, and not `list[int]`.
    return any(
        isinstance(member, _FUNCTIONS) and name not in _NO_SETTERS and _is_setter(member, seen)
        for name, member in members
    )


_CONTAINERS = (list, tuple, set, frozenset)
_OF_TYPES = ("types", "typing")
_FUNCTIONS = (FunctionType, classmethod, staticmethod, property)


def _is_of_python(module: str) -> bool:
    return module.partition(".")[0] in sys.stdlib_module_names


_SETTERS = frozenset(
    {"__setattr__", "__setstate__", "__dict__", "vars", "setattr", "__init__", "__set__", "__delete__", "__delattr__"}
)


def _is_setting_function(function: Any, seen: set[int]) -> bool:
    if function.__code__ is _WithRepr.__repr__.__code__:
        function = function.__wrapped__
    # `__init__` as the decorator has made it sets fields, of an object that nobody has.
    if id(function) in seen or _MADE in function.__code__.co_freevars:
        return False
    seen.add(id(function))
    names = _names_in(function.__code__)
    if hasattr(function, "__wrapped__") or not {"__class__"}.issuperset(function.__code__.co_freevars):
        return True
    if _is_of_python(function.__globals__.get("__name__", "")):
        return False
    return (
        len(seen) > _MOST_FUNCTIONS
        or not _SETTERS.isdisjoint(names)
        or _imports(function.__code__)
        or any(_is_setter(each, seen) for each in _named(function, names))
    )


@dataclasses.dataclass
class _WithRepr:
    """Has a `__repr__` of the decorator, which is a function around another one."""


_MADE = "__dataclass_builtins_object__"
_MOST_FUNCTIONS = 64
"""Functions beyond which one of them is taken for a setter."""


def _names_in(code: CodeType) -> set[str]:
    """Return the names and strings in the code of a function, and of those inside of it."""
    found = {*code.co_names, *(each for each in code.co_consts if type(each) is str)}
    return found.union(*(_names_in(each) for each in code.co_consts if isinstance(each, CodeType)))


def _imports(code: CodeType) -> bool:
    return opmap["IMPORT_NAME"] in code.co_code[::2] or any(
        _imports(each) for each in code.co_consts if isinstance(each, CodeType)
    )


def _named(function: Any, names: set[str]) -> Iterator[Any]:
    """Give the values that a function finds by their names, also in modules, or as those of its arguments."""
    yield from (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
    waiting, modules = [function.__globals__[name] for name in names if name in function.__globals__], set[int]()
    while waiting:
        value = waiting.pop()
        yield value
        if isinstance(value, ModuleType) and not _is_of_python(value.__name__) and id(value) not in modules:
            modules.add(id(value))
            waiting += [vars(value)[name] for name in names if name in vars(value)]


def _is_heap_type(kind: Any) -> bool:
    return bool(kind.__flags__ & _HEAP_TYPE) and not issubclass(kind, enum.Enum)


def _slots_of(kind: Any) -> tuple[str, ...]:
    """Return the attributes of a class without `__dict__`, as Python made them; none if it has other members."""
    names = tuple(copyreg._slotnames(kind))  # type: ignore[attr-defined]  # What `copy` and `pickle` take.
    members = [getattr(kind, name, None) for name in names]
    return names if all(type(each) is MemberDescriptorType for each in members) else ()


def _is_plain(kind: Any) -> bool:
    """Say whether the objects of a class are their attributes, and are copied as usual."""
    return (
        _is_usual(kind)
        and kind.__getattribute__ is object.__getattribute__
        and kind.__new__ is object.__new__
        and not any(hasattr(kind, name) for name in ("__getattr__", "__getnewargs__", "__getnewargs_ex__"))
        and getattr(kind, "__setstate__", None) in (None, _SET_STATE)
        and getattr(kind, "__getstate__", None) in (getattr(object, "__getstate__", None), _GET_STATE)
        and (not kind.__dictoffset__ or not any(vars(each).get("__slots__") for each in kind.__mro__[:-1]))
        and all(each.__flags__ & _HEAP_TYPE for each in kind.__mro__[:-1])
    )


def _is_usual(kind: Any) -> bool:
    """Say whether objects of a class are pickled as usual, and the class is equal to no other one."""
    meta: Any = type(kind)
    return bool(
        meta.__eq__ is object.__eq__
        and meta.__hash__ is object.__hash__
        and kind.__reduce_ex__ is object.__reduce_ex__
        and kind.__reduce__ is object.__reduce__
        and kind not in copyreg.dispatch_table
    )
