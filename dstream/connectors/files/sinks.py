"""Sinks of files: targets and jobs of `to_files` and `to_file`."""

from __future__ import annotations

import shutil
import time
import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Generic, Literal, TypeVar, cast

from dstream.connectors.base import Replaceable
from dstream.connectors.files.delta import DeltaFormat, DeltaTarget
from dstream.connectors.files.formats import JoinedFormat
from dstream.connectors.files.publication import (
    FileReceipt,
    FolderState,
    Publication,
    check_staged,
    checked_receipt,
    common_columns,
    locked,
    publish,
    record_of,
    sweep,
)
from dstream.connectors.files.writers import (
    BufferedEpochs,
    FileBuffer,
    FileWriter,
    PartitionFolders,
    Rolling,
    checked_partitions,
    without,
)
from dstream.delta.actions import LOG
from dstream.errors import SinkError
from dstream.filesystem.folders import OutputFolder
from dstream.filesystem.output_folders import HIDDEN, LocalOutput, writing_to
from dstream.spi import Collections, Receipt

__all__ = ["FileSink"]


@dataclass(slots=True)
class FileJob:
    """Transaction of one epoch of a job on a folder, in the driver.

    Attributes:
        record: the record of the job in the folder.
        is_named: other processes may commit it too.
        prefix: the beginning of the names of the files.
        suffix: their end.
        replace: they replace all earlier ones.
        held: the deferred output of the job, if it joins the files of several epochs.
    """

    folder: FolderState
    record: str
    epoch: int
    is_named: bool
    prefix: str
    suffix: str
    replace: bool
    writer: FileWriter
    held: FileBuffer | None = None
    _files: list[str] | None = field(default=None, init=False)

    @property
    def is_done(self) -> bool:
        return self._files is not None or self.folder.epoch(self.record) >= self.epoch

    def files(self) -> list[str]:
        """Return the paths of the committed files."""
        return self.folder.files_of(self.record) if self._files is None else self._files

    def commit(self, receipts: Sequence[Receipt]) -> None:
        """Publish the files that the receipts name, unless the epoch was committed meanwhile."""
        staged = [checked_receipt(each, self.folder) for each in receipts]
        common_columns(staged, self.folder)
        if self._files is None:
            with locked(self.folder):
                if not self.is_done:
                    self._take(staged)
                self._files = self.folder.files_of(self.record)
                if not self.is_named:
                    self.folder.forget(self.record)
        # Attempts that were repeated have left files which no receipt names.
        sweep(self.folder, {self.writer.run, *(file.name.partition("-")[0] for file in staged)})

    def _take(self, staged: Sequence[FileReceipt]) -> None:
        if self.held is None:
            return self._publish(staged or self._empty())
        held = self.held.with_more(staged)
        if held.is_due(self.writer.rolling):
            return self._show(self.held, held)
        return self.held.keep(self.epoch, held, staged)

    def show_held(self, *, is_over: bool) -> float:
        """Publish the deferred files, if they are due or the job is over; return the seconds until the next check."""
        rolling = self.writer.rolling
        if self.held is None:
            return rolling.seconds
        held = self.held.found()
        # Most calls find nothing to publish, and need no lock, which would block others.
        if not held.files or not (is_over or held.is_due(rolling)):
            return held.seconds_left(rolling)
        with locked(self.folder):
            held = self.held.found()  # Another driver may have shown it.
            if held.files:
                # The publication rewrites the record, which must contain the number of the last committed epoch.
                self.epoch = self.folder.epoch(self.record)
                self._show(self.held, held)
        return rolling.seconds

    def _show(self, files: FileBuffer, held: BufferedEpochs) -> None:
        joined = files.joined(held.files)
        self._publish(joined, without(held.files, joined))

    def _empty(self) -> list[FileReceipt]:
        """Return a file without items, but with the columns, if there is no other file and columns are known."""
        if (
            self.writer.form.is_known
            and not self.writer.partitions.parts
            and (self.replace or not self.folder.listed())
        ):
            return [checked_receipt(self.writer.empty(), self.folder)]
        return []

    def _publish(self, staged: Sequence[FileReceipt], joined: Sequence[str] = ()) -> None:
        digits = max(5, len(str(len(staged))))
        # If two commits should ever have the lock, neither overwrites a file of the other one.
        own = "" if self.folder.place.moves_at_once else f"-{self.writer.run[:8]}"

        def named(number: int, part: int) -> str:
            return f"{staged[part].folder}{self.prefix}-{number:06}-{part:0{digits}}{own}{self.suffix}"

        sizes = [(file.name, file.size) for file in staged]
        publish(self.folder, self.record, self.epoch, sizes, named, replace=self.replace, joined=joined)

    def abort(self) -> None:
        sweep(self.folder, {self.writer.run})


T = TypeVar("T")
OnExistingFiles = Literal["add", "refuse"]


