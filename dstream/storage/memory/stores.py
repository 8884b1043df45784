"""Maps and lists in memory, and the jobs that write to them; receipts carry the written rows."""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from dstream.base.records import record
from dstream.base.validation import receipts_of
from dstream.errors import IllegalStateError
from dstream.spi.sink import MapWriter, WriteJob, Writer
from dstream.spi.store import EntrySplit, ItemSplit, ListView, Merge, Splice, Update
from dstream.storage.base.encoded_entries import (
    EncodedEntries,
    EncodedItems,
    Entries,
    EntryWriter,
    Items,
    ItemWriter,
    NumberedJournal,
    changed,
    checked_splice,
    decoded,
    divided,
    encoded_items,
    encoded_keys,
    entries_as,
    items_as,
    journal_event,
    merged,
    updated,
)
from dstream.storage.codec.collection import Codec
from dstream.storage.codec.description import codec_by
from dstream.storage.memory.state import Changes, Event, ListState, MapState, MemoryHandle, State
from dstream.values.entries import JournalEvent

__all__ = [
    "CopiedMap",
    "MemoryEntryWriter",
    "MemoryItemWriter",
    "MemoryList",
    "MemoryListJob",
    "MemoryMap",
    "MemoryMapJob",
]


@record
class MemoryEntryWriter(EntryWriter):
    """Writer of entries that encodes them."""

    def write_bucket(self, bucket: int, entries: Iterator[tuple[Any, Any]]) -> Iterator[Any]:
        """Yield the entries, encoded, with their types as one receipt."""
        codec = replace(self.codec, value=None) if self.is_merging else self.codec
        encoded = []
        for key, value in entries:
            codec.checked(key, value)
            if not (codec.is_decided or self.is_merging):
                codec = codec.decided_by([key], [value])
            encoded.append((codec.encode_key(key), codec.encode_value(value)))
        if encoded:
            yield (self.codec if self.is_merging else codec).to_json(), encoded


@record
class MemoryItemWriter(ItemWriter):
    """Writer of items that encodes them."""

    def write(self, items: Iterator[Any]) -> Iterator[Any]:
        """Yield the items, encoded, with their types as one receipt."""
        written = encoded_items(self.codec, items)
        if written.items:
            yield written.codec.to_json(), written.items


S = TypeVar("S", bound=State)
W = TypeVar("W")


class _Job(ABC, Generic[S, W]):
    """The common parts of both kinds of jobs. One without a name gets one, so that a second commit does nothing."""

    def __init__(
        self, state: S, codec_of: Callable[[Any], Codec], writer: W, job: str | None, epoch: int, replace: bool
    ) -> None:
        self._state = state
        self._codec_of = codec_of
        self._writer = writer
        self._name = uuid.uuid4().hex if job is None else job
        self._epoch = epoch
        self._replace = replace

    @property
    def writer(self) -> W:
        """The writer for the tasks."""
        return self._writer

    @property
    def is_done(self) -> bool:
        """Return whether this epoch of the job, or a later one, has committed."""
        with self._state.held():
            return self._state.has_committed(self._name, self._epoch)

    def commit(self, receipts: Sequence[Any]) -> None:
        """Write everything under one lock, in the order of the receipts; begin again if types or values changed."""
        while not self.is_done and not self._attempt(receipts):
            pass

    @abstractmethod
    def _attempt(self, receipts: Sequence[Any]) -> bool:
        """Write, unless something has changed meanwhile; return whether it is written."""

    def abort(self) -> None:
        """Do nothing: the output is in the receipts alone."""


