"""What tasks do for `to_files`: they write files where nobody looks. `reducers.file_jobs` has the driver's part."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic
from typing import IO, Any, cast

from dstream.errors import SinkError
from dstream.memory import pieces
from dstream.spi import Receipt
from reducers.file_formats import NO_LIMIT, FileFormat
from reducers.partition_folders import PartitionFolders
from reducers.places import HIDDEN, NewFile, Place

__all__ = ["CountedFile", "FileWriter", "Rolling", "StagedFile"]


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
        place: where, on a file system that driver and tasks share.
        run: what the names of all of them begin with.
        partitions: which folder an item stands in.
        rolling: when files end.
        prefix: what the names of files begin with that need no other name later; None if a commit gives them theirs.
    """

    place: Place
    run: str
    form: FileFormat
    partitions: PartitionFolders
    rolling: Rolling
    prefix: str | None = None

    def new_name(self) -> str:
        """Return the name of a file that is to be written."""
        return f"{self.run}-{uuid.uuid4().hex}"

    def name_of(self, staged: str, folder: str) -> str:
        """Return where a file of a task stands in the place."""
        if self.prefix is None:
            return f"{HIDDEN}/{staged}"
        return f"{folder}{self.prefix}-{staged}{self.form.suffix}"

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

    def check_item(self, item: Any) -> None:
        """Refuse an item that has no place in a file of this format."""
        self.form.check_item(item)

    def empty(self) -> Receipt:
        """Write a file without items, and give its receipt."""
        file = StagedFile(self, {}, "")
        return file.finished("")


class _OpenFiles:
    """The files that a task is writing, one for each folder; of `MOST_OPEN` the one that was used least lately ends."""

    def __init__(self, writer: FileWriter) -> None:
        self._writer = writer
        self._open: dict[str, StagedFile] = {}
        self._known: dict[str, Any] = {}

    def write(self, folder: str, items: Sequence[Any]) -> Iterator[Receipt]:
        """Write items into the file of a folder; give the receipts of files that ended."""
        while items:
            file = self._open.pop(folder, None)
            if file is None:
                if len(self._open) >= MOST_OPEN:
                    yield self._end(next(iter(self._open)))
                file = StagedFile(self._writer, self._known, folder)
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

    def __init__(self, writer: FileWriter, known: dict[str, Any], folder: str) -> None:
        self._writer = writer
        self._items = 0
        self._name = writer.new_name()
        self._until = monotonic() + writer.rolling.seconds
        self._path = writer.name_of(self._name, folder)
        if writer.prefix is not None and folder:
            writer.place.make_folder(folder)
        self._file = CountedFile(writer.place.create(self._path))
        held = _HELD // MOST_OPEN if writer.partitions.parts else _HELD_OF_ONE
        self._content = writer.form.content(cast("IO[bytes]", self._file), writer.rolling.size, held, known)

    def write(self, items: Sequence[Any]) -> int:
        """Write items from the front; return how many."""
        taken = self._content.write(items)
        self._items += taken
        return taken

    def is_old(self) -> bool:
        """Say whether it is time to end it."""
        return monotonic() >= self._until

    def finished(self, folder: str) -> Receipt:
        """End it; return what the driver needs to know."""
        columns: dict[str, Receipt] = dict(self._content.finish())
        self._file.close()
        return [self._name, self._file.size, folder, columns, self._items]

    def discard(self) -> None:
        """Remove it: on a failure of the disk, or on one of a step before."""
        self._content.discard()
        self._file.discard()
        with suppress(OSError, SinkError):  # Whoever aborts the run tries again.
            self._writer.place.remove(self._path)


class CountedFile:
    """A file that counts its bytes.

    Attributes:
        size: how many were written.
    """

    def __init__(self, file: NewFile) -> None:
        self._file = file
        self.size = 0
        self.flush = file.flush
        self.close = file.close
        self.discard = file.discard

    def write(self, data: Any) -> int:
        """Write bytes; return how many."""
        written = self._file.write(data)
        self.size += written
        return written
