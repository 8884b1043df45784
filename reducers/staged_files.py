"""What tasks do for `to_files`: they write files where nobody looks. `reducers.file_jobs` has the driver's part."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import IO, Any, cast

from dstream.memory import pieces
from dstream.spi import Receipt
from reducers.file_formats import NO_LIMIT, FileFormat
from reducers.folder_state import writing_to
from reducers.partition_folders import PartitionFolders

__all__ = ["FileWriter", "Rolling", "StagedFile"]


@dataclass(frozen=True, slots=True)
class Rolling:
    """When a file ends and the next one begins.

    Attributes:
        size: of its content in bytes, at most, unless one item has more.
        seconds: since its first item.
    """

    size: int = NO_LIMIT
    seconds: float = float("inf")


@dataclass(frozen=True, slots=True)
class FileWriter:
    """Travels to the tasks. Each attempt writes files of its own.

    Attributes:
        folder: where, on a file system that driver and tasks share.
        run: what the names of all of them begin with.
        partitions: which folder an item stands in.
        rolling: when files end.
    """

    folder: str
    run: str
    form: FileFormat
    partitions: PartitionFolders
    rolling: Rolling

    def write(self, items: Iterator[Any]) -> Iterator[Receipt]:
        """Give the name and the size of each file, and what stands in it; none if there is no item."""
        files = _OpenFiles(self)
        try:
            for piece in pieces(items, self.form.piece):
                for folder, part in self.partitions.divided(piece):
                    yield from files.write(folder, part)
            yield from files.finished()
        except BaseException:
            files.discard()
            raise

    def empty(self) -> Receipt:
        """Write a file without items, and give its receipt."""
        file = StagedFile(self)
        return file.finished("")


class _OpenFiles:
    """The files that a task is writing, one for each folder; of `MOST_OPEN` the one that was used least lately ends."""

    def __init__(self, writer: FileWriter) -> None:
        self._writer = writer
        self._open: dict[str, StagedFile] = {}

    def write(self, folder: str, items: Sequence[Any]) -> Iterator[Receipt]:
        """Write items into the file of a folder; give the receipts of files that ended."""
        while items:
            file = self._open.pop(folder, None)
            if file is None:
                if len(self._open) >= MOST_OPEN:
                    yield self._end(next(iter(self._open)))
                file = StagedFile(self._writer)
            self._open[folder] = file  # Last, since it is the one that was used last.
            taken = file.write(items)
            items = items[taken:]
            if items or file.is_old():
                yield self._end(folder)

    def _end(self, folder: str) -> Receipt:
        receipt = self._open[folder].finished(folder)
        del self._open[folder]
        return receipt

    def finished(self) -> Iterator[Receipt]:
        """End all files."""
        for folder in list(self._open):
            yield self._end(folder)

    def discard(self) -> None:
        """Remove all files."""
        for file in self._open.values():
            file.discard()


MOST_OPEN = 32
_HELD = 64 * 2**20
"""How many bytes the open files of a task may keep in memory, together."""
_HELD_OF_ONE = 16 * 2**20


class StagedFile:
    """A file that readers do not see yet."""

    def __init__(self, writer: FileWriter) -> None:
        self._name = f"{writer.run}-{uuid.uuid4().hex}"
        self._path = os.path.join(writer.folder, self._name)
        self._until = monotonic() + writer.rolling.seconds
        with writing_to(self._path):
            self._file = open(self._path, "xb")  # noqa: SIM115  # It is closed below, or removed.
        held = _HELD // MOST_OPEN if writer.partitions.parts else _HELD_OF_ONE
        self._guarded = _Guarded(self._file, self._path)
        self._content = writer.form.content(cast("IO[bytes]", self._guarded), writer.rolling.size, held)

    def write(self, items: Sequence[Any]) -> int:
        """Write items from the front; return how many."""
        return self._content.write(items)

    def is_old(self) -> bool:
        """Say whether it is time to end it."""
        return monotonic() >= self._until

    def finished(self, folder: str) -> Receipt:
        """End it; return what the driver needs to know."""
        columns: dict[str, Receipt] = dict(self._content.finish())
        size = self._guarded.finished()
        with writing_to(self._path):
            self._file.close()
        return [self._name, size, folder, columns]

    def discard(self) -> None:
        """Remove it: on a failure of the disk, or on one of a step before."""
        self._content.discard()
        for remove in (self._file.close, partial(os.unlink, self._path)):
            with suppress(OSError):  # Whoever aborts the run tries again.
                remove()


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
