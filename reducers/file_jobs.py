"""What the driver does for `to_files`: it publishes the files that tasks have written, in one commit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256

from dstream.errors import SinkError
from dstream.spi import Receipt
from reducers.file_receipts import Staged, checked_receipt
from reducers.folder_state import FolderState
from reducers.held_files import Held, HeldFiles, without
from reducers.publishing import locked, publish, sweep
from reducers.staged_files import FileWriter

__all__ = ["FileJob", "check_columns", "record_of"]


@dataclass(slots=True)
class FileJob:
    """One epoch of a job on its way into a folder, in the driver.

    Attributes:
        record: where the folder remembers the job.
        is_named: others may commit it too.
        prefix: what the names of the files begin with.
        suffix: what they end with.
        replace: they take the place of all earlier ones.
        held: what the job holds back, if it joins the files of several epochs.
    """

    folder: FolderState
    record: str
    epoch: int
    is_named: bool
    prefix: str
    suffix: str
    replace: bool
    writer: FileWriter
    held: HeldFiles | None = None
    _files: list[str] | None = field(default=None, init=False)

    @property
    def is_done(self) -> bool:
        """Whether this epoch, or a later one, was committed."""
        return self._files is not None or self.folder.epoch(self.record) >= self.epoch

    def files(self) -> list[str]:
        """Return the paths of what was committed."""
        return self.folder.files_of(self.record) if self._files is None else self._files

    def commit(self, receipts: Sequence[Receipt]) -> None:
        """Publish the files that the receipts name, unless the epoch was committed meanwhile."""
        staged = [checked_receipt(each, self.folder) for each in receipts]
        check_columns(staged, self.folder)
        if self._files is None:
            with locked(self.folder):
                if not self.is_done:
                    self._take(staged)
                self._files = self.folder.files_of(self.record)
                if not self.is_named:
                    self.folder.forget(self.record)
        sweep(self.folder, {self.writer.run, *(file.name.partition("-")[0] for file in staged)})

    def _take(self, staged: Sequence[Staged]) -> None:
        if self.held is None:
            return self._publish(staged or self._empty())
        held = self.held.with_more(staged)
        if held.is_due(self.writer.rolling):
            return self._show(self.held, held)
        return self.held.keep(self.epoch, held, staged)

    def show_held(self, *, is_over: bool) -> float:
        """Show what is held back, if it is time or the job is over; return in how many seconds to look again."""
        rolling = self.writer.rolling
        if self.held is None:
            return rolling.seconds
        held = self.held.found()
        if not held.files or not (is_over or held.is_due(rolling)):
            return held.seconds_left(rolling)
        with locked(self.folder):
            held = self.held.found()  # Another driver may have shown it.
            if held.files:
                self.epoch = self.folder.epoch(self.record)
                self._show(self.held, held)
        return rolling.seconds

    def _show(self, files: HeldFiles, held: Held) -> None:
        joined = files.joined(held.files)
        self._publish(joined, without(held.files, joined))

    def _empty(self) -> list[Staged]:
        """Return a file without items if that says something: where no other file does, and columns are known."""
        if (
            self.writer.form.is_known
            and not self.writer.partitions.parts
            and (self.replace or not self.folder.listed())
        ):
            return [checked_receipt(self.writer.empty(), self.folder)]
        return []

    def _publish(self, staged: Sequence[Staged], joined: Sequence[str] = ()) -> None:
        digits = max(5, len(str(len(staged))))
        # Where two commits might have the lock at once, none of them overwrites a file of the other one.
        own = "" if self.folder.place.moves_at_once else f"-{self.writer.run[:8]}"

        def named(number: int, part: int) -> str:
            return f"{staged[part].folder}{self.prefix}-{number:06}-{part:0{digits}}{own}{self.suffix}"

        sizes = [(file.name, file.size) for file in staged]
        publish(self.folder, self.record, self.epoch, sizes, named, replace=self.replace, joined=joined)

    def abort(self) -> None:
        """Remove what the tasks of this run have written."""
        sweep(self.folder, {self.writer.run})


def check_columns(staged: Sequence[Staged], folder: FolderState) -> None:
    """Refuse files of one commit that do not fit together: readers take all of them for one table."""
    first = staged[0].columns if staged else {}
    for columns in (file.columns for file in staged):
        if columns.keys() != first.keys():
            raise _unlike(folder, f"columns {', '.join(first)}", f"columns {', '.join(columns)}")
        for column, kind in columns.items():
            if kind != first[column]:
                raise _unlike(folder, f"{first[column] or _NONE} in the column {column!r}", kind or _NONE)


_NONE = "nothing but None"


def _unlike(folder: FolderState, one: str, other: str) -> SinkError:
    return SinkError(
        f"{folder.path}: nothing was changed, since one partition has {one}, and another one {other}: "
        "name the columns, or a class that has them with their types, in columns=, or map() the items before"
    )


def record_of(job: str) -> str:
    """Return the name of the record of a job, which may be called anything."""
    return sha256(job.encode("utf-8", "surrogatepass")).hexdigest()[:32]
