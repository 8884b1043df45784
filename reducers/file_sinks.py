"""`to_files`: items as files of a folder."""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar, get_args, overload

from dstream.errors import SinkError, UnsupportedError
from dstream.spi import Collections, Reducer
from reducers.file_formats import Compression, FileFormat, JsonFormat, TextFormat, checked_encoding
from reducers.folder_state import FolderState
from reducers.staged_files import FileJob, FileWriter, record_of
from reducers.writing import Replaceable, checked_function, checked_text

__all__ = ["FileSink", "FileTarget", "to_files"]

T = TypeVar("T")
OnExisting = Literal["add", "refuse"]
Folder = str | os.PathLike[str]


@overload
def to_files(
    folder: Folder,
    *,
    format: Literal["text"] = "text",
    to_string: Callable[[T], str] = str,
    encoding: str = "utf-8",
    compression: Compression | None = None,
    name: str = "part",
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
    on_existing: OnExisting = "add",
    job: str | None = None,
) -> Reducer[Any, list[str]]: ...
def to_files(
    folder: Folder,
    *,
    format: str = "text",
    to_string: Callable[[Any], str] | None = None,
    encoding: str = "utf-8",
    compression: Compression | None = None,
    name: str = "part",
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
    leave one copy. If the process dies while it commits, the next commit into the folder finishes that one first.
    **On re-run**: the files are added again, unless `job` names the job.

    Args:
        folder: a path; on a cluster, one that all machines share.
        format: `"text"`, a line for each item, or `"json"`, a line of JSON for each. Dataclasses and named tuples
            become objects, which `json_lines(folder, kind)` makes the same items of.
        to_string: makes the text of an item; of a text without line breaks, since each ends a line.
        encoding: as for `open`.
        compression: `"gz"`, `"bz2"`, `"xz"` or `"zst"`.
        name: what the names of the files begin with.
        on_existing: `"refuse"` a folder that holds files already, or `"add"` to those of earlier runs.
        job: a job of this name is committed once, however often it runs.

    Raises:
        TypeError: an argument is of another kind.
        ValueError: an argument is none of its choices.
        LookupError: there is no such encoding.
        UnsupportedError: the folder is a URL of another machine, or the format comes later.
        SinkError: when it runs: the disk is full, the folder is gone, holds files of others, or is not for this
            process to write.

    Example:
        >>> import pathlib, tempfile
        >>> from reducers import to_files
        >>> folder = pathlib.Path(tempfile.mkdtemp()) / "names"
        >>> with connect(engine="local") as ctx:
        ...     [path] = ctx.stream(["Ada", "Grace"]).map(str.upper).collect(to_files(folder))
        >>> pathlib.Path(path).name, pathlib.Path(path).read_text()
        ('part-000001-00000.txt', 'ADA\nGRACE\n')
    """
    place = _place(folder)
    form = _format(format, to_string, checked_encoding(encoding))
    if compression not in (None, *get_args(Compression)):
        raise ValueError(f"compression must be 'gz', 'bz2', 'xz', 'zst' or None, not {compression!r}")
    if on_existing not in get_args(OnExisting):
        raise ValueError(f"on_existing must be 'add' or 'refuse', not {on_existing!r}")
    if not _NAME.fullmatch(checked_text(name, "name")):
        raise ValueError(f"name must begin as no hidden file does, and hold no '/', not {name!r}")
    if job is not None:
        checked_text(job, "job")
    shown = [] if format == "text" else [f"format={format!r}"]
    label = f"to_files({', '.join([repr(os.fspath(folder)), *shown])})"
    return FileSink(place, label, form, compression, name, on_existing, job=job)


_NAME = re.compile(r"[^/\0._][^/\0]{0,99}")
_URL = re.compile(r"[A-Za-z][\w+.-]*(::[A-Za-z][\w+.-]*)*://")


def _place(folder: Any) -> str:
    """Return the absolute path of a folder: the process that commits may stand elsewhere."""
    path: Any = os.fspath(folder) if isinstance(folder, os.PathLike) else folder
    path = checked_text(path, "folder")
    if _URL.match(path) and not path.startswith("file:///"):
        scheme = path.partition(":")[0]
        raise UnsupportedError(
            f"to_files() writes into folders that this machine has, also mounted ones, and not yet to {scheme}://"
        )
    absolute: str = os.path.abspath(os.path.expanduser(path.removeprefix("file://")))
    return absolute


def _format(format: str, to_string: Any, encoding: str) -> FileFormat:
    if format in _LATER:
        raise UnsupportedError(f"to_files() writes the formats 'text' and 'json', and not yet {format!r}")
    if format not in ("text", "json"):
        raise ValueError(f"format must be 'text' or 'json', not {format!r}")
    if format == "text":
        return TextFormat(str if to_string is None else checked_function(to_string, "to_string"), encoding)
    if to_string is not None:
        raise TypeError("to_string makes texts, and format='json' writes none: map(...) makes other items before")
    return JsonFormat(encoding)


_LATER = ("csv", "parquet", "avro", "delta")


@dataclass(frozen=True, slots=True, repr=False)
class FileSink(Replaceable, Generic[T]):
    """What `to_files` returns.

    Attributes:
        folder: absolute.
        label: the reducer as the user wrote it.
        form: how items become bytes.
        name: what the names of the files begin with.
        replace: the files take the place of all earlier ones.
    """

    folder: str
    label: str
    form: FileFormat
    compression: Compression | None
    name: str
    on_existing: OnExisting
    replace: bool = field(default=False, kw_only=True)
    job: str | None = field(default=None, kw_only=True)

    @property
    def collector(self) -> None:
        """None: the items are written as they are."""
        return

    def open(self, context: Collections) -> FileTarget:
        """Make the folder."""
        folder = FolderState(self.folder)
        folder.make()
        return FileTarget(self, folder)

    def __repr__(self) -> str:
        return self.label


class FileTarget:
    """The folder, opened in the driver."""

    def __init__(self, sink: FileSink[Any], folder: FolderState) -> None:
        self._sink = sink
        self._folder = folder
        self._begun: FileJob | None = None

    def begin(self, job: str | None, epoch: int = 1) -> FileJob:
        """Begin an epoch.

        Raises:
            SinkError: the folder holds what it should not.
        """
        sink, run = self._sink, uuid.uuid4().hex
        record = run if job is None else record_of(job)
        suffix = sink.form.suffix + (f".{sink.compression}" if sink.compression else "")
        writer = FileWriter(self._folder.hidden, run, sink.form, sink.compression)
        begun = FileJob(self._folder, record, epoch, job is not None, sink.name, suffix, sink.replace, writer)
        self._refuse_files_of_others(record)
        self._begun = begun
        return begun

    def _refuse_files_of_others(self, record: str) -> None:
        folder, sink = self._folder, self._sink
        if folder.epoch(record) or folder.unfinished().record == record:
            return  # It has written here before.
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
