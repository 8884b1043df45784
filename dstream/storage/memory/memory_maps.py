"""Maps and caches in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from dstream.errors import IllegalStateError
from dstream.spi.sink import MapWriter, WriteJob
from dstream.spi.store import EntrySplit, Merge, Update
from dstream.storage.encoded import EncodedEntries, changed, decoded, divided, encoded_keys, journal_event
from dstream.storage.memory.copied_map import CopiedMap
from dstream.storage.memory.jobs import EntryWriter, MapJob
from dstream.storage.memory.memory_handle import Handle
from dstream.storage.memory.state import Event, MapState
from dstream.values.journal_events import JournalEvent

__all__ = ["MemoryMap"]


class MemoryMap(Handle[MapState]):
    """A handle to the entries of a map or a cache."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Let a copy of the entries travel to tasks."""
        with self._state.held():
            types, entries = self._state.types, dict(self._state.entries)
        return CopiedMap, (self.name, self._codec_of(types), entries)

    def get_many(self, keys: Sequence[Any]) -> list[Any]:
        """Look the keys up, all under one lock."""
        types, values = self._state.look(map(self._codec().encode_key, keys))
        return decoded(self._codec_of(types), values)

    def update(self, keys: Sequence[Any], change: Callable[[list[Any]], list[Any]]) -> list[Any]:
        """Replace values; `change` runs outside of the lock, and again if the old values did not stay."""
        encoded = encoded_keys(self._codec(), keys)
        while True:
            types, old = self._state.look(encoded)
            codec = self._codec_of(types)
            new = change(decoded(codec, old))
            decided, changes = changed(codec, keys, encoded, new)
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
        """Give the events after the first `since`: the offset of an event is its number, from 1."""
        with self._state.held():
            types, events = self._state.types, self._journaled()[since:]
        codec = self._codec_of(types)
        return (journal_event(codec, *event, offset) for offset, event in enumerate(events, since + 1))

    def journal_end(self) -> int:
        """Return the number of events so far."""
        with self._state.held():
            return len(self._journaled())

    def journal_reach(self, since: int, most: int | None = None) -> int:
        """Return the number of events, or fewer."""
        last = max(since, self.journal_end())
        return last if most is None else min(last, since + most)

    def journal_left(self, since: int) -> int | None:
        """Subtract: offsets have no gaps."""
        return max(0, self.journal_end() - since)

    def shown_offset(self, offset: int) -> str:
        """Return the number of an event: offsets have no gaps."""
        return f"event {offset:,}"

    def journal_before(self, when: int) -> int:
        """Look at the events, the newest first."""
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
        """Prepare a job; see `MapJob`."""
        buckets = self._state.shape.buckets
        assert buckets is not None  # the shape of a map has them
        writer = EntryWriter(self._codec(), buckets, isinstance(merge, Update))
        return MapJob(self._state, self._codec_of, writer, job, epoch, merge, replace)
