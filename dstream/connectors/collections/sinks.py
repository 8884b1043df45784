"""Sinks of maps, caches, lists and sets, and the keyed collectors of their entries."""

from __future__ import annotations

import dataclasses
import enum
import operator
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar, cast

from dstream.base.functions import checked_result, plain, refuse_awaitable
from dstream.base.records import record
from dstream.base.showing import shown
from dstream.connectors.base import NOT_REPLACING, Replaceable
from dstream.errors import NullElementError
from dstream.failures.attribution import each, given
from dstream.keys import canonical_keys
from dstream.spi import (
    Collections,
    Collector,
    Grouped,
    InColumns,
    Keyed,
    MapWriter,
    WriteJob,
    Writer,
    added_ints,
)
from dstream.spi.store import LiveEntry, Merge, change_of
from dstream.values.entries import key_of, value_of

__all__ = [
    "CacheSink",
    "CollectionSink",
    "ListSink",
    "MapSink",
    "OpenCollection",
    "entries",
    "merged",
    "merged_or_removed",
]


T = TypeVar("T")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])


@record
class OpenCollection(Generic[R]):
    """A collection that is written into.

    Attributes:
        collection: the result of `collect`.
        begin: begins an epoch of a job in the store of the collection.
    """

    collection: R
    begin: Callable[..., WriteJob[Writer | MapWriter]]

    def result(self) -> R:
        """Return the collection."""
        return self.collection

    def tidy(self, older_than: float) -> None:
        """Truncate the log of the store, if it has one: a job's commits, epoch by epoch, must not accumulate."""
        cut = getattr(cast(Any, self.collection).store, "cut_log", None)
        if cut is not None:
            cut(older_than)


_NOT_GROUPING = (
    "aggregate by key in the pipeline (`rolling_aggregate`, or `window` and `aggregate`), and use to_imap(...)"
)
_NOT_OVERWRITING = 'give on_existing="merge", so that values are merged with those of earlier epochs'


@record
class CollectionSink(Replaceable, ABC, Generic[T, R]):
    """The base of the sinks of collections.

    Attributes:
        name: the name of the collection.
        label: the reducer as the user wrote it.
        replace: the old content is removed in the same commit.
        job: the name of the job, which writes once for any number of runs.
        storage: the storage of the collection; None: the storage of the context.
    """

    name: str
    label: str
    replace: bool = dataclasses.field(default=False, kw_only=True)
    job: str | None = dataclasses.field(default=None, kw_only=True)
    storage: str | None = dataclasses.field(default=None, kw_only=True)

    def place(self, context: Collections) -> Collections:
        """Return where the collection is."""
        return context if self.storage is None else context.elsewhere(self.storage)

    @abstractmethod
    def open(self, context: Collections) -> OpenCollection[R]:
        """Return the collection, created if it does not exist and can be created."""

    def __repr__(self) -> str:
        return self.label


@record(repr=False)
class ListSink(CollectionSink[T, R]):
    """Appends items to a list."""

    @property
    def collector(self) -> None:
        """None: the items are written as they are."""
        return

    def open(self, context: Collections) -> OpenCollection[R]:
        """Return the list."""
        found = self.place(context).get_list(self.name)
        return OpenCollection(found, partial(found.store.begin, replace=self.replace))


@record(repr=False)
class MapSink(CollectionSink[T, R]):
    """Writes entries into a map.

    Attributes:
        collector: makes entries of the items.
        merge: merges the existing value with the new one; unset, the new one replaces it.
        merges_items: the collector merges several items into one value.
    """

    collector: Collector[Any, Any, Any] | Grouped
    merge: Merge | None = None
    merges_items: bool = dataclasses.field(default=False, kw_only=True)

    @property
    def instead_of_epochs(self) -> str | None:
        """Return the alternative to values of a single epoch."""
        if self.replace:
            return NOT_REPLACING
        if isinstance(self.collector, Grouped):
            return _NOT_GROUPING
        return _NOT_OVERWRITING if self.merges_items and self.merge is None else None

    def open(self, context: Collections) -> OpenCollection[R]:
        """Return the map."""
        return self._opened(self.place(context).get_map(self.name))

    def _opened(self, found: Any) -> OpenCollection[R]:
        return OpenCollection(found, partial(found.store.begin, merge=self.merge, replace=self.replace))


@record(repr=False)
class CacheSink(MapSink[T, R]):
    """Writes entries into a cache."""

    def open(self, context: Collections) -> OpenCollection[R]:
        """Return the cache, which was configured before."""
        return self._opened(self.place(context).get_cache(self.name))


SplitEntries = Callable[[list[Any]], tuple[list[Any], list[Any]]]
"""Function that returns the keys and the values of items."""

MergeValues = Callable[[Any, Any], Any]
"""Function that merges two values."""

_BATCH = 512


class _Removed(enum.Enum):
    """Marker of a key whose values merge to None; merged with another value it yields that value."""

    REMOVED = "REMOVED"


# A member of an enum is the same object after pickling, so that `is` works in every process.
_REMOVED = _Removed.REMOVED


