"""`to_file`: all items as one file. `reducers.file_sinks` has the files of a folder."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import IO, Any, Generic, Literal, TypeVar, cast, get_args, overload

from dstream.errors import SinkError
from dstream.spi import Collections, Receipt, Reducer
from dstream.values.secrets import shown_url
from reducers.avro_files import AvroCompression
from reducers.file_formats import Compression, JoinedFormat
from reducers.file_jobs import check_columns, record_of
from reducers.file_receipts import Staged, check_staged, checked_receipt
from reducers.file_suffixes import format_of_path
from reducers.folder_state import FolderState, Publication
from reducers.format_choice import checked_format
from reducers.held_files import HeldFiles
from reducers.partition_folders import checked_partitions
from reducers.places import HIDDEN, LocalPlace, Place, writing_to
from reducers.publishing import locked, sweep
from reducers.remote_places import place_of
from reducers.staged_files import CountedFile, FileWriter, Rolling
from reducers.writing import checked_text

__all__ = ["to_file"]

T = TypeVar("T")
OnExisting = Literal["overwrite", "refuse"]
Path = str | os.PathLike[str]


@overload
def to_file(
    path: Path,
    *,
    format: Literal["text"] | None = None,
    to_string: Callable[[T], str],
    encoding: str = "utf-8",
    compression: Compression | None = None,
    on_existing: OnExisting = "overwrite",
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
    on_existing: OnExisting = "overwrite",
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
    on_existing: OnExisting = "overwrite",
    job: str | None = None,
) -> Reducer[Any, str]:
    r"""Write all items into one file, in encounter order, and return its path.

    For results of a size that one program reads: a report, an extract. `to_files` writes a folder of files, which
    takes no second step, and which a job without an end adds to.

    **Parallelism**: each partition writes a part of its own beside the file; the driver joins the parts.
    **Guarantee**: the file is seen whole or not at all: it is written in `.dstream` beside it and then renamed, so a
    run that fails leaves the file that was there. At a URL it is copied, and appears when the copy is complete.
    **On re-run**: the file is written again, with the same content, unless `job` names the job.

    Args:
        path: of the file; on a cluster, one that all machines share. Or a URL that fsspec knows. The folder is made.
        format: `"text"`, `"json"` (lines of JSON), `"csv"`, `"parquet"` or `"avro"`, as in `to_files`. Unset, that of
            the name: `.txt`, `.json` and `.jsonl`, `.csv`, `.parquet`, `.avro`.
        to_string: makes the text of an item, without line breaks.
        columns: of rows: a dataclass, a named tuple or a `TypedDict`, or names. Unset, those of the first item of
            each part.
        encoding: of lines, as for `open`.
        compression: as in `to_files`. Unset, that of a name such as `report.csv.gz`.
        on_existing: `"overwrite"` a file that is there, or `"refuse"` to.
        job: a job of this name is committed once, however often it runs.

    Raises:
        TypeError: an argument is of another kind, or none that the format has.
        ValueError: an argument is none of its choices, or the name says no format.
        LookupError: there is no such encoding.
        UnsupportedError: the path is a URL that nobody writes to.
        SetupError: the package `fastavro`, which writes Avro, is not installed, or one for its compression, or that
            which fsspec needs for the URL.
        SinkError: when it runs: the path is that of a folder, the disk is full, or parts have different columns.

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
    said, compression = format_of_path(given, format, compression)
    form = checked_format(said, to_string, columns, encoding, compression, checked_partitions(None))
    if on_existing not in get_args(OnExisting):
        raise ValueError(f"on_existing must be 'overwrite' or 'refuse', not {on_existing!r}")
    place, name = _place_and_name(given)
    if job is not None:
        checked_text(job, "job")
    label = f"to_file({shown_url(given)!r})"
    return OneFileSink(place, name, label, cast(JoinedFormat, form), on_existing, job=job)


def _place_and_name(path: str) -> tuple[Place, str]:
    """Return the folder of a file and its name there; a link is followed, since a rename would replace it."""
    folder, slash, name = path.rpartition("/")
    if not name or name.startswith("."):
        raise ValueError(f"path must end in the name of a file that is not hidden, not {shown_url(path)!r}")
    place = place_of(f"{folder}/" if slash else ".")
    if isinstance(place, LocalPlace) and os.path.islink(place.path_of(name)):
        real, name = os.path.split(os.path.realpath(place.path_of(name)))
        return LocalPlace(real), name
    return place, name


