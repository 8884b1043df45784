"""Files that tasks write before anything is committed, and the receipts that name them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Generic, NamedTuple, TypeVar

from dstream.errors import CollectionDestroyedError
from dstream.storage.checking import receipts_of
from dstream.storage.codec.codec import Codec
from dstream.storage.lake.actions import Actions, DataFile
from dstream.storage.lake.lake_collection import Collection
from dstream.storage.lake.paths import checked_path
from dstream.storage.written_types import codec_by, settled

__all__ = ["JOB", "StagedJob", "StagedRows"]

JOB = "dstream.job."
"""What stands before the name of a job in the transactions of a log."""


class StagedRows(NamedTuple):
    """What a task has written for one bucket, or for its part of a list.

    Attributes:
        begun: the newest commit when its job began: `merged` is right if no later one has changed its bucket.
        types: those by which it is written, as `Codec.to_json` gives them.
        new: a file of the rows as they came.
        merged: a file of the rows merged with those that were there when the job began; None if they need not be.
    """

    begun: int
    types: Any
    new: DataFile
    merged: DataFile | None = None

    @staticmethod
    def of(receipt: Any) -> StagedRows:
        """Return what a receipt says: the same as plain tuples."""
        begun, types, new, merged = receipt
        if type(begun) is not int:
            raise ValueError("no commit has such a number")
        return StagedRows(begun, types, _file(new), None if merged is None else _file(merged))


def _file(data: Sequence[Any]) -> DataFile:
    file = DataFile(-1, 0, *data[2:])  # its version and its place are those of the commit
    numbers = (file.bucket, file.size, file.rows)
    if not all(type(number) is int and number >= 0 for number in numbers) or type(file.sums) is not str:
        raise ValueError(f"no task has written {data!r:.200}")
    checked_path(file.path)
    return file


W = TypeVar("W")


class StagedJob(ABC, Generic[W]):
    """What jobs of maps and lists do alike.

    Args:
        collection: where the job writes to.
        name: what the job is called in the log, so that a second commit of it does nothing; None for a
            change that is committed where it is made, and never again.
        epoch: its number.
        writer: what travels to the tasks.
        prefix: how the names of the job's files begin.
    """

    def __init__(self, collection: Collection, name: str | None, epoch: int, writer: W, prefix: str) -> None:
        self._collection = collection
        self._transaction = None if name is None else JOB + name
        self._epoch = epoch
        self.writer = writer
        self._prefix = prefix
        self._has_committed = False
        self._begun = collection.log.version

    @property
    def is_done(self) -> bool:
        """Whether this epoch of a job of that name, or a later one, has committed."""
        return self._transaction is not None and self._collection.has_committed(self._transaction, self._epoch)

    def commit(self, receipts: Sequence[Any]) -> None:
        """Make everything that the receipts name visible at once, unless a job of that name was first."""
        self.commit_rows(receipts_of(self._collection, StagedRows.of, receipts))

    def commit_rows(self, rows: Sequence[StagedRows]) -> None:
        """Do the same with what the receipts say."""
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
        begun = min([self._begun, *(receipt.begun for receipt in receipts)])
        return replace(actions, metadata=metadata, transaction=self._transaction, epoch=self._epoch, begun=begun)

    def _check_there(self, actions: Actions) -> None:
        """Refuse to commit a file that anybody has removed. Of what was just written here nobody knows the name."""
        log = self._collection.log
        missing = log.folder.missing([file.path for file in actions.adds]) if self._transaction else []
        if missing:
            raise log.gone_before_commit(missing[0])

    @abstractmethod
    def _actions(self, receipts: Sequence[StagedRows], codec: Codec) -> Actions:
        """Return what the commit of these receipts is to do, by the newest state of the collection."""

    def _committed(self, receipts: Sequence[StagedRows]) -> None:
        """Tidy up after the commit."""

    def abort(self) -> None:
        """Remove what was written and not committed; whatever goes wrong, a vacuum removes it later.

        A job may be interrupted while it tidies up after its commit. Its files are the collection's then: the journal
        needs them also once they were folded.
        """
        with suppress(Exception):
            if not self._is_committed():
                self._collection.discard_staged(self._prefix)

    def end_empty(self) -> None:
        """End a run whose tasks gave no receipts.

        What an attempt that was killed may have left is for the vacuum, as where there are receipts. To look for it is
        to list the collection, while most epochs of windows give nothing.
        """

    def _is_committed(self) -> bool:
        """Say whether what this run has written is the collection's, also if another process committed it."""
        try:
            return self._has_committed or self.is_done
        except CollectionDestroyedError:
            return False


def _leading_codec(known: Codec, receipts: Sequence[StagedRows]) -> Codec:
    """Return the codec by which a job is committed: that of the collection, or else the one of most rows."""
    if known.is_decided or not receipts:
        return known
    rows: dict[str, int] = {}
    by_types = {repr(receipt.types): receipt.types for receipt in receipts}
    for receipt in receipts:
        types = repr(receipt.types)
        rows[types] = rows.get(types, 0) + receipt.new.rows
    return settled(known, codec_by(by_types[max(rows, key=lambda types: rows[types])], known))
