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
        """Make the store cut its log, if it keeps one: a job's commits, epoch by epoch, must not pile up."""
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
        name: that of the collection.
        label: the reducer as the user wrote it.
        replace: the collection's old content disappears in the same commit.
        job: the name of the job, so that it writes once however often it runs.
        storage: where the collection is; None: in that of the context.
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
        """Return the collection, made if there is none and it can be made."""

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
        merge: makes one value of the existing value and the new one; unset, the new one replaces it.
        merges_items: the collector makes one value of several items.
    """

    collector: Collector[Any, Any, Any] | Grouped
    merge: Merge | None = None
    merges_items: bool = dataclasses.field(default=False, kw_only=True)

    @property
    def instead_of_epochs(self) -> str | None:
        """Return the alternative to values that would be those of one epoch."""
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
"""Makes the keys and the values of some items."""

MergeValues = Callable[[Any, Any], Any]
"""Makes one value of two."""

_BATCH = 512


class _Removed(enum.Enum):
    """The mark of a key whose values merge to None; merged with another value it gives that value."""

    REMOVED = "REMOVED"


# A member of an enum stays the same object when it is pickled, so that `is` holds in every process.
_REMOVED = _Removed.REMOVED


def entries(
    key: Callable[[Any], Any] | None,
    value: Callable[[Any], Any] | None,
    merge: MergeValues | None,
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
    split: SplitEntries = _parts if key is None or value is None else partial(_mapped, key, value)
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
    from more_itertools import chunked  # here: it takes 7 ms to import, which a driver need not spend

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
    # An async function gives an awaitable each time, so that a look at the last result is enough.
    refuse_awaitable(merged)


def _accumulate_one(
    split: SplitEntries, of_two: MergeValues | None, found: dict[Any, Any], item: Any
) -> dict[Any, Any]:
    return _accumulate(split, of_two, found, (item,))


def _combine(of_two: MergeValues | None, left: dict[Any, Any], right: dict[Any, Any]) -> dict[Any, Any]:
    # One of them is a Counter, whose values are ints, and the other has other values.
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
        NullElementError: it gives None.
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
    """Writes the items of each key, of which the store makes its value."""

    def __post_init__(self) -> None:
        if self.replace:
            raise TypeError(f"{self.label}: there would be no old values to update; to_imap(...) makes new ones")


@record
class EntryUpdate:
    """Takes the items of a key in, one after another."""

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
