"""Jobs that append items: tasks write a file each, the driver names the files, in order, in one commit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dstream.storage.codec.codec import Codec
from dstream.storage.lake.actions import Actions, DataFile
from dstream.storage.lake.item_writer import ItemWriter
from dstream.storage.lake.lake_collection import Collection
from dstream.storage.lake.lake_staging import StagedJob, StagedRows
from dstream.storage.lake.lake_tables import DataWriter, batches, remove_quietly
from dstream.storage.written_types import codec_by

__all__ = ["LakeListJob"]


class LakeListJob(StagedJob[ItemWriter]):
    """A job that appends to a list, or replaces what is in it."""

    def __init__(
        self,
        collection: Collection,
        name: str | None,
        epoch: int,
        writer: ItemWriter,
        replace: bool,
        tidy: Callable[[int], None],
    ) -> None:
        super().__init__(collection, name, epoch, writer, writer.prefix)
        self._replace = replace
        self._tidy = tidy
        self._made: dict[tuple[str, str], DataFile] = {}

    def _actions(self, receipts: Sequence[StagedRows], codec: Codec) -> Actions:
        types = codec.to_json()
        files = [self._file_of(receipt, codec, types)._replace(place=place) for place, receipt in enumerate(receipts)]
        removes = tuple(self._collection.log.files()) if self._replace else ()
        return Actions(tuple(files), removes)

    def _file_of(self, receipt: StagedRows, codec: Codec, types: Any) -> DataFile:
        """Return the file of a task, written again here if the list has another type than the task inferred."""
        if receipt.types == types:
            return receipt.new
        task = (receipt.new.path, repr(types))
        if task not in self._made:
            self._made[task] = self._rewritten(receipt, codec)
        return self._made[task]

    def _rewritten(self, receipt: StagedRows, codec: Codec) -> DataFile:
        folder = self._collection.log.folder
        layout_of = self._collection.description.layout
        layout, written_by = layout_of(codec), layout_of(codec_by(receipt.types, codec))
        with DataWriter(folder, layout.schema, 0, self._prefix) as writer:
            for batch in batches(folder, receipt.new):
                items = written_by.values(batch)
                for item in items:
                    codec.checked(None, item)
                writer.write(layout.items(items))
        return writer.file

    def _committed(self, receipts: Sequence[StagedRows]) -> None:
        log = self._collection.log
        remove_quietly(log.folder, [path for path, _ in self._made if not log.is_live(path)])
        self._tidy(log.version)
