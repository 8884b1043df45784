"""Checkpoints of a Delta log, and Delta's names of column types.

See https://github.com/delta-io/delta/blob/master/PROTOCOL.md. This module loads pyarrow: import it where it is used.

The next checkpoint is computed from the previous one and the commits since, whose actions override it. That takes less
than a tenth of the time of `delta-rs` (`docs/decisions/0017-write-delta-checkpoints-ourselves.md`).
"""

from __future__ import annotations

import io
import json
import logging
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from typing import Any, NamedTuple, TypeVar
from zlib import crc32

import pyarrow as pa
import pyarrow.parquet as parquet

from dstream.base.validation import NOT_UNDERSTOOD, checked_number
from dstream.delta.actions import (
    LOG,
    POINTER,
    REMOVED_FOR,
    THINGS,
    DataFile,
    TableState,
    checkpoint_path,
    data_file,
    entries_from,
    entry_path,
    owner_of,
)
from dstream.filesystem.folders import Folder, StorageFolder

__all__ = [
    "CHECKPOINT",
    "CHECKPOINT_WITH_FEATURES",
    "COLLECTION_CHECKPOINT_INTERVAL",
    "Checkpoint",
    "Checkpoints",
    "Pointer",
    "delta_field",
    "is_due",
    "metadata_of",
    "newest_checkpoint",
    "of_kind",
    "pointed_checkpoint",
    "read_checkpoint",
    "remove_checkpoints",
    "write_checkpoint",
]


_SIMPLE = {
    pa.bool_(): "boolean",
    pa.int64(): "long",
    pa.int32(): "integer",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "binary",
    pa.date32(): "date",
    pa.timestamp("us", "UTC"): "timestamp",
    pa.timestamp("us"): "timestamp_ntz",
}
"""The last one needs the table feature `timestampNtz`, which the lake does without."""

_TEXTS = pa.map_(pa.string(), pa.string())
_FILE = [("path", pa.string()), ("partitionValues", _TEXTS), ("size", pa.int64()), ("dataChange", pa.bool_())]
CHECKPOINT = pa.schema(
    {
        "add": pa.struct([*_FILE, ("modificationTime", pa.int64()), ("stats", pa.string()), ("tags", _TEXTS)]),
        "remove": pa.struct([*_FILE, ("deletionTimestamp", pa.int64()), ("extendedFileMetadata", pa.bool_())]),
        "txn": pa.struct([("appId", pa.string()), ("version", pa.int64()), ("lastUpdated", pa.int64())]),
        "metaData": pa.struct(
            [
                ("id", pa.string()),
                ("name", pa.string()),
                ("description", pa.string()),
                ("format", pa.struct([("provider", pa.string()), ("options", _TEXTS)])),
                ("schemaString", pa.string()),
                ("partitionColumns", pa.list_(pa.string())),
                ("createdTime", pa.int64()),
                ("configuration", _TEXTS),
            ]
        ),
        "protocol": pa.struct([("minReaderVersion", pa.int32()), ("minWriterVersion", pa.int32())]),
    }
)
"""The fields of https://github.com/delta-io/delta/blob/master/PROTOCOL.md, of reader version 1, writer version 2."""

_FEATURES = [("readerFeatures", pa.list_(pa.string())), ("writerFeatures", pa.list_(pa.string()))]
CHECKPOINT_WITH_FEATURES = CHECKPOINT.set(
    CHECKPOINT.get_field_index("protocol"),
    pa.field("protocol", pa.struct([*CHECKPOINT.field("protocol").type, *(pa.field(*each) for each in _FEATURES)])),
)
"""The same for a table whose protocol names features."""


def delta_field(name: str, kind: pa.DataType) -> dict[str, Any]:
    """Describe a stored column in a Delta schema."""
    return {"name": name, "type": _delta_type(kind), "nullable": True, "metadata": {}}


