"""How the columns of a collection stand in Parquet files, and how Delta calls their types.

The codec thinks in Arrow types; Delta has fewer. What it lacks is stored as something that every Delta
reader takes, without loss, and is cast back by the type that the codec knows:

    naive timestamp   -> timestamp with time zone UTC (Delta's naive one needs a table feature)
    duration          -> long, microseconds
    binary of a fixed size, such as a UUID -> binary
"""

from __future__ import annotations

import functools
from typing import Any

import pyarrow as pa

__all__ = ["logical", "physical", "physical_type"]


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
