"""What the driver does for `to_files(format="delta")`: one entry of the log names the files that tasks have written.

Tasks write under the names that files keep, since readers see what the log names and nothing else. So a commit moves
nothing, and there is nothing to finish after one that died.
"""

from __future__ import annotations

import contextlib
import re
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from dstream.errors import IllegalStateError, SinkError
from dstream.spi import Receipt
from reducers.delta_files import DeltaFormat
from reducers.delta_log import DeltaLog, path_in_log
from reducers.delta_schema import check_table, columns_of_all, description_of, partition_values
from reducers.file_jobs import record_of
from reducers.file_receipts import Staged, checked_receipt
from reducers.folder_state import FolderState, Publication
from reducers.places import Place, writing_to
from reducers.staged_files import FileWriter

__all__ = ["DeltaJob", "DeltaTarget"]

_OURS = re.compile(r"(?:.*[/-])?([0-9a-f]{32})-[0-9a-f]{32}\.parquet")
_JOB, _EPOCH = "dstream.job", "dstream.epoch"


@dataclass(slots=True)
class DeltaTarget:
    """A table of Delta, opened in the driver.

    Attributes:
        place: its folder.
        label: the reducer as the user wrote it.
        writer: what tasks get, but for its run.
        replace: the files take the place of all earlier ones.
        refuse: a table that has files already.
    """

    place: Place
    label: str
    writer: FileWriter
    replace: bool
    refuse: bool
    _log: DeltaLog = field(init=False)
    _begun: DeltaJob | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._log = DeltaLog(self.place)

    def begin(self, job: str | None, epoch: int = 1) -> DeltaJob:
        """Begin an epoch.

        Raises:
            SinkError: the folder holds what it should not.
            UnsupportedError: the table is one that is not understood.
        """
        writer = FileWriter(
            self.place,
            uuid.uuid4().hex,
            self.writer.form,
            self.writer.partitions,
            self.writer.rolling,
            self.writer.prefix,
        )
        begun = DeltaJob(self._log, FolderState(self.place), _app_id(job), epoch, self.replace, writer)
        with writing_to(self.place.title):
            self._log.catch_up()
            if not self._log.epochs.get(begun.app_id or ""):
                self._refuse()
        self._begun = begun
        return begun

    def _refuse(self) -> None:
        log, writer = self._log, self.writer
        if log.protocol is not None:
            form = writer.form
            check_table(log, {}, form.partitions if isinstance(form, DeltaFormat) else (), replaces=self.replace)
        else:
            strange = [name for name in FolderState(self.place).seen() if not _OURS.fullmatch(name)]
            if strange:
                raise SinkError(
                    f"{self.label}: the folder {self.place.title} holds {min(strange)!r} and is no Delta table: "
                    "name a folder for the table alone"
                )
        if self.refuse and log.adds:
            raise SinkError(
                f"{self.label}: the table {self.place.title} holds files already, such as {log.names()[0]!r}"
            )

    def result(self) -> list[str]:
        """Return the paths of the files that the last epoch made."""
        return [] if self._begun is None else self._begun.files()


def _app_id(job: str | None) -> str | None:
    """Return what the log calls a job: its name, unless that is no text for other programs."""
    if job is None:
        return None
    try:
        job.encode()
    except UnicodeEncodeError:
        return record_of(job)
    return job


