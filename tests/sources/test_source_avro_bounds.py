"""`avro_records` of files that are damaged or hostile: what is left over, too deep, or larger than `max_record`."""

from __future__ import annotations

import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow
import pytest

from dstream.errors import SourceError
from sources import avro_records
from tests.sources.avro_files import avro, long, past
from tests.sources.file_sources import AVRO_CODECS, raw_deflate

INT: dict[str, Any] = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}
TREE: dict[str, Any] = {"type": "record", "name": "T", "fields": [{"name": "next", "type": ["null", "T"]}]}
LIST: dict[str, Any] = {
    "type": "record",
    "name": "T",
    "fields": [{"name": "next", "type": {"type": "array", "items": "T"}}],
}
MAP: dict[str, Any] = {
    "type": "record",
    "name": "T",
    "fields": [{"name": "next", "type": {"type": "map", "values": "T"}}],
}
ITSELF: dict[str, Any] = {"type": "record", "name": "T", "fields": [{"name": "next", "type": "T"}]}


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., str]:
    """Write a file of Avro and give its path."""

    def write(schema: Any, *blocks: tuple[int, bytes], codec: str = "null") -> str:
        (tmp_path / "a.avro").write_bytes(avro(schema, *blocks, codec=codec))
        return str(tmp_path / "a.avro")

    return write


@pytest.mark.parametrize("codec", AVRO_CODECS)
def test_a_block_is_read_to_its_last_byte(written, codec):
    """Whatever compresses it: a record behind the last one that is counted is an error, not lost."""
    data = AVRO_CODECS[codec](b"\2\4\6")
    assert past(written(INT, (3, data), (3, data), codec=codec)) == [{"a": 1}, {"a": 2}, {"a": 3}] * 2
    [split] = avro_records(written(INT, (3, data), (2, data), codec=codec)).splits(1)
    records = split.read()

    assert [next(records) for _ in range(5)][-1] == {"a": 2}
    with pytest.raises(SourceError, match=r"a\.avro: what comes behind record 5 .* last of 2 records: 1 are left over"):
        next(records)


@pytest.mark.parametrize("codec", sorted(AVRO_CODECS.keys() - {"null", "snappy", "lz4"}))
def test_a_block_has_nothing_behind_its_compressed_bytes(written, codec):
    """No second stream either, which a reader might leave out."""
    data = AVRO_CODECS[codec](b"\2\4\6")

    with pytest.raises(SourceError, match=r"cannot read .*a\.avro: .* behind record 0"):
        past(written(INT, (3, data + b"more"), codec=codec))


@pytest.mark.parametrize("left", [0, 1, 3, 4])
def test_a_block_of_deflate_may_have_the_checksum_of_zlib(written, left):
    """The writers of two packages for Python leave three bytes of it."""
    data = zlib.compress(b"\2\4\6")[2:]

    assert len(past(written(INT, (3, data[: len(data) - 4 + left]), codec="deflate"))) == 3


