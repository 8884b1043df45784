"""Columns of keys and values: a typed one, and bytes for items that do not fit it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

from dstream.schema.scalar_types import one_chunk
from dstream.schema.types import ColumnType, Decode, Encode

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["fields", "merged", "nothing", "pair", "plain_keys", "typed"]


_ONE_FORM = (str, int, bool, bytes, date, datetime, timedelta, UUID)
"""Types of which no two equal instances that fit differ, so that keys go into the column as they are."""


def fields(found: ColumnType | None, name: str, escape: str) -> list[pa.Field]:
    """Return the two fields; without a typed column the first is binary and always null."""
    import pyarrow

    return [pyarrow.field(name, _arrow(found)), pyarrow.field(escape, pyarrow.binary())]


def typed(found: ColumnType | None) -> ColumnType | None:
    """Return the type if it has a column."""
    return None if found is None or found.arrow is None else found


def plain_keys(found: ColumnType, keys: Sequence[Any]) -> pa.Array | None:
    """Return the column of keys that all are exactly of a type with one form; None if they are not."""
    if found.hint is float and {float}.issuperset(map(type, keys)):
        keys = [key + 0.0 if key == key else math.nan for key in keys]  # one zero and one NaN
    elif found.hint not in _ONE_FORM:
        return None
    array = found.to_array(keys)
    return None if array is None or array.null_count else array


def pair(
    found: ColumnType | None, values: Sequence[Any], escape: Sequence[bytes | None], encode: Encode
) -> tuple[pa.Array, pa.Array]:
    """Return both columns; the parts of `values` fit or are None."""
    import pyarrow

    if found is None or found.arrow is None:
        array = pyarrow.nulls(len(values), pyarrow.binary())
    else:
        array = found.to_array(values, encode)
        if array is None:
            raise AssertionError(f"a column of {found.name} refuses values that fit it")
    return array, one_chunk(pyarrow.array(escape, pyarrow.binary()))


def nothing(length: int) -> pa.Array:
    """Return an escape that holds nothing."""
    import pyarrow

    return pyarrow.nulls(length, pyarrow.binary())


def merged(
    found: ColumnType | None, column: Any, escape: Any, decode: Callable[[bytes], Any], decode_field: Decode
) -> list[Any]:
    """Return the values of both columns, None where both are null.

    Args:
        found: the type of the first column.
        column: values that fit it.
        escape: bytes of the others.
        decode: makes a key or value of these.
        decode_field: makes a value of the bytes of a field without a column.
    """
    column, escape = _whole(column), _whole(escape)
    if found is None or found.arrow is None:
        values: list[Any] = [None] * len(column)
    else:
        # Files that other tools have written come with string_view, dictionaries and the like.
        values = found.from_array(column if column.type == found.arrow else column.cast(found.arrow), decode_field)
    if escape.null_count < len(escape):
        for position, data in enumerate(escape.to_pylist()):
            if data is not None:
                values[position] = decode(data)
    return values


def _arrow(found: ColumnType | None) -> pa.DataType:
    import pyarrow

    arrow = None if found is None else found.arrow
    return pyarrow.binary() if arrow is None else arrow


def _whole(column: Any) -> Any:
    return column.combine_chunks() if hasattr(column, "combine_chunks") else column
