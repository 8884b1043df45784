"""Records of indexes and changes as plain data, and the files that no record needs.

Names of files are stored once, since the parts of many shards are in one file. An index, whose
last number is the version of the function from keys to shards:

    [stage, kind, signature, [file, ...], [[[[file, offset, length, changes], ...], keys, deadline, clock], ...], 2]

The changes of an epoch, of which one without a file only sets deadlines:

    [[file, ...], [[shard, is_snapshot, file, offset, length, keys, merges, deadline, clock], ...]]

A job that compacts its log calls `removable` with the dropped and the kept records, removes these files, and then the
dropped records: if it crashes in between, the next compaction finds the same files.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from dstream.errors import IllegalStateError
from dstream.operators.state.index import Part, Shard, ShardIndex
from dstream.spi.epochs import ShardChange
from dstream.spi.records import StateFiles

__all__ = [
    "changes_from_plain",
    "changes_to_plain",
    "files_of",
    "index_from_plain",
    "index_to_plain",
    "orphans",
    "removable",
    "remove_all",
]


_FILE = re.compile(r"[a-z0-9-]{1,64}/[0-9]{1,20}-[0-9a-f]{32}")
_FIRST_SHARDING = 1
"""The version of the function from keys to shards when indexes did not name it."""
_MISREAD = (TypeError, ValueError, LookupError, IllegalStateError)


def index_to_plain(index: ShardIndex) -> list[Any]:
    """Return an index as lists, numbers and strings, except for the signature, which is the operator's."""
    # Sorted, so that equal indexes are written as equal records.
    files = {file: number for number, file in enumerate(sorted(index.files()))}
    shards = [
        [[[files[part.file], *part[1:]] for part in shard.parts], shard.keys, shard.deadline, shard.clock_deadline]
        for shard in index.shards
    ]
    return [index.stage, index.kind, list(index.signature), list(files), shards, index.sharding]


def index_from_plain(data: Any) -> ShardIndex:
    """Return the index of which this is the plain data.

    Raises:
        IllegalStateError: it is of none.
    """
    try:
        # Earlier versions of dstream wrote no version of the sharding: they used the first one.
        stage, kind, signature, names, shards, *later = data
        (sharding,) = map(_number, later or (_FIRST_SHARDING,))
        files = _files(names)
        found = tuple(_shard(each, files) for each in shards)
        return ShardIndex(_text(stage), _text(kind), tuple(signature), found, sharding)
    except _MISREAD as error:
        raise IllegalStateError(f"what a record says of the state of a step is damaged: {error!s:.200}") from error


def _shard(data: Any, files: Sequence[str]) -> Shard:
    parts, keys, deadline, clock = data
    found = (Part(files[_number(file)], *map(_number, numbers)) for file, *numbers in parts)
    return Shard(tuple(found), _number(keys), _whole(deadline), _real(clock))


def changes_to_plain(changes: Iterable[ShardChange]) -> list[Any]:
    """Return the changes of an epoch as lists, numbers and strings."""
    files: dict[str, int] = {}
    found = [
        (each.shard, each.is_snapshot, files.setdefault(each.file, len(files)), each.offset, each.length, each.keys)
        + (each.merges, each.deadline, each.clock_deadline)
        for each in changes
    ]
    return [list(files), found]


def changes_from_plain(data: Any) -> tuple[ShardChange, ...]:
    """Return the changes of which this is the plain data.

    Raises:
        IllegalStateError: it is of none.
    """
    try:
        names, changes = data
        files = _files(names)
        return tuple(_change(each, files) for each in changes)
    except _MISREAD as error:
        raise IllegalStateError(f"what a record says of changes of state is damaged: {error!s:.200}") from error


def _change(data: Any, files: Sequence[str]) -> ShardChange:
    shard, is_snapshot, file, offset, length, keys, merges, deadline, clock = data
    return ShardChange(
        _number(shard),
        is_snapshot is True,
        files[_number(file)],
        _number(offset),
        _number(length),
        _number(keys),
        _number(merges),
        _whole(deadline),
        _real(clock),
    )


def _files(names: Any) -> list[str]:
    """Return validated names of state files, so that no other file is read or removed; an empty name is no file."""
    for name in names:
        if name != "" and not _FILE.fullmatch(name):
            raise ValueError(f"{name!r:.100} is no file of the state of a step")
    return list(names)


def _text(data: Any) -> str:
    if not isinstance(data, str):
        raise TypeError(f"{data!r:.100} is no text")
    return data


def _number(data: Any) -> int:
    # By exact type, since `True` is an int, too.
    if type(data) is not int or data < 0:
        raise ValueError(f"{data!r:.100} counts nothing")
    return data


def _whole(data: Any) -> int | None:
    if data is not None and type(data) is not int:
        raise TypeError(f"{data!r:.100} is no timestamp")
    return data


def _real(data: Any) -> float | None:
    if data is not None and type(data) not in (int, float):
        raise TypeError(f"{data!r:.100} is no time")
    return None if data is None else float(data)


def files_of(changes: Iterable[ShardChange]) -> set[str]:
    """Return the names of the files that the changes of an epoch are in."""
    return {change.file for change in changes if change.length}


def removable(dropped: Iterable[Iterable[str]], kept: Iterable[Iterable[str]]) -> list[str]:
    """Return the files that only dropped records name, sorted, so that the oldest files of a step are first.

    Args:
        dropped: the files of each dropped record: `files()` of the indexes of a checkpoint, and `files_of` its changes.
        kept: the files of each kept record: of checkpoints from which a job can restart, of every record after the
            last checkpoint, and of records that are not published yet; and the files of the current index.
    """
    named = set().union(*kept)
    return sorted(set().union(*dropped) - named)


def orphans(files: StateFiles, indexes: Iterable[ShardIndex], named: Iterable[str], older_than: float) -> list[str]:
    """Return the files that no index names, written by attempts of tasks that were not committed; lists all files.

    Args:
        files: the state files of the job.
        indexes: the indexes of each step, the current one and those of the kept checkpoints.
        named: the files that the kept records name.
        older_than: a time, in seconds since 1970: a record may soon name a file that was written later.
    """
    known = set(named).union(*(index.files() for index in indexes))
    return sorted(file.name for file in files.found() if file.written_at < older_than and file.name not in known)


def remove_all(files: StateFiles) -> None:
    """Remove the state of a job that has ended."""
    # Listed first: a folder that changes while it is listed may leave files out.
    for file in list(files.found()):
        files.remove(file.name)
