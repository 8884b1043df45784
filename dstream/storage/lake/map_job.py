"""Jobs that write entries: tasks write a file per bucket, the driver names the files in one commit."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dstream.spi.store import Merge, Update
from dstream.storage.codec.codec import Codec
from dstream.storage.lake.actions import Actions, DataFile
from dstream.storage.lake.entry_writer import EntryWriter
from dstream.storage.lake.lake_collection import Collection
from dstream.storage.lake.lake_staging import StagedJob, StagedRows
from dstream.storage.lake.lake_tables import Layout, remove_quietly
from dstream.storage.lake.merging import MergePlan, merge_bucket, rewritten, update_bucket, without_values
from dstream.storage.written_types import codec_by

__all__ = ["LakeMapJob"]


class LakeMapJob(StagedJob[EntryWriter]):
    """A job that writes into a map.

    Where the result depends on what is there (a merge function, or a journal that wants old values), tasks
    merge with the state at `begin`. A bucket that another commit has changed since is merged again where the job is
    committed, from the file of the rows as they came.
    """

    def __init__(
        self,
        collection: Collection,
        name: str | None,
        epoch: int,
        merge: Merge | None,
        replace: bool,
        tidy: Callable[[int, Sequence[int]], None],
    ) -> None:
        prefix = f"{uuid.uuid4().hex}-"
        shape, log = collection.description.shape, collection.log
        plan = MergePlan(merge, replace, bool(shape.journal))
        groups: Mapping[int, tuple[DataFile, ...]] = dict(log.groups) if plan.reads_current else {}
        layout = collection.description.layout(collection.codec)
        writer = EntryWriter(log.folder, layout, shape.buckets or 1, prefix, plan, groups, log.version)
        super().__init__(collection, name, epoch, writer, prefix)
        self._plan = plan
        self._reads_current = plan.reads_current
        self._replace = replace
        self._tidy = tidy
        self._made: dict[Any, DataFile | None] = {}
        self._named: set[str] = set()

    def _actions(self, receipts: Sequence[StagedRows], codec: Codec) -> Actions:
        log = self._collection.log
        types = codec.to_json()
        adds = [self._file_of(receipt, codec, types) for receipt in receipts]
        removes: tuple[DataFile, ...] = ()
        if self._replace and self._plan.journal:
            written = {receipt.new.bucket for receipt in receipts}
            adds.extend(self._merged(bucket, None, codec) for bucket in log.groups if bucket not in written)
        elif self._replace:
            removes = tuple(log.files())
        files = tuple(file for file in adds if file is not None)
        self._named = {file.path for file in files}
        return Actions(files, removes)

    def _file_of(self, receipt: StagedRows, codec: Codec, types: Any) -> DataFile | None:
        bucket = receipt.new.bucket
        is_current = self._collection.log.changed_at(bucket) <= receipt.begun
        if receipt.types == types:
            if not self._reads_current:
                return receipt.new
            if is_current and receipt.merged is not None:
                return receipt.merged
        return self._merged(bucket, receipt, codec)

    def _merged(self, bucket: int, receipt: StagedRows | None, codec: Codec) -> DataFile | None:
        """Write a bucket here, in the driver; once for each state of it."""
        log = self._collection.log
        layout_of = self._collection.description.layout
        task = (bucket, receipt and receipt.new.path, log.changed_at(bucket), repr(codec.to_json()))
        if task not in self._made:
            source = (receipt.new, layout_of(codec_by(receipt.types, codec))) if receipt else None
            self._made[task] = self._remade(bucket, layout_of(codec), source)
        return self._made[task]

    def _remade(self, bucket: int, layout: Layout, source: tuple[DataFile, Layout] | None) -> DataFile | None:
        log, plan = self._collection.log, self._plan
        current = log.groups.get(bucket, ())
        if source is not None and isinstance(plan.merge, Update):
            new = source[0], without_values(source[1])
            return update_bucket(log.folder, layout, bucket, new, current, plan, self._prefix)[0]
        if source is not None and not self._reads_current:
            return rewritten(log.folder, layout, *source, self._prefix)
        return merge_bucket(log.folder, layout, bucket, source, current, plan, self._prefix)

    def _committed(self, receipts: Sequence[StagedRows]) -> None:
        log = self._collection.log
        staged = [file.path for receipt in receipts for file in (receipt.new, receipt.merged) if file is not None]
        with log.lock:
            unused = [path for path in staged if path not in self._named]
        remove_quietly(log.folder, unused)
        self._tidy(log.version, [receipt.new.bucket for receipt in receipts])
