"""The tasks' part of `to_files`: staged files, partition folders, small files until they are merged.

`dstream.connectors.files.sinks` has the driver's part. Small files of epochs are buffered under `roll_at=`: the record
of the job names them, in the step that commits their epoch. `docs/decisions/0074` describes what happens where a
process dies.
"""

from __future__ import annotations

import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date
from enum import Enum
from time import monotonic
from typing import IO, Any, TypeAlias, cast

from dstream.arguments import running_function
from dstream.base.memory import pieces
from dstream.base.records import record
from dstream.base.showing import shown
from dstream.connectors.base import checked_text
from dstream.connectors.files.formats import NO_LIMIT, FileFormat, JoinedFormat
from dstream.connectors.files.publication import FileReceipt, FolderState, check_staged, checked_receipt
from dstream.errors import SinkError
from dstream.failures.attribution import each
from dstream.filesystem.folders import OutputFolder
from dstream.filesystem.output_folders import HIDDEN, NULL_PARTITION
from dstream.spi import Receipt

__all__ = [
    "BufferedEpochs",
    "FileBuffer",
    "FileWriter",
    "PartitionBy",
    "PartitionFolders",
    "Rolling",
    "StagedFile",
    "checked_partitions",
    "without",
]


PartitionBy: TypeAlias = "str | Iterable[str] | Mapping[str, Callable[[Any], object]]"


def checked_partitions(given: Any) -> PartitionFolders:
    """Return the folders by `partition_by=`.

    Raises:
        TypeError: it is neither a name, nor several, nor functions by name.
        ValueError: it is empty, or a name cannot begin the name of a folder.
    """
    if given is None:
        return PartitionFolders(())
    if callable(given):
        raise TypeError("partition_by needs a name for what a function gives: write partition_by={'name': function}")
    if isinstance(given, str):
        given = [given]
    if not isinstance(given, Iterable):
        raise TypeError(f"partition_by must be the name of a field, or several, not {shown(given)}")
    functions = given if isinstance(given, Mapping) else {}
    parts = tuple((_checked_name(name), _checked_part(name, functions.get(name))) for name in given)
    if not parts or len(dict(parts)) < len(parts):
        raise ValueError(f"partition_by must hold names, each once, not {shown(given)}")
    return PartitionFolders(parts)


def _checked_name(name: Any) -> str:
    if checked_text(name, "a name in partition_by")[0] in "._" or set(name) & _ESCAPED:
        raise ValueError(f"a name in partition_by begins a name of folders, which {name!r} cannot")
    return str(name)


def _checked_part(name: str, function: Any) -> Callable[[Any], object]:
    return _Field(name) if function is None else running_function(function, f"partition_by[{name!r}]")


@record
class _Field:
    """Returns a field of an item: a key of a dict, or an attribute."""

    name: str

    def __call__(self, item: Any) -> object:
        if isinstance(item, dict) and self.name in item:
            return item[self.name]
        try:
            return getattr(item, self.name)
        except AttributeError:
            raise TypeError(f"partition_by: the item has no field {self.name!r}") from None


@record
class PartitionFolders:
    """The assignment of items to the folders of `partition_by`.

    Attributes:
        parts: the name of each level, with the function that returns the value of an item.
    """

    parts: tuple[tuple[str, Callable[[Any], object]], ...]

    def fields(self) -> tuple[str, ...]:
        """Return the names of the fields whose values name folders.

        Raises:
            TypeError: a function names them.
        """
        if functions := [name for name, value in self.parts if not isinstance(value, _Field)]:
            raise TypeError(
                f"partition_by of format='delta' names columns, and {functions[0]!r} is a function: "
                "map() the items to have such a field before"
            )
        return tuple(name for name, _ in self.parts)

    def divided(self, items: Sequence[Any]) -> Iterable[tuple[str, Sequence[Any]]]:
        """Return for each folder its items, in order. The name of a folder ends with a slash, unless it is empty.

        Raises:
            TypeError: a value has no text form for the name of a folder.
        """
        if not self.parts:
            return [("", items)]
        folders: dict[str, list[Any]] = {}
        for folder, item in zip(each(self._folder, items), items, strict=True):
            folders.setdefault(folder, []).append(item)
        return folders.items()

    def _folder(self, item: Any) -> str:
        return "".join([_level(name, value(item)) for name, value in self.parts])


_LONGEST = 255
"""The most bytes of the name of a folder in usual file systems."""


