"""Rows of a Spark DataFrame as Python values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dstream.engine.versions import Feature, has
from dstream.errors import SourceError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["rows_of_frame", "values_of_frame"]


def rows_of_frame(batch: pa.RecordBatch, schema: Any) -> list[Any]:
    """Return rows as `pyspark.sql.Row`, as `collect()` does (4.3), with moments in UTC.

    PySpark drops the zone of a timestamp, and returns it in the local time of the process, where two timestamps of an
    hour that occurs twice would be equal.

    Args:
        batch: the columns.
        schema: of the DataFrame, a `pyspark.sql.types.StructType`; its fields match the columns by position.

    Raises:
        SourceError: a value is none of Python.
    """
    import pyarrow as pa

    columns = [_in_utc(column) for column in batch.columns]
    table = pa.Table.from_arrays(columns, [str(index) for index in range(len(columns))])
    if not columns:
        # Without columns, only the batch has the number of rows.
        table = pa.Table.from_batches([batch])
    try:
        return _rows(table, schema)
    except Exception as error:
        # Value by value only after a failure: PySpark's conversion names neither the column nor the value.
        for column, field in zip(columns, schema.fields, strict=True):
            _refuse_unread(column, field.name, error)
        raise


def _refuse_unread(column: pa.Array, name: str, error: Exception) -> None:
    """Name the first value of a column that Python does not have, if there is one.

    Raises:
        SourceError: there is one.
    """
    for index in range(len(column)):
        one = column.slice(index, 1)
        try:
            one.to_pylist()
        except (ArithmeticError, ValueError) as problem:
            text = " ".join(str(one).split()).removeprefix("[ ").removesuffix(" ]")
            raise SourceError(f"column {name}: Python has no such {one.type}, got {text} ({problem})") from error


def _rows(table: pa.Table, schema: Any) -> list[Any]:
    if not has(Feature.ROW_CONVERSION):
        return _rows_made_here(table, schema)
    from pyspark.sql.conversion import ArrowTableToRowsConversion

    rows: list[Any] = ArrowTableToRowsConversion.convert(table, _as_they_are(schema))
    return rows


def _rows_made_here(table: pa.Table, schema: Any) -> list[Any]:
    """Convert as PySpark (4.0) does, without Spark Connect, which has it in 3.5."""
    from pyspark.sql import types

    made = types._create_row
    columns = [
        [_value(value, field.dataType) for value in column.to_pylist()]
        for column, field in zip(table.columns, schema.fields, strict=True)
    ]
    lines = zip(*columns, strict=True) if columns else [()] * table.num_rows
    return [made(schema.names, line) for line in lines]


def _value(value: Any, kind: Any) -> Any:
    """Return the Python value of one of Arrow, by its type."""
    from pyspark.sql import types

    if value is None:
        return None
    if isinstance(kind, types.StructType):
        fields = zip(value.values(), kind.fields, strict=True)
        return types._create_row(kind.names, [_value(part, field.dataType) for part, field in fields])
    if isinstance(kind, types.ArrayType):
        return [_value(part, kind.elementType) for part in value]
    if isinstance(kind, types.MapType):
        return {_value(key, kind.keyType): _value(part, kind.valueType) for key, part in value}
    if isinstance(kind, types.UserDefinedType):
        return kind.deserialize(_value(value, kind.sqlType()))
    return value


def values_of_frame(batch: pa.RecordBatch, schema: Any) -> list[list[Any]]:
    """Return the values of each column as a file of Parquet with the same columns has them, with moments in UTC.

    Structs are dictionaries. What Python has of Spark alone, such as a variant, is what PySpark makes of it (4.3).

    Args:
        batch: the columns.
        schema: as for `rows_of_frame`.

    Raises:
        SourceError: a map has a key twice, or a value is none of Python.
    """
    from pyspark.sql.types import StructType

    positions = [position for position, field in enumerate(schema.fields) if not _is_of_arrow(field.dataType)]
    rows = (
        rows_of_frame(batch.select(positions), StructType([schema[position] for position in positions]))
        if positions
        else []
    )
    of_spark = {position: [_plain(row[number]) for row in rows] for number, position in enumerate(positions)}
    return [
        of_spark[position] if position in of_spark else _values(column, schema[position].name)
        for position, column in enumerate(batch.columns)
    ]


def _values(column: pa.Array, name: str) -> list[Any]:
    try:
        values: list[Any] = _in_utc(column).to_pylist(maps_as_pydicts="strict")
    except KeyError as error:  # PySpark would take the last of the values.
        raise SourceError(f"column {name}: a map has a key twice ({error.args[0]})") from None
    except (ArithmeticError, ValueError) as error:
        _refuse_unread(_in_utc(column), name, error)
        raise
    return values


_OF_SPARK_ALONE = ("YearMonthIntervalType", "VariantType", "SpatialType")
"""Types whose values Arrow does not make; the second is there since 4.0, the third since 4.1."""


def _is_of_arrow(kind: Any) -> bool:
    """Return whether Arrow makes the values that Python has of a type."""
    from pyspark.sql import types

    of_spark_alone = tuple(getattr(types, name) for name in _OF_SPARK_ALONE if hasattr(types, name))
    if isinstance(kind, types.ArrayType):
        return _is_of_arrow(kind.elementType)
    if isinstance(kind, types.MapType):
        return isinstance(kind.keyType, types.AtomicType | types.NullType) and all(
            map(_is_of_arrow, (kind.keyType, kind.valueType))
        )
    if isinstance(kind, types.StructType):
        # A dictionary cannot contain a second field of the same name, which Spark allows.
        return len(set(kind.names)) == len(kind) and all(_is_of_arrow(field.dataType) for field in kind)
    return isinstance(kind, types.AtomicType | types.NullType) and not isinstance(kind, of_spark_alone)


def _plain(value: Any) -> Any:
    from pyspark.sql import Row

    if isinstance(value, Row):
        return dict(zip(value.__fields__, map(_plain, value), strict=True))
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    return list(map(_plain, value)) if isinstance(value, list) else value


def _in_utc(column: pa.Array) -> pa.Array:
    kind = _kind_in_utc(column.type)
    return column if kind == column.type else column.cast(kind)


def _kind_in_utc(kind: pa.DataType) -> pa.DataType:
    import pyarrow as pa
    from pyarrow import types

    if types.is_timestamp(kind):
        return kind if kind.tz is None else pa.timestamp(kind.unit, "UTC")
    if types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_kind_in_utc(kind.value_type)))
    if types.is_map(kind) and types.is_null(kind.key_type):
        return kind  # It is empty, and Arrow makes no such type (pyarrow 26).
    if types.is_map(kind):
        return pa.map_(_kind_in_utc(kind.key_type), kind.item_field.with_type(_kind_in_utc(kind.item_type)))
    if types.is_struct(kind):
        return pa.struct([field.with_type(_kind_in_utc(field.type)) for field in kind.fields])
    return kind


def _as_they_are(kind: Any) -> Any:
    """Return a type with others instead of moments, so that PySpark leaves their values alone."""
    from pyspark.sql import types

    if isinstance(kind, types.TimestampType):
        return types.LongType()
    if isinstance(kind, types.ArrayType):
        return types.ArrayType(_as_they_are(kind.elementType), kind.containsNull)
    if isinstance(kind, types.MapType):
        return types.MapType(_as_they_are(kind.keyType), _as_they_are(kind.valueType), kind.valueContainsNull)
    if isinstance(kind, types.StructType):
        fields = [types.StructField(each.name, _as_they_are(each.dataType), each.nullable) for each in kind.fields]
        return types.StructType(fields)
    return kind
