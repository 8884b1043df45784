"""A value of Avro that Python does not have makes its record a bad one, and no other."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import pytest

from dstream.connectors.files.avro import _head
from dstream.connectors.files.avro_blocks import header
from dstream.errors import SourceError
from sources import avro_records

_MOMENT = {"type": "long", "logicalType": "timestamp-millis"}
_FAR = 8_640_000_000_000_000

UNREAD: dict[str, tuple[Any, Any, list[Any], str]] = {
    "moment": (_MOMENT, "long", [0, _FAR, 5], "8640000000000000"),
    "local moment": ({"type": "long", "logicalType": "local-timestamp-micros"}, "long", [0, 2**62, 5], str(2**62)),
    "date": ({"type": "int", "logicalType": "date"}, "int", [0, 3_000_000, 5], "3000000"),
    "time": ({"type": "int", "logicalType": "time-millis"}, "int", [0, 90_000_000, 5], "90000000"),
    "uuid": ({"type": "string", "logicalType": "uuid"}, "string", ["1" * 32, "none", "2" * 32], "'none'"),
    "text": ("string", "bytes", [b"a", b"\xff", b"c"], r"'\\\\xff'"),
    "in a union": (["null", _MOMENT], ["null", "long"], [None, _FAR, 5], "8640000000000000"),
    "in an array": (
        {"type": "array", "items": _MOMENT},
        {"type": "array", "items": "long"},
        [[], [0, _FAR], []],
        r"\[0, 8640000000000000\]",
    ),
    "in an array of texts": (
        {"type": "array", "items": "string"},
        {"type": "array", "items": "bytes"},
        [[], [b"a", b"\xff"], []],
        r"\['a', '\\\\xff'\]",
    ),
}
"""The type of a field, another one that writes the same bytes, values of which the second is bad, and what is shown."""
each_value = pytest.mark.parametrize("name", UNREAD)


def schema(kind: Any) -> dict[str, Any]:
    """Return a schema of records with a field of a type, and one before and behind it."""
    fields = [{"name": "n", "type": "int"}, {"name": "at", "type": kind}, {"name": "text", "type": "string"}]
    return {"type": "record", "name": "R", "fields": fields}


def written(path: Any, kind: Any, plain: Any, values: list[Any], **options: Any) -> Any:
    """Write a file whose values are of a plain type, and say that they are of another."""
    records = [{"n": number, "at": value, "text": "é"} for number, value in enumerate(values)]
    fastavro.writer(out := io.BytesIO(), schema(plain), records, **options)
    out.seek(0)
    head = header(out)
    path.write_bytes(_head(head._replace(schema=json.dumps(schema(kind)).encode())) + out.read())
    return path


@each_value
def test_a_record_is_bad(tmp_path, name):
    """The others come, and what is said of it names file, record, field and value."""
    kind, plain, values, shown = UNREAD[name]
    path, found = written(tmp_path / "a.avro", kind, plain, values), []
    [split] = avro_records(path, on_bad="skip").splits(1)

    assert [record["n"] for record in split.read_past(lambda bad: found.append(bad) or ())] == [0, 2]
    [bad] = found
    assert (bad.record().path, bad.record().line) == (str(path), 2)
    with pytest.raises(SourceError, match=rf"a.avro, record 2: field at: {shown} is no value of Python \(.*'n': 1"):
        raise bad.error()


@each_value
def test_a_run_ends_at_the_record(tmp_path, name):
    """Those before it are given first."""
    kind, plain, values, shown = UNREAD[name]
    records = avro_records(written(tmp_path / "a.avro", kind, plain, values)).splits(1)[0].read()

    assert next(records)["n"] == 0
    with pytest.raises(SourceError, match=f"record 2: field at: {shown} is no value of Python"):
        next(records)


def test_bad_records_of_several_blocks_are_found(tmp_path):
    """Each with its number, behind which the file is read on."""
    values = [_FAR if number % 7 == 3 else number for number in range(1_000)]
    path, lines = written(tmp_path / "a.avro", _MOMENT, "long", values, sync_interval=500), []
    [split] = avro_records(path, on_bad="skip").splits(1)
    kept = [record["n"] for record in split.read_past(lambda bad: lines.append(bad.record().line) or ())]

    assert kept == [number for number in range(1_000) if number % 7 != 3]
    assert lines == [number + 1 for number in range(1_000) if number % 7 == 3]


def test_a_torn_block_is_no_bad_record(tmp_path):
    """Also behind a bad value: the file ends the run."""
    path = written(tmp_path / "a.avro", _MOMENT, "long", [0, _FAR, 5])
    data = path.read_bytes()
    path.write_bytes(data[:-18] + data[-17:])
    [split] = avro_records(path, on_bad="skip").splits(1)

    with pytest.raises(SourceError, match=r"cannot read .*a.avro: "):
        list(split.read_past(lambda bad: ()))


def test_bad_records_are_skipped_on_both_engines(engine, tmp_path):
    """As those that do not become a class."""
    path = written(tmp_path / "a.avro", *UNREAD["moment"][:3])

    assert engine.context.read(avro_records(path, on_bad="skip")).map(lambda record: record["n"]).to_list() == [0, 2]