def _level(name: str, value: Any) -> str:
    level = f"{name}={_escaped(_text(name, value))}"
    if len(level.encode()) > _LONGEST:  # A lone surrogate cannot be encoded, which is an error here, too.
        raise ValueError(f"partition_by: {name!r} is {shown(value)}, and a folder has a name of 255 bytes at most")
    return f"{level}/"


def _text(name: str, value: Any) -> str:
    if isinstance(value, Enum):
        value = value.value
    if value is None:
        return NULL_PARTITION
    # Before the test for int, of which bool is a subclass: readers of such folders accept `true`, not `True`.
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, date):  # A datetime is one, too.
        return value.isoformat()
    if not isinstance(value, str | int):
        raise TypeError(
            f"partition_by: {name!r} is {shown(value)}; a folder is called after a str, int, bool, date or None"
        )
    if value == NULL_PARTITION:
        raise ValueError(f"partition_by: {name!r} is the text {NULL_PARTITION!r}, which means None")
    return str(value)


_ESCAPED = frozenset("\"#%'*/:=?\\\x7f{}[]^<>| ") | frozenset(map(chr, range(32)))


def _escaped(text: str) -> str:
    """Return a string as Hive names folders: characters that a file system or a URL may refuse as `%2F`."""
    if _ESCAPED.isdisjoint(text):
        return text
    return "".join(f"%{ord(sign):02X}" if sign in _ESCAPED else sign for sign in text)


@record
class Rolling:
    """The limits at which a file ends and the next one begins.

    Attributes:
        size: of its content in bytes, at most, unless one item has more.
        seconds: since its first item.
    """

    size: int = NO_LIMIT
    seconds: float = float("inf")


@record
class FileWriter:
    """Writer that is sent to the tasks. Each attempt writes separate files.

    Attributes:
        place: the location, on a file system that driver and tasks share.
        run: the beginning of the names of all of them.
        partitions: the folder that an item is written into.
        rolling: when files end.
        prefix: the beginning of final names; None if a commit renames the files.
    """

    place: OutputFolder
    run: str
    form: FileFormat
    partitions: PartitionFolders
    rolling: Rolling
    prefix: str | None = None

    def new_name(self) -> str:
        """Return the name of a file that is to be written."""
        return f"{self.run}-{uuid.uuid4().hex}"

    def name_of(self, staged: str, folder: str) -> str:
        """Return the path of a file of a task in the folder."""
        if self.prefix is None:
            return f"{HIDDEN}/{staged}"
        return f"{folder}{self.prefix}-{staged}{self.form.suffix}"

    def write(self, items: Iterator[Any]) -> Iterator[Receipt]:
        """Yield the receipt of each file; none if there is no item."""
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
        """Refuse an item that a file of this format cannot contain."""
        self.form.check_item(item)

    def empty(self) -> Receipt:
        """Write a file without items, and return its receipt."""
        file = StagedFile(self, {}, "")
        return file.finished("")


class _OpenFiles:
    """The files that a task is writing, one for each folder; of `MOST_OPEN` the least recently used one is closed."""

    def __init__(self, writer: FileWriter) -> None:
        self._writer = writer
        self._open: dict[str, StagedFile] = {}
        self._known: dict[str, Any] = {}

    def write(self, folder: str, items: Sequence[Any]) -> Iterator[Receipt]:
        """Write items into the file of a folder; yield the receipts of files that ended."""
        while items:
            file = self._open.pop(folder, None)
            if file is None:
                if len(self._open) >= MOST_OPEN:
                    yield self._end(next(iter(self._open)))
                file = StagedFile(self._writer, self._known, folder)
            self._open[folder] = file  # Last, since it is the most recently used one.
            taken = file.write(items)
            items = items[taken:]
            if items or file.is_old():
                yield self._end(folder)

    def _end(self, folder: str) -> Receipt:
        receipt = self._open[folder].finished(folder)
        # Only now: `discard` has to remove a file that fails to end.
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
"""The maximal bytes that all open files of a task buffer in memory."""
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
        self._file = writer.place.new_file(self._path)
        held = _HELD // MOST_OPEN if writer.partitions.parts else _HELD_OF_ONE
        self._content = writer.form.content(cast("IO[bytes]", self._file), writer.rolling.size, held, known)

    def write(self, items: Sequence[Any]) -> int:
        """Write items from the front; return how many."""
        taken = self._content.write(items)
        self._items += taken
        return taken

    def is_old(self) -> bool:
        """Return whether it is time to end it."""
        return monotonic() >= self._until

    def finished(self, folder: str) -> Receipt:
        """End it; return the receipt for the driver."""
        # The content first: it writes its buffer, and its end, into the file.
        columns: dict[str, Receipt] = dict(self._content.finish())
        self._file.close()
        return [self._name, self._file.size, folder, columns, self._items]

    def discard(self) -> None:
        """Remove it: on a failure of the disk, or on one of a step before."""
        self._content.discard()
        self._file.discard()
        with suppress(OSError, SinkError):  # The call that aborts the run tries again.
            self._writer.place.delete(self._path)


