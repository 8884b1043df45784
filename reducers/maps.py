"""`to_imap` and `to_icache`: one entry for each key."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from dstream.spi import Reducer
from dstream.values.places import Place, checked_place, shown_place
from reducers.entries import entries, merged_or_removed
from reducers.writing import CacheSink, MapSink, checked_function, checked_text

if TYPE_CHECKING:
    from dstream.distributed import IStreamCache, IStreamMap

__all__ = ["to_icache", "to_imap"]

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
    """Write entries into the map `name`, made if there is none, and return it.

    Other entries of the map stay. Of equal keys in one job the last in encounter order wins, or
    `merge` makes one value of them. Costs one shuffle of what each partition holds for each key.

    **Parallelism**: each task writes the buckets of its keys.
    **Guarantee**: all entries of a job appear at once or none does; tasks that fail, are retried or
    run twice leave one copy.
    **On re-run**: the same entries are written again; with `on_existing="merge"` they are merged
    again, unless `job` names the job.

    Args:
        name: the name of the map.
        key: gives the key of an item. Without `key` and `value` the items must be entries or pairs.
        value: gives the value of an item.
        merge: makes one value of two values of a key within the job, in encounter order. It should return a new
            value: on the local engine the values may be objects of the caller's own.
        on_existing: what happens to a value that the map has already: `"overwrite"` it, or `"merge"` it with the new
            one (existing value first), atomically. With `"merge"` a None of `merge` removes the entry; of two new
            values it says that nothing is left of them, and the one that the map has stays.
        job: a job of this name is committed once, however often it runs; a second run does nothing.
        storage: a folder or a URL, as for `connect`, of another storage that has the collection; unset, that of the
            context.

    Raises:
        TypeError: an argument cannot be called, only one of `key` and `value` is given, or, when it
            runs, an item is neither an entry nor a pair.
        ValueError: `on_existing` is none of its choices, or asks for a merge without `merge`.
        NullElementError: when it runs: a key or a value is None, or what `merge` gives with `on_existing="overwrite"`.
        UnstableKeyError: when it runs: a key cannot be kept.

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

    An entry lives from the moment when its task wrote it. All else is as in `to_imap`.

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
            checked_function(given, argument)
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
