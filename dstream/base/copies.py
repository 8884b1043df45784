"""Copies of the caller's items: of those alone that somebody could change, the usual ones without pickling."""

from __future__ import annotations

import copyreg
import dataclasses
import enum
import functools
from collections.abc import Callable, Iterable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import chain, islice
from types import FunctionType
from typing import Any
from uuid import UUID

__all__ = ["Copier", "copier_of"]


_IMMUTABLE = frozenset(
    {bool, bytes, complex, date, datetime, Decimal, float, Fraction, int, str, time, timedelta, type(None), UUID}
)
_MOST_LEVELS = 8
_MOST_PARTS = 100_000
"""Containers inside of items beyond which a pickle, which copies each of them once, is the simpler way."""
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
    kinds: set[Any] = set(map(type, items))
    if _are_immutable(lambda: items):
        return list
    if len(kinds) != 1 or len(set(map(id, items))) != len(items):
        return None
    (kind,) = kinds
    if kind is dict:
        copy: Callable[[Any], Any] = dict.copy
        parts: Parts = lambda: chain(chain.from_iterable(items), chain.from_iterable(map(dict.values, items)))  # noqa: E731
    elif kind is list or kind is set:
        copy, parts = kind.copy, lambda: chain.from_iterable(items)
    elif _has_attributes(kind) and _is_plain(kind):
        copy, parts = _copied_object, lambda: (value for item in items for value in vars(item).values())
    else:
        return None
    return (lambda some: list(map(copy, some))) if _are_immutable(parts) else None


def _copied_object(item: Any) -> Any:
    found = object.__new__(type(item))
    vars(found).update(vars(item))
    return found


def _are_immutable(parts: Parts, levels: int = _MOST_LEVELS) -> bool:
    """Say whether nobody can change any of some values, which may be nested in so many levels."""
    if set(map(type, parts())) <= _IMMUTABLE:
        return True
    others = (value for value in parts() if type(value) not in _IMMUTABLE)
    # An object that is part of many items is looked at once.
    found = list({id(value): value for value in islice(others, _MOST_PARTS)}.values())
    if levels == 0 or next(others, None) is not None:
        return False
    kinds: Iterable[Any] = {id(type(value)): type(value) for value in found}.values()
    return all(_are_frozen(kind, [value for value in found if type(value) is kind], levels - 1) for kind in kinds)


def _are_frozen(kind: Any, values: list[Any], levels: int) -> bool:
    """Say the same of the values of one type that has parts."""
    if issubclass(kind, enum.Enum):
        return True
    if kind is tuple or kind is frozenset or (issubclass(kind, tuple) and _is_named_tuple(kind)):
        return _are_immutable(lambda: chain.from_iterable(values), levels)
    if not _is_frozen(kind):
        return False
    names = [each.name for each in dataclasses.fields(kind)]
    return _are_immutable(lambda: (getattr(value, name) for value in values for name in names), levels)


def _is_named_tuple(kind: Any) -> bool:
    return kind.__dictoffset__ == 0 and _is_usual(kind) and kind.__iter__ is tuple.__iter__


def _is_frozen(kind: Any) -> bool:
    """Say whether a class is a frozen dataclass itself, and no method gets around that, or adds to the fields."""
    params = vars(kind).get("__dataclass_params__")
    return (
        params is not None and params.frozen and _is_plain(kind) and not any(map(_sets_attributes, kind.__mro__[:-1]))
    )


def _sets_attributes(kind: type) -> bool:
    return any(map(_may_set, (value for name, value in vars(kind).items() if name not in _GENERATED)))


_GENERATED = frozenset({"__setattr__", "__delattr__", "__setstate__"})
"""Methods of a frozen dataclass that refuse to set attributes, or do so before anybody has the object."""


def _may_set(value: Any) -> bool:
    if isinstance(value, functools.cached_property):
        return True
    inner = getattr(value, "fget", None) or getattr(value, "__func__", value)
    if not isinstance(inner, FunctionType):
        return False
    # `__init__` as the decorator has made it names the function that sets fields as one of its arguments.
    is_made = inner.__code__.co_filename == "<string>"
    return not is_made and not {"__setattr__", "__dict__", "vars", "setattr"}.isdisjoint(inner.__code__.co_names)


def _has_attributes(kind: Any) -> bool:
    return bool(kind.__dictoffset__) and bool(kind.__flags__ & _HEAP_TYPE) and not issubclass(kind, enum.Enum)


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
        kind.__reduce_ex__ is object.__reduce_ex__
        and kind.__reduce__ is object.__reduce__
        and kind not in copyreg.dispatch_table
        and meta.__eq__ is object.__eq__
        and meta.__hash__ is object.__hash__
    )
