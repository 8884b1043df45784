"""Output in a Delta table: data files with Delta's column types, and the commit of the driver.

Tasks write under the final names of files, since readers only see files that the log names. So a commit moves nothing,
and an interrupted commit leaves nothing to finish.
"""

from __future__ import annotations

import contextlib
import json
import re
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import IO, Any
from urllib.parse import unquote

from dstream.connectors.files.columnar_output import PARQUET_CODECS, ColumnFormat, ParquetContent
from dstream.connectors.files.publication import (
    FileReceipt,
    FolderState,
    Publication,
    checked_receipt,
    common_columns,
    record_of,
)
from dstream.connectors.files.writers import FileWriter
from dstream.delta.actions import added, removed, transaction
from dstream.delta.shared_log import (
    SharedLog,
    check_table,
    description_of,
    partition_values,
    path_in_log,
)
from dstream.errors import IllegalStateError, SinkError
from dstream.filesystem.folders import OutputFolder
from dstream.filesystem.output_folders import writing_to
from dstream.schema.containers import ListType, MapType
from dstream.schema.record_types import RecordType
from dstream.schema.text_forms import refusal
from dstream.schema.types import ColumnType, ColumnTypes
from dstream.spi import Receipt

__all__ = ["DeltaFormat", "DeltaTarget"]


@dataclass(frozen=True, slots=True)
class DeltaFormat(ColumnFormat):
    """Files that are read through the log of their table.

    Attributes:
        partitions: the columns that name folders; the log has them, and not the file.
    """

    partitions: tuple[str, ...] = ()

    suffix = ".parquet"
    piece = 16_384

    def columns(self) -> ColumnTypes:
        """Return the columns that are known without an item; none if the type of one is not."""
        names, forms = (self.wanted.names, self.wanted.types) if self.wanted is not None else ((), ())
        columns = {name: type_in_delta(name, form) for name, form in zip(names, forms, strict=True)}
        return columns if all(columns.values()) else {}

    def content(self, file: IO[bytes], limit: int, held: int, known: dict[str, Any]) -> DeltaContent:
        made = DeltaContent(self.wanted, file, PARQUET_CODECS[self.compression], limit, held, known)
        made.partitions = self.partitions
        return made


class DeltaContent(ParquetContent):
    """The contents of one file, without columns that have only None so far: readers treat missing columns as None."""

    partitions: tuple[str, ...] = ()
    _left_out: tuple[str, ...] = ()

    def begin(self, forms: dict[str, ColumnType], schema: Any) -> None:
        """Begin the file.

        Raises:
            TypeError: a column has a name or a type that Delta has not.
        """
        self._types(forms)
        self._left_out = (*self.partitions, *(name for name, form in forms.items() if not _is_shown(form)))
        super().begin(forms, self._columns_in_files(schema))

    def _columns_in_files(self, schema: Any) -> Any:
        import pyarrow as pa

        columns = [column for column in schema if column.name not in self._left_out]
        if not columns:
            raise TypeError("a file of Delta needs a column that is neither one of partition_by nor None in all items")
        return pa.schema(columns)

    def write_group(self, rows: Any) -> None:
        """Write a row group."""
        super().write_group(rows.drop_columns([name for name in self._left_out if name in rows.column_names]))

    def finish(self) -> ColumnTypes:
        super().finish()
        return self._types(self._columns.types)

    def write(self, items: Sequence[Any]) -> int:
        taken = super().write(items)
        for name in self.partitions:
            if name not in self._columns.types:
                raise TypeError(f"partition_by of format='delta' names columns, and {name!r} is none of them")
        return taken

    def _types(self, forms: dict[str, ColumnType]) -> ColumnTypes:
        return {name: type_in_delta(name, form) for name, form in forms.items()}


def _is_shown(form: ColumnType) -> bool:
    """Return whether values have determined the type; the type of an empty list is no type of Delta."""
    return not form.is_open or isinstance(form, ListType | MapType | RecordType)


def type_in_delta(name: str, form: ColumnType) -> str:
    """Return the type of a column as Delta calls it; empty if no value has shown it.

    Raises:
        TypeError: Delta has no such type, or no such name.
    """
    from dstream.delta.checkpoints import delta_field

    _check_name(name)
    if not _is_shown(form):
        return ""
    try:
        kind = delta_field(name, form.arrow)["type"]
    except KeyError:
        raise TypeError(refusal("Delta", form.name, _BEFORE, name)) from None
    _check_names(kind)
    return kind if isinstance(kind, str) else json.dumps(kind, sort_keys=True)


_BEFORE = "map() it to a str or a number before, or name a class that has its type in columns="


def _check_names(kind: Any) -> None:
    if isinstance(kind, dict):
        for field in kind.get("fields", ()):
            _check_name(field["name"])
            _check_names(field["type"])
        _check_names(kind.get("elementType"))
        _check_names(kind.get("valueType"))


def _check_name(name: str) -> None:
    if not name or set(name) & set(" ,;{}()\n\t="):
        raise TypeError(
            f"Delta has no blanks, none of ,;{{}}()= and no line breaks in names of columns, as in {name!r}"
        )


_OURS = re.compile(r"(?:.*[/-])?([0-9a-f]{32})-[0-9a-f]{32}\.parquet")
_JOB, _EPOCH = "dstream.job", "dstream.epoch"


