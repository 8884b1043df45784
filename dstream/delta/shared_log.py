"""`SharedLog`: the log of a table that other programs share, its schema, and the check of new files.

A commit is a file `_delta_log/<version>.json`, and the process that creates the next one has committed. What is not
understood is
refused: https://github.com/delta-io/delta/blob/master/PROTOCOL.md, reader version 1 and writer version 2, and moments
without a zone.
"""

from __future__ import annotations

import json
import logging
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, unquote

from dstream.delta.actions import (
    LOG,
    POINTER,
    REMOVED_FOR,
    THINGS,
    TableState,
    entry_path,
    entry_version,
    parsed,
)
from dstream.errors import SinkError, UnsupportedError
from dstream.filesystem.folders import OutputFolder
from dstream.filesystem.output_folders import NULL_PARTITION
from dstream.schema.types import ColumnTypes

__all__ = ["SharedLog", "check_table", "description_of", "partition_values", "path_in_log"]


NTZ = "timestampNtz"
SHARED_CHECKPOINT_INTERVAL = 100
"""Commits between checkpoints: to open the table, fewer entries than that are read."""

_IGNORED = ("commitInfo", "cdc")

_log = logging.getLogger(__name__)


def path_in_log(name: str) -> str:
    """Return how the log calls a file."""
    return quote(name, safe="/=~!$&'()*+,;:@")


class SharedLog(TableState):
    """The log of a table, up to the version that was read.

    Attributes:
        place: the folder.
    """

    def __init__(self, place: OutputFolder) -> None:
        super().__init__()
        self.place = place

    @property
    def protocol(self) -> dict[str, Any] | None:
        """The version and features that readers and writers need; None if there is no table."""
        return self.of("protocol").get(None)

    @property
    def metadata(self) -> dict[str, Any]:
        """The description of the table."""
        return self.of("metaData").get(None, {})

    def epoch(self, job: str | None) -> int:
        """Return the last committed epoch of a job; 0 if there is none."""
        return int(self.of("txn").get(job, {}).get("version", 0))

    def adds(self) -> dict[str, dict[str, Any]]:
        """Return the files of the table, by path."""
        return self.of("add")

    def catch_up(self) -> None:
        """Read the commits since then.

        Raises:
            SinkError: the log is damaged.
            UnsupportedError: it contains something that is not understood.
        """
        if self.version < 0:
            self._begin()
        while (actions := self._entry(self.version + 1)) is not None:
            self.take(actions, self.version + 1)
        if self.protocol is not None:
            self._check_protocol(self.protocol)

    def _begin(self) -> None:
        """Read the newest checkpoint; without one the log begins with its first commit."""
        from dstream.delta.checkpoints import Checkpoints

        self._check_pointer()
        checkpoints = Checkpoints(self.place, self._names)
        found = checkpoints.newest(_rows)
        if found is not None and not self.place.exists(entry_path(found[0] + 1)):
            # The pointer may be outdated, and the commits after it removed since.
            found = checkpoints.newest(_rows, behind=found[0]) or found
            self._check_gap(found[0])
        if found is not None:
            version, rows = found
            self.take(rows, version)
        elif self._entry(0) is None and any(True for _ in self._names()):
            # A log without its beginning would pass for a table that is yet to be made, and be begun once more.
            raise self._damaged("its first commit is gone, and there is no checkpoint that can be read")

    def _check_pointer(self) -> None:
        try:
            pointer = json.loads(self.place.read(POINTER))
        except (FileNotFoundError, ValueError, RecursionError):
            return
        # The commits before such a checkpoint may be removed, so to begin with the first entry would miss files.
        if isinstance(pointer, dict) and ("parts" in pointer or "v2Checkpoint" in pointer):
            raise UnsupportedError(
                f"{self.place.title}: its log has checkpoints in parts, which to_files() cannot read"
            )

    def _check_gap(self, version: int) -> None:
        """Refuse a log whose commits after a checkpoint were removed: the next commit would precede the others."""
        found = {number for name in self._names() if (number := entry_version(name)) is not None}
        if version + 1 not in found and max(found, default=-1) > version:
            raise self._damaged(f"{entry_path(version + 1)} is gone, and there is no checkpoint behind it to be read")

    def _names(self, after: str = "") -> list[str]:
        """Return the paths of all files of the log; the log may be empty."""
        if LOG not in dict(self.place.entries("")):
            return []
        return [f"{LOG}/{name}" for name, _ in self.place.entries(LOG)]

    def _entry(self, version: int) -> list[dict[str, Any]] | None:
        try:
            return parsed(self.place.read(entry_path(version)))
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise self._damaged(f"{entry_path(version)} {error}") from error

    def _damaged(self, why: str) -> SinkError:
        return SinkError(f"{self.place.title}: the log of its Delta table is damaged, since {why}")

    def take(self, actions: Iterable[Mapping[str, Any]], version: int) -> None:
        """Apply the actions of a commit, after a check of each."""
        for kind, action in (each for line in actions for each in line.items()):
            # An unknown action, such as `domainMetadata`, may carry a promise to readers that this writer would break.
            if kind not in (*THINGS, *_IGNORED):
                raise UnsupportedError(
                    f"{self.place.title}: the log of its Delta table says {kind!r:.50}, which to_files() does not know"
                )
            try:
                _check_action(kind, action)
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                raise self._damaged(f"an action {kind!r} is none: {error!r}") from error
        super().take(actions, version)

    def _check_protocol(self, protocol: Mapping[str, Any]) -> None:
        reader, writer = int(protocol.get("minReaderVersion") or 1), int(protocol.get("minWriterVersion") or 1)
        known = reader <= 1 and writer <= 2
        features = {*(protocol.get("readerFeatures") or ()), *(protocol.get("writerFeatures") or ())}
        if reader == 3 and writer == 7:
            # The last two are features of writer version 2, known to `check_table`; a table may name them one by one.
            known = features <= {NTZ, "appendOnly", "invariants"}
        if not known:
            says = f"the features {', '.join(sorted(features))}" if features else f"the versions {reader} and {writer}"
            raise UnsupportedError(
                f"{self.place.title}: its Delta table needs {says} of the protocol, which to_files() does not know"
            )

    def put(self, actions: list[dict[str, Any]]) -> bool:
        """Commit as the next version; False if another commit has taken it."""
        lines = "\n".join(json.dumps(action, separators=(",", ":")) for action in actions)
        if not self.place.create(entry_path(self.version + 1), lines.encode()):
            return False
        self.take(actions, self.version + 1)
        # Only the process that has committed this version is here, so no two processes write the same checkpoint.
        if self.version and self.version % SHARED_CHECKPOINT_INTERVAL == 0:
            try:
                self._write_checkpoint()
            except Exception as error:  # The commit succeeded, even if its checkpoint fails.
                _log.warning("%s could not be summed up after a commit: %s", self.place.title, error)
        return True

    def _write_checkpoint(self) -> None:
        """Write a checkpoint."""
        import pyarrow as pa

        from dstream.delta.checkpoints import CHECKPOINT, CHECKPOINT_WITH_FEATURES, Checkpoints

        now = int(time.time() * 1000)
        # A table with a custom duration retains all names: the interval string is not parsed.
        if "delta.deletedFileRetentionDuration" not in (self.metadata.get("configuration") or {}):
            for path, remove in self.of("remove").items():
                if now - int(remove.get("deletionTimestamp") or 0) >= REMOVED_FOR:
                    del self.last["file"][path]
        # Others may forget an epoch by its age, and a stream of the table is to pass over what a checkpoint repeats.
        anew: dict[str, dict[str, Any]] = {
            "txn": {"lastUpdated": now},
            "add": {"dataChange": False},
            "remove": {"dataChange": False},
        }
        rows = [{kind: {**action, **anew.get(kind, {})}} for kind, action in self.actions()]
        has_features = bool((self.protocol or {}).get("writerFeatures"))
        table = pa.Table.from_pylist(rows, CHECKPOINT_WITH_FEATURES if has_features else CHECKPOINT)
        Checkpoints(self.place, self._names).put(self.version, table, "snappy")

    def names(self) -> list[str]:
        """Return the files of the table."""
        return list(map(unquote, self.adds()))


