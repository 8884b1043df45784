"""Collections as sources: `imap`, `icache`, `ilist` and the journals of maps and caches.

They are values without a context, so that a pipeline can be built, pickled and run anywhere. The context that reads
them opens them: it replaces them by the source of the collection itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from dstream.arguments import running_function
from dstream.base.urls import Place, checked_place
from dstream.connectors.base import checked_start
from dstream.connectors.collections.sources import (
    Events,
    JournalStart,
    NamedJournal,
    ProjectedJournal,
    Stored,
    TimestampedJournal,
)
from dstream.spi.source import Source, StreamSource
from dstream.values import Entry
from dstream.values.entries import JournalEvent

if TYPE_CHECKING:
    from dstream.spi.store import Kind

__all__ = ["icache", "icache_journal", "ilist", "imap", "imap_journal"]


R = TypeVar("R")

AnyEntry = Entry[Any, Any]


@overload
def imap(
    name: str, predicate: Callable[[AnyEntry], object] | None = None, *, storage: Place | None = None
) -> Source[AnyEntry]: ...
@overload
def imap(
    name: str,
    predicate: Callable[[AnyEntry], object] | None,
    projection: Callable[[AnyEntry], R | None],
    *,
    storage: Place | None = None,
) -> Source[R]: ...
@overload
def imap(name: str, *, projection: Callable[[AnyEntry], R | None], storage: Place | None = None) -> Source[R]: ...
def imap(name: str, predicate: Any = None, projection: Any = None, *, storage: Place | None = None) -> Source[Any]:
    """Read the entries of the map `name`, as its `stream()` does.

    The map must exist when the stream or the job is created: a wrong name is an error, and creates no map.

    **Parallelism**: the storage divides its entries; each task reads its split from the storage itself.
    **Guarantee**: every entry once, without an order, as it was when the run started.
    ***On re-run**: the entries at that time are read.

    Args:
        name: the name of the map.
        predicate: selects entries; it runs in the tasks that read them.
        projection: returns the item of an entry, in the same tasks; an entry for which it returns None is dropped.
        storage: a folder or a URL, as for `connect`, of another storage that has the collection; unset, that of the
            context.

    Raises:
        TypeError: an argument is of another kind.
        SourceError: when it is read or its job is made: the storage has no such map.

    Example:
        >>> from sources import imap
        >>> with connect(engine="local", storage="memory:") as ctx:
        ...     ctx.get_map("ages").update(Ada=36, Grace=85)
        ...     ctx.read(imap("ages", lambda entry: entry.value > 40)).to_list()
        [Entry(key='Grace', value=85)]
    """
    return _stored("map", name, predicate, projection, storage)


@overload
def icache(
    name: str, predicate: Callable[[AnyEntry], object] | None = None, *, storage: Place | None = None
) -> Source[AnyEntry]: ...
@overload
def icache(
    name: str,
    predicate: Callable[[AnyEntry], object] | None,
    projection: Callable[[AnyEntry], R | None],
    *,
    storage: Place | None = None,
) -> Source[R]: ...
@overload
def icache(name: str, *, projection: Callable[[AnyEntry], R | None], storage: Place | None = None) -> Source[R]: ...
def icache(name: str, predicate: Any = None, projection: Any = None, *, storage: Place | None = None) -> Source[Any]:
    """Read the entries of the cache `name` that have not expired; reading does not count as access.

    **Parallelism**, **Guarantee**, **On re-run**: those of `imap`.

    Args:
        name: the name of the cache, which must exist.
        predicate: as for `imap`.
        projection: as for `imap`.
        storage: as for `imap`.

    Raises:
        TypeError: an argument is of another kind.
        SourceError: when it is read or its job is made: the storage has no such cache.

    Example:
        >>> from sources import icache
        >>> with connect(engine="local", storage="memory:") as ctx:
        ...     ctx.get_cache("sessions", ttl=1800)["Ada"] = "token"
        ...     ctx.read(icache("sessions", projection=lambda entry: entry.value)).to_list()
        ['token']
    """
    return _stored("cache", name, predicate, projection, storage)


def ilist(name: str, *, storage: Place | None = None) -> Source[Any]:
    """Read the items of the list `name`, in their order.

    **Parallelism**, **On re-run**: those of `imap`.
    **Guarantee**: every item once, as it was when the run started.

    Args:
        name: the name of the list, which must exist.
        storage: as for `imap`.

    Raises:
        TypeError: `name` is no str.
        SourceError: when it is read or its job is made: the storage has no such list.

    Example:
        >>> from sources import ilist
        >>> with connect(engine="local", storage="memory:") as ctx:
        ...     ctx.get_list("names").extend(["Ada", "Grace"])
        ...     ctx.read(ilist("names")).map(len).to_list()
        [3, 5]
    """
    return _stored("list", name, storage=storage)


def _stored(
    kind: Kind, name: str, predicate: Any = None, projection: Any = None, storage: Place | None = None
) -> Stored[Any]:
    if not isinstance(name, str):
        raise TypeError(f"the name of a {kind} must be a str, not {type(name).__name__}")
    if not name:
        raise ValueError(f"the name of a {kind} must not be empty")
    for argument, fn in (("predicate", predicate), ("projection", projection)):
        if fn is not None:
            running_function(fn, argument)
    return Stored(kind, name, predicate, projection, checked_place(storage))


@overload
def imap_journal(
    name: str,
    start: JournalStart = "oldest",
    predicate: Callable[[JournalEvent], object] | None = None,
    *,
    events: Events = "puts",
    storage: Place | None = None,
) -> StreamSource[JournalEvent]: ...
@overload
def imap_journal(
    name: str,
    start: JournalStart = "oldest",
    predicate: Callable[[JournalEvent], object] | None = None,
    *,
    projection: Callable[[JournalEvent], R | None],
    events: Events = "puts",
    storage: Place | None = None,
) -> StreamSource[R]: ...
def imap_journal(
    name: str,
    start: JournalStart = "oldest",
    predicate: Callable[[JournalEvent], object] | None = None,
    projection: Callable[[JournalEvent], Any] | None = None,
    events: Events = "puts",
    storage: Place | None = None,
) -> StreamSource[Any]:
    """Read the changes of the entries of the map `name`, which `get_map(name, journal=True)` made, in order.

    An event has the time of its commit, by the clock of its writer; `native_timestamps()` assigns it to the result of a
    projection, too.

    **Parallelism**: one task reads a range of events, since they have one order.
    **Guarantee**: exactly once, in the order in which the changes happened, as long as the journal has the events.
    `vacuum` removes events of the default storage; events that were removed before they were read are an error.
    **On re-run**: a new job begins at `start`; one that resumes, where it was.

    Args:
        name: the name of the map.
        start: `"oldest"`, all events of the journal; `"current"`, events from now on; a datetime with a time zone,
            events committed from its millisecond on; an int, events after this offset.
        predicate: selects events; it runs in the tasks that read them.
        projection: returns the item of an event, in the same tasks; an event for which it returns None is dropped.
        events: `"puts"`, or `"all"`, with entries that were removed.
        storage: a folder or a URL, as for `connect`, of another storage that has the collection; unset, that of the
            context.

    Raises:
        TypeError: an argument is of another kind.
        ValueError: an argument is none of its choices.
        SourceError: when its job starts: the storage has no such map, or the map has no journal; later: the map was
            destroyed, or events were removed.

    Example:
        >>> from sources import imap_journal
        >>> with connect(engine="local", storage="memory:") as ctx:
        ...     ctx.get_map("ages", journal=True).update(Ada=36, Grace=85)
        ...     journal = imap_journal("ages", projection=lambda event: event.key).opened(ctx)
        ...     begin = journal.begin()
        ...     reached = journal.reach(begin)
        ...     [key for name in reached for key in journal.split(name, begin[name], reached[name]).read()]
        ['Ada', 'Grace']
    """
    return _named("map", name, start, predicate, projection, events, storage)


@overload
def icache_journal(
    name: str,
    start: JournalStart = "oldest",
    predicate: Callable[[JournalEvent], object] | None = None,
    *,
    events: Events = "puts",
    storage: Place | None = None,
) -> StreamSource[JournalEvent]: ...
@overload
def icache_journal(
    name: str,
    start: JournalStart = "oldest",
    predicate: Callable[[JournalEvent], object] | None = None,
    *,
    projection: Callable[[JournalEvent], R | None],
    events: Events = "puts",
    storage: Place | None = None,
) -> StreamSource[R]: ...
def icache_journal(
    name: str,
    start: JournalStart = "oldest",
    predicate: Callable[[JournalEvent], object] | None = None,
    projection: Callable[[JournalEvent], Any] | None = None,
    events: Events = "puts",
    storage: Place | None = None,
) -> StreamSource[Any]:
    """Read the changes of the entries of the cache `name`, which `get_cache(name, ttl=..., journal=True)` made.

    A lookup is no change. An expired entry is removed when a lookup or `purge()` finds it, and added when it is put
    again. Otherwise as `imap_journal`.

    **Parallelism**, **Guarantee**, **On re-run**: as for `imap_journal`.

    Raises:
        TypeError: an argument is of another kind.
        ValueError: an argument is none of its choices.
        SourceError: when its job starts: the storage has no such cache, or it has no journal; later: as for maps.

    Example:
        >>> from sources import icache_journal
        >>> with connect(engine="local", storage="memory:") as ctx:
        ...     ctx.get_cache("tokens", ttl=1800, journal=True).update(Ada="x", Grace="y")
        ...     journal = icache_journal("tokens", projection=lambda event: event.new_value).opened(ctx)
        ...     list(journal.split("events", 0, journal.reach(journal.begin())["events"]).read())
        ['x', 'y']
    """
    return _named("cache", name, start, predicate, projection, events, storage)


def _named(
    kind: Literal["map", "cache"],
    name: Any,
    start: Any,
    predicate: Callable[[JournalEvent], object] | None,
    projection: Callable[[JournalEvent], Any] | None,
    events: Any,
    storage: Place | None,
) -> NamedJournal:
    if not isinstance(name, str):
        raise TypeError(f"name must be a str, not {type(name).__name__}")
    if not name:
        raise ValueError("name must not be empty")
    for argument, fn in (("predicate", predicate), ("projection", projection)):
        if fn is not None:
            running_function(fn, argument)
    if events not in ("puts", "all"):
        raise ValueError(f"events must be 'puts' or 'all', not {events!r}")
    journal = TimestampedJournal if projection is None else ProjectedJournal
    return journal(kind, name, _checked(start), predicate, projection, events, checked_place(storage))


def _checked(start: Any) -> JournalStart:
    if isinstance(start, int) and not isinstance(start, bool):
        if start < 0:
            raise ValueError(f"start must be the offset of an event, not {start}")
        return start
    return checked_start(start)
