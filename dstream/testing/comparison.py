"""Exact comparison: equal values of the same type at every depth, with every NaN equal to every other."""

from __future__ import annotations

import dataclasses
import types
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any

from dstream.failures import shown
from dstream.keys.canonical import has_generated_eq
from dstream.values.fields import is_attrs

__all__ = ["difference", "difference_in_any_order", "exact", "missing_from", "report"]


_NAMED = (type, types.FunctionType, types.BuiltinFunctionType, types.ModuleType)
_MOST_SHOWN = 5


def exact(value: Any) -> Hashable:
    """Return a hashable representation, equal for two values if, and only if, they are exactly equal.

    `1`, `1.0` and `True` are three different values. An object without custom equality is represented by its
    attributes.

    Example:
        >>> exact([1, {"a": 2.0}]) == exact([1, {"a": 2.0}]), exact(1) == exact(True)
        (True, False)
    """
    return _exact(value, ())


def _exact(value: Any, around: tuple[int, ...]) -> Hashable:
    kind = type(value)
    if id(value) in around:
        # By its depth, which is equal for equal values, and not by its `id`.
        return ("contains itself", len(around) - around.index(id(value)))
    inside = (*around, id(value))
    if isinstance(value, float) and value != value:
        return (kind, "NaN")
    if isinstance(value, complex) and value != value:
        return (kind, _exact(value.real, inside), _exact(value.imag, inside))
    if isinstance(value, list | tuple | deque):
        return (kind, tuple(_exact(item, inside) for item in value))
    if isinstance(value, dict | types.MappingProxyType):
        return (kind, frozenset((_exact(key, inside), _exact(value[key], inside)) for key in value))
    if isinstance(value, set | frozenset):
        return (kind, frozenset(_exact(item, inside) for item in value))
    if isinstance(value, _NAMED):
        return (kind, getattr(value, "__module__", None), getattr(value, "__qualname__", value.__name__))
    if _speaks_for_itself(value):
        try:
            hash(value)
            # A NaN of `Decimal` or NumPy, too, equals no other one, nor itself once it went through pickle.
            return (kind, value) if value == value else (kind, "NaN")
        except Exception:  # It has no hash after all, as a frozen class around a list; or it is a signaling NaN.
            pass
    return (kind, tuple(_exact(part, inside) for part in _state(value)))


def _speaks_for_itself(value: Any) -> bool:
    """Return whether `value` has its own equality and hash, not derived from its parts."""
    kind: Any = type(value)
    if kind.__eq__ is object.__eq__ or kind.__hash__ is None or _has_eq_of_fields(kind):
        return False
    # The library's values are equal if their parts are, so that an `Optional` of 1 equals an `Optional` of 1.0.
    return str(kind.__module__).partition(".")[0] != "dstream"


def _has_eq_of_fields(kind: Any) -> bool:
    """Return whether `@dataclass` or `attrs` wrote the equality of a class."""
    if is_attrs(kind):
        code = getattr(kind.__eq__, "__code__", None)
        return code is not None and code.co_filename.startswith("<attrs generated")
    return has_generated_eq(kind)


def _state(value: Any) -> Iterator[Any]:
    """Yield the parts of `value`: the compared fields of a dataclass, or else its pickled state."""
    kind = type(value)
    if dataclasses.is_dataclass(kind):
        yield from (getattr(value, field.name) for field in dataclasses.fields(kind) if field.compare)
        return
    if is_attrs(kind):
        attributes: Any = kind
        for field in attributes.__attrs_attrs__:
            if field.eq:
                part = getattr(value, field.name)
                yield part if field.eq_key is None else field.eq_key(part)
        return
    try:
        reduced = value.__reduce_ex__(4)
    except TypeError:
        yield repr(value)  # Such as a lock, which shows no state.
        return
    parts = reduced if isinstance(reduced, tuple) else (reduced,)
    # Items of lists and dicts are reduced to iterators, two of which are never equal.
    yield from (list(part) if isinstance(part, Iterator) else part for part in parts)


def difference(expected: Any, actual: Any, place: str = "") -> str | None:
    """Describe where `actual` first differs from `expected`; None if they are exactly equal."""
    if exact(expected) == exact(actual):
        return None
    finders: dict[type, Callable[[Any, Any, str], str | None]] = {
        list: _in_sequence,
        tuple: _in_sequence,
        dict: _in_dict,
        set: _in_set,
    }
    for kind, find in finders.items():
        if isinstance(expected, kind) and type(expected) is type(actual):
            return find(expected, actual, place)
    return f"{_at(place)}expected {_typed(expected, actual)}, got {_typed(actual, expected)}"


def _in_sequence(expected: Any, actual: Any, place: str) -> str | None:
    for index, (left, right) in enumerate(zip(expected, actual, strict=False)):
        found = difference(left, right, f"{place}[{index}]")
        if found is not None:
            return found
    shorter = min(len(expected), len(actual))
    if len(expected) > len(actual):
        return f"{_at(f'{place}[{shorter}]')}expected {shown(expected[shorter])}, got nothing more"
    return f"{_at(f'{place}[{shorter}]')}expected nothing more, got {shown(actual[shorter])}"


def _in_dict(expected: Any, actual: Any, place: str) -> str | None:
    theirs = {exact(key): key for key in actual}
    for key in expected:
        if exact(key) not in theirs:
            return f"{_at(place)}the key {shown(key)} is missing"
        found = difference(expected[key], actual[theirs.pop(exact(key))], f"{place}[{shown(key)}]")
        if found is not None:
            return found
    return f"{_at(place)}the key {shown(next(iter(theirs.values())))} is unexpected"


def _in_set(expected: Any, actual: Any, place: str) -> str | None:
    found = difference_in_any_order(expected, actual)
    return found and f"{_at(place)}{found}"


def difference_in_any_order(expected: Iterable[Any], actual: Iterable[Any]) -> str | None:
    """Report the items missing from `actual` and the surplus ones, each with its number; None if there are none."""
    wanted, found = list(expected), list(actual)
    missing = _surplus(wanted, found)
    unexpected = _surplus(found, wanted)
    parts = [f"missing: {missing}" if missing else "", f"unexpected: {unexpected}" if unexpected else ""]
    return "; ".join(filter(None, parts)) or None


def missing_from(actual: Iterable[Any], expected: Iterable[Any]) -> str | None:
    """Report the expected items that are missing, each with its number; None if none is missing."""
    missing = _surplus(list(expected), list(actual))
    return f"missing: {missing}" if missing else None


def report(expected: list[Any], actual: list[Any], found: str) -> str:
    """Return the difference, and below it all expected and all actual items, as far as they can be shown."""
    return f"{found}\n  expected {len(expected)} items: {shown(expected)}\n  got {len(actual)} items: {shown(actual)}"


def _surplus(items: list[Any], others: list[Any]) -> str:
    """Write the items that are more often in `items` than in `others`."""
    known = {exact(item): item for item in items}
    surplus = Counter(map(exact, items)) - Counter(map(exact, others))
    texts = [
        f"{shown(known[key])}{f' ({count} times)' if count > 1 else ''}"
        for key, count in surplus.most_common(_MOST_SHOWN)
    ]
    return ", ".join(texts) + (f", and {len(surplus) - _MOST_SHOWN} others" if len(surplus) > _MOST_SHOWN else "")


def _typed(value: Any, other: Any) -> str:
    """Write a value, with its type where types are the difference."""
    return shown(value) if type(value) is type(other) else f"{shown(value)} ({type(value).__name__})"


def _at(place: str) -> str:
    return f"at {place}: " if place else ""
