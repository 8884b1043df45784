"""Jobs that write into memory. Their receipts carry what was written, so tasks may run in any process."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from dstream.spi.store import Merge, Update
from dstream.storage.checking import receipts_of
from dstream.storage.codec.codec import Codec
from dstream.storage.codec.codec_keys import bucket_of
from dstream.storage.encoded import Entries, Items, encoded_items, entries_as, items_as, merged, updated
from dstream.storage.memory.state import Changes, ListState, MapState, State
from dstream.storage.written_types import codec_by

__all__ = ["EntryWriter", "ItemWriter", "ListJob", "MapJob"]


@dataclass(frozen=True, slots=True)
class EntryWriter:
    """Encodes the entries of a task.

    Attributes:
        is_update: what is written are no values of the map, so they decide no types, and are not checked.
    """

    codec: Codec
    buckets: int
    is_update: bool = False

    def bucket_of(self, key: Any) -> int:
        """Return the bucket of a key."""
        return bucket_of(self.codec.encode_key(key), self.buckets)

    def check_item(self, entry: tuple[Any, Any]) -> None:
        """Refuse an entry that the map does not take, if nothing is merged with its value."""
        key, value = entry
        self.bucket_of(key)
        if not self.is_update:
            self.codec.checked(key, value)

    def write_bucket(self, bucket: int, entries: Iterator[tuple[Any, Any]]) -> Iterator[Any]:
        """Give the entries, encoded, with their types as one receipt."""
        codec = replace(self.codec, value=None) if self.is_update else self.codec
        encoded = []
        for key, value in entries:
            codec.checked(key, value)
            if not (codec.is_decided or self.is_update):
                codec = codec.decided_by([key], [value])
            encoded.append((codec.encode_key(key), codec.encode_value(value)))
        if encoded:
            yield (self.codec if self.is_update else codec).to_json(), encoded


@dataclass(frozen=True, slots=True)
class ItemWriter:
    """Encodes the items of a task."""

    codec: Codec

    def check_item(self, item: Any) -> None:
        """Refuse an item that the list does not take."""
        self.codec.checked(None, item)

    def write(self, items: Iterator[Any]) -> Iterator[Any]:
        """Give the items, encoded, with their types as one receipt."""
        written = encoded_items(self.codec, items)
        if written.items:
            yield written.codec.to_json(), written.items


S = TypeVar("S", bound=State)
W = TypeVar("W")


class _Job(Generic[S, W]):
    """What jobs of both kinds do. One without a name gets one, so that a second commit of it does nothing."""

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
        """What travels to the tasks."""
        return self._writer

    @property
    def is_done(self) -> bool:
        """Whether this epoch of the job, or a later one, has committed."""
        with self._state.held():
            return self._state.has_committed(self._name, self._epoch)

    def abort(self) -> None:
        """Do nothing: what was written is nowhere but in the receipts."""


class MapJob(_Job[MapState, EntryWriter]):
    """A job that writes entries."""

    def __init__(
        self,
        state: MapState,
        codec_of: Callable[[Any], Codec],
        writer: EntryWriter,
        job: str | None,
        epoch: int,
        merge: Merge | None,
        replace: bool,
    ) -> None:
        super().__init__(state, codec_of, writer, job, epoch, replace)
        self._merge = None if replace else merge  # what disappears is not merged with

    def commit(self, receipts: Sequence[Any]) -> None:
        """Write all entries under one lock; merge again if a value changed meanwhile."""
        while not self.is_done and not self._attempt(receipts):
            pass

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
                state.apply({key: None for key in state.entries if key not in new})
            state.settle(settled)
            state.apply(new)
            state.jobs[self._name] = self._epoch
            return True


class ListJob(_Job[ListState, ItemWriter]):
    """A job that appends items."""

    def commit(self, receipts: Sequence[Any]) -> None:
        """Append all items under one lock, in the order of the receipts."""
        while not self.is_done and not self._attempt(receipts):
            pass

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
