"""Avro schemas: checks before fastavro reads, and bounds on the depth and size of records.

fastavro (1.13) keeps the last of two fields with one name, rounds decimals to the precision of their schema, takes a
time before midnight for one behind it, and an index below zero for one from the end of a list, as Python does. It knows
no UUID of 16 bytes.
"""

from __future__ import annotations

import decimal
import json
import uuid
from collections.abc import Callable, Iterator
from typing import Any

from dstream.schema.decoders import repeated

__all__ = ["BrokenSchema", "check_indexes", "exactly_read"]


class BrokenSchema(ValueError):
    """A schema that is no schema of Avro, or names a field twice."""


def exactly_read(schema: bytes) -> Any:
    """Check a schema, and return it with logical types that are read exactly.

    Args:
        schema: the JSON that a file has.

    Raises:
        BrokenSchema: it is no schema of Avro, or names a field twice.
    """
    from fastavro.schema import SchemaParseException, UnknownType, parse_schema

    try:
        stored = json.loads(schema)
    except ValueError as error:
        raise BrokenSchema(f"it is no JSON: {error}") from error
    types = list(_types(stored))
    try:
        parse_schema(stored, {})
    except UnknownType as error:
        raise BrokenSchema(f"the type {error} is unknown") from error
    except (SchemaParseException, AttributeError, KeyError, TypeError, ValueError) as error:
        raise BrokenSchema(str(error)) from error
    _register()
    for each in types:
        # The specification of Avro has readers ignore a logical type on a type that cannot hold it.
        if _logical(each) in _EXACT and (_logical(each) != _UUID or each["size"] == _UUID_BYTES):
            each["logicalType"] = _PREFIX + each["logicalType"]
    return stored


def check_indexes(parsed: Any) -> Any:
    """Change a schema that fastavro has parsed, so that an index below zero is an error, and return it.

    That costs fastavro 2 to 4 % of the time for a record with a union or an enum; a logical type takes more.
    """
    whole = [parsed]
    pending: list[tuple[Any, Any]] = [(whole, 0)]
    while pending:
        holder, key = pending.pop()
        each = holder[key]
        if isinstance(each, list):
            holder[key] = union = _Union(each + [_NO_TYPE] * _MOST_BELOW_ZERO)
            pending.extend((union, place) for place in range(len(each)))
        elif isinstance(each, dict):
            if each["type"] == "enum":
                each["symbols"] = dict(enumerate(each["symbols"]))
            pending.extend((field, "type") for field in each.get("fields", ()))
            pending.extend((each, part) for part in ("items", "values") if part in each)
    return whole[0]


class _Union(list[Any]):
    """The types of a union, in which fastavro looks for the key of a logical type, one after another."""

    __slots__ = ()
    __contains__ = frozenset[Any]().__contains__  # pyright: ignore[reportAssignmentType]


_NO_TYPE = "no type of the union"
_MOST_BELOW_ZERO = 64
"""Indexes of a union below zero that are found: all of one byte. A list takes them from its end in C."""


def _types(schema: Any) -> Iterator[dict[str, Any]]:
    """Check a schema, and yield each of its types that is an object.

    Raises:
        BrokenSchema: one is none.
    """
    pending = [schema]
    while pending:
        each = pending.pop()
        if isinstance(each, list):
            pending.extend(each)
        elif isinstance(each, dict):
            kind = _checked_schema(each, "type", str, "the name of a type")
            pending.extend(_schema_parts(each, kind))
            yield each
        elif not isinstance(each, str):
            raise BrokenSchema(f"{_shown(each)} is no type")


def _schema_parts(each: dict[str, Any], kind: str) -> Iterator[Any]:
    if kind in ("record", "error", "enum", "fixed"):
        _checked_schema(each, "name", str, "a name")
    if kind in ("record", "error"):
        fields = _checked_schema(each, "fields", list, "a list")
        for field in fields:
            if not isinstance(field, dict):
                raise BrokenSchema(f"a field of {each['name']} is {_shown(field)}, which is no field")
            _checked_schema(field, "name", str, "a name")
            if "type" not in field:
                raise _missing(field, "type")
            yield field["type"]
        if twice := repeated(field["name"] for field in fields):
            raise BrokenSchema(f"the record {each['name']} holds the field {twice} more than once")
    elif kind in ("array", "map"):
        part = "items" if kind == "array" else "values"
        if part not in each:
            raise _missing(each, part)
        yield each[part]
    elif kind == "enum":
        for symbol in _checked_schema(each, "symbols", list, "a list"):
            if not isinstance(symbol, str):
                raise BrokenSchema(f"a symbol of {each['name']} is {_shown(symbol)}, which is no text")
    elif kind == "fixed" and _checked_schema(each, "size", int, "a number of bytes") < 0:
        raise BrokenSchema(f"the size of {each['name']} is {each['size']}, which is below zero")
    if _logical(each) in (("bytes", "decimal"), ("fixed", "decimal")):
        _checked_schema(each, "precision", int, "a number of digits")


def _checked_schema(each: dict[str, Any], key: str, kind: type, words: str) -> Any:
    if key not in each:
        raise _missing(each, key)
    found = each[key]
    if not isinstance(found, kind) or isinstance(found, bool):
        raise BrokenSchema(f"{key!r} is {_shown(found)} and not {words} in {_shown(each)}")
    return found


def _missing(each: dict[str, Any], key: str) -> BrokenSchema:
    return BrokenSchema(f"{key!r} is missing in {_shown(each)}")


def _shown(part: Any) -> str:
    text = json.dumps(part)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


_SHOWN = 200
"""Characters of a part of a schema that are shown."""


def _logical(each: dict[str, Any]) -> tuple[str, Any]:
    named = each.get("logicalType")
    return each["type"], named if isinstance(named, str) else None


def _decimal(data: bytes, schema: Any, reader_schema: Any = None) -> decimal.Decimal:
    unscaled = decimal.Decimal(int.from_bytes(data, "big", signed=True))
    # The default context would round to 28 digits.
    return unscaled.scaleb(-schema.get("scale", 0), _ALL_DIGITS)


_ALL_DIGITS = decimal.Context(prec=decimal.MAX_PREC, Emin=decimal.MIN_EMIN, Emax=decimal.MAX_EMAX)


def _from_midnight(read: Callable[..., Any]) -> Callable[..., Any]:
    def reader(data: int, schema: Any, reader_schema: Any = None) -> Any:
        if data < 0:
            raise ValueError("a time before midnight")
        return read(data, schema, reader_schema)

    return reader


def _uuid(data: bytes, schema: Any, reader_schema: Any = None) -> uuid.UUID:
    return uuid.UUID(bytes=data)


_UUID, _UUID_BYTES = ("fixed", "uuid"), 16
_PREFIX = "exact-"
_EXACT: dict[tuple[str, Any], Callable[[Any], Any]] = {
    ("bytes", "decimal"): lambda read: _decimal,
    ("fixed", "decimal"): lambda read: _decimal,
    ("int", "time-millis"): _from_midnight,
    ("long", "time-micros"): _from_midnight,
    _UUID: lambda read: _uuid,
}
"""Readers of values by their types and logical types, each made of fastavro's, if it has one."""


def _register() -> None:
    """Add readers to those of fastavro, under names of their own, which leave other uses of fastavro as they are."""
    from fastavro.read import LOGICAL_READERS

    for (kind, logical), make in _EXACT.items():
        if f"{kind}-{_PREFIX}{logical}" not in LOGICAL_READERS:
            LOGICAL_READERS[f"{kind}-{_PREFIX}{logical}"] = make(LOGICAL_READERS.get(f"{kind}-{logical}"))