MOST_HELD = 500
"""The maximal number of deferred files of a job before they are joined, so that its record remains small."""


@record
class BufferedEpochs:
    """Deferred files.

    Attributes:
        files: in order.
        since: when the first of them was committed.
    """

    files: tuple[FileReceipt, ...]
    since: float

    def is_due(self, rolling: Rolling) -> bool:
        """Return whether the files of a folder reach the size limit, or are due."""
        sizes: dict[str, int] = defaultdict(int)
        for file in self.files:
            sizes[file.folder] += file.size
        return bool(sizes) and (max(sizes.values()) >= rolling.size or self.seconds_left(rolling) <= 0)

    def seconds_left(self, rolling: Rolling) -> float:
        """Return how long they remain deferred; a clock that was set back makes them due."""
        waited = time.time() - self.since if self.files else 0.0
        return rolling.seconds - waited if waited >= 0 else 0.0


@record
class FileBuffer:
    """The deferred files of one job in a folder.

    Attributes:
        record: where the folder remembers the job.
        writer: names what is joined.
        form: joins.
    """

    folder: FolderState
    record: str
    writer: FileWriter
    form: JoinedFormat

    def found(self) -> BufferedEpochs:
        """Return the deferred files."""
        receipts, since = self.folder.held(self.record)
        return BufferedEpochs(tuple(checked_receipt(each, self.folder) for each in receipts), since)

    def with_more(self, staged: Sequence[FileReceipt]) -> BufferedEpochs:
        """Return the deferred files, and the files of one more epoch."""
        held = self.found()
        return BufferedEpochs((*held.files, *staged), held.since if held.files else time.time())

    def keep(self, epoch: int, held: BufferedEpochs, staged: Sequence[FileReceipt]) -> None:
        """Commit an epoch: record it, and the deferred files after it, its own at the end."""
        check_staged([(file.name, file.size) for file in staged], self.folder)
        kept = self.joined(held.files) if len(held.files) > MOST_HELD else list(held.files)
        # Before the record names a joined file, its name has to last.
        self.folder.place.flush({HIDDEN})
        self.folder.hold(self.record, epoch, [file.receipt() for file in kept], held.since)
        # After the record, which named these until now: a crash before leaves them for `sweep`.
        for name in without(held.files, kept):
            with suppress(OSError, SinkError):
                self.folder.place.delete(f"{HIDDEN}/{name}")

    def joined(self, files: Sequence[FileReceipt]) -> list[FileReceipt]:
        """Return fewer and larger files with the same items in the same order."""
        check_staged([(file.name, file.size) for file in files], self.folder)
        return [group[0] if len(group) == 1 else self._join(group) for group in self._groups(files)]

    def _groups(self, files: Sequence[FileReceipt]) -> list[list[FileReceipt]]:
        """Divide files into those that become one: neighbours in a folder with the same columns, of a size."""
        last: dict[str, list[FileReceipt]] = {}
        groups = []
        for file in files:
            group = last.get(file.folder, [])
            size = sum(each.size for each in group) + file.size
            if not group or group[0].columns != file.columns or size > self.writer.rolling.size:
                group = last[file.folder] = []
                groups.append(group)
            group.append(file)
        return groups

    def _join(self, group: Sequence[FileReceipt]) -> FileReceipt:
        place, name = self.folder.place, self.writer.new_name()
        made = place.new_file(f"{HIDDEN}/{name}")
        try:
            self.form.join(self._opened(group), group[0].columns, cast("IO[bytes]", made))
            made.close()
        except BaseException:
            made.discard()
            with suppress(OSError, SinkError):
                place.delete(f"{HIDDEN}/{name}")
            raise
        counts = [file.items for file in group]
        return FileReceipt(name, made.size, group[0].folder, group[0].columns, -1 if -1 in counts else sum(counts))

    def _opened(self, group: Sequence[FileReceipt]) -> Iterator[IO[bytes]]:
        for staged in group:
            with self.folder.place.open(f"{HIDDEN}/{staged.name}") as file:
                yield file


def without(files: Sequence[FileReceipt], kept: Sequence[FileReceipt]) -> list[str]:
    """Return the names of the files that are not among others."""
    names = {file.name for file in kept}
    return [file.name for file in files if file.name not in names]
