"""`to_files`, `to_file`: items as files."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from typing import Any, Literal, TypeVar, cast, get_args, overload

from dstream.base.urls import shown_url
from dstream.connectors.base import checked_text
from dstream.connectors.files.columnar_output import AvroCompression
from dstream.connectors.files.format_choice import check_no_suffix, checked_format, format_of_path
from dstream.connectors.files.formats import NO_LIMIT, Compression, JoinedFormat
from dstream.connectors.files.sinks import (
    FileSink,
    OneFileSink,
    OnExistingFile,
    OnExistingFiles,
)
from dstream.connectors.files.writers import (
    PartitionBy,
    Rolling,
    checked_partitions,
)
from dstream.filesystem.folders import OutputFolder
from dstream.filesystem.output_folders import LocalOutput, output_folder
from dstream.spi import Reducer

__all__ = ["to_file", "to_files"]


T = TypeVar("T")


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
    on_existing: OnExistingFiles = "add",
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
    on_existing: OnExistingFiles = "add",
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
    on_existing: OnExistingFiles = "add",
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
    on_existing: OnExistingFiles = "add",
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
    on_existing: OnExistingFiles = "add",
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
    on_existing: OnExistingFiles = "add",
    job: str | None = None,
) -> Reducer[Any, list[str]]:
    r"""Write the items into files of a folder, and return the paths of these files.

    The folder is created if it does not exist. The files are called `part-000001-00000.txt` and so on: the number of
    the commit, then the number of the file. The order of their names is the encounter order, so `text_files(folder)`
    reads the items as they were written.

    A second run adds files; inside of `replacing(...)` it replaces the old files. A folder with other files is
    refused: readers of the folder would read them, too.

    **Parallelism**: each partition that has items writes a file of its own. Nothing is shuffled.
    **Guarantee**: tasks write into `.dstream` in the folder. A commit then renames their files one after another, so
    each is whole from its first moment on, and at last replaces the list of all files, `_SUCCESS`, in one step: a
    process that reads the files that it lists sees all of a run or nothing. A run that fails leaves nothing; tasks that
    run twice leave one copy. If the process dies while it commits, the next commit into the folder finishes that one
    first. At a URL files are copied, and commits take turns by a note in `.dstream`, which has to be removed by hand if
    its process died. In a table of Delta, files have their names from the start, and one entry of its log shows all
    files of a run. **On re-run**: the files are added again, unless `job` names the job.

    Args:
        folder: a path; on a cluster, one that all machines share. Or a URL for fsspec, such as `s3://bucket/out`.
            One that ends as a file does, such as `report.csv`, is refused, since `to_file` writes one file, unless a
            slash at its end shows that it is a folder.
        format: `"text"`, a line for each item, or `"json"`, a line of JSON for each. `"csv"`, `"parquet"`, `"avro"`
            and `"delta"` have rows: dataclasses, named tuples, dicts, or tuples with `columns`. Nothing is converted:
            what does not fit is an error that names the item. CSV has a header in each file; None is an empty field
            there, and the empty text a quoted one. `"delta"` is a table of Delta with files of Parquet, whose readers
            see all files of a run at once, or none.
        to_string: returns the string of an item, without line breaks, since each ends a line.
        columns: the columns of rows: names, or a dataclass, a named tuple or a `TypedDict` with these fields. Unset,
            the fields of the first item of a file. Fields that a dict lacks are None.
        encoding: the encoding of lines, as for `open`.
        compression: `"gz"`, `"bz2"`, `"xz"` or `"zst"`. Parquet and Avro compress inside of the file: Parquet with
            Snappy, `"gz"` or `"zst"`, Avro with any of them or `"snappy"`.
        name: the beginning of the names of the files.
        partition_by: the name of a field, or several, or functions by name: the items with the same value are in a
            folder of their own, such as `country=NO/`, and keep the field; in a table of Delta
            they are fields, which the log keeps. A task has 32 files open at most.
        roll_at: (bytes, seconds), one of which may be None: a file ends before it has more bytes, or with the first
            item after this number of seconds. The bytes are those before compression; of Parquet and Avro, those in
            memory. A job without an end holds the files of its epochs back until they have this number of bytes or the
            seconds have passed, and makes one file of them; not in a table of Delta.
        on_existing: `"refuse"` a folder that contains files, or `"add"` files to those of earlier runs.
        job: a job of this name is committed once, however often it runs.

    Raises:
        TypeError: an argument is of another kind.
        ValueError: an argument is none of its choices, or the folder has the name of a file.
        LookupError: there is no such encoding.
        UnsupportedError: the folder is a URL that cannot be written to; or there is a table of Delta with
            unsupported features.
        SetupError: the package `fastavro`, which writes Avro, is not installed, or a package for its compression, or
            the package that fsspec needs for the URL.
        SinkError: when it runs: the disk is full, the folder no longer exists, holds files of others, or is not for
            this process to write; or partitions have different columns, or others than the existing table.

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
    place = output_folder(given)
    partitions, rolling = checked_partitions(partition_by), _rolling(roll_at)
    form = checked_format(format, to_string, columns, encoding, compression, partitions)
    if on_existing not in get_args(OnExistingFiles):
        raise ValueError(f"on_existing must be 'add' or 'refuse', not {on_existing!r}")
    # Usual file systems take names of 255 bytes, to which numbers and the suffix are added.
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
    if size is None and seconds is None:
        raise ValueError("roll_at has neither bytes nor seconds: give one of them, or no roll_at")
    if size is not None and (type(size) is not int or size < 1):
        raise ValueError(f"the bytes of roll_at must be an int of at least 1, not {size!r}")
    if seconds is not None and not (type(seconds) in (int, float) and seconds > 0):
        raise ValueError(f"the seconds of roll_at must be a number above 0, not {seconds!r}")
    return Rolling(NO_LIMIT if size is None else size, float("inf") if seconds is None else float(seconds))


