"""`imap_journal`, `icache_journal`: what happens to the entries of a map or a cache, for as long as it is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeVar, overload

from dstream.spi.functions import refuse_one_that_would_not_run
from dstream.spi.stream_source import StreamSource
from dstream.spi.wrong_arguments import checked_function
from dstream.values.journal_events import JournalEvent
from dstream.values.places import Place, checked_place
from sources.journal_reading import Events, JournalStart, NamedJournal, ProjectedJournal, TimestampedJournal
from sources.starts import checked_start

__all__ = ["icache_journal", "imap_journal"]

R = TypeVar("R")


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
    """Read the changes of the entries of the map `name`, which `get_map(name, journal=True)` made, one after another.

    An event has the time of its commit, by the clock of who wrote it, and `native_timestamps()` gives that to what a
    projection makes of it, too.

    **Parallelism**: one task reads a range of events, since they have one order.
    **Guarantee**: exactly once, in the order in which the changes happened, as long as the journal reaches back so far.
    `vacuum` removes events of the default storage; events that are gone before they were read are an error.
    **On re-run**: a new job begins at `start`; one that goes on, where it stood.

    Args:
        name: the name of the map.
        start: `"oldest"`, all that is kept; `"current"`, what happens from now on; a datetime with a time zone, what
            was committed from its millisecond on; an int, what happened after this offset.
        predicate: which events; it runs where they are read.
        projection: what to make of each, there too; an event of which it makes None is dropped.
        events: `"puts"`, or `"all"`, with entries that were removed.
        storage: a folder or a URL, as for `connect`, of another storage that has the collection; unset, that of the
            context.

    Raises:
        TypeError: an argument is of another kind.
        ValueError: an argument is none of its choices.
        SourceError: when its job starts: the storage has no such map, or the map keeps no journal; later: the map was
            destroyed, or events are gone.

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

    That an entry was looked up is no change. One that expired is removed when a lookup or `purge()` meets it, and added
    when it is put again. All else is as in `imap_journal`.

    **Parallelism**, **Guarantee**, **On re-run**: as for `imap_journal`.

    Raises:
        TypeError: an argument is of another kind.
        ValueError: an argument is none of its choices.
        SourceError: when its job starts: the storage has no such cache, or it keeps no journal; later: as for maps.

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
            checked_function(fn, argument)
    if predicate is not None:
        refuse_one_that_would_not_run(predicate, "predicate")
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