@dataclass(slots=True)
class DeltaJob:
    """One epoch of a job on its way into a table, in the driver.

    Attributes:
        log: that of the table.
        folder: remembers epochs without items, of which the log says nothing.
        app_id: what the log calls the job; None if nobody else may commit it.
        replace: its files take the place of all earlier ones.
    """

    log: DeltaLog
    folder: FolderState
    app_id: str | None
    epoch: int
    replace: bool
    writer: FileWriter
    _files: list[str] | None = field(default=None, init=False)

    @property
    def is_done(self) -> bool:
        """Whether this epoch, or a later one, was committed."""
        with writing_to(self.log.place.title):
            self.log.catch_up()
        if self._files is not None or self.app_id is None:
            return self._files is not None
        return max(self.log.epochs.get(self.app_id, 0), self.folder.epoch(record_of(self.app_id))) >= self.epoch

    def files(self) -> list[str]:
        """Return the paths of what was committed."""
        if self._files is not None:
            return self._files
        tags = [(path, add.get("tags") or {}) for path, add in self.log.adds.items()]
        mine = [
            (int(each[_EPOCH]), path)
            for path, each in tags
            if self.app_id is not None and each.get(_JOB) == self.app_id
        ]
        last = max((epoch for epoch, _ in mine), default=0)
        return [self.log.place.path_of(unquote(path)) for epoch, path in mine if epoch == last]

    def commit(self, receipts: Sequence[Receipt]) -> None:
        """Let the log name the files of the receipts, unless the epoch was committed meanwhile."""
        staged = [checked_receipt(each, self.folder) for each in receipts]
        columns = columns_of_all([file.columns for file in staged], self.folder.path)
        if self.is_done:
            return
        self._check_sizes(staged)
        with self.log.place.locked(), writing_to(self.folder.path):
            while not self.is_done:
                actions = self._actions(staged, columns)
                if actions and not self.log.put(actions):
                    continue  # Another program was first, which knows nothing of the lock.
                if not actions and self.app_id is not None:
                    self.folder.remember(Publication(record_of(self.app_id), self.epoch, (), ()))
                self._files = [self.log.place.path_of(self._name(file)) for file in staged]

    def _name(self, file: Staged) -> str:
        return self.writer.name_of(file.name, file.folder)

    def _check_sizes(self, staged: Sequence[Staged]) -> None:
        folders = {file.folder.rstrip("/") for file in staged}
        for file in staged:
            try:
                found = self.log.place.size(self._name(file))
            except FileNotFoundError:
                found = -1
            if found != file.size:
                raise IllegalStateError(
                    f"{self.folder.path}: nothing was changed, since what a task wrote is no more as it was, or is on "
                    "another machine: the folder must be one that all machines share"
                )
        with writing_to(self.folder.path):
            above = {folder[:end] for folder in folders for end in _ends(folder)}
            self.log.place.settle({"", *folders, *above})

    def _actions(self, staged: Sequence[Staged], columns: dict[str, str]) -> list[dict[str, Any]]:
        """Return what the entry says; nothing if it would change nothing."""
        log, form, now = self.log, self.writer.form, int(time.time() * 1000)
        partitions = form.partitions if isinstance(form, DeltaFormat) else ()
        actions: list[dict[str, Any]] = []
        if log.protocol is None:
            if not staged and isinstance(form, DeltaFormat):
                columns = form.columns()
            if not columns:
                return []
            actions += description_of(columns, partitions, self.folder.path)
        else:
            check_table(log, columns, partitions, replaces=self.replace)
        gone = list(log.adds.values()) if self.replace else []
        if not staged and not gone and not actions:
            return []
        if self.app_id is not None:
            actions.append({"txn": {"appId": self.app_id, "version": self.epoch, "lastUpdated": now}})
        actions += [{"remove": _removed(add, now)} for add in gone]
        actions += [{"add": self._add(file, columns, now)} for file in staged]
        mode = "Overwrite" if self.replace else "Append"
        info = {"timestamp": now, "operation": "WRITE", "operationParameters": {"mode": mode}, "engineInfo": "dstream"}
        return [{"commitInfo": info}, *actions]

    def _add(self, file: Staged, columns: dict[str, str], now: int) -> dict[str, Any]:
        tags = {} if self.app_id is None else {"tags": {_JOB: self.app_id, _EPOCH: str(self.epoch)}}
        return {
            "path": path_in_log(self._name(file)),
            "partitionValues": partition_values(file.folder, columns, self.folder.path),
            "size": file.size,
            "modificationTime": now,
            "dataChange": True,
            "stats": f'{{"numRecords":{file.items}}}',
            **tags,
        }

    def abort(self) -> None:
        """Remove what the tasks of this run have written and the log does not name; raises nothing."""
        with contextlib.suppress(OSError, SinkError):
            self.log.catch_up()
            for name in list(self.folder.seen()):
                found = _OURS.fullmatch(name)
                if found and found[1] == self.writer.run and path_in_log(name) not in self.log.adds:
                    with contextlib.suppress(OSError, SinkError):
                        self.log.place.remove(name)


def _ends(folder: str) -> list[int]:
    return [place for place, sign in enumerate(folder) if sign == "/"]


def _removed(add: dict[str, Any], now: int) -> dict[str, Any]:
    return {
        "path": add["path"],
        "deletionTimestamp": now,
        "dataChange": True,
        "extendedFileMetadata": True,
        "partitionValues": add.get("partitionValues") or {},
        "size": add.get("size") or 0,
    }
