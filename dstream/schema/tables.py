"""Items as Arrow tables and DataFrames: inferred columns, batches, and a common schema.

Fields of dataclasses and named tuples, keys of dicts and places of tuples are columns; anything else
stands in the one column `value`. Columns are inferred from the values, and from the annotations of
fields where these name a simple type.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from dstream.base.memory import BatchIterator
from dstream.failures import shown
from dstream.values.fields import field_names, hints_of

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["batches_of", "common_schema", "fitted", "packed_batch", "schema_of", "table_of", "unpacked_batches"]


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
    """Give items as batches of some thousand rows and few megabytes, each with the columns that its own values need.

    Raises:
        TypeError: the items have no common columns, or Arrow knows no type for a value.
    """
    taking, rows = BatchIterator(items), 1
    while chunk := taking.take(rows):
        batch = _batch(chunk)
        fitting = max(1, min(_BYTES * len(chunk) // max(1, batch.nbytes), _ROWS))
        if rows == 1 < fitting:  # Its size is known; it becomes the first of a batch.
            batch = _batch(chunk := chunk + taking.take(fitting - 1))
        rows = fitting
        yield batch


def _batch(items: list[Any]) -> pa.RecordBatch:
    import pyarrow as pa

    kinds = {_kind(item): item for item in reversed(items)}
    if len(kinds) > 1:
        (first, one), (second, other) = list(kinds.items())[:2]
        raise _mixed(f"{first} such as {shown(one)}", f"{second} such as {shown(other)}")
    (kind,) = kinds
    names, columns = _columns(items)
    hints = _hints(type(items[0]))
    arrays = [_array(name, list(column), hints.get(name)) for name, column in zip(names, columns, strict=True)]
    schema = pa.schema([(name, array.type) for name, array in zip(names, arrays, strict=True)], {_KIND: kind.encode()})
    if not names:  # An array of structs keeps the number of rows that have no column.
        rows = pa.RecordBatch.from_struct_array(pa.array([{}] * len(items), pa.struct([])))
        return rows.replace_schema_metadata(schema.metadata)
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _kind(item: Any) -> str:
    """Return what decides about the columns of an item."""
    if field_names(type(item)):
        return type(item).__qualname__
    if isinstance(item, dict):
        return "dicts"
    return f"tuples of {len(item)}" if type(item) is tuple else "single values"


def _columns(items: list[Any]) -> tuple[list[str], list[Any]]:
    first = items[0]
    if names := list(field_names(type(first))):
        return names, [[getattr(item, name) for item in items] for name in names]
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


def _hints(kind: type) -> dict[str, pa.DataType]:
    """Return the types of those fields whose annotation names a simple one."""
    import pyarrow as pa

    if not field_names(kind):
        return {}
    simple: dict[Any, pa.DataType] = {
        int: pa.int64(),
        float: pa.float64(),
        str: pa.string(),
        bool: pa.bool_(),
        bytes: pa.binary(),
        date: pa.date32(),
        datetime: pa.timestamp("us"),
        timedelta: pa.duration("us"),
    }
    try:
        hints = {name: _without_none(hint) for name, hint in hints_of(kind).items()}
    except Exception:  # An annotation that cannot be resolved here says nothing.
        return {}
    return {name: simple[hint] for name, hint in hints.items() if isinstance(hint, type) and hint in simple}


def _without_none(hint: Any) -> Any:
    if typing.get_origin(hint) not in (typing.Union, types.UnionType):
        return hint
    others = [part for part in typing.get_args(hint) if part is not type(None)]
    return others[0] if len(others) == 1 else hint


def _array(name: str, values: list[Any], hint: pa.DataType | None) -> pa.Array:
    import pyarrow as pa

    if any(map(field_names, set(map(type, values)))):
        values = list(map(_plain, values))
    _check_kinds(name, values)
    try:
        found = pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError, UnicodeError):
        found = _nested(name, values)
    return _as_hinted(name, found, hint)


def _check_kinds(name: str, values: list[Any]) -> None:
    """Refuse values that Arrow would put into one column by cutting or converting some of them, also in lists.

    It makes numbers of bools and durations, dates of moments, bytes of texts, and gives a zone to a moment without.
    """
    kinds = set(map(type, values))
    found = {family.__name__ for kind in kinds if (family := _family(kind)) is not None}
    if "datetime" in found:
        zones = {value.tzinfo is None for value in values if isinstance(value, datetime)}
        found |= {"datetime with a zone"} if len(zones) > 1 else set()
    if "set" in found or (len(found) > 1 and found != {"float", "int"}):
        raise _no_column(name, values, f"it holds {' and '.join(sorted(found))}")
    if any(issubclass(kind, list | tuple | dict) for kind in kinds):
        for parts in _parts(values).values():
            _check_kinds(name, list(map(_plain, parts)))


def _family(kind: type) -> type | None:
    """Return which of the types whose values stand in columns of their own a class belongs to."""
    return set if issubclass(kind, frozenset) else next((each for each in _FAMILIES if issubclass(kind, each)), None)


_FAMILIES = (bool, int, float, str, bytes, Decimal, datetime, date, time, timedelta, set)


def _parts(values: list[Any]) -> dict[Any, list[Any]]:
    """Return what lists hold, under None, and what dicts hold under each key."""
    parts: dict[Any, list[Any]] = {}
    for value in values:
        if isinstance(value, list | tuple):
            parts.setdefault(None, []).extend(value)
        elif isinstance(value, dict):
            for key, held in value.items():
                parts.setdefault(key, []).append(held)
    return parts


def _nested(name: str, values: list[Any]) -> pa.Array:
    """Try again with dataclasses inside of lists and dicts as dicts."""
    import pyarrow as pa

    try:
        return pa.array(list(map(_plain, values)))
    except (pa.ArrowException, OverflowError, UnicodeError) as error:
        raise _no_column(name, values, str(error)) from None


def _no_column(name: str, values: list[Any], why: str) -> TypeError:
    kinds = {type(value): value for value in reversed(values)}
    examples = ", ".join(shown(value) for value in list(kinds.values())[-3:])
    return TypeError(f"column {name!r} has no Arrow type for values such as {examples}: {why}; map() it before")


def _plain(value: Any) -> Any:
    if names := field_names(type(value)):
        return {name: _plain(getattr(value, name)) for name in names}
    if isinstance(value, dict):
        return {key: _plain(held) for key, held in value.items()}
    return list(map(_plain, value)) if isinstance(value, list | tuple) else value


def _as_hinted(name: str, array: pa.Array, hint: pa.DataType | None) -> pa.Array:
    """Return the column in the type of its annotation where that changes no value: no values, or ints as floats."""
    import pyarrow as pa

    if hint is not None and (pa.types.is_null(array.type) or (array.type, hint) == (pa.int64(), pa.float64())):
        return _cast(name, array, hint)
    return array


def packed_batch(batch: pa.RecordBatch) -> bytes:
    """Return a batch as bytes that hold its schema too."""
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def unpacked_batches(data: Any) -> Iterator[pa.RecordBatch]:
    """Give the batches that `packed_batch` packed."""
    import pyarrow as pa

    with pa.ipc.open_stream(data) as stream:
        yield from stream


def schema_of(packed: Iterable[Any]) -> pa.Schema:
    """Return the columns that all batches of some tasks fit into, given the bytes of their schemas."""
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
    distinct = _in_one_zone(list({schema.to_string(): schema for schema in schemas}.values()))
    for left in distinct:
        for name in left.names:
            for right in distinct:
                if name in right.names:
                    _check_alike(name, left.field(name).type, right.field(name).type)
    return pa.unify_schemas(distinct, promote_options="permissive") if distinct else pa.schema([])


def _in_one_zone(schemas: Sequence[pa.Schema]) -> list[pa.Schema]:
    """Let moments have the zone that comes first, as Arrow does it inside of a batch: the moment stays the same."""
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
    """Refuse what permissive unification cannot do, or does by making bytes, texts or other numbers of values."""
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
    """Say whether both are types of Python's ints and floats, or both are types of decimals."""
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
