"""Shuffles that go through this process: the rows of one job come here, and the next job carries them to its tasks.

Spark plans a shuffle anew for each run, which costs more than all else in an epoch of few events; a job of one stage is
planned once for all runs. What is large of the rows stays in files of this machine, and only its place comes here.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterable, Iterator
from contextlib import suppress
from operator import attrgetter

from dstream.engine.graph.output_ports import OutputPort
from dstream.engine.graph.vertices import Taken
from dstream.engine.worker.rows import COUNTS, ITEMS, Row
from dstream.engine.worker.stored_rows import Storing, not_written

__all__ = ["MOST_PAIRS", "FilesOfRows", "by_target", "rows_taken"]

MOST_PAIRS = 64
"""So many pairs of a task that writes and one that reads are worth it: each has rows, which go to all that read."""

_TRAVELLING = 8 * 1024
"""So many bytes of the rows of one vertex travel with the next job, to each of its tasks."""


class FilesOfRows:
    """Where the tasks of one run put what is large of their rows, until the run ends."""

    def __init__(self) -> None:
        self._folder: str | None = None

    def storing(self, parent: str, tasks: int) -> Storing:
        """Return what so many tasks do with their rows.

        Args:
            parent: a folder for temporary files, in which that of this run will be.
            tasks: how many there are.

        Raises:
            EngineError: that folder cannot be written to.
        """
        if self._folder is None:
            self._folder = _made(os.path.join(parent, f"dstream-rows-{uuid.uuid4().hex}"))
        return Storing(self._folder, _TRAVELLING // max(tasks, 1))

    def remove(self) -> None:
        """Remove all of them; nobody reads them any more.

        Tasks may still write: those of a run that was cancelled, or that others have overtaken. They find the folder no
        more under its name, so none of them puts a file into it while it goes.
        """
        if self._folder is not None:
            ended = f"{self._folder}-ended"
            with suppress(OSError):
                os.rename(self._folder, ended)
            shutil.rmtree(ended, ignore_errors=True)


def _made(folder: str) -> str:
    """Make a folder that only this user may enter; tasks make none, which might come behind the end of their run."""
    try:
        os.makedirs(folder, mode=0o700)  # Whoever cleans temporary folders may have removed those above.
    except OSError as error:
        raise not_written(folder, error) from error
    return folder


def rows_taken(rows: Iterable[Row], taken: Taken, port: OutputPort) -> Iterator[Row]:
    """Give those rows of a vertex that are taken, for the targets that they have behind others."""
    for row in rows:
        if port.has(row):
            channel = ITEMS if taken.as_items and row.channel != COUNTS else row.channel
            yield row._replace(target=row.target + taken.behind, channel=channel)


def by_target(rows: Iterable[Row], targets: int) -> tuple[tuple[Row, ...], ...]:
    """Return the rows that each of so many partitions gets: target after target, in the order of their sources."""
    partitions: list[list[Row]] = [[] for _ in range(targets)]
    for row in rows:
        partitions[row.target % targets].append(row)
    return tuple(tuple(sorted(each, key=_PLACE)) for each in partitions)


_PLACE = attrgetter("target", "source", "sequence")