@dataclass(slots=True)
class DeltaTarget:
    """A table of Delta, opened in the driver.

    Attributes:
        place: its folder.
        label: the reducer as the user wrote it.
        writer: the writer of tasks, without its run.
        replace: the files replace all earlier ones.
        refuse: a table that has files already.
    """

    place: OutputFolder
    label: str
    writer: FileWriter
    replace: bool
    refuse: bool
    _log: SharedLog = field(init=False)
    _begun: DeltaJob | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._log = SharedLog(self.place)

    def begin(self, job: str | None, epoch: int = 1) -> DeltaJob:
        """Begin an epoch.

        Raises:
            SinkError: the folder has unexpected contents.
            UnsupportedError: the table has unsupported features.
        """
        writer = replace(self.writer, run=uuid.uuid4().hex)
        begun = DeltaJob(self._log, FolderState(self.place), _app_id(job), epoch, self.replace, writer)
        with writing_to(self.place.title):
            self._log.catch_up()
            if not self._log.epoch(begun.app_id):
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
        if self.refuse and log.adds():
            raise SinkError(
                f"{self.label}: the table {self.place.title} holds files already, such as {log.names()[0]!r}"
            )

    def result(self) -> list[str]:
        return [] if self._begun is None else self._begun.files()


def _app_id(job: str | None) -> str | None:
    """Return the job's identity in the log: its name, unless that is no string for other programs."""
    if job is None:
        return None
    try:
        job.encode()
    except UnicodeEncodeError:
        return record_of(job)
    return job


@dataclass(slots=True)
class DeltaJob:
    """Transaction of one epoch of a job on a table, in the driver.

    Attributes:
        log: the log of the table.
        folder: stores epochs without items, which are not in the log.
        app_id: the name of the job in the log; None if no other process may commit it.
        replace: its files replace all earlier ones.
    """

    log: SharedLog
    folder: FolderState
    app_id: str | None
    epoch: int
    replace: bool
    writer: FileWriter
    _files: list[str] | None = field(default=None, init=False)

    @property
    def is_done(self) -> bool:
        with writing_to(self.log.place.title):
            self.log.catch_up()
        if self._files is not None or self.app_id is None:
            return self._files is not None
        # An epoch without items is only in the folder's record.
        return max(self.log.epoch(self.app_id), self.folder.epoch(record_of(self.app_id))) >= self.epoch

    def files(self) -> list[str]:
        """Return the paths of the committed files."""
        if self._files is not None:
            return self._files
        tags = [(path, add.get("tags") or {}) for path, add in self.log.adds().items()]
        mine = [
            (int(each[_EPOCH]), path)
            for path, each in tags
            if self.app_id is not None and each.get(_JOB) == self.app_id
        ]
        last = max((epoch for epoch, _ in mine), default=0)
        return [self.log.place.path_of(unquote(path)) for epoch, path in mine if epoch == last]

    def commit(self, receipts: Sequence[Receipt]) -> None:
        """Commit the files of the receipts to the log, unless the epoch was committed meanwhile."""
        staged = [checked_receipt(each, self.folder) for each in receipts]
        columns = common_columns(staged, self.folder, are_open=True)
        if self.is_done:
            return
        # Before the log names them: what it names has to be on the disk, also if the machine fails.
        self._check_sizes(staged)
        with self.log.place.locked(), writing_to(self.folder.path):
            # `is_done` reads the log again, so that each attempt is checked against the commits of other programs.
            while not self.is_done:
                actions = self._actions(staged, columns)
                if actions and not self.log.put(actions):
                    continue  # Another program was first, which does not use the lock.
                if not actions and self.app_id is not None:
                    self.folder.remember(Publication(record_of(self.app_id), self.epoch, (), ()))
                self._files = [self.log.place.path_of(self._name(file)) for file in staged]

    def _name(self, file: FileReceipt) -> str:
        return self.writer.name_of(file.name, file.folder)

    def _check_sizes(self, staged: Sequence[FileReceipt]) -> None:
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
            # The folders of `partition_by` may be new, so the names of those above them have to last, too.
            levels = [file.folder.rstrip("/").split("/") for file in staged]
            self.log.place.flush({"", *("/".join(each[:end]) for each in levels for end in range(1, len(each) + 1))})

    def _actions(self, staged: Sequence[FileReceipt], columns: dict[str, str]) -> list[dict[str, Any]]:
        """Return the actions of the entry; none if it would change nothing."""
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
        gone = list(log.adds().values()) if self.replace else []
        if not staged and not gone and not actions:
            return []
        if self.app_id is not None:
            actions.append(transaction(self.app_id, self.epoch, now))
        for add in gone:
            actions.append(removed(add["path"], add.get("partitionValues") or {}, add.get("size") or 0, now))
        actions += [self._added(file, columns, now) for file in staged]
        mode = "Overwrite" if self.replace else "Append"
        info = {"timestamp": now, "operation": "WRITE", "operationParameters": {"mode": mode}, "engineInfo": "dstream"}
        return [{"commitInfo": info}, *actions]

    def _added(self, file: FileReceipt, columns: dict[str, str], now: int) -> dict[str, Any]:
        tags = {} if self.app_id is None else {_JOB: self.app_id, _EPOCH: str(self.epoch)}
        values = partition_values(file.folder, columns, self.folder.path)
        return added(path_in_log(self._name(file)), values, file.size, file.items, now, tags=tags)

    def abort(self) -> None:
        """Remove files of this run's tasks that the log does not name; raises nothing."""
        with contextlib.suppress(OSError, SinkError):
            self.log.catch_up()
            live = self.log.adds()
            for name in list(self.folder.seen()):
                found = _OURS.fullmatch(name)
                # A commit whose response was lost may be in the log, and its files then belong to the table.
                if found and found[1] == self.writer.run and path_in_log(name) not in live:
                    with contextlib.suppress(OSError, SinkError):
                        self.log.place.delete(name)
