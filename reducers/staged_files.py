"""What tasks and driver do for `to_files`: tasks write files where nobody looks, and the driver publishes them."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from itertools import islice
from typing import IO, Any

from dstream.errors import IllegalStateError
from dstream.spi import Receipt
from dstream.values.contexts import contextmanager
from reducers.file_formats import Compression, Encoding, FileFormat, compressing
from reducers.folder_state import STAGED, FolderState, writing_to
from reducers.publishing import locked, publish, sweep

__all__ = ["FileJob", "FileWriter", "record_of"]

_BATCH = 512


@dataclass(frozen=True, slots=True)
class FileWriter:
    """Travels to the tasks. Each attempt writes a file of its own.

    Attributes:
        folder: where, on a file system that driver and tasks share.
        run: what the names of all of them begin with.
    """

    folder: str
    run: str
    form: FileFormat
    compression: Compression | None

    def write(self, items: Iterator[Any]) -> Iterator[Receipt]:
        """Give the name and the size of the file, unless there is no item."""
        items = iter(items)
        batch = list(islice(items, _BATCH))
        if not batch:
            return
        name = f"{self.run}-{uuid.uuid4().hex}"
        yield [name, self._written(os.path.join(self.folder, name), batch, items)]

    def _written(self, path: str, batch: list[Any], items: Iterator[Any]) -> int:
        """Write a file; return its size."""
        encoding = Encoding(self.form)
        with _made(path) as file:
            with compressing(file, self.compression) as stream:
                while batch:
                    stream.write(encoding.encoded(batch))
                    batch = list(islice(items, _BATCH))
            return file.finished()


@contextmanager
def _made(path: str) -> Iterator[_Guarded]:
    """Make a file, and remove it if the block fails: on a failure of the disk, or on one of a step before."""
    with writing_to(path):
        file = open(path, "xb")  # noqa: SIM115  # It is closed below, where a failure must not hide the first one.
    try:
        yield _Guarded(file, path)
    except BaseException:
        for remove in (file.close, partial(os.unlink, path)):
            with suppress(OSError):  # Whoever aborts the run tries again.
                remove()
        raise
    with writing_to(path):
        file.close()


class _Guarded:
    """A file whose failures say that it could not be written, also below a library that compresses."""

    def __init__(self, file: IO[bytes], path: str) -> None:
        self._file = file
        self._path = path

    def write(self, data: Any) -> int:
        with writing_to(self._path):
            return self._file.write(data)

    def flush(self) -> None:
        with writing_to(self._path):
            self._file.flush()

    def finished(self) -> int:
        """Make sure that a loss of power leaves it; return its size."""
        self.flush()
        with writing_to(self._path):
            os.fsync(self._file.fileno())
        return self._file.tell()


@dataclass(slots=True)
class FileJob:
    """One epoch of a job on its way into a folder, in the driver.

    Attributes:
        record: where the folder remembers the job.
        is_named: others may commit it too.
        prefix: what the names of the files begin with.
        suffix: what they end with.
        replace: they take the place of all earlier ones.
    """

    folder: FolderState
    record: str
    epoch: int
    is_named: bool
    prefix: str
    suffix: str
    replace: bool
    writer: FileWriter
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
        staged = [_checked(each, self.folder) for each in receipts]
        digits = max(5, len(str(len(staged))))

        def named(number: int, part: int) -> str:
            return f"{self.prefix}-{number:06}-{part:0{digits}}{self.suffix}"

        if self._files is None:
            with locked(self.folder):
                if not self.is_done:
                    publish(self.folder, self.record, self.epoch, staged, named, replace=self.replace)
                self._files = self.folder.files_of(self.record)
                if not self.is_named:
                    self.folder.forget(self.record)
        sweep(self.folder, {self.writer.run, *(name.partition("-")[0] for name, _ in staged)})

    def abort(self) -> None:
        """Remove what the tasks of this run have written."""
        sweep(self.folder, {self.writer.run})


def _checked(receipt: Receipt, folder: FolderState) -> tuple[str, int]:
    """Return the parts of a receipt. It may have been kept anywhere, so it is input, and leads nowhere else."""
    match receipt:
        case [str(name), int(size)] if STAGED.fullmatch(name):
            return name, size
    raise IllegalStateError(f"{folder.path}: nothing was changed, since {receipt!r} is no receipt of a file")


def record_of(job: str) -> str:
    """Return the name of the record of a job, which may be called anything."""
    return sha256(job.encode("utf-8", "surrogatepass")).hexdigest()[:32]
