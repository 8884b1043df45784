"""`Change`: the new values of some keys on their way into one commit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa

from dstream.storage.codec.codec import Codec
from dstream.storage.lake.actions import DataFile
from dstream.storage.lake.files import Folder
from dstream.storage.lake.lake_tables import Layout, in_parts, remove_quietly, write_file, write_parts
from dstream.storage.lake.single_entries import SingleEntries

__all__ = ["Change", "Changed"]


class Changed(NamedTuple):
    """What happens to one key.

    Attributes:
        bucket: where it belongs.
        known: what stands for it in a dict.
        key: the key itself.
        old: its value so far, None if it had none.
        new: its value from now on, None if it has none.
    """

    bucket: int
    known: Any
    key: Any
    old: Any
    new: Any


class Change:
    """Changes of different keys. What was written for one attempt to commit serves the next one.

    Attributes:
        rows: what stands in the files that were written, by their paths.
        entries: the same for files of one entry that were made without rows, as pairs of a key and a value that nobody
            can change.
    """

    def __init__(self, changes: Iterable[Changed], singles: SingleEntries) -> None:
        self.by_bucket: dict[int, list[Changed]] = {}
        for change in changes:
            self.by_bucket.setdefault(change.bucket, []).append(change)
        self._singles = singles
        self._layout: Layout | None = None
        self._files: list[DataFile] = []
        self.rows: dict[str, pa.RecordBatch] = {}
        self.entries: dict[str, tuple[Any, Any]] = {}

    def checked(self, codec: Codec) -> Codec:
        """Return the codec with types that were open inferred from the first change.

        Raises:
            NullElementError: a key is None.
            TypeError: the collection is strict and something is not of its type.
        """
        written = [change for changes in self.by_bucket.values() for change in changes if change.new is not None]
        if written and not codec.is_decided:
            codec = codec.decided_by([written[0].key], [written[0].new])
        for change in written:
            codec.checked(change.key, change.new)
        return codec

    def written(self, folder: Folder, layout: Layout) -> tuple[DataFile, ...]:
        """Return one file per bucket that holds the changes by a layout."""
        if layout != self._layout:
            self.discard(folder)
            for bucket, changes in self.by_bucket.items():
                self._files.append(self._file(folder, layout, bucket, changes))
            self._layout = layout
        return tuple(self._files)

    def _file(self, folder: Folder, layout: Layout, bucket: int, changes: Sequence[Changed]) -> DataFile:
        if len(changes) == 1:
            entry = changes[0].key, changes[0].new
            data = self._singles.file(layout, *entry)
            if data is not None:
                file = write_file(folder, data, 1, bucket)
                self.entries[file.path] = entry
                return file
        parts = in_parts(partial(_encoded, layout), changes)
        file = write_parts(folder, parts, bucket)
        if len(parts) == 1:
            self.rows[file.path] = parts[0]
        return file

    def discard(self, folder: Folder) -> None:
        """Remove what was written; no commit may name it."""
        remove_quietly(folder, [file.path for file in self._files])
        self._files, self._layout, self.rows, self.entries = [], None, {}, {}


def _encoded(layout: Layout, changes: Sequence[Changed]) -> pa.RecordBatch:
    olds = [change.old for change in changes]
    return layout.entries([change.key for change in changes], [change.new for change in changes], olds)
