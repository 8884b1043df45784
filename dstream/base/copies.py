"""Copies of the caller's items: of those alone that somebody could change, the usual ones without pickling."""

from __future__ import annotations

import copyreg
import dataclasses
import enum
import gc
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import chain
from operator import attrgetter
from typing import Any, TypeVar, cast
from uuid import UUID

__all__ = ["are_immutable", "copied"]

T = TypeVar("T")

_IMMUTABLE = frozenset(
    {bool, bytes, complex, date, datetime, Decimal, float, Fraction, int, str, time, timedelta, type(None), UUID}
)
_MOST_LEVELS = 8
_PARAMS = "__dataclass_params__"
_HEAP_TYPE = 1 << 9
_GET_STATE, _SET_STATE = (getattr(dataclasses, f"_dataclass_{name}state", None) for name in ("get", "set"))
"""Those of frozen dataclasses with slots, which do as usual."""


def are_immutable(items: Iterable[Any], levels: int = _MOST_LEVELS) -> bool:
    """Say whether nobody can change any of some items: numbers, strings, and tuples and frozen dataclasses of them.

    Args:
        items: a collection that may be read again.
        levels: how deeply they may be nested.
    """
    return all(
        kind in _IMMUTABLE or (levels > 0 and _has_immutable_parts(items, kind, levels))
        for kind in set(map(type, items))
    )


def _has_immutable_parts(items: Iterable[Any], kind: Any, levels: int) -> bool:
    """Say the same of the items of one type that has parts."""
    parts = _parts_of(kind)
    if parts is None:
        return False
    own = [item for item in items if type(item) is kind]
    return all(are_immutable(each, levels - 1) for each in parts(own))


_Parts = Callable[[Sequence[Any]], Iterator[list[Any]]]


@lru_cache(maxsize=256)
def _parts_of(kind: Any) -> _Parts | None:
    """Return what gives the parts of values of an immutable type, each part of all values; None: it is mutable."""
    if issubclass(kind, enum.Enum):
        return lambda values: iter(())
    if kind is tuple or (issubclass(kind, tuple) and kind.__dictoffset__ == 0):
        return lambda values: iter((list(chain.from_iterable(map(tuple.__iter__, values))),))
    if kind is frozenset:
        return lambda values: iter((list(chain.from_iterable(values)),))
    if dataclasses.is_dataclass(kind) and getattr(kind, _PARAMS).frozen and _is_plain(cast(Any, kind)):
        getters = [attrgetter(each.name) for each in dataclasses.fields(kind)]
        # An attribute that is no field, such as a cached property, belongs to its value.
        return lambda values: (list(map(get, values)) for get in getters)
    return None


@lru_cache(maxsize=256)
def _is_plain(kind: Any) -> bool:
    """Say whether the objects of a class are their attributes, and are copied as usual."""
    return (
        kind.__reduce_ex__ is object.__reduce_ex__
        and kind.__reduce__ is object.__reduce__
        and kind.__getattribute__ is object.__getattribute__
        and kind.__new__ is object.__new__
        and not hasattr(kind, "__getattr__")
        and getattr(kind, "__setstate__", None) in (None, _SET_STATE)
        and getattr(kind, "__getstate__", None) in (getattr(object, "__getstate__", None), _GET_STATE)
        and kind not in copyreg.dispatch_table
        and all(each.__flags__ & _HEAP_TYPE for each in kind.__mro__[:-1])
    )


def copied(items: list[T]) -> list[T]:
    """Return the items, of which the caller can change none: themselves where nobody can, otherwise copies.

    An item that is there twice is one copy, as in a pickle.

    Raises:
        Exception: of pickling, for an item that cannot be copied.
    """
    if are_immutable(items):
        return items
    kinds: set[Any] = set(map(type, items))
    copy = _copy_of(*kinds) if len(kinds) == 1 else None
    # What is there twice is copied once, which only pickle knows how to do.
    if copy is not None and len(set(map(id, items))) == len(items):
        found: list[T] | None = copy(items)
        if found is not None:
            return found
    return _unpickled(items)


@lru_cache(maxsize=256)
def _copy_of(kind: Any) -> Callable[[Any], Any] | None:
    """Return what copies values of a type whose parts nobody can change; it returns None for others."""
    if kind is dict:
        return lambda items: list(map(dict.copy, items)) if _are_flat(items) else None
    if kind is list or kind is set:
        return lambda items: list(map(kind.copy, items)) if are_immutable(list(chain.from_iterable(items))) else None
    has_slots = any("__slots__" in vars(each) for each in kind.__mro__[:-1])
    if not has_slots and kind.__dictoffset__ and _is_plain(kind):
        return _copied_objects
    return None


def _are_flat(items: list[dict[Any, Any]]) -> bool:
    parts = (chain.from_iterable(map(dict.values, items)), chain.from_iterable(items))
    return all(are_immutable(list(part)) for part in parts)


def _copied_objects(items: list[Any]) -> list[Any] | None:
    states: list[dict[str, Any]] = list(map(vars, items))
    if not are_immutable(list(chain.from_iterable(map(dict.values, states)))):
        return None
    new, kind = object.__new__, type(items[0])
    found = [new(kind) for _ in items]
    for each, state in zip(found, states, strict=True):
        vars(each).update(state)
    return found


def _unpickled(items: list[T]) -> list[T]:
    from dstream.base.by_value import dumps_with_shared, loads_with_shared  # here: most items need no pickle

    was_enabled = gc.isenabled()
    gc.disable()
    try:
        if getattr(type(items[0]), "__module__", "") in _LIBRARIES:
            data = pickle.dumps(items, protocol=5)
            if b"__main__" not in data:
                found: list[T] = pickle.loads(data)
                return found
        return loads_with_shared(*dumps_with_shared(items))  # type: ignore[no-any-return]
    finally:
        if was_enabled:
            gc.enable()


_LIBRARIES = frozenset({"builtins", "collections", "datetime", "decimal"})
"""Modules whose types are pickled by their names; other classes may be known to this process alone."""
