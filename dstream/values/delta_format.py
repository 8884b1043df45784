"""What the format of Delta says of types and of checkpoints, for the collections of the lake and for `to_files`.

See https://github.com/delta-io/delta/blob/master/PROTOCOL.md. This module loads pyarrow: import it where it is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as compute

__all__ = ["CHECKPOINT", "CHECKPOINT_WITH_FEATURES", "delta_field", "metadata_of", "of_kind"]

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
"""Of https://github.com/delta-io/delta/blob/master/PROTOCOL.md, what reader version 1 and writer version 2 have."""

_FEATURES = [("readerFeatures", pa.list_(pa.string())), ("writerFeatures", pa.list_(pa.string()))]
CHECKPOINT_WITH_FEATURES = CHECKPOINT.set(
    CHECKPOINT.get_field_index("protocol"),
    pa.field("protocol", pa.struct([*CHECKPOINT.field("protocol").type, *(pa.field(*each) for each in _FEATURES)])),
)
"""The same for a table whose protocol names features."""

_compute: Any = compute  # Its functions are made when it is imported; type checkers do not know them.


def delta_field(name: str, kind: pa.DataType) -> dict[str, Any]:
    """Describe a stored column in a Delta schema."""
    return {"name": name, "type": _delta_type(kind), "nullable": True, "metadata": {}}


def _delta_type(kind: pa.DataType) -> Any:
    if pa.types.is_decimal128(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_list(kind):
        return {"type": "array", "elementType": _delta_type(kind.value_type), "containsNull": True}
    if pa.types.is_struct(kind):
        return _delta_struct([delta_field(field.name, field.type) for field in kind])
    return _SIMPLE[kind]


def _delta_struct(fields: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {"type": "struct", "fields": list(fields)}


def of_kind(rows: pa.Table, kind: pa.Field) -> pa.Array:
    """Return the actions of a kind with the fields of ours, whatever program has written them."""
    column = rows.column(kind.name).combine_chunks()
    fields = [
        _compute.struct_field(column, field.name).cast(field.type)
        if column.type.get_field_index(field.name) >= 0
        else pa.nulls(len(column), field.type)
        for field in kind.type
    ]
    return pa.StructArray.from_arrays(fields, fields=list(kind.type), mask=column.is_null())


def metadata_of(row: dict[str, Any]) -> dict[str, Any]:
    """Return the description of a table, as Parquet gives it, as JSON has it."""
    options = dict(row["format"]["options"])
    return {**row, "format": {**row["format"], "options": options}, "configuration": dict(row["configuration"])}
