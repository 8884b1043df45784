"""`avro_records` gives what a file holds, exactly, or says what is wrong with its schema."""

from __future__ import annotations

import datetime
import uuid
from decimal import Decimal
from typing import Any

import pytest
from fastavro.read import LOGICAL_READERS

from dstream.errors import SourceError
from tests.sources.avro_files import avro, long, past

DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}
FIXED = {**DECIMAL, "type": "fixed", "name": "F", "size": 3}
DIGITS = (1234567).to_bytes(3, "big")


def record(*types: Any) -> dict[str, Any]:
    """Return a schema of records with fields a, b, ... of these types."""
    fields = [{"name": name, "type": kind} for name, kind in zip("abc", types, strict=False)]
    return {"type": "record", "name": "R", "fields": fields}


@pytest.mark.parametrize(
    ("schema", "data", "value"),
    [
        (DECIMAL, long(3) + DIGITS, Decimal("12345.67")),
        (FIXED, DIGITS, Decimal("12345.67")),
        (["null", DECIMAL], long(1) + long(3) + DIGITS, Decimal("12345.67")),
        ({"type": "array", "items": DECIMAL}, long(1) + long(3) + DIGITS + long(0), [Decimal("12345.67")]),
        (record(DECIMAL, "int"), long(1) + b"\x81" + long(7), {"a": Decimal("-1.27"), "b": 7}),
        ({**DECIMAL, "precision": 60}, long(24) + b"\x7f" + b"\xff" * 23, Decimal(f"{2**191 - 1}E-2")),
    ],
)
def test_a_decimal_has_all_of_its_digits(tmp_path, schema, data, value):
    """Also those beyond the precision of its schema, as in Java: fastavro alone rounds 12345.67 to 1.235E+4."""
    (tmp_path / "a.avro").write_bytes(avro(schema, (1, data)))

    assert str(past(tmp_path / "a.avro")) == str([value])
    assert LOGICAL_READERS["bytes-decimal"](DIGITS, DECIMAL) == Decimal("1.235E+4")


@pytest.mark.parametrize(("kind", "logical", "second"), [("int", "time-millis", 1000), ("long", "time-micros", 10**6)])
def test_a_time_before_midnight_is_a_bad_value(tmp_path, kind, logical, second):
    """It would be one of the last second of an hour; the last moment of a day is read."""
    day = 86_400 * second
    data = b"".join(map(long, (0, -1, day - 1, day, second)))
    (tmp_path / "a.avro").write_bytes(avro(record({"type": kind, "logicalType": logical}), (5, data)))

    first, negative, last, late, one = past(tmp_path / "a.avro")
    assert [first["a"], last["a"].second, one["a"]] == [datetime.time(0), 59, datetime.time(0, 0, 1)]
    assert (negative[0], late[0]) == (2, 4)
    assert "field a: -1 is no value of Python (a time before midnight)" in negative[1]


BROKEN: list[Any] = [
    (
        record("int", "int") | {"fields": [{"name": "a", "type": "int"}] * 2},
        "the record R holds the field 'a' more than",
    ),
    ({"type": "array", "items": record("int") | {"fields": [{"name": "x", "type": "int"}] * 2}}, "holds the field 'x'"),
    ({"type": "array"}, '\'items\' is missing in {"type": "array"}'),
    ({"type": "map"}, "'values' is missing"),
    ({"type": "record", "name": "R"}, "'fields' is missing"),
    ({"type": "record", "name": "R", "fields": "abc"}, "'fields' is \"abc\" and not a list"),
    ({"type": "record", "name": "R", "fields": ["a"]}, 'a field of R is "a", which is no field'),
    ({"type": "record", "name": "R", "fields": [{"name": "a"}]}, '\'type\' is missing in {"name": "a"}'),
    ({"type": "record", "fields": []}, "'name' is missing"),
    ({"type": "fixed", "name": "F", "size": -5}, "the size of F is -5, which is below zero"),
    ({"type": "fixed", "name": "F", "size": True}, "'size' is true and not a number of bytes"),
    ({"type": "enum", "name": "E", "symbols": [1]}, "a symbol of E is 1, which is no text"),
    ({**DECIMAL, "precision": "4"}, "'precision' is \"4\" and not a number of digits"),
    ({**DECIMAL, "scale": 9}, "decimal scale must be less than or equal to the precision of 4"),
    ({"type": {"type": "int"}}, '\'type\' is {"type": "int"} and not the name of a type'),
    (record("S"), "the type S is unknown"),
    (5, "5 is no type"),
    (["int", None], "null is no type"),
    (b"{", "it is no JSON: "),
    (b"\xff", "it is no JSON: "),
]


@pytest.mark.parametrize(("schema", "words"), BROKEN)
def test_a_broken_schema_is_refused_in_words(tmp_path, schema, words):
    """With what is wrong in it, before any record: of two fields with one name, the first would be lost."""
    (tmp_path / "a.avro").write_bytes(avro(schema, (1, b"\2\4")))

    with pytest.raises(SourceError, match=r"cannot read .*a\.avro: its schema is broken: ") as caught:
        past(tmp_path / "a.avro")
    assert words in str(caught.value)


ENUM = {"type": "enum", "name": "E", "symbols": ["x", "y"]}


@pytest.mark.parametrize("number", [-1, -2, 2, -(2**40)])
@pytest.mark.parametrize("schema", [ENUM, record(ENUM, "E"), record({"type": "array", "items": ENUM})])
def test_a_symbol_that_an_enum_lacks_makes_its_record_bad(tmp_path, schema, number):
    """Below zero too, where Python counts from the end; the records around it are read."""
    parts = [schema] if schema is ENUM else [field["type"] for field in schema["fields"]]
    encoded = [
        b"".join(long(1) + long(n) + b"\0" if "items" in part else long(n) for part in parts) for n in (0, number, 1)
    ]
    (tmp_path / "a.avro").write_bytes(avro(schema, (3, b"".join(encoded))))

    first, bad, last = past(tmp_path / "a.avro")
    assert "x" in str(first)
    assert "y" in str(last)
    assert bad[:2] == (2, f"has the symbol number {number} of the enum E, whose last is 1")


@pytest.mark.parametrize("number", [-1, -2, -64, 2, 2**40])
@pytest.mark.parametrize(
    "schema", [["null", "int"], record(["null", "int"]), {"type": "map", "values": ["null", "int"]}]
)
def test_a_type_that_a_union_lacks_ends_the_run(tmp_path, schema, number):
    """What follows it has no type; fastavro alone takes -1 for the last."""
    before, behind = (long(1) + long(1) + b"k", b"\0") if "values" in schema else (b"", b"")
    data = b"".join(before + value + behind for value in (long(1) + long(5), long(number) + long(5)))
    (tmp_path / "a.avro").write_bytes(avro(schema, (2, data)))

    with pytest.raises(
        SourceError, match=rf"it is torn: behind record 1 is the type number {number} of a union, whose"
    ):
        past(tmp_path / "a.avro")


@pytest.mark.parametrize("is_optional", [False, True])
def test_a_uuid_may_have_16_bytes(tmp_path, is_optional):
    """As in Avro 1.12; of another size it is no UUID, and stays bytes."""
    for size, value in ((16, uuid.UUID(bytes=b"a" * 16)), (12, b"a" * 12)):
        fixed = {"type": "fixed", "name": "F", "size": size, "logicalType": "uuid"}
        content = b"\2" * is_optional + b"a" * size
        (tmp_path / "a").write_bytes(avro(["null", fixed] if is_optional else fixed, (1, content)))

        assert past(str(tmp_path / "a")) == [value]
