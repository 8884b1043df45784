"""`to_files`: items as files of a folder."""

from __future__ import annotations

import os
import re
import time
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar, get_args, overload

from dstream.errors import SinkError
from dstream.spi import Collections, Reducer
from dstream.values.secrets import shown_url
from reducers.avro_files import AvroCompression
from reducers.delta_files import DeltaFormat
from reducers.delta_jobs import DeltaTarget
from reducers.delta_log import LOG
from reducers.file_formats import NO_LIMIT, Compression, JoinedFormat
from reducers.file_jobs import FileJob, record_of
from reducers.file_suffixes import check_no_suffix
from reducers.folder_state import FolderState
from reducers.format_choice import checked_format
from reducers.held_files import HeldFiles
from reducers.partition_folders import PartitionBy, PartitionFolders, checked_partitions
from reducers.places import Place
from reducers.remote_places import place_of
from reducers.staged_files import FileWriter, Rolling
from reducers.writing import Replaceable, checked_text

__all__ = ["FileSink", "FileTarget", "to_files"]

T = TypeVar("T")
OnExisting = Literal["add", "refuse"]
Folder = str | os.PathLike[str]
RollAt = tuple[int | None, float | None]


@overload
def to_files(
    folder: Folder,
    *,
    format: Literal["text"] = "text",
    to_string: Callable[[T], str] = str,
    encoding: str = "utf-8",
    compression: Compression | None = None,
    name: str = "part",
    partition_by: PartitionBy | None = None,
    roll_at: RollAt | None = None,
    on_existing: OnExisting = "add",
    job: str | None = None,
) -> Reducer[T, list[str]]: ...
@overload
def to_files(
    folder: Folder,
    *,
    format: Literal["json"],
    encoding: str = "utf-8",
    compression: Compression | None = None,
    name: str = "part",
    partition_by: PartitionBy | None = None,
    roll_at: RollAt | None = None,
    on_existing: OnExisting = "add",
    job: str | None = None,
) -> Reducer[Any, list[str]]: ...
@overload
def to_files(
    folder: Folder,
    *,
    format: Literal["csv"],
    columns: type | Iterable[str] | None = None,
    encoding: str = "utf-8",
    compression: Compression | None = None,
    name: str = "part",
    partition_by: PartitionBy | None = None,
    roll_at: RollAt | None = None,
    on_existing: OnExisting = "add",
    job: str | None = None,
) -> Reducer[Any, list[str]]: ...
@overload
def to_files(
    folder: Folder,
    *,
    format: Literal["parquet", "delta"],
    columns: type | Iterable[str] | None = None,
    compression: Literal["gz", "zst"] | None = None,
    name: str = "part",
    partition_by: PartitionBy | None = None,
    roll_at: RollAt | None = None,
    on_existing: OnExisting = "add",
    job: str | None = None,
) -> Reducer[Any, list[str]]: ...
@overload
def to_files(
    folder: Folder,
    *,
    format: Literal["avro"],
    columns: type | Iterable[str] | None = None,
    compression: AvroCompression | None = None,
    name: str = "part",
    partition_by: PartitionBy | None = None,
    roll_at: RollAt | None = None,
    on_existing: OnExisting = "add",
    job: str | None = None,
) -> Reducer[Any, list[str]]: ...
def to_files(
    folder: Folder,
    *,
    format: str = "text",
    to_string: Callable[[Any], str] | None = None,
    columns: type | Iterable[str] | None = None,
    encoding: str = "utf-8",
    compression: AvroCompression | None = None,
    name: str = "part",
    partition_by: PartitionBy | None = None,
    roll_at: RollAt | None = None,
    on_existing: OnExisting = "add",
    job: str | None = None,
) -> Reducer[Any, list[str]]:
    r"""Write the items into files of a folder, and return the paths of these files.

    The folder is made if there is none. The files are called `part-000001-00000.txt` and so on: the number of the
    commit, then that of the file. The order of their names is the encounter order, so `text_files(folder)` reads what
    was written, as it was.

    A second run adds files; around `replacing(...)` it takes the place of what was there. A folder that holds files of
    others is refused: who reads the folder would read them, too.

    **Parallelism**: each partition that has items writes a file of its own. Nothing is shuffled.
    **Guarantee**: tasks write into `.dstream` in the folder. A commit then renames their files one after another, so
    each is whole from its first moment on, and at last replaces the list of all files, `_SUCCESS`, in one step: who
    reads the files that it lists sees all of a run or nothing. A run that fails leaves nothing; tasks that run twice
    leave one copy. If the process dies while it commits, the next commit into the folder finishes that one first. At a
    URL files are copied, and commits take turns by a note in `.dstream`, which somebody removes if its process died.
    In a table of Delta, files have their names from the start, and one entry of its log shows all files of a run.
    **On re-run**: the files are added again, unless `job` names the job.

    Args:
        folder: a path; on a cluster, one that all machines share. Or a URL that fsspec knows, such as `s3://bucket/out`.
            One that ends as a file does, such as `report.csv`, is refused, since `to_file` writes one file, unless a
            slash at its end says that it is a folder.
        format: `"text"`, a line for each item, or `"json"`, a line of JSON for each. `"csv"`, `"parquet"`, `"avro"`
            and `"delta"` have rows: dataclasses, named tuples, dicts, or tuples with `columns`. Nothing is converted:
            what does not fit is an error that names the item. CSV has a header in each file; None is an empty field
            there, and the empty text a quoted one. `"delta"` is a table of Delta with files of Parquet, whose readers
            see all files of a run at once, or none.
        to_string: makes the text of an item, without line breaks, since each ends a line.
        columns: of rows: a dataclass, a named tuple or a `TypedDict`, whose fields they are, or their names. Unset,
            those of the first item of a file. Dicts may lack some of them, which are None then.
        encoding: of lines, as for `open`.
        compression: `"gz"`, `"bz2"`, `"xz"` or `"zst"`. Parquet and Avro compress inside of the file: Parquet with
            Snappy, `"gz"` or `"zst"`, Avro with any of them or `"snappy"`.
        name: what the names of the files begin with.
        partition_by: the name of a field, or several, or functions by name: the items with the same value stand in a
            folder of their own, such as `country=NO/`, and keep the field; in a table of Delta
            they are fields, which the log keeps. A task has 32 files open at most.
        roll_at: (bytes, seconds), one of which may be None: a file ends before it has more bytes, or with the first
            item after so many seconds. The bytes are those before compression; of Parquet and Avro, those in memory.
            A job without an end holds the files of its epochs back until there are so many bytes of them or the
            seconds have passed, and makes one file of them; not in a table of Delta.
        on_existing: `"refuse"` a folder that holds files already, or `"add"` to those of earlier runs.
        job: a job of this name is committed once, however often it runs.

    Raises:
        TypeError: an argument is of another kind.
        ValueError: an argument is none of its choices, or the folder is called as a file is.
        LookupError: there is no such encoding.
        UnsupportedError: the folder is a URL that nobody writes to; or there is a table of Delta that needs what is
            not known here.
        SetupError: the package `fastavro`, which writes Avro, is not installed, or one for its compression, or that
            which fsspec needs for the URL.
        SinkError: when it runs: the disk is full, the folder is gone, holds files of others, or is not for this
            process to write; or partitions have different columns, or others than the table that is there.

    Example:
        >>> import pathlib, tempfile
        >>> from reducers import to_files
        >>> folder = pathlib.Path(tempfile.mkdtemp()) / "names"
        >>> with connect(engine="local") as ctx:
        ...     [path] = ctx.stream(["Ada", "Grace"]).map(str.upper).collect(to_files(folder))
        >>> pathlib.Path(path).name, pathlib.Path(path).read_text()
        ('part-000001-00000.txt', 'ADA\nGRACE\n')
    """
    given: Any = os.fspath(folder) if isinstance(folder, os.PathLike) else folder
    check_no_suffix(checked_text(given, "folder"))
    place = place_of(given)
    partitions, rolling = checked_partitions(partition_by), _rolling(roll_at)
    form = checked_format(format, to_string, columns, encoding, compression, partitions)
    if on_existing not in get_args(OnExisting):
        raise ValueError(f"on_existing must be 'add' or 'refuse', not {on_existing!r}")
    if not _NAME.fullmatch(checked_text(name, "name")) or len(name.encode()) > 200:
        raise ValueError(f"name must begin as no hidden file does, and hold no '/' and 200 bytes at most, not {name!r}")
    if job is not None:
        checked_text(job, "job")
    shown = [] if format == "text" else [f"format={format!r}"]
    label = f"to_files({', '.join([repr(shown_url(os.fspath(folder))), *shown])})"
    return FileSink(place, label, form, partitions, rolling, name, on_existing, job=job)


