"""What a job without an end holds back under `roll_at=`: files of epochs that are committed, until they become one.

The record of the job names them, in the step that commits their epoch. `docs/decisions/0074` says what happens where a
process dies.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, cast

from dstream.errors import SinkError
from reducers.file_formats import JoinedFormat
from reducers.file_receipts import Staged, check_staged, checked_receipt
from reducers.folder_state import FolderState
from reducers.places import HIDDEN
from reducers.staged_files import CountedFile, FileWriter, Rolling

__all__ = ["Held", "HeldFiles", "without"]

MOST_HELD = 500
"""How many files a job holds back before they are joined, so that its record stays small."""


@dataclass(frozen=True, slots=True)
class Held:
    """Files that are held back.

    Attributes:
        files: in order.
        since: when the first of them was committed.
    """

    files: tuple[Staged, ...]
    since: float

    def is_due(self, rolling: Rolling) -> bool:
        """Say whether those of a folder have the size of a file, or it is time."""
        sizes: dict[str, int] = defaultdict(int)
        for file in self.files:
            sizes[file.folder] += file.size
        return bool(sizes) and (max(sizes.values()) >= rolling.size or self.seconds_left(rolling) <= 0)

    def seconds_left(self, rolling: Rolling) -> float:
        """Return how long they stay; a clock that went back makes them due."""
        waited = time.time() - self.since if self.files else 0.0
        return rolling.seconds - waited if waited >= 0 else 0.0


@dataclass(frozen=True, slots=True)
class HeldFiles:
    """What one job holds back in a folder.

    Attributes:
        record: where the folder remembers the job.
        writer: names what is joined.
        form: joins.
    """

    folder: FolderState
    record: str
    writer: FileWriter
    form: JoinedFormat

    def found(self) -> Held:
        """Return what is held back now."""
        receipts, since = self.folder.held(self.record)
        return Held(tuple(checked_receipt(each, self.folder) for each in receipts), since)

    def with_more(self, staged: Sequence[Staged]) -> Held:
        """Return what is held back, and the files of one more epoch."""
        held = self.found()
        return Held((*held.files, *staged), held.since if held.files else time.time())

    def keep(self, epoch: int, held: Held, staged: Sequence[Staged]) -> None:
        """Commit an epoch: write down that it is so, and what is held back from then on, its own files at the end."""
        check_staged([(file.name, file.size) for file in staged], self.folder)
        kept = self.joined(held.files) if len(held.files) > MOST_HELD else list(held.files)
        self.folder.place.settle({HIDDEN})
        self.folder.hold(self.record, epoch, [file.receipt() for file in kept], held.since)
        for name in without(held.files, kept):
            with suppress(OSError, SinkError):
                self.folder.place.remove(f"{HIDDEN}/{name}")

    def joined(self, files: Sequence[Staged]) -> list[Staged]:
        """Return files with the same items in the same order, few and larger."""
        check_staged([(file.name, file.size) for file in files], self.folder)
        return [group[0] if len(group) == 1 else self._join(group) for group in self._groups(files)]

    def _groups(self, files: Sequence[Staged]) -> list[list[Staged]]:
        """Divide files into those that become one: neighbours in a folder with the same columns, of a size."""
        last: dict[str, list[Staged]] = {}
        groups = []
        for file in files:
            group = last.get(file.folder, [])
            size = sum(each.size for each in group) + file.size
            if not group or group[0].columns != file.columns or size > self.writer.rolling.size:
                group = last[file.folder] = []
                groups.append(group)
            group.append(file)
        return groups

    def _join(self, group: Sequence[Staged]) -> Staged:
        place, name = self.folder.place, self.writer.new_name()
        made = CountedFile(place.create(f"{HIDDEN}/{name}"))
        try:
            self.form.join(self._opened(group), group[0].columns, cast("IO[bytes]", made))
            made.close()
        except BaseException:
            made.discard()
            with suppress(OSError, SinkError):
                place.remove(f"{HIDDEN}/{name}")
            raise
        counts = [file.items for file in group]
        return Staged(name, made.size, group[0].folder, group[0].columns, -1 if -1 in counts else sum(counts))

    def _opened(self, group: Sequence[Staged]) -> Iterator[IO[bytes]]:
        for each in group:
            with self.folder.place.open(f"{HIDDEN}/{each.name}") as file:
                yield file


def without(files: Sequence[Staged], kept: Sequence[Staged]) -> list[str]:
    """Return the names of the files that are not among others."""
    names = {file.name for file in kept}
    return [file.name for file in files if file.name not in names]
