"""Copies of the caller's items: of the mutable ones alone, the usual types without pickling."""

from __future__ import annotations

import contextlib
import copyreg
import dataclasses
import enum
import functools
import gc
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import datetime, time, timezone
from itertools import chain, islice, repeat
from operator import attrgetter
from types import GetSetDescriptorType, MemberDescriptorType, NoneType
from typing import Any

from dstream.base.setters import HEAP_TYPE, IMMUTABLE, could_set

__all__ = [
    "Copier",
    "are_plain",
    "copied_dicts",
    "copier_of",
    "have_plain_parts",
    "is_known_zone",
    "is_zone_info",
    "without_garbage_collection",
]


_MOST_LEVELS = 8
_MOST_PARTS = 100_000
"""Maximal number of containers inside of items; beyond it a pickle is used, which copies each of them once."""
_FEW_MEMBERS = 8
_GET_STATE, _SET_STATE = (getattr(dataclasses, f"_dataclass_{name}state", None) for name in ("get", "set"))
"""The methods of frozen dataclasses with slots, which do as usual."""

Copier = Callable[[list[Any]], list[Any]]
Parts = Callable[[], Iterable[Any]]
"""Function that returns fresh values for each call."""


def copier_of(items: list[Any]) -> Copier | None:
    """Return a copier of `items` that is equivalent to a pickle; None if they require a pickle.

    Immutable items are their own copies: numbers, strings, and tuples, named tuples and frozen dataclasses
    of them. An object that occurs twice is one object in the copy, too.
    """
    try:
        return _copier_of(items)
    except Exception:
        # Such as the error of a metaclass that allows no hash, or no attribute; a pickle names that item.
        return None


def _copier_of(items: list[Any]) -> Copier | None:
    kinds: set[Any] = set(map(type, items))
    if kinds <= IMMUTABLE:
        return list if _have_known_zones(kinds, lambda: items) else None
    kind = next(iter(kinds))
    meta: Any = type(kind)
    # Of equal classes a set has one.
    if len(kinds) != 1 or meta.__eq__ is not object.__eq__:
        return list if _are_immutable(lambda: items) else None
    if kind not in _CHANGEABLE and _are_frozen(kind, items, _MOST_LEVELS):
        return list
    return _copier_of_kind(kind, items) if len(set(map(id, items))) == len(items) else None


def have_plain_parts(items: list[Any], names: Iterable[str]) -> bool:
    """Return whether neither access to the parts `names` of items nor operators on them run code of a user's.

    This is true for dictionaries, and for objects with plain attributes, whose parts are numbers, strings and similar
    values.

    Args:
        items: the items.
        names: of attributes, or keys of dictionaries that may be absent.
    """
    try:
        return _have_plain_parts(items, names)
    except Exception:
        # Such as the error of a missing part, or of a metaclass that allows no hash.
        return False


def _have_plain_parts(items: list[Any], names: Iterable[str]) -> bool:
    kinds: set[Any] = set(map(type, items))
    if kinds == {dict}:
        # A key may have an operator that is called when another one is looked for.
        keys_are_plain = set(map(type, chain.from_iterable(items))) <= IMMUTABLE
        return keys_are_plain and all(are_plain(list(map(dict.get, items, repeat(name)))) for name in names)
    return (
        len(kinds) == 1
        and _has_plain_attributes(kinds.pop(), names)
        and all(are_plain(list(map(attrgetter(name), items))) for name in names)
    )


def are_plain(values: Collection[Any]) -> bool:
    """Return whether values are numbers, strings and the like, none of which has a method of a user's."""
    try:
        return _are_plain(lambda: values)
    except Exception:
        return False  # Such as the error of a class whose metaclass allows no hash.


def _are_plain(parts: Parts) -> bool:
    kinds: set[Any] = set(map(type, parts()))
    return kinds <= IMMUTABLE and _have_known_zones(kinds, parts)


def _have_known_zones(kinds: set[Any], parts: Parts) -> bool:
    """Return whether the time zones of the values, if their types have time zones, are of Python's own classes."""
    if kinds.isdisjoint(_WITH_ZONES):
        return True
    timed = parts() if kinds <= _WITH_ZONES else (each for each in parts() if type(each) in _WITH_ZONES)
    return all(map(is_known_zone, set(map(type, map(attrgetter("tzinfo"), timed))) - {type(None)}))


_WITH_ZONES = frozenset({datetime, time})


def is_known_zone(kind: object) -> bool:
    """Return whether a class is one of Python's own time zones, whose methods have no side effects.

    The name of its module is no sign of that: a class may call that as it likes.
    """
    return kind is timezone or is_zone_info(kind)


def is_zone_info(kind: object) -> bool:
    """Return whether a class is `zoneinfo.ZoneInfo`."""
    # Its module is slow to load, and code that has the class has loaded it.
    module = sys.modules.get("zoneinfo")
    return module is not None and kind is module.ZoneInfo