@dataclass(frozen=True, slots=True, repr=False)
class FileSink(Replaceable, Generic[T]):
    """The reducer that `to_files` returns.

    Attributes:
        place: the folder to write into.
        label: the reducer as the user wrote it.
        form: the format of the items.
        partitions: the folders that items are written into.
        rolling: when files end.
        name: the beginning of the names of the files.
        replace: the files replace all earlier ones.
    """

    place: OutputFolder
    label: str
    form: JoinedFormat | DeltaFormat
    partitions: PartitionFolders
    rolling: Rolling
    name: str
    on_existing: OnExistingFiles
    replace: bool = field(default=False, kw_only=True)
    job: str | None = field(default=None, kw_only=True)

    @property
    def collector(self) -> None:
        return

    def open(self, context: Collections) -> FileTarget | DeltaTarget:
        folder = FolderState(self.place)
        self.place.make()
        if isinstance(self.form, DeltaFormat):
            writer = FileWriter(self.place, "", self.form, self.partitions, self.rolling, self.name)
            return DeltaTarget(self.place, self.label, writer, self.replace, self.on_existing == "refuse")
        return FileTarget(self, self.form, folder)

    def __repr__(self) -> str:
        return self.label


class FileTarget:
    """The folder, opened in the driver."""

    def __init__(self, sink: FileSink[Any], form: JoinedFormat, folder: FolderState) -> None:
        self._sink = sink
        self._form = form
        self._folder = folder
        self._begun: FileJob | None = None
        self._looks_again = 0.0

    def begin(self, job: str | None, epoch: int = 1) -> FileJob:
        """Begin an epoch.

        Raises:
            SinkError: the folder has unexpected contents.
        """
        begun = self._job(job, epoch)
        self._refuse_files_of_others(begun.record)
        self._begun = begun
        return begun

    def begin_epoch(self, job: str, epoch: int) -> FileJob:
        """Begin an epoch of an unbounded job: with `roll_at=`, its files are joined with files of other epochs.

        Raises:
            SinkError: the folder has unexpected contents.
        """
        begun = self.begin(job, epoch)
        if self._sink.rolling != Rolling():
            begun.held = self._held(begun)
        return begun

    def show_held(self, job: str, *, is_over: bool) -> None:
        """Publish the deferred files of a job, if they are due or the job is over."""
        if self._sink.rolling != Rolling() and (is_over or time.time() >= self._looks_again):
            begun = self._job(job, 0)
            begun.held = self._held(begun)
            self._looks_again = time.time() + begun.show_held(is_over=is_over)

    def _job(self, job: str | None, epoch: int) -> FileJob:
        sink, run = self._sink, uuid.uuid4().hex
        record = run if job is None else record_of(job)
        writer = FileWriter(sink.place, run, self._form, sink.partitions, sink.rolling)
        return FileJob(self._folder, record, epoch, job is not None, sink.name, self._form.suffix, sink.replace, writer)

    def _held(self, job: FileJob) -> FileBuffer:
        return FileBuffer(self._folder, job.record, job.writer, self._form)

    def _refuse_files_of_others(self, record: str) -> None:
        folder, sink = self._folder, self._sink
        if folder.epoch(record) or folder.unfinished().record == record:
            return  # It has written to this folder before.
        if folder.place.exists(LOG):
            raise SinkError(f"{sink.label}: the folder {folder.path} is a Delta table: write format='delta' into it")
        strangers = folder.strangers()
        if strangers:
            raise SinkError(
                f"{sink.label}: the folder {folder.path} holds {strangers[0]!r}, which no to_files() has written there "
                "and its readers would read: name a folder for these files alone"
            )
        if sink.on_existing == "refuse" and folder.listed():
            raise SinkError(
                f"{sink.label}: the folder {folder.path} holds files already, such as {folder.listed()[0]!r}"
            )

    def result(self) -> list[str]:
        return [] if self._begun is None else self._begun.files()


OnExistingFile = Literal["overwrite", "refuse"]


@dataclass(frozen=True, slots=True, repr=False)
class OneFileSink(Generic[T]):
    """The reducer that `to_file` returns.

    Attributes:
        place: the folder of the file.
        name: the name of the file.
        label: the reducer as the user wrote it.
        form: the format of the items.
    """

    place: OutputFolder
    name: str
    label: str
    form: JoinedFormat
    on_existing: OnExistingFile
    job: str | None = field(default=None, kw_only=True)

    @property
    def collector(self) -> None:
        return

    @property
    def instead_of_epochs(self) -> str:
        """The alternative: a single file requires a bounded job."""
        return "write to_files(folder), which adds files epoch by epoch, and with roll_at= fewer and larger ones"

    def open(self, context: Collections) -> OneFileTarget:
        self.place.make()
        return OneFileTarget(self)

    def __repr__(self) -> str:
        return self.label