@dataclass(frozen=True, slots=True, repr=False)
class OneFileSink(Generic[T]):
    """The reducer that `to_file` returns.

    Attributes:
        place: the folder of the file.
        name: that of the file.
        label: the reducer as the user wrote it.
        form: how items become bytes.
    """

    place: Place
    name: str
    label: str
    form: JoinedFormat
    on_existing: OnExisting
    job: str | None = field(default=None, kw_only=True)

    @property
    def collector(self) -> None:
        """None: the items are written as they are."""
        return

    @property
    def instead_of_epochs(self) -> str:
        """A file that is written whole has an end."""
        return "write to_files(folder), which adds files epoch by epoch, and with roll_at= fewer and larger ones"

    def open(self, context: Collections) -> OneFileTarget:
        """Make the folder."""
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
            SinkError: the path is that of a folder, or of a file that is not to be overwritten, or the folder has files
                of `to_files`.
        """
        run = uuid.uuid4().hex
        record = run if job is None else record_of(job)
        place = self._sink.place
        place.make()  # Another run, which has ended since this was opened, may have removed what was empty.
        writer = FileWriter(place, run, self._sink.form, checked_partitions(None), Rolling())
        begun = OneFileJob(self._sink, self._folder, record, epoch, job is not None, writer)
        begun.check()
        with writing_to(place.title):
            place.create(f"{HIDDEN}/{writer.new_name()}").close()  # As long as it is there, so is the folder.
        return begun

    def result(self) -> str:
        """Return the path of the file."""
        return self._sink.place.path_of(self._sink.name)


@dataclass(slots=True)
class OneFileJob:
    """One epoch of a job on its way into a file, in the driver.

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
        """Whether this epoch, or a later one, was committed."""
        return self._is_committed or self.folder.epoch(self.record) >= self.epoch

    def check(self) -> None:
        """Refuse a path at which no file is to be written."""
        sink, place = self.sink, self.sink.place
        if not place.holds(sink.name) or self.is_done:
            pass
        elif is_folder(place, sink.name):
            raise SinkError(f"{sink.label}: {place.path_of(sink.name)} is a folder, into which to_files(...) writes")
        elif sink.on_existing == "refuse":
            raise SinkError(f"{sink.label}: {place.path_of(sink.name)} is there already")
        if self.folder.listed():
            raise SinkError(
                f"{sink.label}: the folder {place.title} has files of to_files(), whose readers would read this one, "
                "too: name another folder"
            )

    def commit(self, receipts: Sequence[Receipt]) -> None:
        """Join the parts that the receipts name, and give the file its name, unless the epoch was committed."""
        staged = [checked_receipt(each, self.folder) for each in receipts]
        check_columns(staged, self.folder)
        with locked(self.folder):
            if not self.is_done:
                self.check()
                self._publish(staged or [checked_receipt(self.writer.empty(), self.folder)])
            self._is_committed = True
        self._sweep({self.writer.run, *(part.name.partition("-")[0] for part in staged)})

    def _publish(self, parts: Sequence[Staged]) -> None:
        """Parts stay until this is remembered: a driver that goes on after a crash between publishes them again."""
        check_staged([(part.name, part.size) for part in parts], self.folder)
        made = self._copy(parts[0]) if len(parts) == 1 else self._joined(parts)
        place = self.sink.place
        with writing_to(place.title):
            place.move(f"{HIDDEN}/{made}", self.sink.name)
            place.settle({""})
        if self.is_named:
            self.folder.remember(Publication(self.record, self.epoch, (), ()))

    def _joined(self, parts: Sequence[Staged]) -> str:
        [made] = HeldFiles(self.folder, self.record, self.writer, self.sink.form).joined(parts)
        return made.name

    def _copy(self, part: Staged) -> str:
        place, name = self.sink.place, self.writer.new_name()
        made = CountedFile(place.create(f"{HIDDEN}/{name}"))
        with place.open(f"{HIDDEN}/{part.name}") as file:
            shutil.copyfileobj(file, cast("IO[bytes]", made))
        made.close()
        return name

    def abort(self) -> None:
        """Remove what the tasks of this run have written."""
        self._sweep({self.writer.run})

    def _sweep(self, runs: set[str]) -> None:
        """Remove what these runs have written, and the hidden folder if it holds nothing for anybody."""
        sweep(self.folder, runs)
        place = self.sink.place
        with suppress(OSError, SinkError):
            if [name for name, _ in place.seen(HIDDEN)] == ["jobs"]:
                place.remove_empty(f"{HIDDEN}/jobs")
                place.remove_empty(HIDDEN)


def is_folder(place: Place, name: str) -> bool:
    """Say whether there is a folder of this name in a place."""
    return any(found == name and is_one for found, is_one in place.seen(""))
