"""The keyed collectors behind `to_imap` and its kin: one value for each key of a job."""

from __future__ import annotations

import enum
import operator
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from more_itertools import chunked

from dstream.errors import NullElementError
from dstream.keys import canonical_keys
from dstream.spi import Collector, InColumns, Keyed, added_ints
from dstream.values.blaming import each, given, shown
from dstream.values.entry import key_of, value_of
from dstream.values.flattened import refuse_awaitable
from dstream.values.plain_functions import plain

__all__ = ["entries", "merged", "merged_or_removed"]

Split = Callable[[list[Any]], tuple[list[Any], list[Any]]]
"""Makes the keys and the values of some items."""

Merge = Callable[[Any, Any], Any]
"""Makes one value of two."""

_BATCH = 512


class _Removed(enum.Enum):
    """What is left of a key whose values merge to None; to merge it with another value gives that value."""

    REMOVED = "REMOVED"


_REMOVED = _Removed.REMOVED


def entries(
    key: Callable[[Any], Any] | None,
    value: Callable[[Any], Any] | None,
    merge: Merge | None,
    *,
    removes: bool = False,
) -> Collector[Any, Any, dict[Any, Any]]:
    """Make one entry of the items of each key.

    Args:
        key: gives the key of an item; None with `value`: the items are entries or pairs.
        value: gives the value of an item.
        merge: makes one value of two, in encounter order; None: the last one stays.
        removes: a None of `merge` leaves the key without a value, as Java's `Map.merge` does; otherwise it is refused.
    """
    split: Split = _parts if key is None or value is None else partial(_mapped, key, value)
    of_two = None if merge is None else partial(_left_of if removes else merged, merge)
    one: Collector[Any, Any, Any] = Collector(_nothing, _never, of_two or _last)
    if removes:
        one = _Removing(_nothing, _never, of_two or _last, _there)
    accumulate_all = partial(_accumulate, split, of_two)
    # A Counter adds ones at the speed of C. It holds ints only; for other values a dictionary takes its place.
    return Collector(
        Counter if merge is operator.add else dict,
        partial(_accumulate_one, split, of_two),
        partial(_combine, of_two),
        accumulate_all=accumulate_all,
        keyed=Keyed(lambda item: split([item])[0][0], one, dict, takes_entries=split is _parts),
        in_columns=_added(key, value, accumulate_all) if merge is operator.add else None,
        functions=tuple(
            (name, fn) for name, fn in (("key", key), ("value", value), ("merge", merge)) if fn is not None
        ),
    )


def _added(
    key: Callable[[Any], Any] | None, value: Callable[[Any], Any] | None, same_as: Callable[..., Any]
) -> InColumns:
    """Return how ints are added up by key."""
    if key is None or value is None:
        key, value = key_of, value_of
    return InColumns("groups", of=key, downstream=added_ints(value), same_as=same_as, is_fold=True)


def _parts(items: list[Any]) -> tuple[list[Any], list[Any]]:
    """Return the parts of entries or pairs.

    Raises:
        TypeError: an item is neither.
    """
    for item in items:
        if not (isinstance(item, tuple | list) and len(item) == 2):
            raise TypeError(
                f"an item that goes into a map must be an entry or a pair, not {type(item).__name__} {shown(item)}; "
                "give key= and value= to make entries of other items"
            )
    return [item[0] for item in items], [item[1] for item in items]


def _mapped(key: Callable[[Any], Any], value: Callable[[Any], Any], items: list[Any]) -> tuple[list[Any], list[Any]]:
    if plain(key) is not None or plain(value) is not None:
        return each(key, items), each(value, items)
    keys, values = [], []
    for item in items:  # A failure finds the item by this name.
        keys.append(key(item))
        values.append(value(item))
    if items:
        item = items[0]
        refuse_awaitable((keys[0], values[0]))
    return keys, values


def _accumulate(split: Split, of_two: Merge | None, found: dict[Any, Any], items: Iterable[Any]) -> dict[Any, Any]:
    for batch in chunked(items, _BATCH):
        keys, values = split(batch)
        kinds = set(map(type, values))
        if type(None) in kinds or type(None) in set(map(type, keys)):
            _refuse_none(batch, keys, values)
        keys = canonical_keys(keys, batch)
        if type(found) is Counter and kinds != {int}:
            found = dict(found)
        if of_two is None:
            found.update(zip(keys, values, strict=True))
        elif type(found) is Counter and values.count(1) == len(values):
            found.update(keys)
        else:
            _merge_each(of_two, found, keys, values)
    return found


def _merge_each(of_two: Merge, found: dict[Any, Any], keys: list[Any], values: list[Any]) -> None:
    held, merged = found.get, None
    for key, value in zip(keys, values, strict=True):
        left = held(key)  # No value is None.
        value = value if left is None else (merged := of_two(left, value))
        if value is _REMOVED:
            del found[key]
        else:
            found[key] = value
    refuse_awaitable(merged)


def _accumulate_one(split: Split, of_two: Merge | None, found: dict[Any, Any], item: Any) -> dict[Any, Any]:
    return _accumulate(split, of_two, found, (item,))


def _combine(of_two: Merge | None, left: dict[Any, Any], right: dict[Any, Any]) -> dict[Any, Any]:
    if type(left) is not type(right):
        left = dict(left)
    if of_two is None:
        left.update(right)
    else:
        _merge_each(of_two, left, list(right), list(right.values()))
    return left


def merged(merge: Merge, left: Any, right: Any) -> Any:
    """Return what the user's function makes of two values; its exceptions say which.

    Raises:
        NullElementError: it gives None.
    """
    value = merged_or_removed(merge, left, right)
    if value is None:
        raise NullElementError(
            f"merge gave None for {shown(left)} and {shown(right)}; a map holds no None values: with "
            'on_existing="merge" a None removes the entry'
        )
    return value


def merged_or_removed(merge: Merge, left: Any, right: Any) -> Any:
    """Do the same where None is an answer: that nothing is left."""
    try:
        return merge(left, right)
    except Exception as error:
        given(error, f"when merge was given {shown(left)} and {shown(right)}")
        raise


def _left_of(merge: Merge, left: Any, right: Any) -> Any:
    """Return what is left of two values of a key, of which each may be nothing already."""
    if left is _REMOVED:
        return right
    if right is _REMOVED:
        return left
    value = merged_or_removed(merge, left, right)
    return _REMOVED if value is None else value


@dataclass(frozen=True, repr=False)
class _Removing(Collector[Any, Any, Any]):
    """Merges the values of one key; a key of which nothing is left gets no entry."""

    def finished(self, groups: Iterable[tuple[Any, Any]]) -> Iterator[tuple[Any, Any]]:
        return (group for group in groups if group[1] is not _REMOVED)


def _there(value: Any) -> Any:
    """Return the value: `_Removing.finished` leaves out what is nothing."""
    return value


def _last(left: Any, right: Any) -> Any:
    return right


def _nothing() -> Any:
    """Stand for the container of a key without items, which there is not."""
    raise AssertionError("a key of a map has at least one item")


def _never(container: Any, item: Any) -> Any:
    """Stand for the accumulation of one key's items, which happens for all keys at once."""
    raise AssertionError("the items of a map are accumulated for all keys at once")


def _refuse_none(items: list[Any], keys: list[Any], values: list[Any]) -> None:
    for item, key, value in zip(items, keys, values, strict=True):
        if key is None or value is None:
            what = "key" if key is None else "value"
            raise NullElementError(f"a map holds no None {what}s, and the item {shown(item)} gives one")