def _check_action(kind: str, action: Any) -> None:
    if kind in ("protocol", "metaData"):
        dict(action)
    elif kind == "txn":
        hash(action["appId"])
        int(action["version"])
    elif kind in THINGS and not isinstance(action["path"], str):
        raise TypeError("its path is no text")


def _rows(version: int, data: bytes) -> tuple[int, list[dict[str, Any]]]:
    """Return the version and the actions of a checkpoint."""
    import pyarrow as pa
    import pyarrow.parquet as parquet

    from dstream.delta.checkpoints import CHECKPOINT_WITH_FEATURES, metadata_of, of_kind

    table = parquet.read_table(pa.BufferReader(data))
    strange = set(table.column_names) - {*THINGS, *_IGNORED}
    if strange := {name for name in strange if table.column(name).null_count < table.num_rows}:
        raise UnsupportedError(f"a checkpoint of a Delta table has {min(strange)!r}, which to_files() does not know")
    actions: list[dict[str, Any]] = []
    for kind in CHECKPOINT_WITH_FEATURES:
        if kind.name in table.column_names:
            for row in of_kind(table, kind).drop_null().to_pylist():
                for name in ("partitionValues", "tags"):
                    if name in row:
                        row[name] = dict(row[name] or ())
                actions.append({kind.name: metadata_of(row) if kind.name == "metaData" else row})
    return version, actions


_KINDS_OF_FOLDERS = ("string", "long", "boolean", "date", "timestamp", "timestamp_ntz")