_NAME = re.compile(r"[^/\0._][^/\0]{0,99}")


def _rolling(roll_at: Any) -> Rolling:
    if roll_at is None:
        return Rolling()
    if not isinstance(roll_at, tuple) or len(roll_at) != 2:
        raise TypeError(f"roll_at must be a tuple (bytes, seconds), one of which may be None, not {roll_at!r}")
    size, seconds = roll_at
    if size is not None and (type(size) is not int or size < 1):
        raise ValueError(f"the bytes of roll_at must be an int of at least 1, not {size!r}")
    if seconds is not None and not (type(seconds) in (int, float) and seconds > 0):
        raise ValueError(f"the seconds of roll_at must be a number above 0, not {seconds!r}")
    return Rolling(NO_LIMIT if size is None else size, float("inf") if seconds is None else float(seconds))


@dataclass(frozen=True, slots=True, repr=False)
class FileSink(Replaceable, Generic[T]):
    """What `to_files` returns.

    Attributes:
        place: what is written into.
        label: the reducer as the user wrote it.
        form: how items become bytes.
        partitions: which folders they stand in.
        rolling: when files end.
        name: what the names of the files begin with.
        replace: the files take the place of all earlier ones.
    """

    place: Place
    label: str
    form: JoinedFormat | DeltaFormat
    partitions: PartitionFolders
    rolling: Rolling
    name: str
    on_existing: OnExisting
    replace: bool = field(default=False, kw_only=True)
    job: str | None = field(default=None, kw_only=True)

    @property
    def collector(self) -> None:
        """None: the items are written as they are."""
        return

    def open(self, context: Collections) -> FileTarget | DeltaTarget:
        """Make the folder."""
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
            SinkError: the folder holds what it should not.
        """
        begun = self._job(job, epoch)
        self._refuse_files_of_others(begun.record)
        self._begun = begun
        return begun

    def begin_epoch(self, job: str, epoch: int) -> FileJob:
        """Begin an epoch of a job without an end: with `roll_at=`, its files are joined with those of others.

        Raises:
            SinkError: the folder holds what it should not.
        """
        begun = self.begin(job, epoch)
        if self._sink.rolling != Rolling():
            begun.held = self._held(begun)
        return begun

    def show_held(self, job: str, *, is_over: bool) -> None:
        """Show what a job holds back, if it is time or the job is over."""
        if self._sink.rolling != Rolling() and (is_over or time.time() >= self._looks_again):
            begun = self._job(job, 0)
            begun.held = self._held(begun)
            self._looks_again = time.time() + begun.show_held(is_over=is_over)

    def _job(self, job: str | None, epoch: int) -> FileJob:
        sink, run = self._sink, uuid.uuid4().hex
        record = run if job is None else record_of(job)
        writer = FileWriter(sink.place, run, self._form, sink.partitions, sink.rolling)
        return FileJob(self._folder, record, epoch, job is not None, sink.name, self._form.suffix, sink.replace, writer)

    def _held(self, job: FileJob) -> HeldFiles:
        return HeldFiles(self._folder, job.record, job.writer, self._form)

    def _refuse_files_of_others(self, record: str) -> None:
        folder, sink = self._folder, self._sink
        if folder.epoch(record) or folder.unfinished().record == record:
            return  # It has written here before.
        if folder.place.holds(LOG):
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
        """Return the paths of the files that the last epoch made."""
        return [] if self._begun is None else self._begun.files()
