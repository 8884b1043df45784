"""`EntryWriter`: the part of a job that writes entries in the tasks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa

from dstream.errors import NullElementError, UnstableKeyError
from dstream.spi.store import Revision, Update
from dstream.storage.codec.codec_keys import bucket_of, encode_key
from dstream.storage.lake.actions import DataFile
from dstream.storage.lake.files import Folder
from dstream.storage.lake.lake_tables import ROWS_IN_GROUP, DataWriter, Layout, in_parts, write_parts
from dstream.storage.lake.merging import MergePlan, merge_bucket, update_bucket, without_values
from dstream.storage.lake.named_folder import FileGoneError
from dstream.storage.portions import Portions

__all__ = ["EntryWriter"]


@dataclass(frozen=True, slots=True)
class EntryWriter:
    """Writes the entries of a task into one new file per bucket, which nobody sees before the commit.

    Attributes:
        folder: where files go.
        layout: their columns; types that are open are decided by the first entry.
        buckets: into how many buckets keys are divided.
        prefix: how the names of this job's files begin.
        plan: what is done with the entries that are there.
        groups: the files of each bucket when the job began, if the plan reads them.
        begun: the newest commit at that moment.
    """

    folder: Folder
    layout: Layout
    buckets: int
    prefix: str
    plan: MergePlan
    groups: Mapping[int, tuple[DataFile, ...]]
    begun: int

    def bucket_of(self, key: Any) -> int:
        """Return the bucket of a key."""
        try:
            return bucket_of(encode_key(key), self.buckets)
        except (NullElementError, UnstableKeyError):
            self.layout.codec.encode_key(key)  # says the same with the name of the collection
            raise

    def check_item(self, entry: tuple[Any, Any]) -> None:
        """Refuse an entry that the map does not take, if nothing is merged with its value."""
        key, value = entry
        self.bucket_of(key)
        if self.plan.merge is None:
            self.layout.codec.checked(key, value)

    def write_bucket(self, bucket: int, entries: Iterator[tuple[Any, Any]]) -> Iterator[Any]:
        """Write all entries of one bucket; give a receipt, or none if there are no entries."""
        portions = Portions(entries, ROWS_IN_GROUP)
        chunk = portions.take()
        if not chunk:
            return
        layout = self._layout_by(*chunk[0])
        if not portions.has_more():
            file = write_parts(self.folder, in_parts(partial(_batch, layout), chunk), bucket, self.prefix)
        else:
            with DataWriter(self.folder, layout.schema, bucket, self.prefix) as writer:
                while chunk:
                    for batch in in_parts(partial(_batch, layout), chunk):
                        writer.write(batch)
                        portions.learn(batch.num_rows, batch.nbytes)
                        del batch
                    chunk.clear()
                    chunk = portions.take()
            file = writer.file
        yield self._receipt(layout, file)

    def _layout_by(self, key: Any, value: Any) -> Layout:
        """Return the layout of the rows as they come, with the types that are open as the first one has them."""
        if isinstance(self.plan.merge, Update):
            return without_values(replace(self.layout, codec=self.layout.codec.decided_by([key], [])))
        return replace(self.layout, codec=self.layout.codec.decided_by([key], [value]))

    def _receipt(self, layout: Layout, new: DataFile) -> Any:
        if isinstance(self.plan.merge, Update):
            return self._updated(layout, new)
        types = layout.codec.to_json()
        if not self.plan.reads_current:
            return self.begun, types, tuple(new), None
        current = self.groups.get(new.bucket, ())
        if not current and not isinstance(self.plan.merge, Revision):
            return self.begun, types, tuple(new), tuple(new)  # there is nothing to merge with
        try:
            merged = merge_bucket(self.folder, layout, new.bucket, (new, layout), current, self.plan, self.prefix)
        except FileGoneError:
            merged = None  # compacted and vacuumed since the job began; the driver merges with what is there then
        return self.begun, types, tuple(new), merged and tuple(merged)

    def _updated(self, written_by: Layout, new: DataFile) -> Any:
        """Make the values, and return a receipt with the types that they have."""
        layout = replace(self.layout, codec=replace(self.layout.codec, key=written_by.codec.key))
        made, current = None, self.groups.get(new.bucket, ())
        with suppress(FileGoneError):  # As below, the driver makes them then.
            made, layout = update_bucket(
                self.folder, layout, new.bucket, (new, written_by), current, self.plan, self.prefix
            )
        return self.begun, layout.codec.to_json(), tuple(new), made and tuple(made)


def _batch(layout: Layout, entries: Sequence[tuple[Any, Any]]) -> pa.RecordBatch:
    keys, values = [key for key, _ in entries], [value for _, value in entries]
    if layout.codec.strict or type(None) in {*map(type, keys), *map(type, values)}:
        for key, value in entries:
            layout.codec.checked(key, value)
    return layout.entries(keys, values)