def description_of(columns: ColumnTypes, partitions: Sequence[str], title: str) -> list[dict[str, Any]]:
    """Return the actions that create a table with these columns.

    Raises:
        SinkError: the type of a column is not known, or two names differ in their case alone.
    """
    if missing := [name for name, kind in columns.items() if not kind]:
        raise SinkError(
            f"{title}: nothing was changed, since the column {missing[0]!r} has nothing but None so far, and a "
            "Delta table needs its type: say it with a class in columns="
        )
    # The protocol of Delta compares names of columns without regard to case.
    if len({name.lower() for name in columns}) < len(columns):
        raise SinkError(
            f"{title}: nothing was changed: names of columns in Delta differ in more than upper and lower case"
        )
    fields = [_field(name, kind) for name, kind in columns.items()]
    naive = any("timestamp_ntz" in kind for kind in columns.values())
    features = {"readerFeatures": [NTZ], "writerFeatures": [NTZ]} if naive else {}
    return [
        {"protocol": {"minReaderVersion": 3 if naive else 1, "minWriterVersion": 7 if naive else 2, **features}},
        {
            "metaData": {
                "id": str(uuid.uuid4()),
                "format": {"provider": "parquet", "options": {}},
                "schemaString": json.dumps({"type": "struct", "fields": fields}),
                "partitionColumns": list(partitions),
                "configuration": {},
                "createdTime": int(time.time() * 1000),
            }
        },
    ]


def _field(name: str, kind: str) -> dict[str, Any]:
    return {"name": name, "type": json.loads(kind) if kind[0] == "{" else kind, "nullable": True, "metadata": {}}


def check_table(log: SharedLog, columns: ColumnTypes, partitions: Sequence[str], *, replaces: bool) -> None:
    """Refuse files that do not fit the existing table.

    Raises:
        SinkError: it has other columns, or other folders.
        UnsupportedError: it has constraints that are not supported.
    """
    title, metadata = log.place.title, log.metadata
    settings = metadata.get("configuration") or {}
    if settings.get("delta.columnMapping.mode", "none") != "none":
        raise UnsupportedError(
            f"{title}: its Delta table gives columns other names in files, which to_files() does not know"
        )
    if replaces and settings.get("delta.appendOnly") == "true":
        raise SinkError(
            f"{title}: its Delta table takes files and gives none up (delta.appendOnly): leave out replacing()"
        )
    if list(metadata.get("partitionColumns") or ()) != list(partitions):
        there = ", ".join(metadata.get("partitionColumns") or ()) or "no columns"
        raise SinkError(
            f"{title}: its Delta table has folders by {there}, and these files by {', '.join(partitions) or 'none'}"
        )
    fields = {field["name"]: field for field in json.loads(metadata["schemaString"])["fields"]}
    _check_fields(title, fields, columns)


def _check_fields(title: str, fields: Mapping[str, Any], columns: ColumnTypes) -> None:
    if columns and fields.keys() != columns.keys():
        raise SinkError(
            f"{title}: nothing was changed, since the Delta table has the columns {', '.join(fields)}, "
            f"and the items have {', '.join(columns)}"
        )
    for name, field in fields.items():
        if any(key.startswith("delta.") for key in field.get("metadata") or ()):
            raise UnsupportedError(
                f"{title}: the column {name!r} of its Delta table has rules, which to_files() does not know"
            )
        if not field.get("nullable", True):
            raise UnsupportedError(
                f"{title}: the column {name!r} of its Delta table takes no None, which to_files() does not check"
            )
        there = field["type"] if isinstance(field["type"], str) else json.dumps(field["type"], sort_keys=True)
        if columns.get(name) and columns[name] != there:
            raise SinkError(
                f"{title}: nothing was changed, since the column {name!r} of the Delta table is {there}, "
                f"and the items have {columns[name]} there: map() them before, or write into another folder"
            )


def partition_values(folder: str, columns: ColumnTypes, title: str) -> dict[str, str | None]:
    """Return the log's values for a file in a folder that `partition_by` has named.

    Raises:
        SinkError: Delta has no form for a value.
    """
    values: dict[str, str | None] = {}
    for level in folder.split("/")[:-1]:
        name, _, text = level.partition("=")
        kind = columns.get(name, "")
        if kind and kind not in _KINDS_OF_FOLDERS:
            raise SinkError(f"{title}: nothing was changed, since no folder of a Delta table is called after {kind}")
        # The log has the value itself, the name of the folder has it quoted.
        value = None if text == NULL_PARTITION else unquote(text)
        if value == "":
            raise SinkError(
                f"{title}: nothing was changed, since {name!r} is the empty text in partition_by, "
                "which Delta takes for None"
            )
        values[name] = _moment(value) if value is not None and kind.startswith("timestamp") else value
    return values


def _moment(text: str) -> str:
    moment = datetime.fromisoformat(text)
    moment = moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)
    # Not `strftime`, whose `%Y` has fewer than four digits for the first years (glibc).
    return moment.isoformat(" ", "microseconds")
