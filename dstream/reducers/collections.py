"""Reducers into maps, caches, lists and sets."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from dstream.arguments import hint_of_a_collector, kind_of, running_function
from dstream.base.urls import Place, checked_place, shown_place
from dstream.connectors.base import checked_text
from dstream.connectors.collections.sinks import (
    CacheSink,
    EntryProcessing,
    EntryUpdate,
    ListSink,
    MapSink,
    SetSink,
    UpdatingSink,
    entries,
    is_present,
    merged_or_removed,
    set_member,
)
from dstream.spi import Collector, Grouped, Reducer, Update
from dstream.spi.store import LiveEntry

if TYPE_CHECKING:
    from dstream.collections import IStreamCache, IStreamList, IStreamMap
    from dstream.collections.set import IStreamSet

__all__ = [
    "grouping_by_to_icache",
    "grouping_by_to_imap",
    "processing_imap",
    "to_icache",
    "to_ilist",
    "to_imap",
    "to_iset",
    "updating_imap",
]


T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")
OnExisting = Literal["overwrite", "merge"]


@overload
def to_imap(
    name: str, *, job: str | None = None, storage: Place | None = None
) -> Reducer[tuple[K, V], IStreamMap[K, V]]: ...
@overload
def to_imap(
    name: str,
    key: Callable[[T], K],
    value: Callable[[T], V],
    merge: Callable[[Any, Any], Any] | None = None,
    *,
    on_existing: OnExisting = "overwrite",
    job: str | None = None,
    storage: Place | None = None,
) -> Reducer[T, IStreamMap[K, V]]: ...
@overload
def to_imap(
    name: str,
    *,
    merge: Callable[[Any, Any], Any],
    on_existing: OnExisting = "overwrite",
    job: str | None = None,
    storage: Place | None = None,
) -> Reducer[tuple[K, V], IStreamMap[K, V]]: ...
def to_imap(
    name: str,
    key: Callable[[Any], Any] | None = None,
    value: Callable[[Any], Any] | None = None,
    merge: Callable[[Any, Any], Any] | None = None,
    *,
    on_existing: OnExisting = "overwrite",
    job: str | None = None,
    storage: Place | None = None,
) -> Reducer[Any, Any]:
    """Write entries into the map `name`, which is created if it does not exist, and return it.

    Other entries of the map are not changed. Of equal keys in one job the last in encounter order wins,
    or `merge` combines their values. Costs one shuffle of the values of each partition and key.

    **Parallelism**: each task writes the buckets of its keys.
    **Guarantee**: all entries of a job appear at once or none does; tasks that fail, are retried or
    run twice leave one copy.
    **On re-run**: the same entries are written again; with `on_existing="merge"` they are merged
    again, unless `job` names the job.

    Args:
        name: the name of the map.
        key: returns the key of an item. Without `key` and `value` the items must be entries or pairs.
        value: returns the value of an item.
        merge: combines two values of a key within the job, in encounter order. It should return a new value: on the
            local engine the values may be objects of the caller.
        on_existing: `"overwrite"` an existing value of the map, or `"merge"` it with the new value (existing value
            first), atomically. With `"merge"`, a None of `merge` removes the entry; for two new values it discards
            both, and the existing value remains.
        job: a job of this name is committed once, however often it runs; a second run does nothing.
        storage: a folder or a URL, as for `connect`, of another storage that has the collection; unset, that of the
            context.

    Raises:
        TypeError: an argument cannot be called, only one of `key` and `value` is given, or, when it
            runs, an item is neither an entry nor a pair.
        ValueError: `on_existing` is none of its choices, or is `"merge"` without `merge`.
        NullElementError: when it runs: a key or a value is None, or a result of `merge` with `on_existing="overwrite"`.
        UnstableKeyError: when it runs: a key cannot be stored.

    Example:
        >>> import operator
        >>> from reducers import to_imap
        >>> with connect(engine="local", storage="memory:") as ctx:
        ...     counts = ctx.stream("abca").collect(to_imap("counts", str.upper, lambda c: 1, operator.add))
        ...     counts["A"], len(counts)
        (2, 3)
    """
    return _to_entries(MapSink, "to_imap", name, key, value, merge, on_existing, job, storage)


@overload
def to_icache(
    name: str, *, job: str | None = None, storage: Place | None = None
) -> Reducer[tuple[K, V], IStreamCache[K, V]]: ...
@overload
def to_icache(
    name: str,
    key: Callable[[T], K],
    value: Callable[[T], V],
    merge: Callable[[Any, Any], Any] | None = None,
    *,
    on_existing: OnExisting = "overwrite",
    job: str | None = None,
    storage: Place | None = None,
) -> Reducer[T, IStreamCache[K, V]]: ...
@overload
def to_icache(
    name: str,
    *,
    merge: Callable[[Any, Any], Any],
    on_existing: OnExisting = "overwrite",
    job: str | None = None,
    storage: Place | None = None,
) -> Reducer[tuple[K, V], IStreamCache[K, V]]: ...
def to_icache(
    name: str,
    key: Callable[[Any], Any] | None = None,
    value: Callable[[Any], Any] | None = None,
    merge: Callable[[Any, Any], Any] | None = None,
    *,
    on_existing: OnExisting = "overwrite",
    job: str | None = None,
    storage: Place | None = None,
) -> Reducer[Any, Any]:
    """Write entries into the cache `name`, which `ctx.get_cache(name, ttl=...)` configured, and return it.

    An entry's time to live starts when its task wrote it. Otherwise as `to_imap`.

    **Parallelism**, **Guarantee**, **On re-run**: as for `to_imap`.

    Raises:
        CacheNotExistsError: when it runs: the cache was never configured.

    Example:
        >>> from reducers import to_icache
        >>> with connect(engine="local", storage="memory:") as ctx:
        ...     cache = ctx.get_cache("lengths", ttl=60)
        ...     ctx.stream(["a", "bcd"]).collect(to_icache("lengths", str.upper, len))["BCD"]
        3
    """
    return _to_entries(CacheSink, "to_icache", name, key, value, merge, on_existing, job, storage)


def _to_entries(
    sink: type[MapSink[Any, Any]],
    function: str,
    name: str,
    key: Callable[[Any], Any] | None,
    value: Callable[[Any], Any] | None,
    merge: Callable[[Any, Any], Any] | None,
    on_existing: str,
    job: str | None,
    storage: Place | None,
) -> Reducer[Any, Any]:
    checked_text(name, "name")
    if (key is None) != (value is None):
        raise TypeError(f"{function}() takes key and value together, or neither for items that are entries or pairs")
    for argument, given in (("key", key), ("value", value), ("merge", merge)):
        if given is not None:
            running_function(given, argument)
    if job is not None:
        checked_text(job, "job")
    if on_existing not in ("overwrite", "merge"):
        raise ValueError(f"on_existing must be 'overwrite' or 'merge', not {on_existing!r}")
    if on_existing == "merge" and merge is None:
        raise ValueError("on_existing='merge' needs merge=, which makes one value of two")
    existing = partial(merged_or_removed, merge) if merge is not None and on_existing == "merge" else None
    place = checked_place(storage)
    label = f"{function}({name!r}{shown_place(place)})"
    collector = entries(key, value, merge, removes=existing is not None)
    return sink(name, label, collector, existing, merges_items=merge is not None, job=job, storage=place)


D = TypeVar("D")


@overload
def grouping_by_to_imap(
    name: str, classifier: Callable[[T], K], *, job: str | None = None, storage: Place | None = None
) -> Reducer[T, IStreamMap[K, list[T]]]: ...
@overload
def grouping_by_to_imap(
    name: str,
    classifier: Callable[[T], K],
    downstream: Collector[T, Any, D],
    *,
    job: str | None = None,
    storage: Place | None = None,
) -> Reducer[T, IStreamMap[K, D]]: ...
def grouping_by_to_imap(
    name: str,
    classifier: Callable[[Any], Any],
    downstream: Collector[Any, Any, Any] | None = None,
    *,
    job: str | None = None,
    storage: Place | None = None,
) -> Reducer[Any, Any]:
    """Group items and write one entry for each group into the map `name`; return the map.

    Groups are combined on the workers and never pass through the caller. Other entries of the map
    are not changed; an entry with the key of a group is overwritten.

    **Parallelism**: each partition groups its own items; one task combines and writes the groups of a bucket.
    **Guarantee**: all groups of a job appear at once or none does.
    **On re-run**: the same entries are written again.

    Args:
        name: the name of the map.
        classifier: returns the key of an item.
        downstream: collects the items of one key; lists by default.
        job: a job of this name is committed once, however often it runs.
        storage: a folder or a URL, as for `connect`, of another storage that has the collection; unset, that of the
            context.

    Raises:
        TypeError: `classifier` cannot be called, or `downstream` is no collector.
        NullElementError: when it runs: a key or a result is None.

    Example:
        >>> from collectors import counting
        >>> from reducers import grouping_by_to_imap
        >>> with connect(engine="local", storage="memory:") as ctx:
        ...     by_length = ctx.stream(["a", "bb", "c"]).collect(grouping_by_to_imap("lengths", len, counting()))
        ...     sorted(by_length.items())
        [Entry(key=1, value=2), Entry(key=2, value=1)]
    """
    return _grouping(MapSink, "grouping_by_to_imap", name, classifier, downstream, job, storage)


@overload
def grouping_by_to_icache(
    name: str, classifier: Callable[[T], K], *, job: str | None = None, storage: Place | None = None
) -> Reducer[T, IStreamCache[K, list[T]]]: ...
@overload
def grouping_by_to_icache(
    name: str,
    classifier: Callable[[T], K],
    downstream: Collector[T, Any, D],
    *,
    job: str | None = None,
    storage: Place | None = None,
) -> Reducer[T, IStreamCache[K, D]]: ...
def grouping_by_to_icache(
    name: str,
    classifier: Callable[[Any], Any],
    downstream: Collector[Any, Any, Any] | None = None,
    *,
    job: str | None = None,
    storage: Place | None = None,
) -> Reducer[Any, Any]:
    """Group items and write one entry for each group into the cache `name`, which must be configured; return it.

    **Parallelism**, **Guarantee**, **On re-run**: as for `grouping_by_to_imap`.

    Raises:
        CacheNotExistsError: when it runs: the cache was never configured.

    Example:
        >>> from reducers import grouping_by_to_icache
        >>> with connect(engine="local", storage="memory:") as ctx:
        ...     cache = ctx.get_cache("words", ttl=60)
        ...     ctx.stream(["a", "bb", "c"]).collect(grouping_by_to_icache("words", len))[1]
        ['a', 'c']
    """
    return _grouping(CacheSink, "grouping_by_to_icache", name, classifier, downstream, job, storage)


def _grouping(
    sink: type[MapSink[Any, Any]],
    function: str,
    name: str,
    classifier: Callable[[Any], Any],
    downstream: Collector[Any, Any, Any] | None,
    job: str | None,
    storage: Place | None,
) -> Reducer[Any, Any]:
    checked_text(name, "name")
    running_function(classifier, "classifier")
    if downstream is not None and not isinstance(downstream, Collector):
        raise TypeError(f"downstream must be a Collector, not {kind_of(downstream)}{hint_of_a_collector(downstream)}")
    if job is not None:
        checked_text(job, "job")
    place = checked_place(storage)
    label = f"{function}({name!r}{shown_place(place)})"
    return sink(name, label, Grouped(classifier, downstream), job=job, storage=place)


def to_ilist(name: str, *, job: str | None = None, storage: Place | None = None) -> Reducer[T, IStreamList[T]]:
    """Append the items to the list `name`, which is created if it does not exist, and return it.

    An ordered stream keeps its order. Nothing is shuffled.

    **Parallelism**: each partition writes its own items.
    **Guarantee**: all items of a job appear at once, next to each other, or none does.
    **On re-run**: the items are appended again, unless `job` names the job.

    Args:
        name: the name of the list.
        job: a job of this name is committed once, however often it runs.
        storage: a folder or a URL, as for `connect`, of another storage that has the collection; unset, that of the
            context.

    Example:
        >>> from reducers import to_ilist
        >>> with connect(engine="local", storage="memory:") as ctx:
        ...     list(ctx.stream([3, 1, 2]).sorted().collect(to_ilist("numbers")))
        [1, 2, 3]
    """
    checked_text(name, "name")
    if job is not None:
        checked_text(job, "job")
    place = checked_place(storage)
    return ListSink(name, f"to_ilist({name!r}{shown_place(place)})", job=job, storage=place)


R = TypeVar("R")


def to_iset(name: str, *, job: str | None = None) -> Reducer[T, IStreamSet[T]]:
    """Add the items to the set `name`, which is created if it does not exist, and return it.

    Costs one shuffle of the distinct items of each partition.

    **Parallelism**: each task writes the buckets of its items.
    **Guarantee**: all items of a job appear at once or none does; tasks that fail, are retried or run twice change
    nothing.
    ***On re-run**: nothing changes: a set contains an item once.

    Args:
        name: the name of the set.
        job: a job of this name is committed once, however often it runs.

    Raises:
        TypeError: `name` is no str.
        NullElementError: when it runs: an item is None.
        UnstableKeyError: when it runs: an item has no hash, or a hash that differs between processes.

    Example:
        >>> from reducers import to_iset
        >>> with connect(engine="local", storage="memory:") as ctx:
        ...     sorted(ctx.stream("abca").collect(to_iset("letters")))
        ['a', 'b', 'c']
    """
    checked_text(name, "name")
    if job is not None:
        checked_text(job, "job")
    return SetSink(name, f"to_iset({name!r})", entries(set_member, is_present, None), job=job)


def updating_imap(
    name: str,
    key: Callable[[T], K],
    update: Callable[[V | None, T], V | None],
    *,
    job: str | None = None,
    storage: Place | None = None,
) -> Reducer[T, IStreamMap[K, V]]:
    """Update entries of the map `name` by a function of old values and items; create the map if needed, and return it.

    The items of a key are passed one after another, in encounter order. Costs one shuffle of all items; the
    items of one key must fit into the memory of a task. With a function that combines two values, `to_imap` combines
    them before the shuffle.

    **Parallelism**: each task writes the buckets of its keys.
    **Guarantee**: all entries of a job change at once or none does, each item counts once; `update` may run more often,
    if a task is run again, or an entry changed before the commit.
    ***On re-run**: the same items are applied again, unless `job` names the job.

    Args:
        name: the name of the map.
        key: returns the key of an item.
        update: receives the value of the key, None if there is none, and an item; returns the new value, or None to
            remove the entry. It may change and return the value that it receives.
        job: a job of this name is committed once, however often it runs; a second run does nothing.
        storage: a folder or a URL, as for `connect`, of another storage that has the collection; unset, that of the
            context.

    Raises:
        TypeError: an argument is of another kind.
        NullElementError: when it runs: a key is None.
        UnstableKeyError: when it runs: a key cannot be stored.

    Example:
        >>> from reducers import updating_imap
        >>> with connect(engine="local", storage="memory:") as ctx:
        ...     ctx.get_map("stock").update(rope=3, oil=1)
        ...     sold = ctx.stream(["rope", "oil", "rope"])
        ...     sold.collect(updating_imap("stock", str, lambda left, _: left - 1 or None)).copy()
        {'rope': 1}
    """
    return _sink("updating_imap", name, key, EntryUpdate(running_function(update, "update")), job, storage)


def processing_imap(
    name: str,
    key: Callable[[T], K],
    processor: Callable[[LiveEntry[K, V | None], T], object],
    *,
    job: str | None = None,
    storage: Place | None = None,
) -> Reducer[T, IStreamMap[K, V]]:
    """Call a function for each item to change entries of the map `name`; create the map if needed, and return it.

    It receives the same as the function of `map.execute_on_key`: the entry, whose value is None if there is none.
    Otherwise as `updating_imap`.

    **Parallelism**, **Guarantee**, **On re-run**: as for `updating_imap`.

    Args:
        name: the name of the map.
        key: returns the key of an item.
        processor: receives the entry and an item. `entry.set_value(value)` changes the entry, with None removes it;
            the result of the function is ignored.
        job: as for `updating_imap`.
        storage: as for `updating_imap`.

    Raises:
        TypeError: an argument is of another kind.
        NullElementError: when it runs: a key is None.
        UnstableKeyError: when it runs: a key cannot be stored.

    Example:
        >>> from reducers import processing_imap
        >>> with connect(engine="local", storage="memory:") as ctx:
        ...     longest = lambda entry, word: entry.set_value(max(entry.value or "", word, key=len))
        ...     words = ctx.stream(["ash", "oak", "alder"])
        ...     sorted(words.collect(processing_imap("longest", lambda word: word[0], longest)).values())
        ['alder', 'oak']
    """
    return _sink("processing_imap", name, key, EntryProcessing(running_function(processor, "processor")), job, storage)


def _sink(
    function: str,
    name: str,
    key: Callable[[Any], Any],
    fn: Callable[[Any, Any, Any], Any],
    job: str | None,
    storage: Place | None,
) -> Reducer[Any, Any]:
    checked_text(name, "name")
    running_function(key, "key")
    if job is not None:
        checked_text(job, "job")
    place = checked_place(storage)
    label = f"{function}({name!r}{shown_place(place)})"
    return UpdatingSink(name, label, Grouped(key), Update(fn), job=job, storage=place)
