"""Jobs that write to maps and lists: staged files of tasks, their receipts, one commit of the driver."""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

from dstream.base.records import record
from dstream.base.validation import receipts_of
from dstream.delta.actions import Actions, DataFile, checked_path
from dstream.errors import CollectionDestroyedError
from dstream.filesystem.folders import StorageFolder
from dstream.spi.store import Merge, Update
from dstream.storage.base.encoded_entries import Portions
from dstream.storage.codec.collection import Codec
from dstream.storage.codec.description import codec_by, settled
from dstream.storage.lake.collection import LakeCollection
from dstream.storage.lake.merge import (
    LakeEntryWriter,
    MergePlan,
    merge_bucket,
    rewritten,
    update_bucket,
    without_values,
    write_portions,
)
from dstream.storage.lake.tables import (
    ROWS_IN_GROUP,
    DataWriter,
    Layout,
    batches,
    remove_quietly,
)

__all__ = ["JOB", "LakeItemWriter", "LakeListJob", "LakeMapJob", "StagedRows"]


JOB = "dstream.job."
"""The prefix of the name of a job in the transactions of a log."""


class StagedRows(NamedTuple):
    """The files that a task has written for one bucket, or for its part of a list.

    Attributes:
        begun: the newest commit when its job began: `merged` is valid if no later commit has changed its bucket.
        types: the types of its encoding, as in `Codec.to_json`.
        new: a file of the rows as they arrived.
        merged: a file of the rows merged with the rows that existed when the job began; None if not needed.
    """

    begun: int
    types: Any
    new: DataFile
    merged: DataFile | None = None

    @staticmethod
    def of(receipt: Any) -> StagedRows:
        """Return the rows of a receipt: the same as plain tuples."""
        begun, types, new, merged = receipt
        # A bool is an int to `isinstance`, and receipts may have any origin.
        if type(begun) is not int:
            raise ValueError("no commit has such a number")
        return StagedRows(begun, types, _file(new), None if merged is None else _file(merged))


def _file(data: Sequence[Any]) -> DataFile:
    file = DataFile(-1, 0, *data[2:])  # its version and position belong to the commit
    numbers = (file.bucket, file.size, file.rows)
    if not all(type(number) is int and number >= 0 for number in numbers) or type(file.sums) is not str:
        raise ValueError(f"no task has written {data!r:.200}")
    checked_path(file.path)
    return file


W = TypeVar("W")


class StagedJob(ABC, Generic[W]):
    """The steps that jobs of maps and lists share.

    Args:
        collection: where the job writes to.
        name: the name of the job in the log, so that a second commit of it does nothing; None for a
            change that is committed where it is made, and never again.
        epoch: its number.
        writer: the part that is sent to the tasks.
        prefix: how the names of the job's files begin.
    """

    def __init__(self, collection: LakeCollection, name: str | None, epoch: int, writer: W, prefix: str) -> None:
        self._collection = collection
        self._transaction = None if name is None else JOB + name
        self._epoch = epoch
        self.writer = writer
        self._prefix = prefix
        self._has_committed = False
        self._begun = collection.log.version

    @property
    def is_done(self) -> bool:
        return self._transaction is not None and self._collection.has_committed(self._transaction, self._epoch)

    def commit(self, receipts: Sequence[Any]) -> None:
        self.commit_rows(receipts_of(self._collection, StagedRows.of, receipts))

    def commit_rows(self, rows: Sequence[StagedRows]) -> None:
        """Commit the rows of receipts."""
        made = self._collection.commit_reading(lambda: self._prepared(rows))
        if made:
            self._has_committed = True
            self._committed(rows)

    def _prepared(self, receipts: Sequence[StagedRows]) -> Actions | None:
        log = self._collection.log
        if self._transaction is not None and log.has_committed(self._transaction, self._epoch):
            return None
        codec = _leading_codec(self._collection.codec, receipts)
        actions = self._actions(receipts, codec)
        if not (actions.adds or actions.removes or self._transaction):
            return None
        self._check_there(actions)
        metadata = self._collection.metadata_for(codec)
        # Receipts in a record may be older than this job, which began after a crash.
        begun = min([self._begun, *(receipt.begun for receipt in receipts)])
        return replace(actions, metadata=metadata, transaction=self._transaction, epoch=self._epoch, begun=begun)

    def _check_there(self, actions: Actions) -> None:
        """Refuse to commit a file that was removed. No other process has the names of new files."""
        log = self._collection.log
        # Other programs that vacuum do not read which files are condemned. An unnamed change has written its files just
        # now.
        missing = log.folder.missing([file.path for file in actions.adds]) if self._transaction else []
        if missing:
            raise log.gone_before_commit(missing[0])

    @abstractmethod
    def _actions(self, receipts: Sequence[StagedRows], codec: Codec) -> Actions:
        """Return the actions of the commit of these receipts, by the newest state of the collection."""

    def _committed(self, receipts: Sequence[StagedRows]) -> None:
        """Tidy up after the commit."""

    def abort(self) -> None:
        """Remove uncommitted files; if that fails, a vacuum removes them later.

        A job may be interrupted while it tidies up after its commit. Its files are the collection's then: the journal
        needs them also once they were folded.
        """
        with suppress(Exception):
            if not self._is_committed():
                self._collection.discard_staged(self._prefix)

    def end_empty(self) -> None:
        """End a run without receipts.

        Files of a killed attempt are left to the vacuum, as in runs with receipts. A search would list the collection,
        while most epochs of windows are empty.
        """

    def _is_committed(self) -> bool:
        """Return whether the output of this run is the collection's, also if another process committed it."""
        try:
            return self._has_committed or self.is_done
        except CollectionDestroyedError:
            return False


