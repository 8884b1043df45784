"""The entries of a log: a file of JSON lines for each commit, an action on each line.

An entry that this library writes begins with a checksum of all that follows, and says which commit it is. Who
creates an entry leaves a second name for it, `_last_created`, so that an entry that is missing is no end of the log.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any

from dstream.errors import IllegalStateError
from dstream.storage.checking import NOT_UNDERSTOOD, number
from dstream.storage.lake.checksums import is_sealed, seal
from dstream.storage.lake.files import Folder
from dstream.storage.lake.paths import LOG

__all__ = ["LOG", "entries_from", "entry_path", "entry_version", "packed", "read_entry", "version_in"]

_HEAD = b'{"commitInfo":{"crc32":"'
_ENTRY = re.compile(rf"{LOG}/(\d{{20}})\.json")

_ACTIONS = {"add", "remove", "metaData", "protocol", "txn", "commitInfo", "cdc", "domainMetadata"}
"""Of https://github.com/delta-io/delta/blob/master/PROTOCOL.md, those that a log without v2 checkpoints has."""

_dumps = json.JSONEncoder(separators=(",", ":")).encode


def entry_path(version: int) -> str:
    """Return where the commit of a version stands."""
    return f"{LOG}/{version:020d}.json"


def entry_version(path: str) -> int | None:
    """Return which commit stands at a path, None if it is no entry."""
    match = _ENTRY.fullmatch(path)
    return None if match is None else int(match[1])


def packed(folder: Folder, version: int, info: Mapping[str, Any], actions: Sequence[Mapping[str, Any]]) -> bytes:
    """Return an entry with its checksum; `info` is for this library alone."""
    lines = [{"commitInfo": {"commit": version, **info}}, *actions]
    first, *others = map(_dumps, lines)
    rest = "\n".join(['",' + first.removeprefix('{"commitInfo":{'), *others])
    return seal(_HEAD, rest.encode(), _owner(folder))


def read_entry(folder: Folder, version: int, all_sealed: bool = False) -> list[dict[str, Any]]:
    """Read the actions of a commit.

    Args:
        folder: that of the collection.
        version: which commit.
        all_sealed: the collection was made since there are checksums, so this library's entries have one.

    Raises:
        FileNotFoundError: there is no such commit.
        IllegalStateError: the file is not as it was written; no commit is empty.
    """
    return _actions(folder, version, folder.read(entry_path(version)), all_sealed)


def entries_from(folder: Folder, version: int, all_sealed: bool = False) -> Iterator[list[dict[str, Any]]]:
    """Give the actions of each commit from a version on; arguments and errors as for `read_entry`."""
    for each, data in enumerate(folder.read_run(map(entry_path, count(version))), version):
        yield _actions(folder, each, data, all_sealed)


def _actions(folder: Folder, version: int, data: bytes, all_sealed: bool) -> list[dict[str, Any]]:
    is_whole = is_sealed(_HEAD, data, _owner(folder))
    try:
        actions = [json.loads(line) for line in data.split(b"\n") if line.strip()]
    except (ValueError, RecursionError):
        actions = []
    if not actions or not all(isinstance(action, dict) and _ACTIONS.issuperset(action) for action in actions):
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
    """Say whether an entry without a checksum is another program's, or from before there were checksums.

    All of them, delta-rs and Spark too, say in `commitInfo` who they are; without it lines are missing. This library
    writes `dstream` there, and `commit` since there are checksums.
    """
    infos = [action["commitInfo"] for action in actions if "commitInfo" in action]
    if not infos or not all(isinstance(info, dict) for info in infos):
        return False
    return not any("dstream" in info and (all_sealed or "commit" in info) for info in infos)


def version_in(folder: Folder, data: bytes | None) -> int:
    """Return which commit an entry is, as the file says that was created last; -1 if it says nothing."""
    if data is None or not is_sealed(_HEAD, data, _owner(folder)):
        return -1
    try:
        return number(json.loads(data.partition(b"\n")[0])["commitInfo"]["commit"])
    except NOT_UNDERSTOOD:  # something else than dstream has sealed it
        return -1


def _owner(folder: Folder) -> str:
    """Return the identity of the collection in a folder, which is named by it."""
    return folder.url.rpartition("/")[2]