def entries(
    key: Callable[[Any], Any] | None,
    value: Callable[[Any], Any] | None,
    merge: MergeValues | None,
    *,
    removes: bool = False,
) -> Collector[Any, Any, dict[Any, Any]]:
    """Return a collector that makes one entry of the items of each key.

    Args:
        key: returns the key of an item; None with `value`: the items are entries or pairs.
        value: returns the value of an item.
        merge: merges two values, in encounter order; None: the last one wins.
        removes: a None of `merge` leaves the key without a value, as Java's `Map.merge` does; otherwise it is refused.
    """
    split: SplitEntries = _parts if key is None or value is None else partial(_mapped, key, value)
    of_two = None if merge is None else partial(_left_of if removes else merged, merge)
    one: Collector[Any, Any, Any] = Collector(_nothing, _never, of_two or _last)
    if removes:
        one = _Removing(_nothing, _never, of_two or _last, _there)
    accumulate_all = partial(_accumulate, split, of_two)
    # A Counter adds ones at the speed of C. It contains only ints; for other values a dictionary replaces it.
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
                f"an item for a map must be an entry or a pair, not {type(item).__name__} {shown(item)}; "
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


def _accumulate(
    split: SplitEntries, of_two: MergeValues | None, found: dict[Any, Any], items: Iterable[Any]
) -> dict[Any, Any]:
    from more_itertools import chunked  # imported on use: it takes 7 ms, which a driver can save

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


def _merge_each(of_two: MergeValues, found: dict[Any, Any], keys: list[Any], values: list[Any]) -> None:
    held, merged = found.get, None
    for key, value in zip(keys, values, strict=True):
        left = held(key)  # No value is None.
        value = value if left is None else (merged := of_two(left, value))
        if value is _REMOVED:
            del found[key]
        else:
            found[key] = value
    # An async function returns an awaitable each time, so that a check of the last result is enough.
    refuse_awaitable(merged)


def _accumulate_one(
    split: SplitEntries, of_two: MergeValues | None, found: dict[Any, Any], item: Any
) -> dict[Any, Any]:
    return _accumulate(split, of_two, found, (item,))


def _combine(of_two: MergeValues | None, left: dict[Any, Any], right: dict[Any, Any]) -> dict[Any, Any]:
    # One is a Counter, whose values are ints, and the other has other values.
    if type(left) is not type(right):
        left = dict(left)
    if of_two is None:
        left.update(right)
    else:
        _merge_each(of_two, left, list(right), list(right.values()))
    return left


def merged(merge: MergeValues, left: Any, right: Any) -> Any:
    """Return the result of the user's function for two values; its exceptions name them.

    Raises:
        NullElementError: it returns None.
    """
    value = merged_or_removed(merge, left, right)
    if value is None:
        raise NullElementError(
            f"merge gave None for {shown(left)} and {shown(right)}; a map holds no None values: with "
            'on_existing="merge" a None removes the entry'
        )
    return value


def merged_or_removed(merge: MergeValues, left: Any, right: Any) -> Any:
    """Do the same where None is an answer: that nothing is left."""
    try:
        return merge(left, right)
    except Exception as error:
        given(error, f"when merge was given {shown(left)} and {shown(right)}")
        raise


def _left_of(merge: MergeValues, left: Any, right: Any) -> Any:
    """Return the merge of two values of a key, of which each may be nothing already."""
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
    """Return the value: `_Removing.finished` leaves out nothing."""
    return value


def _last(left: Any, right: Any) -> Any:
    return right


def _nothing() -> Any:
    """Refuse to make a container of a key without items, which cannot exist."""
    raise AssertionError("a key of a map has at least one item")


def _never(container: Any, item: Any) -> Any:
    """Refuse to accumulate one key's items, which is done for all keys at once."""
    raise AssertionError("the items of a map are accumulated for all keys at once")


def _refuse_none(items: list[Any], keys: list[Any], values: list[Any]) -> None:
    for item, key, value in zip(items, keys, values, strict=True):
        if key is None or value is None:
            what = "key" if key is None else "value"
            raise NullElementError(f"a map holds no None {what}s, and the item {shown(item)} gives one")


def set_member(item: Any) -> Any:
    if item is None:
        raise NullElementError("a set holds no None, and an item is None")
    return item


def is_present(item: Any) -> bool:
    return True


@record(repr=False)
class SetSink(MapSink[T, R]):
    """Writes items into a set: the keys of its map."""

    def open(self, context: Collections) -> OpenCollection[R]:
        """Return the set."""
        return self._opened(context.get_set(self.name))


@record(repr=False)
class UpdatingSink(MapSink[T, R]):
    """Writer of the items of each key, from which the store computes its value."""

    def __post_init__(self) -> None:
        if self.replace:
            raise TypeError(f"{self.label}: there would be no old values to update; to_imap(...) makes new ones")


@record
class EntryUpdate:
    """Update that adds the items of a key, one after another."""

    update: Callable[[Any, Any], Any]

    def __call__(self, key: Any, value: Any, items: list[Any]) -> Any:
        for item in items:
            try:
                value = self.update(value, item)
            except Exception as error:
                given(error, f"when update was given {shown(value)} and {shown(item)}")
                raise
        return checked_result(value)


@record
class EntryProcessing:
    """Calls a function with the entry and each item of a key, one after another."""

    processor: Callable[[Any, Any], object]

    def __call__(self, key: Any, value: Any, items: list[Any]) -> Any:
        entry: LiveEntry[Any, Any] = LiveEntry(key, value)
        for item in items:
            try:
                self.processor(entry, item)
            except Exception as error:
                given(error, f"when processor was given {entry!r} and {shown(item)}")
                raise
        return change_of(entry, value)
