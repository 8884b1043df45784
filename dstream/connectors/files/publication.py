"""State of an output folder, receipts of staged files, and their publication in one commit.

Visible to readers: `<name>-<commit>-<part>.<suffix>`, each of them always a complete file, and `_SUCCESS`, a JSON
object whose `files` are the names of all files of all finished commits, in order. `_SUCCESS` is replaced atomically: a
reader of the files that it lists reads all of a commit or nothing of it.

Hidden, in `.dstream`: the files that tasks write; for each job the last committed epoch, and its deferred files; and
during a commit its journal, with the final names of files.

The journal is the commit. If a process dies after it wrote that, the next commit into the folder finishes it first; if
it dies before, nothing happened. One commit at a time has a lock of the folder.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from dstream.errors import IllegalStateError, SinkError
from dstream.filesystem.folders import OutputFolder
from dstream.filesystem.output_folders import HIDDEN, writing_to
from dstream.schema.types import ColumnTypes
from dstream.spi import Receipt

__all__ = [
    "FOLDER",
    "NOTHING",
    "STAGED",
    "FileReceipt",
    "FolderState",
    "Publication",
    "check_staged",
    "checked_receipt",
    "common_columns",
    "locked",
    "number_of",
    "publish",
    "record_of",
    "sweep",
]


STAGED = re.compile(r"[0-9a-f]{32}-[0-9a-f]{32}")
"""The names of the files that tasks write: the run, then the attempt."""

_RECORD = re.compile(r"[0-9a-f]{32}")
_LEVEL = r"[^/\0._=][^/\0=]*=[^/\0]*/"
FOLDER = re.compile(rf"(?:{_LEVEL})*")
"""The folders of `partition_by`, `country=NO/`; each is visible, and inside of its folder."""

_PUBLISHED = re.compile(rf"(?:{_LEVEL})*[^/\0._][^/\0]*-(\d{{6,}})-\d{{5,}}(?:-[0-9a-f]{{8}})?\.[a-z0-9.]+")
_REMOVED = re.compile(rf"(?:{_LEVEL})*[^/\0._][^/\0]*")
_JOINED = re.compile(rf"{re.escape(HIDDEN)}/{STAGED.pattern}")


@dataclass(frozen=True, slots=True)
class Publication:
    """The files that a commit makes visible.

    Attributes:
        record: the record of its job.
        epoch: its number.
        files: (name from the task, name for readers), in order.
        removed: the files that these replace, including hidden files that were joined.
    """

    record: str
    epoch: int
    files: tuple[tuple[str, str], ...]
    removed: tuple[str, ...]

    def names(self) -> list[str]:
        """Return the names that readers will see."""
        return [name for _, name in self.files]


NOTHING = Publication("", 0, (), ())


@dataclass(frozen=True, slots=True)
class FolderState:
    """The folder, seen from the driver. Its files are not trusted, so their contents are checked.

    Attributes:
        place: its location.
    """

    place: OutputFolder

    @property
    def path(self) -> str:
        """The name in messages."""
        return self.place.title

    def strangers(self) -> list[str]:
        """Return the visible files that no commit has published."""
        seen = sorted(self.seen())
        # In this order: a commit that ends meanwhile is in the journal or in the list.
        unfinished = self.unfinished()
        own = {*unfinished.names(), *unfinished.removed, *self.listed()}
        # A file that such a commit has replaced no longer exists.
        return [name for name in seen if name not in own and self.place.exists(name)]

    def seen(self, below: str = "") -> Iterator[str]:
        """Yield the names of visible files, and of folders that `partition_by` has not created."""
        for name, is_folder in self.place.entries(below):
            if name[0] in "._":
                continue
            if is_folder and FOLDER.fullmatch(f"{name}/"):
                yield from self.seen(f"{below}{name}/")
            else:
                yield below + name

    def listed(self) -> list[str]:
        """Return the existing files of all finished commits, in order."""
        names = _texts(self._read(_LIST, "files"))
        return [name for name in names if _REMOVED.fullmatch(name) and self.place.exists(name)]

    def epoch(self, record: str) -> int:
        """Return the number of the last committed epoch of a job; 0 if there is none."""
        found = self._read(_record(record), "epoch")
        return found if isinstance(found, int) else 0

    def files_of(self, record: str) -> list[str]:
        """Return the paths of the files of that epoch."""
        return [self.place.path_of(name) for name in _texts(self._read(_record(record), "files"))]

    def unfinished(self) -> Publication:
        """Return the publication in the journal of an unfinished commit; `NOTHING` if there is none.

        Raises:
            SinkError: it is damaged.
        """
        found = self._read(_JOURNAL, "publication")
        if found is None:
            return NOTHING
        try:
            record, epoch, files, removed = found
            publication = Publication(record, epoch, tuple((staged, name) for staged, name in files), tuple(removed))
            _check(publication)
        except (TypeError, ValueError) as error:
            raise SinkError(
                f"{self.place.path_of(_JOURNAL)} is no journal of a commit: remove it if you know who wrote it"
            ) from error
        return publication

    def begin(self, publication: Publication) -> None:
        """Write the journal."""
        parts = [publication.record, publication.epoch, publication.files, publication.removed]
        self._write(_JOURNAL, {"publication": parts})

    def end(self) -> None:
        """Remove the journal."""
        self.place.delete(_JOURNAL)

    def list_files(self, names: list[str]) -> None:
        """Store the names of the files of all finished commits."""
        self._write(_LIST, {"files": names})

    def remember(self, publication: Publication) -> None:
        """Record that the epoch is committed, and its files."""
        content = {"epoch": publication.epoch, "files": publication.names()}
        self._write(_record(publication.record), content)

    def hold(self, record: str, epoch: int, receipts: list[Any], since: float) -> None:
        """Record that the epoch is committed, and the deferred files of the job, with their times, in order."""
        self._write(_record(record), {"epoch": epoch, "files": [], "held": receipts, "since": since})

    def held(self, record: str) -> tuple[list[Any], float]:
        """Return the deferred receipts of a job, and their time."""
        receipts, since = self._read(_record(record), "held"), self._read(_record(record), "since")
        return (receipts if isinstance(receipts, list) else []), (since if isinstance(since, float) else 0.0)

    def all_held(self) -> set[str]:
        """Return the hidden names of the deferred files of all jobs.

        Raises:
            SinkError: the record of one of them cannot be read.
        """
        records = [name.removesuffix(".json") for name, _ in self.place.entries(f"{HIDDEN}/jobs")]
        held = [each for record in records if _RECORD.fullmatch(record) for each in self.held(record)[0]]
        return {each[0] for each in held if isinstance(each, list) and each and isinstance(each[0], str)}

    def forget(self, record: str) -> None:
        """Remove the record of a job that will not be committed again."""
        with contextlib.suppress(OSError, SinkError):
            self.place.delete(_record(record))

    def _read(self, name: str, key: str) -> Any:
        """Return a value of an object in a file; None if missing. Other programs write an empty `_SUCCESS`."""
        try:
            content = self.place.read(name)
            found = json.loads(content) if content else None
        except FileNotFoundError:
            return None
        except (ValueError, RecursionError) as error:
            raise SinkError(f"cannot read {self.place.path_of(name)}: {error}") from error
        return found.get(key) if isinstance(found, dict) else None

    def _write(self, name: str, content: Any) -> None:
        self.place.replace(name, json.dumps(content).encode())


_LIST = "_SUCCESS"
_JOURNAL = f"{HIDDEN}/publishing.json"


def _record(record: str) -> str:
    return f"{HIDDEN}/jobs/{record}.json"


def _texts(found: Any) -> list[str]:
    return [each for each in found if isinstance(each, str)] if isinstance(found, list) else []


def _check(publication: Publication) -> None:
    """Refuse a journal that leads out of the folder."""
    matching = [(_RECORD, publication.record), *((_PUBLISHED, name) for name in publication.names())]
    matching += [(STAGED, staged) for staged, _ in publication.files]
    if not all(pattern.fullmatch(name) for pattern, name in matching) or not isinstance(publication.epoch, int):
        raise ValueError("a name in it is none that a commit gives")
    if not all(_REMOVED.fullmatch(name) or _JOINED.fullmatch(name) for name in publication.removed):
        raise ValueError("it removes what no commit has made")


def number_of(name: str) -> int:
    """Return the number of the commit that named a file; 0 if none did."""
    found = _PUBLISHED.fullmatch(name)
    return int(found[1]) if found else 0


@dataclass(frozen=True, slots=True)
class FileReceipt:
    """The file that a task wrote.

    Attributes:
        name: the name of the file, below the hidden folder.
        size: in bytes.
        folder: the folder below the target, with a slash at its end; empty for the target itself.
        columns: the columns of the file.
        items: their number; -1 in a receipt of an older version.
    """

    name: str
    size: int
    folder: str
    columns: ColumnTypes
    items: int

    def receipt(self) -> list[Receipt]:
        """Return the plain form, which `checked_receipt` reads."""
        return [self.name, self.size, self.folder, dict(self.columns), self.items]


def checked_receipt(receipt: Receipt, folder: FolderState) -> FileReceipt:
    """Return the parts of a receipt. It is untrusted, so it is validated, and refers to no other location."""
    match receipt:
        case [str(name), int(size), str(below), dict(columns), *count] if STAGED.fullmatch(name) and FOLDER.fullmatch(
            below
        ):
            kinds = {str(column): str(kind) for column, kind in columns.items()}
            return FileReceipt(name, size, below, kinds, next((each for each in count if isinstance(each, int)), -1))
    raise IllegalStateError(f"{folder.path}: nothing was changed, since {receipt!r} is no receipt of a file")


def check_staged(staged: Sequence[tuple[str, int]], folder: FolderState) -> None:
    """Check that the tasks' files exist, by name and size.

    Raises:
        IllegalStateError: it is not, or not as it was written.
    """
    for name, size in staged:
        try:
            found = folder.place.size(f"{HIDDEN}/{name}")
        except FileNotFoundError as error:
            raise IllegalStateError(
                f"{folder.path}: nothing was changed, since what a task wrote is no more, or is on another machine: "
                "the folder must be one that all machines share"
            ) from error
        if found != size:
            raise IllegalStateError(
                f"{folder.path}: nothing was changed, since a task wrote {size:,} bytes, and {found:,} are there"
            )


def common_columns(staged: Sequence[FileReceipt], folder: FolderState, *, are_open: bool = False) -> ColumnTypes:
    """Return the columns of the files of one commit, which readers treat as one table.

    Args:
        staged: the files.
        folder: where they are published.
        are_open: one file may show the type of a column that has nothing but None in another one.

    Raises:
        SinkError: they have different columns.
    """
    columns = dict(staged[0].columns) if staged else {}
    for file in staged[1:]:
        if file.columns.keys() != columns.keys():
            raise _unlike(folder, f"columns {', '.join(columns)}", f"columns {', '.join(file.columns)}")
        for name, kind in file.columns.items():
            known = columns[name]
            if kind != known and not (are_open and "" in (kind, known)):
                raise _unlike(folder, f"{known or _NONE} in the column {name!r}", kind or _NONE)
            columns[name] = known or kind
    return columns


_NONE = "nothing but None"


def _unlike(folder: FolderState, one: str, other: str) -> SinkError:
    return SinkError(
        f"{folder.path}: nothing was changed, since one partition has {one}, and another one {other}: "
        "name the columns, or a class that has them with their types, in columns=, or map() the items before"
    )


_WEEK = 7 * 24 * 60 * 60.0


@contextlib.contextmanager
def locked(folder: FolderState) -> Iterator[None]:
    """Lock out the commits of other processes; finish the commit that a process left when it died.

    Raises:
        SinkError: another process has the lock for a minute, or the folder no longer exists.
    """
    with folder.place.locked():
        with writing_to(folder.path):
            _finish(folder)
        yield


def publish(
    folder: FolderState,
    record: str,
    epoch: int,
    staged: Sequence[tuple[str, int]],
    named: Callable[[int, int], str],
    *,
    replace: bool,
    joined: Sequence[str] = (),
) -> None:
    """Rename the tasks' files to their visible names; within `locked`.

    Args:
        folder: the folder.
        record: the record of the job.
        epoch: its number.
        staged: name and size of the file of each task, in order.
        named: returns the name of a file from the number of the commit, and its own within that.
        replace: all files of earlier commits are removed.
        joined: files of tasks that were joined into files of `staged`.

    Raises:
        IllegalStateError: a file is missing or damaged; nothing was changed.
        SinkError: the file system refuses.
    """
    check_staged(staged, folder)
    with writing_to(folder.path):
        earlier = folder.listed()
        number = 1 + max(map(number_of, [*folder.seen(), *earlier]), default=0)
        files = tuple((name, named(number, part)) for part, (name, _) in enumerate(staged))
        removed = (*(earlier if replace else ()), *(f"{HIDDEN}/{name}" for name in joined))
        publication = Publication(record, epoch, files, removed)
        try:
            folder.begin(publication)
            for name, seen in publication.files:
                # Here a missing file is an error; `_show` skips it, as a file that was moved before a crash.
                folder.place.move(f"{HIDDEN}/{name}", seen)
            _show(folder, publication)
        except BaseException:
            _take_back(folder, publication, earlier)
            raise
        _clear(folder, publication)


def _show(folder: FolderState, publication: Publication) -> None:
    """Carry out a journal, up to the list that readers see, and the folder's record of the job."""
    for staged, name in publication.files:
        with contextlib.suppress(FileNotFoundError):  # It was moved before.
            folder.place.move(f"{HIDDEN}/{staged}", name)
    folder.place.flush({os.path.dirname(name) for name in ["", *publication.names()]})
    gone = {*publication.removed, *publication.names()}
    # After the flush: a list that survives a crash of the machine must not name files that do not.
    folder.list_files([*(name for name in folder.listed() if name not in gone), *publication.names()])
    folder.remember(publication)


