"""Lists in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from dstream.spi.sink import WriteJob, Writer
from dstream.spi.store import ItemSplit, ListView, Splice
from dstream.storage.codec.codec import Codec
from dstream.storage.encoded import (
    EncodedItems,
    checked_splice,
    decoded,
    divided,
    encoded_items,
    items_as,
)
from dstream.storage.memory.jobs import ItemWriter, ListJob
from dstream.storage.memory.memory_handle import Handle
from dstream.storage.memory.state import ListState

__all__ = ["MemoryList"]


@dataclass(frozen=True, slots=True)
class _View:
    """One state of a list: its first `size` items never change."""

    codec: Codec
    items: list[bytes]
    size: int

    def read(self, start: int, stop: int) -> list[Any]:
        return [self.codec.decode_value(item) for item in self.items[start : min(stop, self.size)]]


class MemoryList(Handle[ListState]):
    """A handle to the items of a list."""

    def read(self, start: int, stop: int) -> list[Any]:
        """Decode a stretch."""
        with self._state.held():
            types, items = self._state.types, self._state.items[start:stop]
        return decoded(self._codec_of(types), items)

    def extend(self, items: Iterable[Any]) -> None:
        """Append all items at once."""
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
        """Replace a stretch; `change` runs outside of the lock, and again if the list did not stay."""
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
        """Prepare a job; see `ListJob`."""
        return ListJob(self._state, self._codec_of, ItemWriter(self._codec()), job, epoch, replace)
