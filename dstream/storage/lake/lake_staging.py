"""Files that tasks write before anything is committed, and the receipts that name them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from dstream.storage.codec.codec import Codec
from dstream.storage.codec.types import Type
from dstream.storage.lake.actions import Actions, DataFile
from dstream.storage.lake.lake_collection import Collection

__all__ = ["JOB", "Receipt", "StagedJob"]

JOB = "dstream.job."
"""What stands before the name of a job in the transactions of a log."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """What a task has written for one bucket, or for its part of a list.

    Attributes:
        codec: the types by which it is written.
        new: a file of the rows as they came.
        merged: a file of the rows merged with those that were there when the job began; None if they need not be.
    """

    codec: Codec
    new: DataFile
    merged: DataFile | None = None


W = TypeVar("W")


class StagedJob(ABC, Generic[W]):
    """What jobs of maps and lists do alike.

    Args:
        collection: where the job writes to.
        name: what the job is called in the log, so that a second commit of it does nothing; None for a
            change that is committed where it is made, and never again.
        writer: what travels to the tasks.
        prefix: how the names of the job's files begin.
    """

    def __init__(self, collection: Collection, name: str | None, writer: W, prefix: str) -> None:
        self._collection = collection
        self._transaction = None if name is None else JOB + name
        self._writer = writer
        self._prefix = prefix
        self._has_committed = False
        self._begun = collection.log.version

    @property
    def writer(self) -> W:
        """What travels to the tasks."""
        return self._writer

    @property
    def is_done(self) -> bool:
        """Whether a job of that name has committed."""
        return self._transaction is not None and self._collection.has_committed(self._transaction)

    def commit(self, receipts: Sequence[Receipt]) -> None:
        """Make everything that the receipts name visible at once, unless a job of that name was first."""
        made = self._collection.commit_reading(lambda: self._prepared(receipts))
        if made:
            self._has_committed = True
            self._committed(receipts)

    def _prepared(self, receipts: Sequence[Receipt]) -> Actions | None:
        log = self._collection.log
        if self._transaction is not None and log.has_committed(self._transaction):
            return None
        codec = _leading_codec(self._collection.codec, receipts)
        actions = self._actions(receipts, codec)
        if not (actions.adds or actions.removes or self._transaction):
            return None
        self._check_there(actions)
        metadata = self._collection.metadata_for(codec)
        return replace(actions, metadata=metadata, transaction=self._transaction, begun=self._begun)

    def _check_there(self, actions: Actions) -> None:
        """Refuse to commit a file that anybody has removed. Of what was just written here nobody knows the name."""
        log = self._collection.log
        missing = log.folder.missing([file.path for file in actions.adds]) if self._transaction else []
        if missing:
            raise log.gone_before_commit(missing[0])

    @abstractmethod
    def _actions(self, receipts: Sequence[Receipt], codec: Codec) -> Actions:
        """Return what the commit of these receipts is to do, by the newest state of the collection."""

    def _committed(self, receipts: Sequence[Receipt]) -> None:
        """Tidy up after the commit."""

    def abort(self) -> None:
        """Remove what was written and not committed; whatever goes wrong, a vacuum removes it later.

        A job may be interrupted while it tidies up after its commit. Its files are the collection's then: the journal
        needs them also once they were folded.
        """
        with suppress(Exception):
            if not self._has_committed:
                self._collection.discard_staged(self._prefix)


def _leading_codec(known: Codec, receipts: Sequence[Receipt]) -> Codec:
    """Return the codec by which a job is committed: that of the collection, or else the one of most rows."""
    if known.is_decided or not receipts:
        return known
    rows: dict[str, int] = {}
    by_types = {repr(receipt.codec.to_json()): receipt.codec for receipt in receipts}
    for receipt in receipts:
        types = repr(receipt.codec.to_json())
        rows[types] = rows.get(types, 0) + receipt.new.rows
    most = by_types[max(rows, key=lambda types: rows[types])]
    return replace(most, key=_settled(known.key, most.key), value=_settled(known.value, most.value))


def _settled(known: Type | None, inferred: Type | None) -> Type | None:
    return inferred if known is None or known.is_open else known