class MemoryMapJob(_Job[MapState, MemoryEntryWriter]):
    """A job that writes entries."""

    def __init__(
        self,
        state: MapState,
        codec_of: Callable[[Any], Codec],
        writer: MemoryEntryWriter,
        job: str | None,
        epoch: int,
        merge: Merge | None,
        replace: bool,
    ) -> None:
        super().__init__(state, codec_of, writer, job, epoch, replace)
        self._merge = None if replace else merge  # entries that disappear are not merged with

    def _attempt(self, receipts: Sequence[Any]) -> bool:
        types, _ = self._state.look(())
        known = self._codec_of(types)
        written = receipts_of(known, lambda receipt: Entries(codec_by(receipt[0], known), receipt[1]), receipts)
        codec, new = entries_as(known, written)
        old: Changes = {}
        if self._merge:
            types_then, values = self._state.look(new)
            if types_then is not types:
                return False
            old = dict(zip(new, values, strict=True))
            codec, new = self._merged(self._merge, codec, old, new)
        return self._publish(types, old, codec.to_json(), {key: value or None for key, value in new.items()})

    def _merged(
        self, merge: Merge, codec: Codec, old: Changes, new: dict[bytes, bytes]
    ) -> tuple[Codec, dict[bytes, bytes]]:
        if isinstance(merge, Update):
            return updated(codec, old, new, merge)
        there = {key: value for key, value in old.items() if value is not None}
        return codec, merged(codec, there, new, merge)

    def _publish(self, types: Any, old: Changes, settled: Any, new: Changes) -> bool:
        state = self._state
        with state.held():
            if state.has_committed(self._name, self._epoch):
                return True
            if not state.has(types, old):
                return False
            if self._replace:
                # Entries that remain are not removed first: in the journal they are updates.
                state.apply({key: None for key in state.entries if key not in new})
            state.settle(settled)
            state.apply(new)
            state.jobs[self._name] = self._epoch
            return True


class MemoryListJob(_Job[ListState, MemoryItemWriter]):
    """A job that appends items."""

    def _attempt(self, receipts: Sequence[Any]) -> bool:
        state = self._state
        with state.held():
            types = state.types
        known = self._codec_of(types)
        parts = receipts_of(known, lambda receipt: Items(codec_by(receipt[0], known), receipt[1]), receipts)
        written = items_as(known, parts)
        settled = written.codec.to_json()
        with state.held():
            if state.has_committed(self._name, self._epoch):
                return True
            if state.types is not types:
                return False
            state.settle(settled)
            state.replace(0 if self._replace else state.size, state.size, written.items)
            state.jobs[self._name] = self._epoch
            return True


@dataclass(frozen=True, slots=True)
class CopiedMap:
    """The entries as they were when they left; they can only be read."""

    name: str
    codec: Codec
    entries: Mapping[bytes, bytes]

    def get_many(self, keys: Sequence[Any]) -> list[Any]:
        """Return the value of each key, or None."""
        return decoded(self.codec, [self.entries.get(self.codec.encode_key(key)) for key in keys])

    def size(self) -> int:
        """Return the number of entries."""
        return len(self.entries)


