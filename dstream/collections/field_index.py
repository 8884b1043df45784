"""`FieldIndex`: the keys of a map by the value of one field.

It finds the entries that may satisfy a condition, never that they do: the caller tests them. It contains only values of
plain types, for which Python's `==`, `hash` and `<` are consistent; every look-up returns entries with other values.
"""

from __future__ import annotations

import datetime
import decimal
import enum
import functools
import uuid
from bisect import bisect_left, bisect_right, insort
from collections.abc import Collection, Sequence
from itertools import chain
from typing import Any, Literal

from dstream.values import Entry
from dstream.values.predicates import Comparison, value_at

__all__ = ["FieldIndex", "Kind"]


Kind = Literal["hash", "sorted"]

_FEW = 64
"""The most new values that are inserted one by one; more of them are sorted in."""


class FieldIndex:
    """The keys by their value in one field; with `"sorted"` also in the order of these values.

    Args:
        path: the path of the field, as for `where`.
        kind: whether it supports order comparisons such as `<`, too.
    """

    def __init__(self, path: str, kind: Kind) -> None:
        self._path = path
        self._is_sorted = kind == "sorted"
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self._value_of: dict[Any, Any] = {}
        # Most fields have either few values or unique values, for which one set per value would be large.
        self._alone: dict[Any, Any] = {}
        self._together: dict[Any, set[Any]] = {}
        self._loose: set[Any] = set()
        self._order: list[Any] | None = [] if self._is_sorted else None
        self._new: list[Any] = []
        self._has_nan = False

    def __len__(self) -> int:
        return len(self._value_of) + len(self._loose)

    def add(self, key: Any, entry: Entry[Any, Any]) -> None:
        """Add an entry whose key is not in the index.

        An entry without the field is returned by every look-up, too, so that it fails as it does without an index.
        """
        try:
            value = value_at(self._path, entry)
            hash(value)
        except Exception:  # A property of the user's may raise anything.
            value = _UNKNOWN
        if not _is_plain(type(value)):  # type: ignore[arg-type]
            self._loose.add(key)
            return
        self._value_of[key] = value
        if value in self._together:
            self._together[value].add(key)
        elif value in self._alone:
            self._together[value] = {self._alone.pop(value), key}
        else:
            self._alone[value] = key
            self._note_order(value)

    def _note_order(self, value: Any) -> None:
        self._has_nan = self._has_nan or _is_nan(value)
        if self._order is None or not _is_comparable(value):
            return
        if not _has_order(value):
            self._order = None
            return
        self._new.append(value)
        if len(self._order) + len(self._new) > _FEW + 2 * (len(self._alone) + len(self._together)):
            # Most of them are outdated or repeated.
            self._order, self._new = [], [each for each in chain(self._alone, self._together) if _is_comparable(each)]

    def remove(self, key: Any) -> None:
        """Remove an entry, if it is indexed."""
        self._loose.discard(key)
        if key not in self._value_of:
            return
        value = self._value_of.pop(key)
        if value in self._together:
            self._together[value].discard(key)
            if not self._together[value]:
                del self._together[value]
        else:
            del self._alone[value]

    def equal_to(self, values: Collection[Any]) -> Collection[Any] | None:
        """Return the keys whose value may be equal to one of `values`; None if unknown."""
        try:
            return self._keys_of(values) if all(map(_is_plain, map(type, values))) else None
        except TypeError:  # A signaling NaN has no hash.
            return None

    def between(self, bounds: Sequence[Comparison]) -> Collection[Any] | None:
        """Return the keys whose value may be within `bounds`, at least one; None if unknown."""
        order = self._ordered() if bounds and all(_has_order(bound.operand) for bound in bounds) else None
        if order is None or (self._has_nan and any(type(bound.operand) not in _NUMBERS for bound in bounds)):
            return None  # A NaN, which has no position in the order, cannot be compared with a string.
        start, stop = 0, len(order)
        try:
            for bound in bounds:
                place = _PLACES[bound.symbol](order, bound.operand)
                start, stop = (start, min(stop, place)) if bound.symbol in ("<", "<=") else (max(start, place), stop)
        except (TypeError, KeyError, ArithmeticError):  # It cannot be compared with the values, or is `!=`.
            return None
        return self._keys_of(order[start:stop])

    def _keys_of(self, values: Collection[Any]) -> Collection[Any]:
        alone = {self._alone[value] for value in values if value in self._alone}
        return alone.union(self._loose, chain.from_iterable(self._together.get(value, ()) for value in values))

    def _ordered(self) -> list[Any] | None:
        """Return the values in order, possibly with outdated values; None if they have no order."""
        if self._order is None:
            return None
        new, self._new = self._new, []
        try:
            if len(new) <= _FEW:
                for value in new:
                    insort(self._order, value)
            else:
                self._order.extend(new)
                self._order.sort()
        except TypeError:  # Values of several types have no order, such as 1 and 'a'.
            self._order = None
        return self._order


_PLACES = {"<": bisect_left, "<=": bisect_right, ">": bisect_right, ">=": bisect_left}
"""Functions that return the position of a bound in the order."""

_ORDERED = frozenset(
    {
        bool,
        int,
        float,
        str,
        bytes,
        datetime.date,
        datetime.datetime,
        datetime.timedelta,
        decimal.Decimal,
        uuid.UUID,
    }
)
"""Types of which any two values that can be compared have an order; sets, for one, do not."""

_NUMBERS = frozenset({bool, int, float})

_UNKNOWN = object()


def _is_comparable(value: Any) -> bool:
    """Return whether a value can match a comparison: None, an open bound, and a NaN of a float never match.

    A NaN of a Decimal is: every comparison with it fails.
    """
    return value is not None and not _is_nan(value)


def _is_nan(value: Any) -> bool:
    return type(value) is float and value != value


def _has_order(value: Any) -> bool:
    """Return whether a value can be ordered among all of its type: no NaN can, and no time that a zone repeats."""
    kind = type(value)
    if kind is datetime.datetime and value.tzinfo is not None:
        return type(value.tzinfo) is datetime.timezone
    if kind is decimal.Decimal:
        return not value.is_nan()  # A signaling NaN cannot even be compared with itself.
    return kind in _ORDERED and not _is_nan(value)


@functools.lru_cache(maxsize=1024)
def _is_plain(kind: type) -> bool:
    """Return whether equal values of a class, and of all others that equal them, have the same hash."""
    is_member = issubclass(kind, enum.Enum) and kind.__eq__ is object.__eq__ and kind.__hash__ is enum.Enum.__hash__
    return kind in _ORDERED or kind is type(None) or is_member
