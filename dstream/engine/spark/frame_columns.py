"""Columns of Arrow on their way into a DataFrame of Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

__all__ = ["columns_of_spark"]

_LONGEST_DECIMAL = 38
"""So many digits has a Decimal of Spark at most."""


def columns_of_spark(schema: pa.Schema) -> StructType:
    """Return the types that Spark has for columns of Arrow.

    Raises:
        TypeError: it has none for one of them. Times of day it has, and refuses in most of what a DataFrame does (4.3).
    """
    import pyarrow as pa
    from pyspark.sql.pandas.types import from_arrow_schema

    for field in schema:
        waiting = [field.type]
        while waiting:
            kind = waiting.pop()
            if isinstance(kind, pa.BaseExtensionType) or pa.types.is_time(kind):
                raise TypeError(_refusal(field.name, kind, "str"))
            if pa.types.is_decimal(kind) and kind.precision > _LONGEST_DECIMAL:
                digits = f"str, or to Decimals of {_LONGEST_DECIMAL} digits at most"
                raise TypeError(_refusal(field.name, kind, digits))
            waiting += (kind.field(place).type for place in range(kind.num_fields))
    return from_arrow_schema(schema)


def _refusal(column: str, kind: pa.DataType, instead: str) -> str:
    return (
        f"column {column!r} holds {kind}, and DataFrames of Spark have no such type: map() it before, as to {instead}"
    )
