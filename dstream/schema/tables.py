"""Items as Arrow tables and DataFrames: inferred columns, batches, and a common schema.

Fields of dataclasses and named tuples, keys of dicts and positions of tuples are columns; any other item is in the
single column `value`. Columns have the types of the annotations of fields if the values fit, and otherwise the types of
the values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from dstream.base.memory import BatchIterator
from dstream.failures import shown
from dstream.schema.scalar_types import ScalarType
from dstream.schema.type_inference import Layout, OpenType, types_of_fields
from dstream.schema.types import ColumnType, ColumnTypeError
from dstream.values.fields import columns_of_fields, field_names

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

__all__ = [
    "batches_of",
    "common_schema",
    "data_frame",
    "fitted",
    "packed_batch",
    "schema_of",
    "table_of",
    "unpacked_batches",
]


_ROWS = 8192
_BYTES = 4 * 2**20
_KIND = b"dstream.items"


def table_of(batches: Iterable[pa.RecordBatch]) -> pa.Table:
    """Return batches of items as one table.

    Raises:
        TypeError: they have no common columns.
    """
    import pyarrow as pa

    batches = list(batches)
    schema = common_schema([batch.schema for batch in batches])
    return pa.Table.from_batches([fitted(batch, schema) for batch in batches], schema)


def batches_of(items: Iterable[Any]) -> Iterator[pa.RecordBatch]:
    """Yield items as batches of a few thousand rows and a few megabytes, each with the columns of its own values.

    Raises:
        TypeError: the items have no common columns, or Arrow has no type for a value.
    """
    taking, rows = BatchIterator(items), 1
    while chunk := taking.take(rows):
        batch = _batch(chunk)
        fitting = max(1, min(_BYTES * len(chunk) // max(1, batch.nbytes), _ROWS))
        if rows == 1 < fitting:  # Its size is known; it becomes the first of a batch.
            batch = _batch(chunk := chunk + taking.take(fitting - 1))
        rows = fitting
        yield batch


def data_frame(table: pa.Table) -> pd.DataFrame:
    """Return a table as a DataFrame of pandas that has all of its values.

    pandas converts ints with a None to floats, and does not distinguish None from NaN, so such columns use its nullable
    types. Structs and maps are dictionaries.
    """
    import pandas as pd
    import pyarrow as pa

    frame: pd.DataFrame = table.to_pandas(maps_as_pydicts="strict")
    for name, column in zip(table.column_names, table.columns, strict=True):
        if _has_dicts(column.type):
            frame[name] = pd.Series(column.to_pylist(maps_as_pydicts="strict"), index=frame.index, dtype=object)
        elif column.null_count and (column.type == pa.int64() or (column.type == pa.float64() and _has_nan(column))):
            kind: Any = pd.Int64Dtype() if column.type == pa.int64() else pd.Float64Dtype()
            frame[name] = kind.__from_arrow__(column)
    return frame


def _has_dicts(kind: pa.DataType) -> bool:
    import pyarrow as pa

    fields = map(kind.field, range(kind.num_fields))
    return pa.types.is_struct(kind) or pa.types.is_map(kind) or any(_has_dicts(field.type) for field in fields)


def _has_nan(column: Any) -> bool:
    import pyarrow.compute as compute

    return bool(compute.any(compute.is_nan(column)).as_py())  # pyright: ignore[reportAttributeAccessIssue]


def _batch(items: list[Any]) -> pa.RecordBatch:
    import pyarrow as pa

    # Reversed, so that the first item of each kind is the example in an error.
    kinds = {_kind(item): item for item in reversed(items)}
    if len(kinds) > 1:
        (first, one), (second, other) = list(kinds.items())[:2]
        raise _mixed(f"{first} such as {shown(one)}", f"{second} such as {shown(other)}")
    (kind,) = kinds
    names, columns = _columns(items)
    annotated = types_of_fields(type(items[0]), Layout.TABLES, strict=False)
    arrays = [_array(name, column, annotated.get(name, _OPEN)) for name, column in zip(names, columns, strict=True)]
    schema = pa.schema([(name, array.type) for name, array in zip(names, arrays, strict=True)], {_KIND: kind.encode()})
    if not names:  # An array of structs preserves the number of rows without columns.
        rows = pa.RecordBatch.from_struct_array(pa.array([{}] * len(items), pa.struct([])))
        return rows.replace_schema_metadata(schema.metadata)
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _kind(item: Any) -> str:
    """Return the part of an item that decides about its columns."""
    if field_names(type(item)):
        return type(item).__qualname__
    if isinstance(item, dict):
        return "dicts"
    return f"tuples of {len(item)}" if type(item) is tuple else "single values"


def _columns(items: list[Any]) -> tuple[list[str], list[list[Any]]]:
    first = items[0]
    if names := list(field_names(type(first))):
        return names, columns_of_fields(tuple(names), items)
    if isinstance(first, dict):
        names = list(dict.fromkeys(key for item in items for key in item))
        for name in names:
            if not isinstance(name, str):
                raise TypeError(f"the keys of dicts become names of columns and must be str, not {shown(name)}")
        return names, [[item.get(name) for item in items] for name in names]
    if type(first) is tuple:
        places = range(len(first))
        return [f"_{place + 1}" for place in places], [[item[place] for item in items] for place in places]
    return ["value"], [items]


def _array(name: str, values: list[Any], annotated: ColumnType) -> pa.Array:
    """Return a column by its annotation, or by its values where these contradict it."""
    try:
        try:
            return annotated.refined(values).array(values)
        except ColumnTypeError:
            is_number = annotated == _NUMBER and {int, float, type(None)}.issuperset(map(type, values))
            if is_number or isinstance(annotated, OpenType):
                raise
        return _OPEN.refined(values).array(values)
    except ColumnTypeError as error:
        kinds = {type(value): value for value in reversed(values)}
        examples = ", ".join(shown(value) for value in list(kinds.values())[-3:])
        raise TypeError(
            f"column {name!r} has no Arrow type for values such as {examples}: {error}; map() it before"
        ) from None


_OPEN = OpenType(Layout.TABLES)
_NUMBER = ScalarType("number")


def packed_batch(batch: pa.RecordBatch) -> bytes:
    """Return a batch as bytes that include its schema."""
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def unpacked_batches(data: Any) -> Iterator[pa.RecordBatch]:
    """Yield the batches that `packed_batch` packed."""
    import pyarrow as pa

    with pa.ipc.open_stream(data) as stream:
        yield from stream


def schema_of(packed: Iterable[Any]) -> pa.Schema:
    """Return the columns that fit all batches of several tasks, from the bytes of their schemas."""
    import pyarrow as pa

    return common_schema([pa.ipc.read_schema(pa.py_buffer(data)) for data in packed])


def common_schema(schemas: Sequence[pa.Schema]) -> pa.Schema:
    """Return the columns that all batches fit into; none for no batches.

    Raises:
        TypeError: two batches have other columns, or another type for a column.
    """
    import pyarrow as pa

    kinds = list(dict.fromkeys((schema.metadata or {}).get(_KIND, b"").decode() for schema in schemas))
    if len(kinds) > 1:
        raise _mixed(*kinds[:2])
    # Each pair is compared, and most batches have equal schemas.
    distinct = _in_one_zone(list({schema.to_string(): schema for schema in schemas}.values()))
    for left in distinct:
        for name in left.names:
            for right in distinct:
                if name in right.names:
                    _check_alike(name, left.field(name).type, right.field(name).type)
    return pa.unify_schemas(distinct, promote_options="permissive") if distinct else pa.schema([])


def _in_one_zone(schemas: Sequence[pa.Schema]) -> list[pa.Schema]:
    """Convert moments to the zone of the first one, as Arrow does inside of a batch; the instant is unchanged."""
    import pyarrow as pa

    zoned = [field for schema in schemas for field in schema if getattr(field.type, "tz", None) is not None]
    first = {field.name: field.type for field in reversed(zoned)}
    return [
        pa.schema(
            [field.with_type(first[field.name]) if field in zoned else field for field in schema], schema.metadata
        )
        for schema in schemas
    ]


def _check_alike(name: str, left: pa.DataType, right: pa.DataType) -> None:
    """Refuse types that permissive unification cannot join, or joins by making other values."""
    import pyarrow as pa

    if pa.types.is_list(left) and pa.types.is_list(right):
        _check_alike(name, left.value_type, right.value_type)
    elif pa.types.is_struct(left) and pa.types.is_struct(right):
        for field in left:
            if right.get_field_index(field.name) >= 0:
                _check_alike(name, field.type, right.field(field.name).type)
    elif not (left == right or pa.types.is_null(left) or pa.types.is_null(right) or _are_numbers(left, right)):
        raise TypeError(f"column {name!r} holds {left} and {right}; map() the items to one of them before")


def _are_numbers(left: pa.DataType, right: pa.DataType) -> bool:
    """Return whether both are types of Python's ints and floats, or both are types of decimals."""
    import pyarrow as pa

    both = left, right
    return all(pa.types.is_integer(each) or pa.types.is_floating(each) for each in both) or all(
        map(pa.types.is_decimal, both)
    )


def _mixed(first: str, second: str) -> TypeError:
    return TypeError(
        f"the items have no common columns: there are {first} and {second}; map() them to one shape before"
    )


def fitted(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch with all columns of `schema`: None where it has no such column."""
    import pyarrow as pa

    if not schema.names:
        return batch
    arrays = [
        _cast(field.name, batch.column(field.name), field.type)
        if field.name in batch.schema.names
        else pa.nulls(batch.num_rows, field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _cast(name: str, array: pa.Array, to: pa.DataType) -> pa.Array:
    import pyarrow as pa

    try:
        return array.cast(to)
    except pa.ArrowInvalid as error:
        raise TypeError(f"column {name!r} holds {array.type} and {to}: {error}; map() the items before") from None
