"""The events of U1 to U3: Parquet files that arrive one after another, read by ours and by rivals alike.

An event is (timestamp in milliseconds, key, value). Behind the events come files with one event each that are hours
later, whose key is `LAST`: they move the watermark behind all windows of the others, where no end of a stream does it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy
import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["LAG", "LAST", "EventFiles", "event_files"]

PARTITIONS = 2
LAG = 1000
"""How far timestamps may lie behind the newest one."""
LAST = -1
_FIRST = 1_700_000_000_000
_PER_SECOND = 10_000
_HOUR = 3_600_000
_LAST_EPOCHS = 2

Event = tuple[int, int, int]


def event_files(folder: Path, epochs: int, of_epoch: int, keys: int) -> Path:
    """Return a folder with `PARTITIONS` files for each epoch, in order; it is made if it is not there yet."""
    below = folder / f"events-{epochs}x{of_epoch}-{keys}"
    if below.exists():
        return below
    unfinished = below.with_suffix(f".{os.getpid()}.part")
    unfinished.mkdir(exist_ok=True)
    chance = numpy.random.default_rng(21)
    share = of_epoch // PARTITIONS
    for number in range(epochs * PARTITIONS):
        due = _FIRST + (number // PARTITIONS * of_epoch + numpy.arange(share) * PARTITIONS) * 1000 // _PER_SECOND
        _write(unfinished, number, due - chance.integers(0, LAG // 2, share), chance.integers(0, keys, share), chance)
    for number in range(epochs * PARTITIONS, (epochs + _LAST_EPOCHS) * PARTITIONS):
        _write(unfinished, number, numpy.array([_FIRST + number * _HOUR]), numpy.array([LAST]), chance)
    unfinished.rename(below)
    return below


def _write(
    folder: Path, number: int, timestamps: numpy.ndarray, keys: numpy.ndarray, chance: numpy.random.Generator
) -> None:
    values = chance.integers(0, 1000, len(keys))
    path = folder / f"{number:05d}.parquet"
    pq.write_table(pa.table({"ts": timestamps, "key": keys, "value": values}), path)
    os.utime(path, (1_600_000_000 + number, 1_600_000_000 + number))  # Spark reads them by their age.


@dataclass(frozen=True)
class _EventFile:
    path: str

    def read(self) -> Iterator[Event]:
        """Give the events of the file."""
        table = pq.read_table(self.path)
        return zip(*(table.column(name).to_pylist() for name in ("ts", "key", "value")), strict=True)


@dataclass(frozen=True)
class EventFiles:
    """The files as a source that ends: an epoch reads one of each partition."""

    folder: str
    label = "event_files()"
    ends = True

    def begin(self) -> Mapping[str, int]:
        """Begin with the first file."""
        return {str(partition): 0 for partition in range(PARTITIONS)}

    def reach(self, offsets: Mapping[str, int], most: int | None = None) -> Mapping[str, int]:
        """Give one more file of each partition."""
        files = len(os.listdir(self.folder)) // PARTITIONS
        return {name: offset + 1 for name, offset in offsets.items() if offset < files}

    def split(self, partition: str, start: int | None, stop: int) -> _EventFile:
        """Return the events of one file."""
        return _EventFile(f"{self.folder}/{(stop - 1) * PARTITIONS + int(partition):05d}.parquet")
