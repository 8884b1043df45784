"""`imap_journal`: what happens to the entries of a map, for as long as it is written."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias, TypeVar, overload

from dstream.errors import CollectionDestroyedError, IllegalStateError, SourceError, UnsupportedError
from dstream.spi import Collections, MapStore
from dstream.spi.functions import refuse_one_that_would_not_run, shown_function
from dstream.spi.stream_source import StreamSource
from dstream.values.journal_events import JournalEvent
from dstream.values.places import Place, checked_place, shown_place
from sources.starts import checked_start

__all__ = ["Journal", "JournalSplit", "NamedJournal", "icache_journal", "imap_journal"]

R = TypeVar("R")

Events: TypeAlias = Literal["puts", "all"]
JournalStart: TypeAlias = 'Literal["oldest", "current"] | int'
ONLY = "events"
"""The name of the one partition: the events of a map have one order."""


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

    **Parallelism**: one task reads a range of events, since they have one order.
    **Guarantee**: exactly once, in the order in which the changes happened, as long as the journal reaches back so far.
    `vacuum` removes events of the default storage; events that are gone before they were read are an error.
    **On re-run**: a new job begins at `start`; one that goes on, where it stood.

    Args:
        name: the name of the map.
        start: `"oldest"`, all that is kept; `"current"`, what happens from now on; an int, what happened after this
            offset.
        predicate: which events; it runs where they are read.
        projection: what to make of each, there too; an event of which it makes None is dropped.
        events: `"puts"`, or `"all"`, with entries that were removed.
        storage: a folder or a URL, as for `connect`, of another storage that has the collection; unset, that of the
            context.

    Raises:
        TypeError: an argument is of another kind.
        ValueError: an argument is none of its choices.
        UnsupportedError: `start` is a datetime: events carry no time.
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
    if not isinstance(name, str):
        raise TypeError(f"name must be a str, not {type(name).__name__}")
    if not name:
        raise ValueError("name must not be empty")
    for argument, fn in (("predicate", predicate), ("projection", projection)):
        if fn is not None and not callable(fn):
            raise TypeError(f"{argument} must be callable, not {type(fn).__name__}")
    if predicate is not None:
        refuse_one_that_would_not_run(predicate, "predicate")
    if events not in ("puts", "all"):
        raise ValueError(f"events must be 'puts' or 'all', not {events!r}")
    return NamedJournal(name, _checked(start), predicate, projection, events, checked_place(storage))


def _checked(start: Any) -> JournalStart:
    if isinstance(start, int) and not isinstance(start, bool):
        if start < 0:
            raise ValueError(f"start must be the offset of an event, not {start}")
        return start
    if isinstance(checked_start(start), datetime.datetime):
        raise UnsupportedError(
            "start must be 'oldest', 'current' or the offset of an event: the events of a journal carry no time yet"
        )
    return start  # type: ignore[no-any-return]  # It was checked above.


def icache_journal(
    name: str,
    start: JournalStart = "oldest",
    predicate: Callable[[JournalEvent], object] | None = None,
    projection: Callable[[JournalEvent], Any] | None = None,
    events: Events = "puts",
    storage: Place | None = None,
) -> StreamSource[Any]:
    """Refuse: caches keep no journal yet, and maps do.

    **Parallelism**, **Guarantee**, **On re-run**: there is nothing to read.

    Raises:
        TypeError: an argument is of another kind.
        ValueError: an argument is none of its choices.
        UnsupportedError: always.

    Example:
        >>> from sources import icache_journal
        >>> icache_journal("sessions")
        Traceback (most recent call last):
        ...
        dstream.errors.UnsupportedError: icache_journal('sessions'): caches keep no journal yet; a map with ...
    """
    checked: Any = imap_journal  # It checks the same arguments, in one more form than its overloads have.
    checked(name, start, predicate, projection=projection, events=events, storage=storage)
    raise UnsupportedError(
        f"icache_journal({name!r}): caches keep no journal yet; a map with journal=True does, for imap_journal(...)"
    )


@dataclass(frozen=True, slots=True, repr=False)
class NamedJournal:
    """What `imap_journal` returns: a source once a context has opened it."""

    name: str
    start: JournalStart
    predicate: Callable[[JournalEvent], object] | None
    projection: Callable[[JournalEvent], Any] | None
    events: Events
    storage: str | None

    @property
    def label(self) -> str:
        """The call."""
        functions = (("predicate", self.predicate), ("projection", self.projection))
        shown = [] if self.start == "oldest" else [f"start={self.start!r}"]
        shown += [f"{name}={shown_function(fn)}" for name, fn in functions if fn is not None]
        shown += [] if self.events == "puts" else [f"events={self.events!r}"]
        return f"imap_journal({', '.join([repr(self.name), *shown])}{shown_place(self.storage)})"

    def opened(self, context: Collections) -> Journal:
        """Return the journal of the map.

        Raises:
            SourceError: there is no such map, or it keeps none.
        """
        place = context if self.storage is None else context.elsewhere(self.storage)
        found, making = place.existing("map", self.name), f"get_map({self.name!r}, journal=True) makes one"
        if found is None:
            raise SourceError(f"{self.label}: there is no map {self.name!r} in this storage; {making}")
        if not found.options.journal:
            raise SourceError(f"{self.label}: the map keeps no journal; {making} that does")
        return Journal(self, found.store)

    def begin(self) -> Mapping[str, int]:
        """Refuse to be read without a context.

        Raises:
            IllegalStateError: always.
        """
        raise IllegalStateError(f"{self.label} is a name until .opened(context) looks it up in a storage")

    def reach(self, offsets: Mapping[str, Any], most: int | None = None) -> Mapping[str, int]:
        """Refuse, as `begin`."""
        return self.begin()

    def split(self, partition: str, start: Any, stop: Any) -> JournalSplit:
        """Refuse, as `begin`."""
        raise IllegalStateError(f"{self.label} is a name until .opened(context) looks it up in a storage")

    def __repr__(self) -> str:
        return self.label


@dataclass(frozen=True, slots=True, repr=False)
class Journal:
    """The journal of a map: one partition, whose offsets are those of the last events that were read."""

    named: NamedJournal
    store: MapStore

    @property
    def label(self) -> str:
        """The call."""
        return self.named.label

    def begin(self) -> Mapping[str, int]:
        """Return where a new job begins."""
        start = self.named.start
        return {ONLY: start if isinstance(start, int) else 0 if start == "oldest" else self._reach(0, None)}

    def reach(self, offsets: Mapping[str, Any], most: int | None = None) -> Mapping[str, int]:
        """Return the offset of the last event, counted before the predicate is asked."""
        return {ONLY: self._reach(self._checked(offsets.get(ONLY)), most)}

    def _reach(self, since: int, most: int | None) -> int:
        try:
            return self.store.journal_reach(since, most)
        except CollectionDestroyedError as error:
            raise SourceError(f"{self.label}: {error}") from error

    def _checked(self, offset: Any) -> int:
        if offset is None:
            return 0
        if not isinstance(offset, int) or isinstance(offset, bool) or offset < 0:
            raise SourceError(f"{self.label}: {offset!r} is no offset of an event")
        return offset

    def split(self, partition: str, start: Any, stop: Any) -> JournalSplit:
        """Return the events after one offset, up to another one."""
        if partition != ONLY:
            raise SourceError(f"{self.label}: there is no partition {partition!r}")
        split = JournalSplit(self.store, self.named, self._checked(start), self._checked(stop))
        # No other process reads what this one holds, so its events travel.
        return dataclasses.replace(split, kept=HeldEvents(list(split.events()))) if self.store.in_process else split

    def __repr__(self) -> str:
        return self.label


class Kept(Protocol):
    """Keeps events: the map, or who holds some."""

    def journal(self, since: int) -> Iterator[JournalEvent]: ...


@dataclass(frozen=True, slots=True)
class HeldEvents:
    """Some events, which travel."""

    events_held: Sequence[JournalEvent]

    def journal(self, since: int) -> Iterator[JournalEvent]:
        """Give them."""
        return iter(self.events_held)


@dataclass(frozen=True, slots=True, repr=False)
class JournalSplit:
    """Some events of a journal: after `start`, up to `stop`."""

    kept: Kept
    named: NamedJournal
    start: int
    stop: int

    def read(self) -> Iterator[Any]:
        """Give the events that satisfy the predicate, projected.

        Raises:
            SourceError: they are gone.
        """
        named = self.named
        # An exception of the user's function names the event, which `dstream.failures` finds by the name `item`.
        for item in self.events():
            is_meant = named.events == "all" or item.kind != "REMOVED"
            if is_meant and (named.predicate is None or named.predicate(item)):
                result = item if named.projection is None else named.projection(item)
                if result is not None:
                    yield result

    def events(self) -> Iterator[JournalEvent]:
        """Read the events, all of them or up to an error."""
        offset = self.start
        try:
            events = self.kept.journal(offset) if offset < self.stop else iter(())
            while offset < self.stop and (event := next(events, None)) is not None:
                offset = event.offset
                yield event
        except IllegalStateError as error:
            raise SourceError(f"{self.named.label}: {error}") from error
        if offset < self.stop:
            raise SourceError(f"{self.named.label}: the events between the offsets {offset} and {self.stop} are gone")
