"""Avro schemas: checks before fastavro reads, and bounds on the depth and size of records.

fastavro (1.13) returns the last of two fields with one name, rounds decimals to the precision of their schema, reads a
negative time of day as a time after midnight, and a negative index as an index from the end of a list, as Python does.
It does not support UUIDs of 16 bytes.

It decodes by recursion in C, so a record that is nested deeply ends the process (at some 5,000 levels), and the items
of an array of nulls take no bytes of the file. The schema determines whether either is possible. Only blocks in which
it is are measured here, byte by byte and without recursion, which takes about ten times as long.
"""

from __future__ import annotations

import decimal
import json
import math
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from dstream.base.showing import repeated

__all__ = [
    "MOST_DEPTH",
    "BrokenSchema",
    "Measured",
    "Schema",
    "TornRecord",
    "check_indexes",
    "exactly_read",
    "is_nested_deeply",
]


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
        # The specification of Avro requires readers to ignore a logical type on an unsuitable type.
        if _logical(each) in _EXACT and (_logical(each) != _UUID or each["size"] == _UUID_BYTES):
            each["logicalType"] = _PREFIX + each["logicalType"]
    return stored


def check_indexes(parsed: Any) -> Any:
    """Change a schema that fastavro has parsed, so that an index below zero is an error, and return it.

    The check costs 2 to 4 % of the time of fastavro for a record with a union or an enum; a logical type costs more.
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
    """The types of a union, which fastavro searches in order for the key of a logical type."""

    __slots__ = ()
    __contains__ = frozenset[Any]().__contains__  # pyright: ignore[reportAssignmentType]


_NO_TYPE = "no type of the union"
_MOST_BELOW_ZERO = 64
"""Negative indexes of a union that are detected: all of one byte."""


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
    """Add readers to those of fastavro, under separate names, which do not affect other uses of fastavro."""
    from fastavro.read import LOGICAL_READERS

    for (kind, logical), make in _EXACT.items():
        if f"{kind}-{_PREFIX}{logical}" not in LOGICAL_READERS:
            LOGICAL_READERS[f"{kind}-{_PREFIX}{logical}"] = make(LOGICAL_READERS.get(f"{kind}-{logical}"))


MOST_DEPTH = 200
"""Levels of records, arrays and maps. fastavro uses about 1.7 kB of the C stack for each, of 512 kB at least."""
_PENDING = 100_000
"""Maximal number of pending types of a record. With more it is nested deeply, and its end is not searched."""


class TornRecord(ValueError):
    """Bytes that are no record of the schema."""


class Measured(NamedTuple):
    """A record that was measured.

    Attributes:
        end: the offset after its last byte; None if it was not searched.
        problem: why the record cannot be decoded, if so.
    """

    end: int | None
    problem: str | None


def is_nested_deeply(value: Any) -> bool:
    """Return whether JSON has more levels than a schema of `MOST_DEPTH` levels, which has up to four for each."""
    level = [value]
    for _ in range(4 * MOST_DEPTH):
        level = [part for each in level if isinstance(each, dict | list) for part in _parts(each)]
        if not level:
            return False
    return True


def _parts(value: Any) -> list[Any]:
    return list(value.values()) if isinstance(value, dict) else value


@dataclass(eq=False, slots=True)
class _Type:
    """A type of a schema.

    Attributes:
        kind: how its values are stored.
        memory: the bytes of a value in Python, without its parts.
        size: the number of bytes of a value, if all have the same, or the number of symbols of an enum.
        parts: the fields of a record, the types of a union, or the type of an array's items or a map's values.
        name: the name of an enum.
    """

    kind: Literal["fixed", "number", "enum", "sized", "record", "union", "array", "map"]
    memory: int
    size: int = 0
    parts: list[_Type] = field(default_factory=list)
    name: str = ""


class _Facts(NamedTuple):
    """Bounds that follow from a type alone.

    Attributes:
        depth: the maximal depth; infinite if it contains itself.
        least: the minimal bytes of a value.
        memory: the bytes of a value in Python without arrays, maps, unions and strings.
        memory_per_byte: the maximal memory for each byte of these.
    """

    depth: float
    least: int
    memory: int
    memory_per_byte: float


class Schema:
    """The schema of a file, with the bounds that follow from it and the measure of its records.

    Args:
        parsed: the schema as fastavro has parsed it.
    """

    def __init__(self, parsed: Any) -> None:
        self._named: dict[str, _Type] = {}
        self._root = self._type(parsed)
        self._facts: dict[_Type, _Facts | None] = {}
        try:
            self._of_root = self._facts_of(self._root)
        # Such a schema has records of any depth, all of which have to be measured.
        except RecursionError:
            self._of_root = _ENDLESS

    def _type(self, schema: Any) -> _Type:
        if isinstance(schema, list):
            return _Type("union", 0, parts=list(map(self._type, schema)))
        if isinstance(schema, str):
            return self._named[schema] if schema in self._named else _plain(schema, 0)
        name = schema["type"]
        if name in ("record", "error"):
            # Named before its fields are looked at, which may be of this type.
            found = self._named[schema["name"]] = _Type("record", 150 + 40 * len(schema["fields"]))
            found.parts += (self._type(each["type"]) for each in schema["fields"])
            return found
        if name in ("array", "map"):
            return _Type(name, 64, parts=[self._type(schema["items" if name == "array" else "values"])])
        if name == "enum":
            found = self._named[schema["name"]] = _Type("enum", 32, len(schema["symbols"]), name=schema["name"])
            return found
        if name == "fixed":
            found = self._named[schema["name"]] = _plain(name, schema["size"])
            return found
        return self._type(name)

    def _facts_of(self, each: _Type) -> _Facts:
        if each in self._facts:
            return self._facts[each] or _ENDLESS
        self._facts[each] = None  # Until they are known, only a part of this type needs them.
        self._facts[each] = found = self._found(each, list(map(self._facts_of, each.parts)))
        return found

    def _found(self, each: _Type, parts: list[_Facts]) -> _Facts:
        depth = max((part.depth for part in parts), default=0)
        rate = max((part.memory_per_byte for part in parts), default=0)
        if each.kind == "record":
            memory = each.memory + sum(part.memory for part in parts)
            return _Facts(depth + 1, sum(part.least for part in parts), memory, rate)
        if each.kind == "union":
            return _Facts(depth, 1, 0, max([rate, *(part.memory for part in parts)]))
        if each.kind in ("array", "map"):
            [item] = parts
            least = item.least + (each.kind == "map")
            memory = item.memory + (_ENTRY if each.kind == "map" else _POINTER)
            return _Facts(depth + 1, 1, each.memory, max(rate, memory / least if least else math.inf))
        least = each.size if each.kind == "fixed" else 1
        return _Facts(0, least, each.memory, 4 if each.kind == "sized" else 0)  # Strings: up to 4 bytes a character.

    def must_be_measured(self, size: int, most: int) -> bool:
        """Return whether a record of this size in bytes may be nested too deeply, or take more memory than `most`."""
        facts = self._of_root
        return facts.depth > MOST_DEPTH or facts.memory + facts.memory_per_byte * size > most

    def measured(self, data: bytes, count: int, most: int) -> Iterator[Measured]:
        """Yield the measure of each record in a block, up to a record whose end is not searched.

        Raises:
            TornRecord: they are no records of this schema.
        """
        at = 0
        for _ in range(count):
            found = self._measure(data, at, most)
            yield found
            if found.end is None:
                return
            at = found.end

    def _measure(self, data: bytes, start: int, most: int) -> Measured:
        at, memory, problem = start, 0, None
        no_symbol = None  # The end of a record with another problem is looked for within bounds.
        searched = len(data)  # Up to where the end of a record with a problem is looked for.
        pending: list[tuple[_Type, int, int]] = [(self._root, 0, 0)]
        while pending:
            each, depth, left = pending.pop()
            facts = self._facts.get(each)
            memory += each.memory
            if facts is not None and not facts.least:  # It takes no bytes, regardless of its contents.
                memory, depth = memory + facts.memory, depth + int(facts.depth)
            elif each.kind == "fixed":
                at += each.size
            elif each.kind == "number":
                _, at = _long(data, at)
            elif each.kind == "enum":
                place, at = _long(data, at)
                if not 0 <= place < each.size:
                    no_symbol = f"has the symbol number {place} of the enum {each.name}, whose last is {each.size - 1}"
            elif each.kind == "sized":
                size, at = _long(data, at)
                memory, at = memory + size, at + _checked(size)
            elif each.kind == "union":
                place, at = _long(data, at)
                if not 0 <= place < len(each.parts):
                    raise TornRecord(f"the type number {place} of a union, whose last is {len(each.parts) - 1}")
                pending.append((each.parts[place], depth, 0))
            elif each.kind == "record":
                pending.extend((part, depth + 1, 0) for part in reversed(each.parts))
            else:
                at, memory = self._measure_items(data, at, memory, each, depth, left, pending)
            if at > len(data):
                raise EOFError("the block ends within a record")
            if problem is None and (problem := _problem(depth, memory, most)):
                searched = at + _SEARCHED
            if (
                at > searched or len(pending) > _PENDING or depth > len(self._facts) * (at - start + 2)
            ):  # It has no end.
                return Measured(None, problem or _TOO_DEEP)
        return Measured(at, problem or no_symbol)

    def _measure_items(
        self, data: bytes, at: int, memory: int, each: _Type, depth: int, left: int, pending: list[Any]
    ) -> tuple[int, int]:
        """Measure where the next item of an array or a map begins; the item itself is pending."""
        if not left:
            left, at = _long(data, at)
            if left < 0:  # The size of these items follows their number.
                left, (_, at) = -left, _long(data, at)
            if not left:
                return at, memory
        else:
            memory -= each.memory
        [item], is_map = each.parts, each.kind == "map"
        facts = self._facts.get(item)
        if not is_map and facts is not None and not facts.least:
            pending += (each, depth, 0), (item, depth + 1, 0)
            return at, memory + left * (facts.memory + _POINTER)
        if not is_map and item.kind in ("fixed", "number"):
            pending.append((each, depth, 0))
            at = at + left * item.size if item.kind == "fixed" else _behind_numbers(data, at, left)
            return at, memory + left * (item.memory + _POINTER)
        if is_map:
            size, at = _long(data, at)
            at, memory = at + _checked(size), memory + size + _ENTRY
        pending.append((each, depth, left - 1) if left > 1 else (each, depth, 0))
        pending.append((item, depth + 1, 0))
        return at, memory + _POINTER


_POINTER, _ENTRY = 8, 150
"""Bytes of an item in a list, and of a key and its slot in a dictionary."""
_SEARCHED = 1 << 20
"""Bytes in which the end of a record is looked for that is too large or too deep."""
_ENDLESS = _Facts(math.inf, 1, 0, math.inf)
_TOO_DEEP = f"is nested deeper than {MOST_DEPTH} levels of records, arrays and maps, which is the most that is read"


def _problem(depth: int, memory: int, most: int) -> str | None:
    if depth > MOST_DEPTH:
        return _TOO_DEEP
    return f"takes more than max_record={most:,} bytes of memory once it is decoded" if memory > most else None


def _plain(name: str, size: int) -> _Type:
    if name in ("string", "bytes"):
        return _Type("sized", 64)
    if name in ("int", "long"):
        return _Type("number", 32)
    return _Type("fixed", 32 + size if size else 0, _SIZES.get(name, size))


_SIZES = {"null": 0, "boolean": 1, "float": 4, "double": 8}


def _long(data: bytes, at: int) -> tuple[int, int]:
    """Return the number at an offset, and the offset after it."""
    found, shift = 0, 0
    try:
        while (byte := data[at]) & 0x80 and shift < 63:
            found |= (byte & 0x7F) << shift
            shift, at = shift + 7, at + 1
    except IndexError:
        raise EOFError("the block ends within a number") from None
    found |= byte << shift
    return (found >> 1) ^ -(found & 1), at + 1


def _behind_numbers(data: bytes, at: int, count: int) -> int:
    """Return the offset after `count` numbers."""
    # Each number has a byte at least, so that the count of a torn file is refused without a walk.
    if count > len(data) - at:
        raise EOFError("the block ends within an array")
    for byte in memoryview(data)[at:]:
        at += 1
        if byte < 0x80:  # It is the last byte of a number.
            count -= 1
            if not count:
                return at
    raise EOFError("the block ends within a number")


def _checked(size: int) -> int:
    if size < 0:
        raise TornRecord(f"a text or bytes of {size} bytes")
    return size
