"""What the commits of a collection have added, one after another: for those who read its changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from dstream.errors import UnsupportedError
from dstream.storage.checking import NOT_UNDERSTOOD, number
from dstream.storage.lake.actions import DataFile, data_file
from dstream.storage.lake.log import Log

__all__ = ["Addition", "additions"]


class Addition(NamedTuple):
    """What a commit has added.

    Attributes:
        version: the commit.
        timestamp: when it was made, in milliseconds since 1970, by the clock of who made it.
        files: those with new data.
    """

    version: int
    timestamp: int
    files: list[DataFile]


def additions(log: Log, first: int, *, newest_first: bool = False) -> Iterator[Addition]:
    """Give what each commit from `first` up to what is now the newest one has added, if it has new data."""
    versions = range(first, log.version + 1)
    return _additions(log, reversed(versions) if newest_first else versions)


def _additions(log: Log, versions: Iterable[int]) -> Iterator[Addition]:
    for version in versions:
        entry = log.entry(version)
        try:
            new = [line["add"] for line in entry if "add" in line and line["add"]["dataChange"]]
            adds = list(map(data_file, new))
            times = [number(add["modificationTime"]) for add in new]
        except (UnsupportedError, *NOT_UNDERSTOOD) as error:
            raise log.damaged(version, error) from error
        if adds:
            yield Addition(version, max(times), adds)
