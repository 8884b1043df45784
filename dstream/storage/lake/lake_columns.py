"""How the columns of a collection stand in Parquet files, and how Delta calls their types.

The codec thinks in Arrow types; Delta has fewer. What it lacks is stored as something that every Delta
reader takes, without loss, and is cast back by the type that the codec knows:

    naive timestamp   -> timestamp with time zone UTC (Delta's naive one needs a table feature)
    duration          -> long, microseconds
    binary of a fixed size, such as a UUID -> binary
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

__all__ = ["delta_field", "logical", "physical", "physical_type"]

_SIMPLE = {
    pa.bool_(): "boolean",
    pa.int64(): "long",
    pa.int32(): "integer",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "binary",
    pa.date32(): "date",
    pa.timestamp("us", "UTC"): "timestamp",
}


@functools.lru_cache(maxsize=256)
def physical_type(kind: pa.DataType) -> pa.DataType:
    """Return the type under which a column of `kind` is stored."""
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", "UTC")
    if pa.types.is_duration(kind):
        return pa.int64()
    if pa.types.is_fixed_size_binary(kind):
        return pa.binary()
    if pa.types.is_list(kind):
        return pa.list_(pa.field("element", physical_type(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, physical_type(field.type)) for field in kind])
    return kind


def physical(column: Any) -> Any:
    """Return a column as it is stored."""
    return _cast(column, physical_type(column.type))


def logical(column: Any, kind: pa.DataType) -> Any:
    """Return a stored column as the codec knows it."""
    return _cast(column, kind)


def _cast(column: Any, kind: pa.DataType) -> Any:
    return column if column.type == kind else column.cast(kind)


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
