"""What `cache()` keeps in one process: in memory up to the bound, beyond it in a temporary file."""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import IO, Any

from dstream.engine.batches import Batcher, loads
from dstream.engine.memory import Bound

__all__ = ["KeptItems"]

_CHUNK = 512


class KeptItems:
    """Items that can be read again and again, by several readers at a time."""

    def __init__(self, items: Iterable[Any], bound: Bound) -> None:
        self._held: list[Any] = []
        self._places: list[tuple[int, int]] = []
        self._file: IO[bytes] | None = None
        items = iter(items)
        while chunk := list(islice(items, _CHUNK)):
            self._held += chunk
            if bound.exceeded():
                self._write(items)
                bound.spilled()

    def _write(self, items: Iterator[Any]) -> None:
        """Put all further items into a file without a name, which goes with this object."""
        self._file = tempfile.TemporaryFile(prefix="dstream-")  # noqa: SIM115 - it lives as long as the items
        weakref.finalize(self, self._file.close)
        place = 0
        for _, data in Batcher().batches(items):
            self._file.write(data)
            self._places.append((place, len(data)))
            place += len(data)
        self._file.flush()

    def __iter__(self) -> Iterator[Any]:
        yield from self._held
        if self._file is not None:
            for place, size in self._places:
                yield from loads(os.pread(self._file.fileno(), size, place))
