"""`LakeList`: the items of a list in a Delta table.

The order is given by the commits, then by the files in one commit, then by the rows in a file. Appending makes a new
file; a change in the middle rewrites the files that it touches into one that replaces them.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any

import pyarrow as pa

from dstream.base.records import record
from dstream.delta.actions import Actions, DataFile
from dstream.spi.sink import WriteJob, Writer
from dstream.spi.store import ItemSplit, ListView, Splice
from dstream.storage.base.named_folders import FileGoneError
from dstream.storage.lake.caches import FileCache, Positions, rows_between
from dstream.storage.lake.catalog import Description, LakeCatalog
from dstream.storage.lake.collection import LakeCollection
from dstream.storage.lake.merge import MAX_FILES
from dstream.storage.lake.splits import LakeItemSplit, divided
from dstream.storage.lake.staging import LakeItemWriter, LakeListJob
from dstream.storage.lake.tables import ROWS_IN_GROUP, DataWriter, Layout, in_parts, remove_quietly

__all__ = ["LakeList"]


_SMALL_ROWS = 8192


class LakeList(LakeCollection):
    """A handle to a list."""

    has_columns = True
    """Splits yield their contents in columns."""

    def __init__(self, catalog: LakeCatalog, description: Description) -> None:
        super().__init__(catalog, description)
        self._cache = FileCache(self._folder)
        self._known = Positions(())

    def _positions(self) -> Positions:
        files = self._log.groups.get(0, ())
        if self._known.files is not files:
            self._known = Positions(files)
        return self._known

    def size(self) -> int:
        with self._log.lock:
            self._refresh()
            return self._positions().size

    def read(self, start: int, stop: int) -> list[Any]:
        with self._log.lock:
            return self._reading(lambda: self._cache.read(self._positions(), self._layout, start, stop))

    def extend(self, items: Iterable[Any]) -> None:
        job = self._begin(None, 1, replace=False)
        try:
            rows = list(job.writer.rows(iter(items)))
        except BaseException:
            job.abort()
            raise
        if rows:
            job.commit_rows(rows)

    def edit(self, change: Callable[[ListView], Splice | None]) -> None:
        while True:
            with self._log.lock:
                self._refresh()
                view = _View(self, self._positions())
                changed = self._log.changed_at(0)
            try:
                # Without the lock: the function is the user's, may be slow, and may itself change the list.
                splice = change(view)
            except FileGoneError as error:
                if not view.is_stale():
                    raise self._log.missing(str(error)) from error
                continue
            if splice is None:
                return
            if not 0 <= splice.start <= splice.stop <= view.size:
                title = self._description.title
                raise IndexError(f"{title} has {view.size} items, and {splice.start}:{splice.stop} is not within them")
            if self._spliced(splice, changed):
                return

    def _spliced(self, splice: Splice, changed: int) -> bool:
        """Commit a splice of the list as of the commit `changed`; False if it has changed since."""
        made: list[str] = []

        def prepare() -> Actions | None:
            # It runs again after a lost race, and no commit names the file of the attempt before.
            remove_quietly(self._folder, made)
            made.clear()
            if self._log.changed_at(0) != changed:
                return None
            actions = self._splice(splice)
            made.extend(file.path for file in actions.adds)
            return actions

        committed = self.commit_reading(prepare)
        if committed:
            self._tidy_after(self._log.version)
        return committed

    def _splice(self, splice: Splice) -> Actions:
        """Write the files that a splice touches into one, with the new items in between."""
        positions = self._positions()
        first, last = positions.touched(splice.start, splice.stop)
        touched = positions.files[first:last]
        codec = self._codec.decided_by([], splice.items)
        for item in splice.items:
            codec.checked(None, item)
        layout = self._layout_for(codec)
        head = positions.parts(positions.start(first), splice.start)
        tail = positions.parts(splice.stop, positions.start(last))
        with DataWriter(self._folder, layout.schema, 0) as writer:
            for part in chain(self._adapted(head, layout), _encoded(splice.items, layout), self._adapted(tail, layout)):
                writer.write(part)
        adds = self._placed(writer.file, touched)
        metadata = self.metadata_for(codec) if adds else None
        return Actions(adds, touched, metadata=metadata, begun=self._log.version)

    def _adapted(self, parts: Iterable[tuple[DataFile, int, int]], layout: Layout) -> Iterator[pa.RecordBatch]:
        for part in parts:
            for batch in rows_between(self._folder, *part):
                yield layout.adapted(batch)

    def _placed(self, file: DataFile, touched: Sequence[DataFile]) -> tuple[DataFile, ...]:
        """Set the position of a new file to the position of the first file that it replaces; drop an empty file."""
        if not file.rows:
            self._folder.delete(file.path)
            return ()
        return (file._replace(version=touched[0].version, place=touched[0].place) if touched else file,)

    def splits(self, parallelism: int) -> Sequence[ItemSplit]:
        with self._log.lock:
            self._refresh()
            positions = self._positions()
            return [
                LakeItemSplit(self._description.title, self._folder, self._layout, parts)
                for parts in divided(positions, parallelism)
            ]

    def begin(self, job: str | None, epoch: int = 1, *, replace: bool = False) -> WriteJob[Writer]:
        return self._begin(uuid.uuid4().hex if job is None else job, epoch, replace)

    def _begin(self, name: str | None, epoch: int, replace: bool) -> LakeListJob:
        with self._log.lock:
            self._refresh()
            writer = LakeItemWriter(self._folder, self._layout, f"{uuid.uuid4().hex}-", self._log.version)
            return LakeListJob(self, name, epoch, writer, replace, self._tidy_after)

    def compact(self) -> None:
        """Rewrite all files into one."""
        while not self._fold(lambda files: files):
            pass

    def _tidy_after(self, version: int) -> None:
        self._after_commit(version, self._tidy)

    def _tidy(self) -> None:
        if len(self._log.groups.get(0, ())) > MAX_FILES:
            self._fold(_newest_small)

    def _fold(self, chosen: Callable[[tuple[DataFile, ...]], tuple[DataFile, ...]]) -> bool:
        """Fold neighbouring files into one at the position of the first; False if one was removed meanwhile."""
        with self._log.lock:
            self._refresh()
            files, layout, begun = self._log.groups.get(0, ()), self._layout, self._log.version
        old = chosen(files)
        if len(old) < 2:
            return True
        try:
            with DataWriter(self._folder, layout.schema, 0) as writer:
                for batch in self._gathered(old, layout):
                    writer.write(batch)
        except FileGoneError as error:
            with self._log.lock:
                self._refresh()
                # No other commit has removed the files, so neither has a vacuum.
                if self._log.groups.get(0, ()) is files:
                    raise self._log.missing(str(error)) from error
            return False
        new = self._placed(writer.file, old)
        if self._replace_files(old, new, begun):
            return True
        remove_quietly(self._folder, [file.path for file in new])
        return False

    def _gathered(self, files: Sequence[DataFile], layout: Layout) -> Iterator[pa.RecordBatch]:
        """Yield the rows of files in batches that are not much smaller than a row group."""
        waiting: list[pa.RecordBatch] = []
        for batch in self._adapted(((file, 0, file.rows) for file in files), layout):
            waiting.append(batch)
            if sum(part.num_rows for part in waiting) >= ROWS_IN_GROUP:
                yield from _joined(waiting)
                waiting = []
        if waiting:
            yield from _joined(waiting)

    def read_state(self, positions: Positions, start: int, stop: int) -> list[Any]:
        """Return items of one state of the list; a FileGoneError if a vacuum has removed it."""
        with self._log.lock:
            return self._cache.read(positions, self._layout, start, stop)

    def is_newest(self, positions: Positions) -> bool:
        """Return whether a state of the list is still the newest one."""
        with self._log.lock:
            self._refresh()
            return self._log.groups.get(0, ()) is positions.files


@record
class _View:
    """One state of a list."""

    collection: LakeList
    positions: Positions

    @property
    def size(self) -> int:
        return self.positions.size

    def read(self, start: int, stop: int) -> list[Any]:
        return self.collection.read_state(self.positions, start, stop)

    def is_stale(self) -> bool:
        return not self.collection.is_newest(self.positions)


def _encoded(items: Sequence[Any], layout: Layout) -> Iterator[pa.RecordBatch]:
    rest = iter(items)
    while part := list(islice(rest, ROWS_IN_GROUP)):
        yield from in_parts(layout.items, part)


def _joined(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    joined: list[pa.RecordBatch] = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return joined


def _newest_small(files: tuple[DataFile, ...]) -> tuple[DataFile, ...]:
    """Return the last files that have few items, or about the same number as all later files together."""
    first, rows = len(files), 0
    # Files of about equal size are folded together, so that each item is copied a logarithmic number of times.
    while first > 0 and files[first - 1].rows <= max(_SMALL_ROWS, rows):
        first -= 1
        rows += files[first].rows
    return files[first:] if len(files) - first >= MAX_FILES // 2 else files