Path = str | os.PathLike[str]


@overload
def to_file(
    path: Path,
    *,
    format: Literal["text"] | None = None,
    to_string: Callable[[T], str],
    encoding: str = "utf-8",
    compression: Compression | None = None,
    on_existing: OnExistingFile = "overwrite",
    job: str | None = None,
) -> Reducer[T, str]: ...
@overload
def to_file(
    path: Path,
    *,
    format: Literal["text", "json", "csv", "parquet", "avro"] | None = None,
    columns: type | Iterable[str] | None = None,
    encoding: str = "utf-8",
    compression: AvroCompression | None = None,
    on_existing: OnExistingFile = "overwrite",
    job: str | None = None,
) -> Reducer[object, str]: ...
def to_file(
    path: Path,
    *,
    format: str | None = None,
    to_string: Callable[[Any], str] | None = None,
    columns: type | Iterable[str] | None = None,
    encoding: str = "utf-8",
    compression: AvroCompression | None = None,
    on_existing: OnExistingFile = "overwrite",
    job: str | None = None,
) -> Reducer[Any, str]:
    r"""Write all items into one file, in encounter order, and return its path.

    For results of a size that one program reads: a report, an extract. `to_files` writes a folder of files, which
    needs no second step, and to which a job without an end can add files.

    **Parallelism**: each partition writes a part of its own beside the file; the driver joins the parts.
    **Guarantee**: the file is seen complete or not at all: it is written in `.dstream` beside it and then renamed, so a
    run that fails leaves the old file. At a URL it is copied, and appears when the copy is complete.
    **On re-run**: the file is written again, with the same content, unless `job` names the job.

    Args:
        path: the path of the file; on a cluster, one that all machines share. Or a URL for fsspec. Creates the folder.
        format: `"text"`, `"json"` (lines of JSON), `"csv"`, `"parquet"` or `"avro"`, as in `to_files`. Unset, the
            format of the name: `.txt`, `.json` and `.jsonl`, `.csv`, `.parquet`, `.avro`.
        to_string: returns the string of an item, without line breaks.
        columns: the columns of rows: a dataclass, a named tuple or a `TypedDict`, or names. Unset, the fields of the
            first item of each part.
        encoding: the encoding of lines, as for `open`.
        compression: as in `to_files`. Unset, the compression of a name such as `report.csv.gz`.
        on_existing: `"overwrite"` an existing file, or `"refuse"` to.
        job: a job of this name is committed once, however often it runs.

    Raises:
        TypeError: an argument is of another kind, or none that the format has.
        ValueError: an argument is none of its choices, or the name has no ending of a format.
        LookupError: there is no such encoding.
        UnsupportedError: the path is a URL that cannot be written to.
        SetupError: the package `fastavro`, which writes Avro, is not installed, or a package for its compression, or
            the package that fsspec needs for the URL.
        SinkError: when it runs: the path is a folder, the disk is full, or parts have different columns.

    Example:
        >>> import pathlib, tempfile
        >>> from reducers import to_file
        >>> report = pathlib.Path(tempfile.mkdtemp()) / "report.csv"
        >>> with connect(engine="local") as ctx:
        ...     path = ctx.stream([("Ada", 36), ("Grace", 85)]).collect(to_file(report, columns=["name", "age"]))
        >>> report.read_text()
        'name,age\nAda,36\nGrace,85\n'
    """
    given: Any = os.fspath(path) if isinstance(path, os.PathLike) else path
    given = checked_text(given, "path")
    named, compression = format_of_path(given, format, compression)
    form = checked_format(named, to_string, columns, encoding, compression, checked_partitions(None))
    if on_existing not in get_args(OnExistingFile):
        raise ValueError(f"on_existing must be 'overwrite' or 'refuse', not {on_existing!r}")
    place, name = _place_and_name(given)
    if job is not None:
        checked_text(job, "job")
    label = f"to_file({shown_url(given)!r})"
    return OneFileSink(place, name, label, cast(JoinedFormat, form), on_existing, job=job)


def _place_and_name(path: str) -> tuple[OutputFolder, str]:
    """Return the folder of a file and its name in the folder; links are followed, since a rename would replace them."""
    folder, slash, name = path.rpartition("/")
    if not name or name.startswith("."):
        raise ValueError(f"path must end in the name of a file that is not hidden, not {shown_url(path)!r}")
    place = output_folder(f"{folder}/" if slash else ".")
    if isinstance(place, LocalOutput) and os.path.islink(place.path_of(name)):
        real, name = os.path.split(os.path.realpath(place.path_of(name)))
        return LocalOutput(real), name
    return place, name
