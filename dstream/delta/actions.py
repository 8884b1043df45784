"""Commits of a Delta log: actions and their sum, JSON entries, and file names.

The format is specified by https://github.com/delta-io/delta/blob/master/PROTOCOL.md, reader version 1, writer version
2.

An entry that this library writes begins with a checksum of the rest, and the identity of its commit. The writer of an
entry adds a second name for it, `_last_created`, so that a missing entry is not mistaken for the end of the log.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import count
from typing import Any, NamedTuple

from dstream.base.records import record
from dstream.base.validation import NOT_UNDERSTOOD, checked_number, checked_text
from dstream.errors import IllegalStateError, UnsupportedError
from dstream.filesystem.checksums import is_sealed, seal
from dstream.filesystem.folders import StorageFolder
from dstream.filesystem.local import TEMPORARY, random_digits

__all__ = [
    "ENTRY",
    "LOG",
    "POINTER",
    "PROTOCOL",
    "REMOVED_FOR",
    "THINGS",
    "Actions",
    "DataFile",
    "TableState",
    "added",
    "check_protocol",
    "checked_path",
    "checkpoint_path",
    "condemned_in",
    "data_file",
    "entries_from",
    "entry_path",
    "entry_version",
    "is_removable",
    "is_temporary",
    "new_path",
    "owner_of",
    "packed",
    "parsed",
    "read_entry",
    "removed",
    "transaction",
    "version_in",
]


LOG = "_delta_log"
"""The folder of the log in the folder of a collection."""
ENTRY = re.compile(LOG + r"/[0-9]{20}\.json")
"""The entries of the log."""


_DATA = re.compile(r"(?:[0-9a-f]{32}-)?[0-9a-f]{32}\.parquet")
# `OPTIMIZE` of delta-rs folds files of a partition; the names of the columns are those of `Actions.partitions`.
_OPTIMIZED = re.compile(r"(?:_[bvi]=[0-9]+/){1,3}part-[0-9A-Za-z.-]+\.parquet")
_PREPARED = re.compile(rf"(?:{LOG}/)?\{TEMPORARY}[0-9a-f]{{32}}")


def new_path(prefix: str) -> str:
    """Return the name of a new data file; `prefix` is empty, or the prefix of a job."""
    return f"{prefix}{random_digits()}.parquet"


def checked_path(data: Any) -> str:
    """Return the path of a data file as the log names it, if the lake or `OPTIMIZE` could have made it.

    Raises:
        ValueError: they could not: the path may lead out of the collection.
    """
    if not isinstance(data, str) or not (_DATA.fullmatch(data) or _OPTIMIZED.fullmatch(data)):
        raise ValueError(f"no file of the lake has the path {data!r:.200}")
    return data


def is_temporary(path: str) -> bool:
    """Return whether a path is a prepared file, which has no final name yet."""
    return bool(_PREPARED.fullmatch(path))


def is_removable(path: str) -> bool:
    """Return whether a path in the folder of a collection is a data file, or a prepared file."""
    return bool(_DATA.fullmatch(path)) or is_temporary(path)


PROTOCOL = {"minReaderVersion": 1, "minWriterVersion": 2}
_SUMS = "dstream.crc32"
_CONDEMNED = "condemned"


class DataFile(NamedTuple):
    """A file of a collection.

    Attributes:
        version: the commit that determines its order among other files; newer files win.
        place: its position among the files of one commit; lists only.
        bucket: the bucket of its keys; 0 in lists.
        path: relative to the folder of the collection.
        size: in bytes.
        rows: the number of rows.
        sums: the checksums of its blocks (`checksums`); empty if another program has written it.
    """

    version: int
    place: int
    bucket: int
    path: str
    size: int
    rows: int
    sums: str = ""


@record
class Actions:
    """The changes of one commit.

    Attributes:
        adds: files that belong to the collection from now on.
        removes: files that no longer do.
        changes_data: whether readers get other rows afterwards; False for compaction.
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
        """Return the part that only this library reads; no two are equal, so that a writer recognizes its own entry."""
        condemned = {_CONDEMNED: self.condemned} if self.condemned else {}
        return {"timestamp": now, "dstream": uuid.uuid4().hex, **condemned}

    def to_json(self, version: int, now: int) -> list[dict[str, Any]]:
        """Return the actions of the log entry."""
        lines: list[dict[str, Any]] = []
        if version == 0:
            lines.append({"protocol": PROTOCOL})
        if self.metadata is not None:
            lines.append({"metaData": self.metadata})
        changes = self.changes_data
        if self.transaction is not None:
            lines.append(transaction(self.transaction, self.epoch, now))
        lines.extend(removed(file.path, self._partition(file), file.size, now, changes) for file in self.removes)
        for file in self.adds:
            tags = {_SUMS: file.sums} if file.sums else {}
            lines.append(added(file.path, self._partition(file), file.size, file.rows, now, changes, tags))
        return lines

    def _partition(self, file: DataFile) -> dict[str, str]:
        # The protocol of Delta has the values of partitions as strings, regardless of the type of their columns.
        values = {"_b": file.bucket, "_v": file.version, "_i": file.place}
        return {name: str(values[name]) for name in self.partitions}