class OneFileTarget:
    """The file, opened in the driver."""

    def __init__(self, sink: OneFileSink[Any]) -> None:
        self._sink = sink
        self._folder = FolderState(sink.place)

    def begin(self, job: str | None, epoch: int = 1) -> OneFileJob:
        """Begin an epoch.

        Raises:
            SinkError: the path is a folder, or a file that must not be overwritten, or the folder has files of
                `to_files`.
        """
        run = uuid.uuid4().hex
        record = run if job is None else record_of(job)
        place = self._sink.place
        place.make()  # Another run, which has ended since this was opened, may have removed what was empty.
        writer = FileWriter(place, run, self._sink.form, checked_partitions(None), Rolling())
        begun = OneFileJob(self._sink, self._folder, record, epoch, job is not None, writer)
        begun.check()
        with writing_to(place.title):
            place.new_file(f"{HIDDEN}/{writer.new_name()}").close()  # As long as it exists, so does the folder.
        return begun

    def result(self) -> str:
        return self._sink.place.path_of(self._sink.name)


@dataclass(slots=True)
class OneFileJob:
    """Transaction of one epoch of a job on a file, in the driver.

    Attributes:
        record: where the folder remembers the job.
        is_named: others may commit it too.
    """

    sink: OneFileSink[Any]
    folder: FolderState
    record: str
    epoch: int
    is_named: bool
    writer: FileWriter
    _is_committed: bool = field(default=False, init=False)

    @property
    def is_done(self) -> bool:
        return self._is_committed or self.folder.epoch(self.record) >= self.epoch

    def check(self) -> None:
        """Refuse a path at which no file is to be written."""
        sink, place = self.sink, self.sink.place
        if not place.exists(sink.name) or self.is_done:
            pass
        elif is_folder(place, sink.name):
            raise SinkError(f"{sink.label}: {place.path_of(sink.name)} is a folder, into which to_files(...) writes")
        elif is_special(place, sink.name):
            raise SinkError(f"{sink.label}: {place.path_of(sink.name)} is a pipe or a device, which no file replaces")
        elif sink.on_existing == "refuse":
            raise SinkError(f"{sink.label}: {place.path_of(sink.name)} is there already")
        if self.folder.listed():
            raise SinkError(
                f"{sink.label}: the folder {place.title} has files of to_files(), whose readers would read this one, "
                "too: name another folder"
            )

    def commit(self, receipts: Sequence[Receipt]) -> None:
        """Join the parts that the receipts name, and rename the file, unless the epoch was committed."""
        staged = [checked_receipt(each, self.folder) for each in receipts]
        common_columns(staged, self.folder)
        with locked(self.folder):
            if not self.is_done:
                self.check()
                self._publish(staged or [checked_receipt(self.writer.empty(), self.folder)])
            self._is_committed = True
        self._sweep({self.writer.run, *(part.name.partition("-")[0] for part in staged)})

    def _publish(self, parts: Sequence[FileReceipt]) -> None:
        """Publish parts, which remain until that is recorded: after a crash the driver publishes them again."""
        check_staged([(part.name, part.size) for part in parts], self.folder)
        made = self._copy(parts[0]) if len(parts) == 1 else self._joined(parts)
        place = self.sink.place
        with writing_to(place.title):
            place.move(f"{HIDDEN}/{made}", self.sink.name)
            place.flush({""})
        if self.is_named:
            self.folder.remember(Publication(self.record, self.epoch, (), ()))

    def _joined(self, parts: Sequence[FileReceipt]) -> str:
        [made] = FileBuffer(self.folder, self.record, self.writer, self.sink.form).joined(parts)
        return made.name

    def _copy(self, part: FileReceipt) -> str:
        place, name = self.sink.place, self.writer.new_name()
        made = place.new_file(f"{HIDDEN}/{name}")
        with place.open(f"{HIDDEN}/{part.name}") as file:
            shutil.copyfileobj(file, cast("IO[bytes]", made))
        made.close()
        return name

    def abort(self) -> None:
        self._sweep({self.writer.run})

    def _sweep(self, runs: set[str]) -> None:
        """Remove the files of these runs, and the hidden folder if its contents are not needed."""
        sweep(self.folder, runs)
        place = self.sink.place
        with suppress(OSError, SinkError):
            if [name for name, _ in place.entries(HIDDEN)] == ["jobs"]:
                place.delete_folder(f"{HIDDEN}/jobs")
                place.delete_folder(HIDDEN)


def is_special(place: OutputFolder, name: str) -> bool:
    """Return whether a name is a pipe, a socket or a device, or a link to one."""
    path = Path(place.path_of(name))
    return isinstance(place, LocalOutput) and path.exists() and not path.is_file()


def is_folder(place: OutputFolder, name: str) -> bool:
    """Return whether there is a folder of this name in `place`."""
    return any(found == name and is_one for found, is_one in place.entries(""))
