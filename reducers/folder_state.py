"""`FolderState`: what a folder that `to_files` writes into says of itself.

What readers see: `<name>-<commit>-<part>.<suffix>`, each of them a complete file from its first moment on, and
`_SUCCESS`, a JSON object whose `files` are the names of all files of all finished commits, in order. `_SUCCESS` is
replaced in one step: who reads the files that it lists reads all of a commit or nothing of it.

What they do not see, in `.dstream`: the files that tasks write; for each job the last epoch that was committed, and
what it holds back; and during a commit its journal, which says what gets which name. `reducers.publishing` has the
commit.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dstream.errors import SinkError
from reducers.places import HIDDEN, Place

__all__ = ["FOLDER", "NOTHING", "STAGED", "FolderState", "Publication", "number_of"]

STAGED = re.compile(r"[0-9a-f]{32}-[0-9a-f]{32}")
"""The names of what tasks write: the run, then the attempt."""

_RECORD = re.compile(r"[0-9a-f]{32}")
_LEVEL = r"[^/\0._=][^/\0=]*=[^/\0]*/"
FOLDER = re.compile(rf"(?:{_LEVEL})*")
"""What `partition_by` calls folders, `country=NO/`: none of them is hidden, or leads out of where it stands."""

_PUBLISHED = re.compile(rf"(?:{_LEVEL})*[^/\0._][^/\0]*-(\d{{6,}})-\d{{5,}}(?:-[0-9a-f]{{8}})?\.[a-z0-9.]+")
_REMOVED = re.compile(rf"(?:{_LEVEL})*[^/\0._][^/\0]*")
_JOINED = re.compile(rf"{re.escape(HIDDEN)}/{STAGED.pattern}")


@dataclass(frozen=True, slots=True)
class Publication:
    """What a commit makes visible.

    Attributes:
        record: that of its job.
        epoch: its number.
        files: (name that a task gave, name that readers will see), in order.
        removed: files that these take the place of, also hidden ones that were joined.
    """

    record: str
    epoch: int
    files: tuple[tuple[str, str], ...]
    removed: tuple[str, ...]

    def names(self) -> list[str]:
        """Return what readers will see."""
        return [name for _, name in self.files]


NOTHING = Publication("", 0, (), ())


@dataclass(frozen=True, slots=True)
class FolderState:
    """The folder, seen from the driver. Its files may be anybody's, so what they say is checked.

    Attributes:
        place: where it is.
    """

    place: Place

    @property
    def path(self) -> str:
        """What messages call it."""
        return self.place.title

    def strangers(self) -> list[str]:
        """Return what readers see here and no commit has made."""
        seen = sorted(self.seen())
        # In this order: a commit that ends meanwhile is in the journal or in the list.
        unfinished = self.unfinished()
        own = {*unfinished.names(), *unfinished.removed, *self.listed()}
        return [name for name in seen if name not in own and self.place.holds(name)]

    def seen(self, below: str = "") -> Iterator[str]:
        """Give the names of what is not hidden here: files, and folders that `partition_by` has not named."""
        for name, is_folder in self.place.seen(below):
            if name[0] in "._":
                continue
            if is_folder and FOLDER.fullmatch(f"{name}/"):
                yield from self.seen(f"{below}{name}/")
            else:
                yield below + name

    def listed(self) -> list[str]:
        """Return the files of all finished commits that are still there, in order."""
        names = _texts(self._read(_LIST, "files"))
        return [name for name in names if _REMOVED.fullmatch(name) and self.place.holds(name)]

    def epoch(self, record: str) -> int:
        """Return the number of the last epoch of a job that was committed here; 0 if there is none."""
        found = self._read(_record(record), "epoch")
        return found if isinstance(found, int) else 0

    def files_of(self, record: str) -> list[str]:
        """Return the paths of the files of that epoch."""
        return [self.place.path_of(name) for name in _texts(self._read(_record(record), "files"))]

    def unfinished(self) -> Publication:
        """Return what the journal of a commit says that has not finished; `NOTHING` if there is none.

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
        self.place.remove(_JOURNAL)

    def list_files(self, names: list[str]) -> None:
        """Let these be the files of all finished commits."""
        self._write(_LIST, {"files": names})

    def remember(self, publication: Publication) -> None:
        """Write down that the epoch is committed, and what it made."""
        content = {"epoch": publication.epoch, "files": publication.names()}
        self._write(_record(publication.record), content)

    def hold(self, record: str, epoch: int, receipts: list[Any], since: float) -> None:
        """Write down that the epoch is committed, and what the job holds back since when, in order."""
        self._write(_record(record), {"epoch": epoch, "files": [], "held": receipts, "since": since})

    def held(self, record: str) -> tuple[list[Any], float]:
        """Return the receipts of what a job holds back, and since when."""
        receipts, since = self._read(_record(record), "held"), self._read(_record(record), "since")
        return (receipts if isinstance(receipts, list) else []), (since if isinstance(since, float) else 0.0)

    def all_held(self) -> set[str]:
        """Return the hidden names of what all jobs hold back.

        Raises:
            SinkError: what is written down of one of them cannot be read.
        """
        records = [name.removesuffix(".json") for name, _ in self.place.seen(f"{HIDDEN}/jobs")]
        held = [each for record in records if _RECORD.fullmatch(record) for each in self.held(record)[0]]
        return {each[0] for each in held if isinstance(each, list) and each and isinstance(each[0], str)}

    def forget(self, record: str) -> None:
        """Remove what is written down of a job that nobody will commit again."""
        with contextlib.suppress(OSError, SinkError):
            self.place.remove(_record(record))

    def _read(self, name: str, key: str) -> Any:
        """Return a value of an object in a file; None if that is not there. Others leave an empty `_SUCCESS`."""
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
    """Return the number of the commit that gave a file its name; 0 if none did."""
    found = _PUBLISHED.fullmatch(name)
    return int(found[1]) if found else 0
