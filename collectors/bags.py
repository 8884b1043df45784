"""`Bag`: items in encounter order, from which some can be taken out again."""

from __future__ import annotations

from collections import Counter
from typing import Any

from collectors.arguments import shown
from dstream.errors import UnstableKeyError
from dstream.keys import canonical_all

__all__ = ["Bag"]


class Bag(list[Any]):
    """A list that equals another one if both hold the same items, in whatever order.

    Items are the same if they are one key of a grouping. Without a hash that can be relied on they are the same if
    they are equal, or read the same when pickled, as two copies of one do that hold NaN or compare by identity.
    """

    __slots__ = ()

    def take_out(self, others: list[Any]) -> None:
        """Remove, for each of `others`, the first item that is the same.

        Raises:
            ValueError: there is none.
        """
        if _are_equal(self[: len(others)], others):  # A window that slides loses its oldest items.
            del self[: len(others)]
            return
        left = _without(self, others)
        self[:] = _without_one_by_one(self, others) if left is None else left

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, list):
            return NotImplemented
        if len(self) != len(other):
            return False
        try:
            Bag(self).take_out(other)
        except ValueError:
            return False
        return True

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None


def _are_equal(left: list[Any], right: list[Any]) -> bool:
    try:
        return list(left) == list(right)
    except Exception:  # Arrays have no truth.
        return False


def _without(items: list[Any], others: list[Any]) -> list[Any] | None:
    """Return what is left in one pass, or None if not all have a hash that can be relied on."""
    try:
        taken, keys = Counter(canonical_all(others)), canonical_all(items)
    except UnstableKeyError:
        return None
    left = []
    for key, item in zip(keys, items, strict=True):
        if taken.get(key):
            taken[key] -= 1
        else:
            left.append(item)
    for key in +taken:
        raise _missing(key)
    return left


def _without_one_by_one(items: list[Any], others: list[Any]) -> list[Any]:
    left = list(items)
    for item in others:
        del left[_place_of(item, left)]
    return left


def _place_of(item: Any, items: list[Any]) -> int:
    try:
        return items.index(item)
    except Exception:  # None is equal, or one has no truth.
        form = _pickled(item)
    for place, other in enumerate(items):
        if type(other) is type(item) and form is not None and _pickled(other) == form:
            return place
    raise _missing(item)


def _pickled(item: Any) -> bytes | None:
    import pickle  # here: few programs take something out of a bag

    try:
        return pickle.dumps(item)
    except Exception:  # It cannot be pickled, so no copy of it is about.
        return None


def _missing(item: Any) -> ValueError:
    return ValueError(f"{shown(item)} cannot be taken out of a bag that holds nothing equal to it")
