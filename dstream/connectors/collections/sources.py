"""Collections as sources: maps, caches and lists by name, and journals of maps and caches.

They are values without a context, so that a pipeline can be built, pickled and run anywhere. The context that reads
them opens them: it replaces them by the source of the collection.
"""

from __future__ import annotations

import dataclasses
import datetime
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeAlias, TypeVar, cast

from dstream.base.urls import shown_place
from dstream.connectors.base import naming_destroyed
from dstream.connectors.memory import NamesOfStreams
from dstream.errors import IllegalStateError, SourceError
from dstream.spi import MapStore, Reached
from dstream.spi.sink import Collections
from dstream.spi.source import Source, Split
from dstream.values.entries import JournalEvent, UseEvent
from dstream.values.user_functions import shown_function

if TYPE_CHECKING:
    from dstream.spi.store import Kind

__all__ = [
    "Events",
    "Journal",
    "JournalSplit",
    "JournalStart",
    "NamedJournal",
    "ProjectedJournal",
    "Stored",
    "TimestampedJournal",
]


T = TypeVar("T")


@dataclass(frozen=True, slots=True, repr=False)
class Stored(NamesOfStreams, Generic[T]):
    """The value that `imap`, `icache` and `ilist` return: a source once a context has opened it.

    Attributes:
        kind: the kind of the collection.
        name: its name.
        predicate: selects entries; None for all.
        projection: returns the item of an entry; None for the entry itself.
        storage: its storage; None: the storage of the context.
    """

    kind: Kind
    name: str
    predicate: Callable[[Any], object] | None = None
    projection: Callable[[Any], Any] | None = None
    storage: str | None = None

    bounded = True
    in_caller = False

    @property
    def ordered(self) -> bool:
        """Return whether the items have an encounter order, as in a list."""
        return self.kind == "list"

    def opened(self, context: Collections) -> Source[T]:
        """Return the source that the collection offers.

        Raises:
            SourceError: there is no such collection.
        """
        place = context if self.storage is None else context.elsewhere(self.storage)
        found = place.existing(self.kind, self.name)
        if found is None:
            made_by = _MAKERS[self.kind].format(self.name)
            raise SourceError(f"{self!r}: there is no {self.kind} {self.name!r} in this storage; {made_by} makes one")
        source = found.source
        if self.predicate is not None or self.projection is not None:
            source = dataclasses.replace(source, predicate=self.predicate, projection=self.projection)
        return cast("Source[T]", source)

    def splits(self, parallelism: int) -> Iterable[Split[T]]:
        """Refuse to be read without a context.

        Raises:
            IllegalStateError: always.
        """
        raise IllegalStateError(f"{self!r} is a name until a context opens it: read it with ctx.read(...)")

    def __repr__(self) -> str:
        functions = (("predicate", self.predicate), ("projection", self.projection))
        shown = [f"{name}={shown_function(fn)}" for name, fn in functions if fn is not None]
        return f"i{self.kind}({', '.join([repr(self.name), *shown])}{shown_place(self.storage)})"


_MAKERS = {"map": "get_map({!r})", "list": "get_list({!r})", "cache": "get_cache({!r}, ttl=...)"}


Events: TypeAlias = Literal["puts", "all"]
JournalStart: TypeAlias = 'Literal["oldest", "current"] | int | datetime.datetime'
ONLY = "events"
"""The name of the one partition: the events of a map have one order."""


@dataclass(frozen=True, slots=True, repr=False)
class NamedJournal(NamesOfStreams):
    """Result of `imap_journal` and `icache_journal`: a source once a context has opened it."""

    kind: Literal["map", "cache"]
    name: str
    start: JournalStart
    predicate: Callable[[JournalEvent], object] | None
    projection: Callable[[JournalEvent], Any] | None
    events: Events
    storage: str | None

    def wants(self, event: JournalEvent) -> bool:
        """Return whether an event has a requested kind; checked before the predicate."""
        return (self.events == "all" or event.kind != "REMOVED") and not isinstance(event, UseEvent)

    @property
    def label(self) -> str:
        """The call."""
        functions = (("predicate", self.predicate), ("projection", self.projection))
        shown = [] if self.start == "oldest" else [f"start={self.start!r}"]
        shown += [f"{name}={shown_function(fn)}" for name, fn in functions if fn is not None]
        shown += [] if self.events == "puts" else [f"events={self.events!r}"]
        return f"i{self.kind}_journal({', '.join([repr(self.name), *shown])}{shown_place(self.storage)})"

    def opened(self, context: Collections) -> Journal:
        """Return the journal of the collection.

        Raises:
            SourceError: there is no such collection, or it has no journal.
        """
        place = context if self.storage is None else context.elsewhere(self.storage)
        found, more = place.existing(self.kind, self.name), "" if self.kind == "map" else "ttl=..., "
        making = f"get_{self.kind}({self.name!r}, {more}journal=True) makes one"
        if found is None:
            raise SourceError(f"{self.label}: there is no {self.kind} {self.name!r} in this storage; {making}")
        if not found.options.journal:
            raise SourceError(f"{self.label}: the {self.kind} keeps no journal; {making} that does")
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


