"""Rows whose payload stands in a file of this machine, so that whoever hands them on has only the place of it.

The rows of a shuffle that goes through the driver are small in most epochs, and travel as they are. What a task has
beyond some bytes, it writes into a file of its own, from which the tasks that read the rows take it.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import BinaryIO, NamedTuple

from dstream.engine.kernels.item_batches import loads
from dstream.engine.worker.rows import STORED, Row
from dstream.errors import EngineError
from dstream.pickling import dumps

__all__ = ["Storing", "handed_on", "not_written", "whole"]


class _Place(NamedTuple):
    """Where the payload of a row stands."""

    path: str
    start: int
    size: int

    def read(self) -> bytes:
        try:
            with open(self.path, "rb") as file:
                file.seek(self.start)
                found = file.read(self.size)
        except OSError as error:
            raise EngineError(f"rows on their way between two tasks cannot be read: {error}") from error
        if len(found) < self.size:
            raise EngineError(f"rows on their way between two tasks are cut off, in {self.path}")
        return found


@dataclass(frozen=True, slots=True)
class Storing:
    """Puts what is large of the rows of a task into a file.

    Attributes:
        folder: of such files; it is there as long as somebody wants them.
        most: so many bytes of a task travel with its rows.
    """

    folder: str
    most: int

    def stored(self, rows: Iterator[Row]) -> Iterator[Row]:
        """Give the rows, or in their place where their payload stands.

        Raises:
            EngineError: the disk is full, or cannot be written to.
        """
        room, file = self.most, None
        with ExitStack() as stack:
            for row in rows:
                size = memoryview(row.payload).nbytes
                if size <= room:
                    room -= size
                    yield row
                    continue
                if file is None:
                    file = self._opened()
                    stack.callback(_close, file)
                place = _Place(file.name, file.tell(), size)
                self._write(file, row.payload)
                yield row._replace(channel=STORED, payload=dumps((row.channel, place)))
            if file is not None:
                self._write(file, b"", is_last=True)

    def _opened(self) -> BinaryIO:
        try:
            return open(os.path.join(self.folder, uuid.uuid4().hex), "xb")
        except OSError as error:
            raise not_written(self.folder, error) from error

    def _write(self, file: BinaryIO, payload: bytes, *, is_last: bool = False) -> None:
        try:
            file.write(payload)
            if is_last:
                file.flush()
        except OSError as error:
            raise not_written(self.folder, error) from error


def not_written(folder: str, error: OSError) -> EngineError:
    """Return the error that says so of rows."""
    return EngineError(f"rows on their way between two tasks cannot be written into {folder}: {error}")


def _close(file: BinaryIO) -> None:
    """Close a file: what could not be written has been told before."""
    with suppress(OSError):
        file.close()


def handed_on(row: Row) -> Row:
    """Return a row as the driver hands it on: with its own channel, and its payload or the place where that stands."""
    if row.channel != STORED:
        return row._replace(payload=bytes(row.payload))
    channel, place = loads(row.payload)
    return row._replace(channel=channel, payload=place)


def whole(row: Row) -> Row:
    """Return a row that was handed on with its payload."""
    return row._replace(payload=row.payload.read()) if isinstance(row.payload, _Place) else row