def _delta_type(kind: pa.DataType) -> Any:
    if pa.types.is_decimal128(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_list(kind):
        return {"type": "array", "elementType": _delta_type(kind.value_type), "containsNull": True}
    if pa.types.is_map(kind):
        parts = {"keyType": _delta_type(kind.key_type), "valueType": _delta_type(kind.item_type)}
        return {"type": "map", **parts, "valueContainsNull": True}
    if pa.types.is_struct(kind):
        return _delta_struct([delta_field(field.name, field.type) for field in kind])
    return _SIMPLE[kind]


def _delta_struct(fields: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {"type": "struct", "fields": list(fields)}


def of_kind(rows: pa.Table, kind: pa.Field) -> pa.Array:
    """Return the actions of a kind with the fields of this library, regardless of their writer."""
    # Other programs may write more fields or fewer, and other types for the same ones.
    column = rows.column(kind.name).combine_chunks()
    fields = [
        _compute().struct_field(column, field.name).cast(field.type)
        if column.type.get_field_index(field.name) >= 0
        else pa.nulls(len(column), field.type)
        for field in kind.type
    ]
    return pa.StructArray.from_arrays(fields, fields=list(kind.type), mask=column.is_null())


def _compute() -> Any:
    """Return the functions of Arrow, which are made when they are imported; type checkers do not find them."""
    import pyarrow.compute  # imported on use: it takes 20 ms, and a new table reads no checkpoint

    return pyarrow.compute


def metadata_of(row: dict[str, Any]) -> dict[str, Any]:
    """Convert the description of a table from Parquet to JSON."""
    options = dict(row["format"]["options"])
    return {**row, "format": {**row["format"], "options": options}, "configuration": dict(row["configuration"])}


COLLECTION_CHECKPOINT_INTERVAL = 1000
"""Commits between checkpoints: one takes 75 ms, and 1,000 entries take 50 ms to read."""
_SOONEST = 100
"""Minimal commits between checkpoints of a truncated log: only files before a checkpoint are removed."""
_ROWS_OF_A_COMMIT = 50
"""Rows of the previous checkpoint that are rewritten in about the time of reading one commit."""

_CHECKPOINT = re.compile(rf"{LOG}/([0-9]{{20}})\.checkpoint\.parquet")
_STATE = CHECKPOINT.remove(CHECKPOINT.get_field_index("remove"))
"""The columns that a handle reads. Files that were removed may be many."""
_log = logging.getLogger(__name__)

T = TypeVar("T")


class Checkpoint(NamedTuple):
    """The state of a table at one version."""

    version: int
    protocol: Mapping[str, Any]
    metadata: Mapping[str, Any] | None
    transactions: Mapping[str, int]
    adds: tuple[DataFile, ...]


class Checkpoints:
    """The checkpoints of one log, and the pointer to the newest.

    The pointer is a hint: a delayed writer may have set it after a newer checkpoint was written, and after its
    checkpoint was removed. So a checkpoint has its own checksum, and the log is listed if the pointer fails.

    Args:
        folder: the folder of the table.
        names: returns the paths of the files of the log that sort after the argument.
        owner: the identity of the table, which its checksums cover.
    """

    def __init__(self, folder: Folder, names: Callable[[str], Iterable[str]], owner: str = "") -> None:
        self._folder = folder
        self._names = names
        self._owner = owner

    def newest(self, read: Callable[[int, bytes], T], behind: int = -1) -> T | None:
        """Return the result of `read` for the version and the bytes of the newest complete checkpoint.

        Args:
            read: raises an error for bytes that it does not understand; an older checkpoint is read then.
            behind: only accept a checkpoint of more than this number of commits.

        Returns:
            None if there is none, or if there is no pointer and the log has its first commit.
        """
        pointer = self.pointer()
        tried = {pointer.version}
        if pointer.version > behind:
            if (found := self._read(pointer.version, pointer, read)) is not None:
                return found
        elif pointer.version < 0 and self._folder.exists(entry_path(0)):
            return None
        # It is listed again after each failure: checkpoints are removed when newer ones exist.
        while untried := set(self.versions(behind)) - tried:
            version = max(untried)
            if (found := self._read(version, pointer, read)) is not None:
                return found
            tried.add(version)
        return None

    def versions(self, behind: int = -1) -> Iterator[int]:
        """Yield the versions of checkpoints after a commit, complete or not. The log is listed."""
        for path in self._names(checkpoint_path(behind) if behind >= 0 else ""):
            if (found := _CHECKPOINT.fullmatch(path)) is not None and int(found[1]) > behind:
                yield int(found[1])

    def pointer(self) -> Pointer:
        """Return the contents of the pointer; a version of -1 if there is none for a checkpoint in one file."""
        try:
            pointer = json.loads(self._folder.read(POINTER))
            if pointer.get("parts") or pointer.get("v2Checkpoint"):
                return _NO_POINTER  # another program's
            return Pointer(checked_number(pointer["version"]), pointer.get("crc32"))
        except FileNotFoundError:
            return _NO_POINTER
        except (*NOT_UNDERSTOOD, OSError) as error:
            self._warn(error)
            return _NO_POINTER

    def put(self, version: int, rows: pa.Table, codec: str, level: int | None = None) -> None:
        """Write the rows of a checkpoint. Readers follow the pointer, which is written last and never decreases."""
        sink = io.BytesIO()
        parquet.write_table(rows, sink, compression=codec, compression_level=level, store_schema=False)
        data = _sealed(sink.getvalue(), self._identity(version))
        # Another process may have written a checkpoint of the same commits, so it is replaced.
        self._folder.replace(checkpoint_path(version), data)
        pointed = pointed_checkpoint(self._folder)
        # Another writer may have summed up later commits meanwhile. Without its file the pointer is a wrong one.
        if pointed <= version or not self._folder.exists(checkpoint_path(pointed)):
            pointer = {"version": version, "size": rows.num_rows, "crc32": crc32(data)}
            self._folder.replace(POINTER, json.dumps(pointer).encode())

    def _read(self, version: int, pointer: Pointer, read: Callable[[int, bytes], T]) -> T | None:
        try:
            data = self._folder.read(checkpoint_path(version))
            self._check(version, data, pointer)
            return read(version, data)
        except FileNotFoundError:
            return None
        except (*NOT_UNDERSTOOD, OSError, pa.ArrowException) as error:
            self._warn(error)
            return None

    def _check(self, version: int, data: bytes, pointer: Pointer) -> None:
        """Refuse a checkpoint that is not as it was written, as far as that can be known."""
        is_whole = _is_sealed(data, self._identity(version))
        if is_whole is None and version == pointer.version:
            is_whole = pointer.crc32 in (None, crc32(data))
        elif is_whole is None:
            # Another program's has no checksum, so the commits themselves are preferred where none was cut.
            is_whole = not self._folder.exists(entry_path(0)) and self._folder.exists(entry_path(version))
        if not is_whole:
            raise ValueError("it is not the one that was written")

    def _identity(self, version: int) -> bytes:
        return f"{self._owner}/{version}".encode()

    def _warn(self, error: Exception) -> None:
        _log.warning("%s: a checkpoint is torn and is not used: %s", self._folder.title, error)


class Pointer(NamedTuple):
    """The content of the file that names a checkpoint.

    Attributes:
        version: the last commit that the checkpoint sums up.
        crc32: its checksum; None if another program wrote it.
    """

    version: int
    crc32: int | None


_NO_POINTER = Pointer(-1, None)
_SEAL = b"dstream.crc32:"
_SEAL_SIZE = len(_SEAL) + 8


def _sealed(data: bytes, identity: bytes) -> bytes:
    """Return a Parquet file with a checksum before its footer, where no offset of the footer leads."""
    at = _footer_start(data)
    return data[:at] + _SEAL + b"%08x" % crc32(data, crc32(identity)) + data[at:]


def _is_sealed(data: bytes, identity: bytes) -> bool | None:
    """Return whether a Parquet file has its checksum and is as it was written; None if it has none."""
    end = _footer_start(data)
    start = end - _SEAL_SIZE
    if start < 0 or not data.startswith(_SEAL, start):
        return None
    return data[start + len(_SEAL) : end] == b"%08x" % crc32(data[end:], crc32(data[:start], crc32(identity)))


def _footer_start(data: bytes) -> int:
    """Return where the footer begins: a Parquet file ends with its length in four bytes and with `PAR1`."""
    return len(data) - 8 - int.from_bytes(data[-8:-4], "little")


def _checkpoints(folder: StorageFolder) -> Checkpoints:
    """Return the checkpoints of a collection."""
    return Checkpoints(folder, lambda after: (file.path for file in folder.found(LOG, after)), owner_of(folder))


def read_checkpoint(folder: StorageFolder, behind: int = -1) -> Checkpoint | None:
    """Return the newest checkpoint of a collection, None if none can be read.

    The log itself is complete then, so it is read from the start.

    Args:
        folder: the folder of the collection.
        behind: as for `Checkpoints.newest`.
    """
    return _checkpoints(folder).newest(lambda version, data: _summed_up(version, _rows(data, _STATE)), behind)


def _summed_up(version: int, rows: pa.Table) -> Checkpoint:
    present = {name: rows.column(name).drop_null().to_pylist() for name in _STATE.names}
    return Checkpoint(
        version,
        present["protocol"][0],
        metadata_of(present["metaData"][0]) if present["metaData"] else None,
        {row["appId"]: checked_number(row["version"]) for row in present["txn"]},
        tuple(map(data_file, present["add"])),
    )


def _rows(data: bytes, schema: pa.Schema) -> pa.Table:
    """Return the actions of the kinds of `schema` in a checkpoint, one per row."""
    file = parquet.ParquetFile(pa.BufferReader(data))
    fields = [f"{kind.name}.{field.name}" for kind in schema for field in kind.type]
    rows = file.read(fields, use_threads=False)
    return pa.table([of_kind(rows, kind) for kind in schema], schema)


def newest_checkpoint(folder: StorageFolder) -> int:
    """Return the last commit of the newest checkpoint; -1 if there is none. The log is listed."""
    return max(_checkpoints(folder).versions(), default=-1)


def pointed_checkpoint(folder: Folder) -> int:
    """Return the last commit of the checkpoint that the pointer names; -1 if there is none. It may be outdated."""
    try:
        return checked_number(json.loads(folder.read(POINTER))["version"])
    except (FileNotFoundError, *NOT_UNDERSTOOD):
        return -1


def is_due(folder: StorageFolder, version: int, is_cut: bool) -> bool:
    """Return whether a commit is to be followed by a checkpoint.

    Args:
        folder: the folder of the collection.
        version: the commit.
        is_cut: whether its log is truncated, so that files before the checkpoint are removed. It is then due after 100
            commits; a large checkpoint later, so that rewriting its rows takes no longer than reading the commits.
    """
    if version == 0 or version % (_SOONEST if is_cut else COLLECTION_CHECKPOINT_INTERVAL):
        return False
    if version % COLLECTION_CHECKPOINT_INTERVAL == 0:
        return True
    try:
        pointer = json.loads(folder.read(POINTER))
        return version - checked_number(pointer["version"]) >= checked_number(pointer["size"]) / _ROWS_OF_A_COMMIT
    except (FileNotFoundError, *NOT_UNDERSTOOD):
        return True


def remove_checkpoints(folder: StorageFolder, before: int) -> None:
    """Remove the checkpoints before a version."""
    for path in list(folder.paths(LOG)):
        found = _CHECKPOINT.fullmatch(path)
        if found is not None and int(found[1]) < before:
            folder.delete(path)


def write_checkpoint(folder: StorageFolder, all_sealed: bool = False, keep: float | None = None) -> None:
    """Write a checkpoint of the current log of a collection.

    Args:
        folder: the folder of the collection.
        all_sealed: as for `read_entry`.
        keep: seconds for which it names removed files; unset, as long as other readers need.
    """
    files = _checkpoints(folder)
    before, rows = files.newest(_all_rows) or (-1, CHECKPOINT.empty_table())
    if before >= 0 and not folder.exists(entry_path(before + 1)):
        # The log was truncated before a newer checkpoint than the pointer's, or there are no new commits.
        before, rows = files.newest(_all_rows, behind=before) or (before, rows)
    state = TableState(before)
    for entry in entries_from(folder, before + 1, all_sealed):
        state.take(entry, state.version + 1)
    if state.version > before:
        older = _remaining(rows, state, REMOVED_FOR if keep is None else min(REMOVED_FOR, int(keep * 1000)))
        newer = pa.Table.from_pylist([{kind: action} for kind, action in state.actions()], CHECKPOINT)
        files.put(state.version, pa.concat_tables([older, newer]), "zstd", 1)


def _all_rows(version: int, data: bytes) -> tuple[int, pa.Table]:
    return version, _rows(data, CHECKPOINT)


def _remaining(rows: pa.Table, state: TableState, removed_for: int) -> pa.Table:
    """Return the rows of a checkpoint that no action of later commits replaces, without files removed long ago."""
    is_last = [_is_last(rows.column(kind), state, *THINGS[kind]) for kind in CHECKPOINT.names]
    times = _compute().struct_field(rows.column("remove"), "deletionTimestamp")
    is_old = _compute().fill_null(_compute().less(times, int(time.time() * 1000) - removed_for), False)
    return rows.filter(_compute().and_not(reduce(_compute().or_, is_last), is_old))


def _is_last(column: pa.ChunkedArray, state: TableState, thing: str, identity: str | None) -> pa.ChunkedArray:
    """Return for each row whether it has an action of this kind that is still the last one."""
    if identity is None:
        return _compute().and_(column.is_valid(), not state.last[thing])
    names = pa.array(list(state.last[thing]), pa.string())
    return _compute().and_not(column.is_valid(), _compute().is_in(_compute().struct_field(column, identity), names))