class TimestampedJournal(NamedJournal):
    """A journal of events, which have a time."""

    __slots__ = ()

    def timestamp(self, item: JournalEvent) -> int | None:
        """Return when an event was committed, in milliseconds."""
        return item.timestamp


class ProjectedJournal(NamedJournal):
    """A journal with a projection, whose items do not have the time of their events."""

    __slots__ = ()

    has_times_beside = True


@dataclass(slots=True, repr=False)
class Journal:
    """The journal of a map or a cache: one partition; an offset is the offset of the last event that was read."""

    named: NamedJournal
    store: MapStore
    _is_known: bool = field(default=False, init=False, compare=False)

    @property
    def label(self) -> str:
        """The call."""
        return self.named.label

    @property
    def identity(self) -> str:
        """The identity of the collection: a recreated collection restarts its offsets."""
        return self.store.identity

    def begin(self) -> Mapping[str, int]:
        """Return where a new job begins."""
        return {ONLY: self._begin(self.named.start)}

    def _begin(self, start: JournalStart) -> int:
        if isinstance(start, datetime.datetime):
            with naming_destroyed(self.label):
                return self.store.journal_before(math.floor(start.timestamp() * 1000))
        return start if isinstance(start, int) else 0 if start == "oldest" else self._reach(0, None)

    def reach(self, offsets: Mapping[str, Any], most: int | None = None) -> Mapping[str, int]:
        """Return the offset of the last event, and the number of remaining events, counted before the predicate."""
        since = self._checked(offsets.get(ONLY))
        reached = self._reach(since, most)
        if reached == since and most != 0:  # Nothing has arrived: an idle job makes no further call.
            return Reached({ONLY: reached}, 0)
        with naming_destroyed(self.label):
            left = self.store.journal_left(reached)
        return {ONLY: reached} if left is None else Reached({ONLY: reached}, left)

    def _reach(self, since: int, most: int | None) -> int:
        with naming_destroyed(self.label):
            if not self._is_known:
                self._check_has(since)
            return self.store.journal_reach(since, most)

    def _check_has(self, since: int) -> None:
        """Refuse an offset of another collection of this name, once: a store raises itself if its own was destroyed."""
        # The offset of `start=` may be one of future events.
        if since and since != self.named.start and since > (end := self.store.journal_end()):
            raise SourceError(
                f"{self.label}: it was read up to the offset {since}, but the journal ends at {end}: the collection "
                "was destroyed and made anew; submit the job under another name to begin with the new one"
            )
        self._is_known = True

    def _checked(self, offset: Any) -> int:
        if offset is None:
            return 0
        if not isinstance(offset, int) or isinstance(offset, bool) or offset < 0:
            raise SourceError(f"{self.label}: {offset!r} is no offset of an event")
        return offset

    def shown_offset(self, offset: Any) -> str:
        """Return the event of an offset, in the words of the storage."""
        return self.store.shown_offset(self._checked(offset))

    def split(self, partition: str, start: Any, stop: Any) -> JournalSplit:
        """Return the events after one offset, up to another one."""
        if partition != ONLY:
            raise SourceError(f"{self.label}: there is no partition {partition!r}")
        split = JournalSplit(self.store, self.named, self._checked(start), self._checked(stop))
        # No other process can read this storage, so its events are sent.
        return dataclasses.replace(split, kept=HeldEvents(list(split.events()))) if self.store.in_process else split

    def __repr__(self) -> str:
        return self.label


class RetainedEvents(Protocol):
    """The holder of events: the store, or a copy of its events."""

    def journal(self, since: int) -> Iterator[JournalEvent]: ...


@dataclass(frozen=True, slots=True)
class HeldEvents:
    """Events of a journal that travel with their split."""

    events_held: Sequence[JournalEvent]

    def journal(self, since: int) -> Iterator[JournalEvent]:
        """Yield the retained events."""
        return iter(self.events_held)


@dataclass(frozen=True, slots=True, repr=False)
class JournalSplit:
    """A range of events of a journal: after `start`, up to `stop`."""

    kept: RetainedEvents
    named: NamedJournal
    start: int
    stop: int

    def read(self) -> Iterator[Any]:
        """Yield the events that satisfy the predicate, projected.

        Raises:
            SourceError: they were removed.
        """
        return (made for _, made in self._made())

    def read_timed(self) -> Iterator[tuple[int, Any]]:
        """Yield pairs of the commit time in milliseconds and the event.

        Raises:
            SourceError: as `read`, or an event has no time.
        """
        for event, made in self._made():
            if event.timestamp is None:
                raise SourceError(f"{self.named.label}: the event at the offset {event.offset} has no timestamp")
            yield event.timestamp, made

    def _made(self) -> Iterator[tuple[JournalEvent, Any]]:
        named = self.named
        # An exception of the user's function names the event, which `dstream.failures` finds by the name `item`.
        for item in self.events():
            if named.wants(item) and (named.predicate is None or named.predicate(item)):
                result = item if named.projection is None else named.projection(item)
                if result is not None:
                    yield item, result

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
