"""`grouping_by_to_imap` and `grouping_by_to_icache`: one entry for each group."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, overload

from dstream.spi import Collector, Grouped, Reducer
from dstream.spi.wrong_arguments import hint_of_a_collector
from dstream.values.places import Place, checked_place, shown_place
from reducers.writing import CacheSink, MapSink, checked_function, checked_text, kind_of

if TYPE_CHECKING:
    from dstream.distributed import IStreamCache, IStreamMap

__all__ = ["grouping_by_to_icache", "grouping_by_to_imap"]

T = TypeVar("T")
K = TypeVar("K")
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
    stay; one with the key of a group is overwritten.

    **Parallelism**: each partition groups its own items; one task combines and writes the groups of a bucket.
    **Guarantee**: all groups of a job appear at once or none does.
    **On re-run**: the same entries are written again.

    Args:
        name: the name of the map.
        classifier: gives the key of an item.
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
    checked_function(classifier, "classifier")
    if downstream is not None and not isinstance(downstream, Collector):
        raise TypeError(f"downstream must be a Collector, not {kind_of(downstream)}{hint_of_a_collector(downstream)}")
    if job is not None:
        checked_text(job, "job")
    place = checked_place(storage)
    label = f"{function}({name!r}{shown_place(place)})"
    return sink(name, label, Grouped(classifier, downstream), job=job, storage=place)