def _has_plain_attributes(kind: Any, names: Iterable[str]) -> bool:
    """Return whether these names are plain attributes of the objects of a class without parts by key."""
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
        if kind is dict and all(map(_are_plain, members)):
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
    """Pause the collector of cyclic garbage, while many objects are created that remain in use.

    It would scan all objects repeatedly: a million entries take a third of the time (CPython 3.11).
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _are_immutable(parts: Parts, levels: int = _MOST_LEVELS) -> bool:
    """Return whether all values are immutable, nested in at most `levels` levels."""
    kinds: set[Any] = set(map(type, parts()))
    if not _have_known_zones(kinds, parts):
        return False
    if kinds <= IMMUTABLE or (kinds - IMMUTABLE == {tuple} and _are_short_tuples(parts)):
        return True
    others = (value for value in parts() if type(value) not in IMMUTABLE)
    # An object that is part of many items is checked once.
    found = list({id(value): value for value in islice(others, _MOST_PARTS)}.values())
    if levels == 0 or next(others, None) is not None:
        return False
    distinct: Iterable[Any] = {id(type(value)): type(value) for value in found}.values()
    return all(_are_frozen(kind, [value for value in found if type(value) is kind], levels - 1) for kind in distinct)


def _are_short_tuples(parts: Parts) -> bool:
    """Return whether the tuples among the values have few members, such as pairs, all of them immutable."""
    tuples = [value for value in parts() if type(value) is tuple]
    return sum(map(len, tuples)) <= _FEW_MEMBERS * len(tuples) and _are_plain(lambda: chain.from_iterable(tuples))


def _are_frozen(kind: Any, values: list[Any], levels: int) -> bool:
    """Return whether all values of one type that has parts are immutable."""
    if issubclass(kind, enum.Enum):
        return not could_set(kind)
    if kind is tuple or kind is frozenset or (issubclass(kind, tuple) and _is_named_tuple(kind)):
        return _are_immutable(lambda: chain.from_iterable(values), levels)
    if not _is_frozen(kind):
        return False
    names = [each.name for each in dataclasses.fields(kind)]  # pyright: ignore[reportArgumentType]
    return _has_fields_alone(kind, set(names), values) and _are_fields_immutable(names, values, levels)


def _has_fields_alone(kind: Any, names: set[str], values: list[Any]) -> bool:
    """Return whether no object of a dataclass has an attribute besides its fields, whose setter may set more."""
    slots = copyreg._slotnames(kind)  # type: ignore[attr-defined]  # Used by `copy` and `pickle`.
    return names.issuperset(chain.from_iterable(map(_VARS, values)) if kind.__dictoffset__ else slots)


def _are_fields_immutable(names: Sequence[str], values: list[Any], levels: int) -> bool:
    """Return whether the attributes of these names are immutable in all values."""
    # One attribute of all objects after another, in C: most have numbers and strings alone.
    others = [each for each in names if not _are_plain(functools.partial(_attributes, each, values))]
    return not others or _are_immutable(
        lambda: chain.from_iterable(_attributes(each, values) for each in others), levels
    )


def _attributes(name: str, values: list[Any]) -> Iterator[Any]:
    # A field that was never set is represented by None.
    return map(getattr, values, repeat(name), repeat(None))


def _is_named_tuple(kind: Any) -> bool:
    return kind.__dictoffset__ == 0 and _is_usual(kind) and kind.__iter__ is tuple.__iter__ and not could_set(kind)


def _is_frozen(kind: Any) -> bool:
    """Return whether a class is a frozen dataclass itself, and no method gets around that, or adds to the fields."""
    params = vars(kind).get("__dataclass_params__")
    return (
        params is not None
        and params.frozen
        and not hasattr(kind, "__post_init__")
        and _is_plain(kind)
        and not could_set(kind)
    )


def _is_heap_type(kind: Any) -> bool:
    return bool(kind.__flags__ & HEAP_TYPE) and not issubclass(kind, enum.Enum)


def _slots_of(kind: Any) -> tuple[str, ...]:
    """Return the attributes of a class without `__dict__`, as Python made them; none if it has other members."""
    names = tuple(copyreg._slotnames(kind))  # type: ignore[attr-defined]  # Used by `copy` and `pickle`.
    members = [getattr(kind, name, None) for name in names]
    return names if all(type(each) is MemberDescriptorType for each in members) else ()


def _is_plain(kind: Any) -> bool:
    """Return whether the objects of a class are their attributes, and are copied as usual."""
    return (
        _is_usual(kind)
        and kind.__getattribute__ is object.__getattribute__
        and kind.__new__ is object.__new__
        and not any(hasattr(kind, name) for name in ("__getattr__", "__getnewargs__", "__getnewargs_ex__"))
        and getattr(kind, "__setstate__", None) in (None, _SET_STATE)
        and getattr(kind, "__getstate__", None) in (getattr(object, "__getstate__", None), _GET_STATE)
        and (not kind.__dictoffset__ or not any(vars(each).get("__slots__") for each in kind.__mro__[:-1]))
        # A property named `__dict__` would be copied in place of the attributes.
        and all(type(vars(each).get("__dict__")) in (NoneType, GetSetDescriptorType) for each in kind.__mro__[:-1])
        and all(each.__flags__ & HEAP_TYPE for each in kind.__mro__[:-1])
    )


def _is_usual(kind: Any) -> bool:
    """Return whether objects of a class are pickled as usual, and the class is equal to no other one."""
    meta: Any = type(kind)
    return bool(
        meta.__eq__ is object.__eq__
        and meta.__hash__ is object.__hash__
        and kind.__reduce_ex__ is object.__reduce_ex__
        and kind.__reduce__ is object.__reduce__
        and kind not in copyreg.dispatch_table
    )