@pytest.mark.parametrize("codec", AVRO_CODECS)
def test_a_block_that_is_torn_is_an_error(written, codec):
    """Bytes are missing within it, or are others."""
    data = AVRO_CODECS[codec](b"\2\4\6" * 50)
    changed = data[:-5] + bytes(byte ^ 0x55 for byte in data[-5:])

    for broken in (data[: len(data) // 2], data[:-1] + b"\x80" if codec in ("null", "lz4") else changed, b""):
        with pytest.raises(SourceError, match=r"cannot read .*a\.avro: (it is torn|what comes behind record)"):
            past(written(INT, (150, broken), codec=codec))


@pytest.mark.parametrize(
    ("schema", "level", "end"),
    [(TREE, b"\2", b"\0"), (LIST, b"\2", b"\0" * 5001), (MAP, b"\2\2a", b"\0" * 5001), (ITSELF, b"", b"")],
)
def test_a_record_that_is_nested_deeply_is_a_bad_one(written, schema, level, end):
    """It would end the process in fastavro's recursion; those before and behind it are read."""
    flat, deep = b"\0", level * 5_000 + end
    if schema is ITSELF:
        assert past(written(schema, (2, b"")))[0][:2] == (
            1,
            TOO_DEEP + " (left out with it, of the same block: 1 more)",
        )
        return
    found = past(written(schema, (2, flat + deep), (1, flat), (3, flat + deep + flat)))

    assert [each[:2] if isinstance(each, tuple) else each for each in found] == [
        *({"next": found[0]["next"]}, (2, TOO_DEEP), {"next": found[0]["next"]}),
        *({"next": found[0]["next"]}, (5, TOO_DEEP), {"next": found[0]["next"]}),
    ]


TOO_DEEP = "is nested deeper than 200 levels of records, arrays and maps, which is the most that is read"


def test_a_record_of_200_levels_is_read(written):
    """As it is written by fastavro, and one of 201 is not."""
    found = past(written(TREE, (2, b"\2" * 199 + b"\0" + b"\2" * 200 + b"\0")))

    assert str(found[0]).count("next") == 200
    assert found[1][:2] == (2, TOO_DEEP)


def test_a_schema_that_is_nested_deeply_is_refused(written):
    """By its JSON, before fastavro parses it; named types that contain one another are measured."""
    for levels in (850, 100_000):
        deep = b'{"type": "array", "items": ' * levels + b'"int"' + b"}" * levels
        with pytest.raises(SourceError, match=r"a\.avro: .*its schema is nested deeper than the 200 levels"):
            past(written(deep, (1, b"\0")))
    names = [
        {"type": "record", "name": f"N{n}", "fields": [{"name": "a", "type": f"N{n - 1}"}]} for n in range(1, 3_000)
    ]
    named = [{"type": "record", "name": "N0", "fields": [{"name": "a", "type": "int"}]}, *names]

    assert past(written(named, (2, b"\0\2" + long(2_999) + b"\2"))) == [
        {"a": 1},
        (2, TOO_DEEP, repr(long(2_999) + b"\2")),
    ]


class A(NamedTuple):
    a: int


def test_numbers_of_records_count_what_is_left_out(written):
    """Also those of a block that is too large; those that do not become a `kind` are numbered alike."""
    union = {"type": "record", "name": "R", "fields": [{"name": "a", "type": ["string", "int"]}]}
    large = long(0) + long(2_000) + b"x" * 2_000
    path = written(union, (1, b"\2\2"), (2, large + b"\2\4"), (2, b"\0\2x\2\6"))

    found = past(path, kind=A, max_record=1_000)

    assert [each if isinstance(each, A) else each[0] for each in found] == [A(1), 2, 4, A(3)]
    assert "is in a block of more than max_record=1,000 bytes" in found[1][1]
    assert "(left out with it, of the same block: 1 more)" in found[1][1]


BOMBS: list[Any] = [
    # A schema, the blocks' codec, and the bytes of a block of one record, which is small.
    pytest.param({"type": "array", "items": "null"}, "null", long(10**9) + b"\0", id="an array of nulls"),
    pytest.param({"type": "array", "items": {**INT, "fields": []}}, "null", long(10**9) + b"\0", id="of empty records"),
    pytest.param(
        {"type": "array", "items": "int"}, "deflate", raw_deflate(long(12_000) + b"\0" * 12_001), id="of ints"
    ),
    pytest.param(
        {"type": "array", "items": "string"}, "deflate", raw_deflate(long(6_000) + b"\0" * 6_001), id="of texts"
    ),
    pytest.param("bytes", "null", long(1 << 50), id="bytes of a large number"),
    pytest.param({"type": "fixed", "name": "F", "size": 1 << 50}, "null", b"", id="a large fixed"),
]


@pytest.mark.parametrize(("schema", "codec", "data"), BOMBS)
def test_a_record_takes_no_more_memory_than_max_record(written, schema, codec, data):
    """A small file cannot make a large value: it is a bad record, or the file is torn, and the memory is bounded."""
    path = written(schema, (1, data), codec=codec)
    pyarrow_before = pyarrow.total_allocated_bytes()
    tracemalloc.start()
    try:
        with pytest.raises(SourceError, match=r"a\.avro(, record 1 .*max_record=400,000|: it is torn)"):
            [list(split.read()) for split in avro_records(path, max_record=400_000).splits(1)]
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()
    assert pyarrow.total_allocated_bytes() == pyarrow_before


def test_a_header_has_no_millions_of_entries(tmp_path):
    """Empty ones take no bytes of its bound, and seconds each million."""
    (tmp_path / "a.avro").write_bytes(b"Obj\x01" + long(10**6) + b"\0\0" * 10**6 + avro(INT)[4:])

    with pytest.raises(
        SourceError, match=r"cannot read .*a\.avro: .* its header has a part of 0 bytes.* for each part"
    ):
        past(str(tmp_path / "a.avro"))


@pytest.mark.parametrize(("size", "error"), [("1", TypeError), (True, TypeError), (0, ValueError), (1.5, TypeError)])
def test_max_record_is_a_number_of_bytes(size, error):
    """Another one is refused at the call."""
    with pytest.raises(error, match="max_record must be"):
        avro_records("a.avro", max_record=size)


def test_max_record_is_shown_if_it_is_another():
    """As other arguments are."""
    assert repr(avro_records("a.avro", max_record=100)) == "avro_records('a.avro', max_record=100)"
    assert repr(avro_records("a.avro")) == "avro_records('a.avro')"