def _take_back(folder: FolderState, publication: Publication, earlier: list[str]) -> None:
    """Undo the moves of a failed commit, if moves are reversible, unless it is recorded in the job.

    Otherwise, and where this fails too, the next commit continues where this one stopped.
    """
    # Once the record has the epoch, the job counts it as committed, and no driver would write its files again.
    if not folder.place.moves_at_once or folder.epoch(publication.record) >= publication.epoch:
        return
    if folder.listed() != earlier:
        folder.list_files(earlier)
    for staged, name in publication.files:
        if not folder.place.exists(
            f"{HIDDEN}/{staged}"
        ):  # Else it was not moved, and its name may be one that none has.
            folder.place.move(name, f"{HIDDEN}/{staged}")
            _remove_empty(folder, os.path.dirname(name))
    folder.end()


def _finish(folder: FolderState) -> None:
    """Carry out the rest of a journal."""
    publication = folder.unfinished()
    if publication.record:
        _show(folder, publication)
        _clear(folder, publication)


def _clear(folder: FolderState, publication: Publication) -> None:
    """Remove the files that a commit replaced, and its journal."""
    # The list no longer names them, so that a crash between these deletions shows no part of them to readers.
    for name in publication.removed:
        folder.place.delete(name)
        _remove_empty(folder, os.path.dirname(name))
    folder.end()


