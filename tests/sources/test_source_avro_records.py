"""`avro_records`: records as dictionaries or classes."""

from __future__ import annotations

import datetime
import importlib.util
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

import fastavro
import pytest

from dstream.errors import SetupError, SourceError
from sources import avro_records

PLACE = {"type": "record", "name": "Place", "fields": [{"name": "lat", "type": "double"}]}
TYPES: dict[str, Any] = {
    "id": "long",
    "name": ["null", "string"],
    "day": {"type": "int", "logicalType": "date"},
    "at": {"type": "long", "logicalType": "timestamp-micros"},
    "price": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
    "key": {"type": "string", "logicalType": "uuid"},
    "place": ["null", PLACE],
    "counts": {"type": "map", "values": "int"},
}
SCHEMA = {"type": "record", "name": "Order", "fields": [{"name": n, "type": t} for n, t in TYPES.items()]}
NOW = datetime.datetime(2026, 1, 31, 10, tzinfo=datetime.UTC)
KEY = UUID("12345678123456781234567812345678")
FIRST = {"id": 2**40, "name": 'é "x"\n', "day": NOW.date(), "at": NOW, "price": Decimal("1.50"), "key": KEY}
RECORDS = [{**FIRST, "place": {"lat": 1.5}, "counts": {}}, {**FIRST, "name": None, "place": None, "counts": {"a": 1}}]


class Place(NamedTuple):
    lat: float


class Order(NamedTuple):
    id: int
    name: str | None
    day: datetime.date
    at: datetime.datetime
    price: Decimal
    key: UUID
    place: Place | None
    counts: dict[str, int]


@pytest.fixture
def path(tmp_path):
    """Write two records, compressed, and give the path."""
    with open(tmp_path / "a.avro", "wb") as out:
        fastavro.writer(out, SCHEMA, RECORDS, codec="deflate")
    return tmp_path / "a.avro"


def test_avro_records_are_dictionaries_or_classes(path, read):
    """With dates, decimals and UUIDs of Python's, nested ones too."""
    assert read(avro_records(path)) == RECORDS
    assert read(avro_records(path, Order))[0] == Order(**FIRST, place=Place(1.5), counts={})
    assert read(avro_records(path, Order, with_path=True))[1][0] == str(path)


def test_avro_records_name_the_record_and_the_field(path):
    """A record that does not convert can be passed."""

    class Named(NamedTuple):
        name: str

    (split,) = avro_records(path, Named).splits(1)

    assert list(split.read_past(lambda misread: [misread.record().line])) == [(FIRST["name"],), 2]
    with pytest.raises(SourceError, match=r"a\.avro, record 2: field name: expected str, got NoneType None"):
        list(split.read())


@pytest.mark.parametrize(
    ("damaged", "words"),
    [
        (lambda content: b"", "behind record 0"),
        (lambda content: b"no Avro", "what comes behind record 0 is no Avro: ValueError: "),
        (lambda content: content[:-20], "it is torn: it ends too early behind record 0$"),
        (lambda content: content[:-16] + b"?" * 16, "what comes behind record 2 is no Avro: .*sync marker"),
    ],
)
def test_avro_records_refuse_torn_files(path, damaged, words):
    """By name, and with the last record that can be read."""
    path.write_bytes(damaged(path.read_bytes()))

    with pytest.raises(SourceError, match=rf"cannot read .*a\.avro: .*{words}"):
        [list(split.read()) for split in avro_records(path).splits(1)]


def test_avro_records_name_the_package_at_the_call(monkeypatch):
    """Not when the job runs."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)

    with pytest.raises(SetupError, match=r"pip install 'dstream-spark\[avro\]'"):
        avro_records("a.avro")
