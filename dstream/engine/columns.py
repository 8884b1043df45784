"""Items as columns: what becomes of them in an Arrow table or a DataFrame.

Fields of dataclasses and named tuples, keys of dicts and places of tuples are columns; anything else
stands in the one column `value`. Columns are inferred from the values, and from the annotations of
fields where these name a simple type.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any

from dstream.failures import shown
from dstream.values.fields import field_names

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["batches_of", "common_schema", "fitted", "packed_batch", "schema_of", "table_of", "unpacked_batches"]

_ROWS = 8192
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
    """Give items as batches of some thousand rows, each with the columns that its own values need.

    Raises:
        TypeError: the items have no common columns, or Arrow knows no type for a value.
    """
    items = iter(items)
    while chunk := list(islice(items, _ROWS)):
        yield _batch(chunk)


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
        return [f"_{place}" for place in range(1, len(first) + 1)], list(zip(*items, strict=True))
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
        hints = {name: _without_none(hint) for name, hint in typing.get_type_hints(kind).items()}
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

    kinds = set(map(type, values))
    if any(map(field_names, kinds)):
        values = list(map(_plain, values))
    try:
        found = pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):
        found = _nested(name, values)
    if str in kinds and bytes in kinds:
        raise _no_column(name, values, "it holds str and bytes")
    return _as_hinted(found, hint)


def _nested(name: str, values: list[Any]) -> pa.Array:
    """Try again with dataclasses inside of lists and dicts as dicts."""
    import pyarrow as pa

    try:
        return pa.array(list(map(_plain, values)))
    except (pa.ArrowException, OverflowError) as error:
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
    return list(map(_plain, value)) if isinstance(value, list | tuple | set | frozenset) else value


def _as_hinted(array: pa.Array, hint: pa.DataType | None) -> pa.Array:
    """Return the column in the type of its annotation where that changes no value: no values, or ints as floats."""
    import pyarrow as pa

    if hint is not None and (pa.types.is_null(array.type) or (array.type, hint) == (pa.int64(), pa.float64())):
        return array.cast(hint)
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
    distinct = list({schema.to_string(): schema for schema in schemas}.values())
    for left in distinct:
        for name in left.names:
            for right in distinct:
                if name in right.names:
                    _check_alike(name, left.field(name).type, right.field(name).type)
    return pa.unify_schemas(distinct, promote_options="permissive") if distinct else pa.schema([])


def _check_alike(name: str, left: pa.DataType, right: pa.DataType) -> None:
    """Refuse what permissive unification would make bytes or texts of."""
    import pyarrow as pa

    is_number = pa.types.is_integer(left) or pa.types.is_floating(left)
    other_is_number = pa.types.is_integer(right) or pa.types.is_floating(right)
    if left.id == right.id or pa.types.is_null(left) or pa.types.is_null(right) or (is_number and other_is_number):
        return
    raise TypeError(f"column {name!r} holds {left} and {right}; map() the items to one of them before")


def _mixed(first: str, second: str) -> TypeError:
    return TypeError(
        f"the items have no common columns: there are {first} and {second}; map() them to one shape before"
    )


def fitted(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch with all columns of `schema`: None where it has no such column."""
    import pyarrow as pa

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