def added(
    path: str,
    partition: Mapping[str, str | None],
    size: int,
    rows: int,
    now: int,
    changes_data: bool = True,
    tags: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Return the action that adds a file to a table."""
    add = {
        "path": path,
        "partitionValues": partition,
        "size": size,
        "modificationTime": now,
        "dataChange": changes_data,
        "stats": f'{{"numRecords":{rows}}}',
    }
    return {"add": {**add, "tags": tags} if tags else add}


def removed(
    path: str, partition: Mapping[str, str | None], size: int, now: int, changes_data: bool = True
) -> dict[str, Any]:
    """Return the action that removes a file from a table."""
    remove = {
        "path": path,
        "deletionTimestamp": now,
        "dataChange": changes_data,
        "extendedFileMetadata": True,
        "partitionValues": partition,
        "size": size,
    }
    return {"remove": remove}


def transaction(name: str, epoch: int, now: int) -> dict[str, Any]:
    """Return the action that records that an epoch of a job is done."""
    return {"txn": {"appId": name, "version": epoch, "lastUpdated": now}}


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
        checked_number(partition["_v"]),
        checked_number(partition.get("_i") or 0),
        checked_number(partition.get("_b") or 0),
        checked_path(add["path"]),
        checked_number(add["size"]),
        checked_number(rows),
        checked_text(_mapping(add.get("tags") or ()).get(_SUMS) or ""),
    )


def _mapping(pairs: Mapping[str, str] | Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return a dict of pairs, or of a JSON object."""
    return dict(pairs)


def check_protocol(protocol: Mapping[str, Any], url: str) -> None:
    """Refuse a table that requires unsupported features.

    Raises:
        UnsupportedError: the table needs a newer protocol, or table features.
    """
    for name, known in PROTOCOL.items():
        if checked_number(protocol[name]) > known:
            raise UnsupportedError(
                f"the table {url} has Delta protocol {name}={protocol[name]}, dstream knows {known}; "
                "another program has changed it"
            )


_HEAD = b'{"commitInfo":{"crc32":"'
_ENTRY = re.compile(rf"{LOG}/(\d{{20}})\.json")

_ACTIONS = {"add", "remove", "metaData", "protocol", "txn", "commitInfo", "cdc", "domainMetadata"}
"""The actions of https://github.com/delta-io/delta/blob/master/PROTOCOL.md that a log without v2 checkpoints has."""

POINTER = f"{LOG}/_last_checkpoint"
"""The file with the number of the newest checkpoint."""
REMOVED_FOR = 7 * 24 * 3600 * 1000
"""Milliseconds for which other readers need the names of removed files (`delta.deletedFileRetentionDuration`)."""
THINGS: dict[str, tuple[str, str | None]] = {
    "protocol": ("protocol", None),
    "metaData": ("metaData", None),
    "txn": ("job", "appId"),
    "remove": ("file", "path"),
    "add": ("file", "path"),
}
"""The subject of each kind of action, and the field that identifies it if there are several."""

_dumps = json.JSONEncoder(separators=(",", ":")).encode


def entry_path(version: int) -> str:
    """Return the path of the entry of a commit."""
    return f"{LOG}/{version:020d}.json"


def checkpoint_path(version: int) -> str:
    """Return the path of the checkpoint that sums up the commits up to a version."""
    return f"{LOG}/{version:020d}.checkpoint.parquet"


def entry_version(path: str) -> int | None:
    """Return the commit whose entry a path is, None if it is no entry."""
    match = _ENTRY.fullmatch(path)
    return None if match is None else int(match[1])


def packed(folder: StorageFolder, version: int, info: Mapping[str, Any], actions: Sequence[Mapping[str, Any]]) -> bytes:
    """Return an entry with its checksum; `info` is for this library alone."""
    lines = [{"commitInfo": {"commit": version, **info}}, *actions]
    first, *others = map(_dumps, lines)
    # The checksum precedes the bytes that it covers, so it is inserted into the serialized text and not into the dict.
    rest = "\n".join(['",' + first.removeprefix('{"commitInfo":{'), *others])
    return seal(_HEAD, rest.encode(), owner_of(folder))


def parsed(data: bytes) -> list[dict[str, Any]]:
    """Return the actions of an entry.

    Raises:
        ValueError: it is torn, or has none; the message is what an error adds to its path.
    """
    try:
        actions = [json.loads(line) for line in data.split(b"\n") if line.strip()]
    except (ValueError, RecursionError) as error:
        raise ValueError(f"is torn: {error}") from error
    if not actions or not all(isinstance(action, dict) for action in actions):
        raise ValueError("holds no actions")
    return actions


class TableState:
    """Result of the actions of commits: of several actions on one subject the last one counts.

    Attributes:
        version: the last commit; -1 if there is none.
    """

    def __init__(self, version: int = -1) -> None:
        self.version = version
        self.last: dict[str, dict[Any, tuple[str, dict[str, Any]]]] = {thing: {} for thing, _ in THINGS.values()}

    def take(self, actions: Iterable[Mapping[str, Any]], version: int) -> None:
        """Apply the actions of a commit, or of a checkpoint of all commits up to a version."""
        self.version = version
        for kind, action in (each for line in actions for each in line.items()):
            if kind in THINGS:
                thing, identity = THINGS[kind]
                # An `add` and a `remove` of one path share an entry, so that the later one replaces the other.
                self.last[thing][action.get(identity)] = kind, action

    def of(self, kind: str) -> dict[Any, dict[str, Any]]:
        """Return the valid actions of a kind, by their subject."""
        found = self.last[THINGS[kind][0]].items()
        return {identity: action for identity, (its_kind, action) in found if its_kind == kind}

    def actions(self) -> list[tuple[str, dict[str, Any]]]:
        """Return the kind and the content of all actions that count."""
        return [each for actions in self.last.values() for each in actions.values()]


def read_entry(folder: StorageFolder, version: int, all_sealed: bool = False) -> list[dict[str, Any]]:
    """Read the actions of a commit.

    Args:
        folder: the folder of the collection.
        version: the commit.
        all_sealed: the collection was created since checksums exist, so this library's entries have one.

    Raises:
        FileNotFoundError: there is no such commit.
        IllegalStateError: the file is damaged; no commit is empty.
    """
    return _actions(folder, version, folder.read(entry_path(version)), all_sealed)


def entries_from(folder: StorageFolder, version: int, all_sealed: bool = False) -> Iterator[list[dict[str, Any]]]:
    """Yield the actions of each commit from a version on; arguments and errors as for `read_entry`."""
    for each, data in enumerate(folder.read_run(map(entry_path, count(version))), version):
        yield _actions(folder, each, data, all_sealed)


def _actions(folder: StorageFolder, version: int, data: bytes, all_sealed: bool) -> list[dict[str, Any]]:
    is_whole = is_sealed(_HEAD, data, owner_of(folder))
    try:
        actions = parsed(data)
    except ValueError:
        actions = []
    # An action that is not known might change what the table contains, so it is not passed over.
    if not actions or not all(map(_ACTIONS.issuperset, actions)):
        is_whole = False
    if is_whole is None and not _may_be_unsealed(actions, all_sealed):
        is_whole = False
    if is_whole is False or (is_whole and actions[0]["commitInfo"].get("commit") != version):
        raise IllegalStateError(
            f"{folder.title} is damaged: {folder.url}/{entry_path(version)} is no whole log entry; something else than "
            "dstream has written it, or the machine failed; restore the file from a backup"
        )
    return actions


def _may_be_unsealed(actions: Sequence[Mapping[str, Any]], all_sealed: bool) -> bool:
    """Return whether an entry without a checksum was written by another program, or before checksums existed.

    All of them, delta-rs and Spark too, have their names in `commitInfo`; without it lines are missing. This library
    writes `dstream` in it, and `commit` since checksums exist.
    """
    infos = [action["commitInfo"] for action in actions if "commitInfo" in action]
    if not infos or not all(isinstance(info, dict) for info in infos):
        return False
    return not any("dstream" in info and (all_sealed or "commit" in info) for info in infos)


def version_in(folder: StorageFolder, data: bytes | None) -> int:
    """Return which commit an entry is, from the file that was created last; -1 if that does not contain it."""
    if data is None or not is_sealed(_HEAD, data, owner_of(folder)):
        return -1
    try:
        return checked_number(json.loads(data.partition(b"\n")[0])["commitInfo"]["commit"])
    except NOT_UNDERSTOOD:  # something else than dstream has sealed it
        return -1


def owner_of(folder: StorageFolder) -> str:
    """Return the identity of the collection in a folder, which is named by it."""
    return folder.url.rpartition("/")[2]