def _leading_codec(known: Codec, receipts: Sequence[StagedRows]) -> Codec:
    """Return the codec of a commit: the codec of the collection, or else the codec of most rows."""
    if known.is_decided or not receipts:
        return known
    rows: dict[str, int] = {}
    by_types = {repr(receipt.types): receipt.types for receipt in receipts}
    for receipt in receipts:
        types = repr(receipt.types)
        rows[types] = rows.get(types, 0) + receipt.new.rows
    # Files of other types are written again, so the types of most rows cost least.
    return settled(known, codec_by(by_types[max(rows, key=lambda types: rows[types])], known))


class LakeMapJob(StagedJob[LakeEntryWriter]):
    """A job that writes into a map.

    If the result depends on the existing entries (a merge function, or a journal with old values), tasks merge with the
    state at `begin`. A bucket that another commit has changed since is merged again by the committing process, from the
    file of the unmerged rows.
    """

    def __init__(
        self,
        collection: LakeCollection,
        name: str | None,
        epoch: int,
        merge: Merge | None,
        replace: bool,
        tidy: Callable[[int, Sequence[int]], None],
    ) -> None:
        prefix = f"{uuid.uuid4().hex}-"
        shape, log = collection.description.shape, collection.log
        plan = MergePlan(merge, replace, bool(shape.journal))
        # A copy of the dict is enough, since the log replaces its tuples and changes none.
        groups: Mapping[int, tuple[DataFile, ...]] = dict(log.groups) if plan.reads_current else {}
        layout = collection.description.layout(collection.codec)
        writer = LakeEntryWriter(log.folder, layout, shape.buckets or 1, prefix, plan, groups, log.version)
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
            # Without a journal no row has to show removed entries, so the files are removed as they are.
            removes = tuple(log.files())
        files = tuple(file for file in adds if file is not None)
        self._named = {file.path for file in files}
        return Actions(files, removes)

    def _file_of(self, receipt: StagedRows, codec: Codec, types: Any) -> DataFile | None:
        bucket = receipt.new.bucket
        # Rows that a task has merged are valid as long as no later commit has changed its bucket.
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


@record
class LakeItemWriter:
    """Writes the items of a task into one new file, which no reader sees before the commit.

    Attributes:
        folder: where the file is written.
        layout: its columns; a type that is open is decided by the first items.
        prefix: how the names of this job's files begin.
        begun: the newest commit when the job began.
    """

    folder: StorageFolder
    layout: Layout
    prefix: str
    begun: int

    def check_item(self, item: Any) -> None:
        """Refuse an item that the list does not take."""
        self.layout.codec.checked(None, item)

    def write(self, items: Iterator[Any]) -> Iterator[Any]:
        return ((begun, types, tuple(file), None) for begun, types, file, _ in self.rows(items))

    def rows(self, items: Iterator[Any]) -> Iterator[StagedRows]:
        """Write the items as `write` does, and yield the contents of the receipt."""
        portions = Portions(items, ROWS_IN_GROUP)
        some = portions.take()
        if not some:
            return
        layout = replace(self.layout, codec=self.layout.codec.decided_by([], some))
        file = write_portions(self.folder, layout, partial(_batch, layout), portions, some, 0, self.prefix)
        yield StagedRows(self.begun, layout.codec.to_json(), file)


def _batch(layout: Layout, items: Sequence[Any]) -> Any:
    for item in items:
        layout.codec.checked(None, item)
    return layout.items(items)


class LakeListJob(StagedJob[LakeItemWriter]):
    """A job that appends to a list, or replaces its contents."""

    def __init__(
        self,
        collection: LakeCollection,
        name: str | None,
        epoch: int,
        writer: LakeItemWriter,
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
        """Return the file of a task, rewritten if the list has another type than the task inferred."""
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
        # Files of another type than the list's: files that were written again are committed in their place.
        remove_quietly(log.folder, [path for path, _ in self._made if not log.is_live(path)])
        self._tidy(log.version)