class MemoryMap(NumberedJournal, MemoryHandle[MapState]):
    """A handle to the entries of a map or a cache."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle a copy of the entries for tasks."""
        with self._state.held():
            types, entries = self._state.types, dict(self._state.entries)
        return CopiedMap, (self.name, self._codec_of(types), entries)

    def get_many(self, keys: Sequence[Any]) -> list[Any]:
        """Return the values of the keys, all under one lock."""
        # Encoded before the lock, under which no code of users runs.
        types, values = self._state.look(list(map(self._codec().encode_key, keys)))
        return decoded(self._codec_of(types), values)

    def update(self, keys: Sequence[Any], change: Callable[[list[Any]], list[Any]]) -> list[Any]:
        """Replace values; `change` runs outside of the lock, and again if the old values have changed."""
        encoded = encoded_keys(self._codec(), keys)
        while True:
            types, old = self._state.look(encoded)
            codec = self._codec_of(types)
            new = change(decoded(codec, old))
            decided, changes = changed(codec, keys, encoded, new)
            # Before the lock, under which no code of users runs.
            settled = decided.to_json()
            with self._state.held():
                if self._state.has(types, dict(zip(encoded, old, strict=True))):
                    if changes:
                        self._state.settle(settled)
                        self._state.apply(changes)
                    break
        return decoded(codec, old)

    def clear(self) -> None:
        """Remove all entries."""
        with self._state.held():
            self._state.apply(dict.fromkeys(self._state.entries))

    def splits(self, parallelism: int) -> Sequence[EntrySplit]:
        """Divide a copy of the entries."""
        with self._state.held():
            types, entries = self._state.types, list(self._state.entries.items())
        codec = self._codec_of(types)
        return [EncodedEntries(codec, part) for part in divided(entries, parallelism)]

    def journal(self, since: int) -> Iterator[JournalEvent]:
        """Yield the events after the first `since`: the offset of an event is its number, from 1."""
        with self._state.held():
            # A copy, since the list grows while the events are read.
            types, events = self._state.types, self._journaled()[since:]
        codec = self._codec_of(types)
        return (journal_event(codec, *event, offset) for offset, event in enumerate(events, since + 1))

    def journal_end(self) -> int:
        """Return the number of events so far."""
        with self._state.held():
            return len(self._journaled())

    def journal_before(self, when: int) -> int:
        """Search the events, the newest first."""
        with self._state.held():
            events = self._journaled()
            return next((at for at in range(len(events), 0, -1) if events[at - 1].timestamp < when), 0)

    def _journaled(self) -> list[Event]:
        if not self._state.shape.journal:
            raise IllegalStateError(f"{self._state.kind} {self.name!r} keeps no journal; make it with journal=True")
        return self._state.events

    def begin(
        self,
        job: str | None,
        epoch: int = 1,
        *,
        merge: Merge | None = None,
        replace: bool = False,
    ) -> WriteJob[MapWriter]:
        """Prepare a job; see `MemoryMapJob`."""
        buckets = self._state.shape.buckets
        assert buckets is not None  # the shape of a map has them
        writer = MemoryEntryWriter(self._codec(), buckets, isinstance(merge, Update))
        return MemoryMapJob(self._state, self._codec_of, writer, job, epoch, merge, replace)


@dataclass(frozen=True, slots=True)
class _View:
    """One state of a list: its first `size` items never change."""

    codec: Codec
    items: list[bytes]
    size: int

    def read(self, start: int, stop: int) -> list[Any]:
        return [self.codec.decode_value(item) for item in self.items[start : min(stop, self.size)]]


class MemoryList(MemoryHandle[ListState]):
    """A handle to the items of a list."""

    def read(self, start: int, stop: int) -> list[Any]:
        """Decode a stretch."""
        with self._state.held():
            types, items = self._state.types, self._state.items[start:stop]
        return decoded(self._codec_of(types), items)

    def extend(self, items: Iterable[Any]) -> None:
        """Append all items in one change."""
        written = encoded_items(self._codec(), items)
        while written.items:
            with self._state.held():
                types = self._state.types
            written = items_as(self._codec_of(types), [written])
            settled = written.codec.to_json()
            with self._state.held():
                if self._state.types is types:
                    self._state.settle(settled)
                    self._state.replace(self._state.size, self._state.size, written.items)
                    return

    def edit(self, change: Callable[[ListView], Splice | None]) -> None:
        """Replace a range; `change` runs outside of the lock, and again if the list has changed."""
        while True:
            version, types, view = self._look()
            splice = change(view)
            if splice is None:
                return
            start, stop, items = checked_splice(self.name, splice, view.size)
            written = encoded_items(view.codec, items)
            settled = written.codec.to_json()
            with self._state.held():
                if self._state.version == version and self._state.types is types:
                    self._state.settle(settled)
                    self._state.replace(start, stop, written.items)
                    return

    def _look(self) -> tuple[int, Any, _View]:
        with self._state.held():
            version, types, items, size = self._state.version, self._state.types, self._state.items, self._state.size
        return version, types, _View(self._codec_of(types), items, size)

    def splits(self, parallelism: int) -> Sequence[ItemSplit]:
        """Divide a copy of the items, in order."""
        _, _, view = self._look()
        return [EncodedItems(view.codec, part) for part in divided(view.items[: view.size], parallelism)]

    def begin(self, job: str | None, epoch: int = 1, *, replace: bool = False) -> WriteJob[Writer]:
        """Prepare a job; see `MemoryListJob`."""
        return MemoryListJob(self._state, self._codec_of, MemoryItemWriter(self._codec()), job, epoch, replace)
