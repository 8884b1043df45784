"""The actions of a Delta log that the lake writes and reads, as values and as JSON.

The format is that of https://github.com/delta-io/delta/blob/master/PROTOCOL.md, reader version 1, writer version 2.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from dstream.errors import UnsupportedError
from dstream.storage.checking import number, text
from dstream.storage.lake.paths import checked_path

__all__ = ["PROTOCOL", "Actions", "DataFile", "check_protocol", "condemned_in", "data_file"]

PROTOCOL = {"minReaderVersion": 1, "minWriterVersion": 2}
_SUMS = "dstream.crc32"
_CONDEMNED = "condemned"


class DataFile(NamedTuple):
    """A file of a collection.

    Attributes:
        version: the commit that decides its place among other files; newer ones win.
        place: its position among the files of one commit; lists only.
        bucket: which keys it holds; 0 in lists.
        path: where it stands, from the folder of the collection on.
        size: in bytes.
        rows: how many rows it has.
        sums: the checksums of its blocks (`checksums`); empty if another program has written it.
    """

    version: int
    place: int
    bucket: int
    path: str
    size: int
    rows: int
    sums: str = ""


@dataclass(frozen=True, slots=True)
class Actions:
    """What one commit does.

    Attributes:
        adds: files that belong to the collection from now on.
        removes: files that no longer do.
        changes_data: what is read is different afterwards; compaction says no.
        metadata: how the collection is described from now on, as in the log.
        transaction: the name of a job of which an epoch is done with this commit.
        epoch: its number.
        begun: the newest commit that was known when the first of `adds` was begun to be written.
        condemned: files that no commit names, and that none may add from now on: a vacuum removes them.
    """

    adds: tuple[DataFile, ...] = ()
    removes: tuple[DataFile, ...] = ()
    changes_data: bool = True
    metadata: Mapping[str, Any] | None = None
    transaction: str | None = None
    epoch: int = 1
    begun: int = -1
    condemned: tuple[str, ...] = ()
    partitions: tuple[str, ...] = field(default=("_b", "_v"))

    def info(self, now: int) -> dict[str, Any]:
        """Return what only this library reads; no two are equal, so that a writer knows its own entry again."""
        condemned = {_CONDEMNED: self.condemned} if self.condemned else {}
        return {"timestamp": now, "dstream": uuid.uuid4().hex, **condemned}

    def to_json(self, version: int, now: int) -> list[dict[str, Any]]:
        """Return the actions of the log entry."""
        lines: list[dict[str, Any]] = []
        if version == 0:
            lines.append({"protocol": PROTOCOL})
        if self.metadata is not None:
            lines.append({"metaData": self.metadata})
        if self.transaction is not None:
            lines.append({"txn": {"appId": self.transaction, "version": self.epoch, "lastUpdated": now}})
        lines.extend({"remove": self._remove(file, now)} for file in self.removes)
        lines.extend({"add": self._add(file, now)} for file in self.adds)
        return lines

    def _add(self, file: DataFile, now: int) -> dict[str, Any]:
        return {
            "path": file.path,
            "partitionValues": self._partition(file),
            "size": file.size,
            "modificationTime": now,
            "dataChange": self.changes_data,
            "stats": f'{{"numRecords":{file.rows}}}',
            **({"tags": {_SUMS: file.sums}} if file.sums else {}),
        }

    def _remove(self, file: DataFile, now: int) -> dict[str, Any]:
        return {
            "path": file.path,
            "deletionTimestamp": now,
            "dataChange": self.changes_data,
            "extendedFileMetadata": True,
            "partitionValues": self._partition(file),
            "size": file.size,
        }

    def _partition(self, file: DataFile) -> dict[str, str]:
        values = {"_b": file.bucket, "_v": file.version, "_i": file.place}
        return {name: str(values[name]) for name in self.partitions}


def condemned_in(entry: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the files that the actions of a commit forbid to add."""
    infos = (line["commitInfo"] for line in entry if "commitInfo" in line)
    return [path for info in infos for path in info.get(_CONDEMNED, ())]


def data_file(add: Mapping[str, Any]) -> DataFile:
    """Read an add action.

    Raises:
        UnsupportedError: it has no `_v` or no row count, so the lake did not write it.
        ValueError: its path may lead out of the collection, or a number is none; as other errors of `NOT_UNDERSTOOD`.
    """
    partition = _mapping(add["partitionValues"])
    rows = json.loads(add.get("stats") or "{}").get("numRecords")
    if partition.get("_v") is None or rows is None:
        raise UnsupportedError(f"the file {add['path']!r:.200} was added to the log by another program than dstream")
    return DataFile(
        number(partition["_v"]),
        number(partition.get("_i") or 0),
        number(partition.get("_b") or 0),
        checked_path(add["path"]),
        number(add["size"]),
        number(rows),
        text(_mapping(add.get("tags") or ()).get(_SUMS) or ""),
    )


def _mapping(pairs: Mapping[str, str] | Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return a dict of what JSON gives as one and Parquet as pairs."""
    return dict(pairs)


def check_protocol(protocol: Mapping[str, Any], url: str) -> None:
    """Refuse a table that asks for more than the lake can do.

    Raises:
        UnsupportedError: the table needs a newer protocol, or table features.
    """
    for name, known in PROTOCOL.items():
        if number(protocol[name]) > known:
            raise UnsupportedError(
                f"the table {url} has Delta protocol {name}={protocol[name]}, dstream knows {known}; "
                "another program has changed it"
            )