def _remove_empty(folder: FolderState, below: str) -> None:
    """Remove the empty folders of `partition_by`."""
    while below:
        folder.place.delete_folder(below)
        below = os.path.dirname(below)


def sweep(folder: FolderState, runs: set[str]) -> None:
    """Remove what these runs have written, and what others wrote a week ago and did not commit; raises nothing.

    Files of an unfinished commit, and deferred files of jobs, are retained.
    """
    with contextlib.suppress(OSError, SinkError):
        unfinished = {staged for staged, _ in folder.unfinished().files}
        held: set[str] | None = None
        for name, _ in list(folder.place.entries(HIDDEN)):
            if STAGED.fullmatch(name) and name not in unfinished:
                with contextlib.suppress(OSError, SinkError):
                    # Files of other runs may belong to tasks that still write, or to receipts to be committed later.
                    if name.partition("-")[0] in runs or folder.place.age(f"{HIDDEN}/{name}") > _WEEK:
                        # Each record is a file to read, so they are read once, and only if something may be removed.
                        held = folder.all_held() if held is None else held
                        if name not in held:
                            folder.place.delete(f"{HIDDEN}/{name}")


def record_of(job: str) -> str:
    """Return the name of the record of a job, which may be called anything."""
    # A name may contain a lone surrogate, which UTF-8 refuses.
    return sha256(job.encode("utf-8", "surrogatepass")).hexdigest()[:32]
