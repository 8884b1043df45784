"""Readers close their files when reading ends: at its end, early, or by an error, without the garbage collector."""

from __future__ import annotations

import gc
from collections import deque
from typing import NamedTuple

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dstream.errors import SourceError
from dstream.filesystem import access
from sources import avro_records, csv_rows, files, json_lines, parquet_rows, text_files

TEXTS = ["1", "2", "3", "x", "5"]
SCHEMA = {"type": "record", "name": "R", "fields": [{"name": "n", "type": "string"}]}


class Number(NamedTuple):
    """An item that the fourth record does not become."""

    n: int


def text(path, encoding="utf-8", lines=TEXTS, end=b""):
    """Write lines, and bytes that are in no encoding."""
    path.write_bytes("".join(f"{line}\n" for line in lines).encode(encoding) + end)
    return str(path)


def avro(path, end=b""):
    """Write a file of Avro."""
    with path.open("wb") as file:
        fastavro.writer(file, SCHEMA, [{"n": each} for each in TEXTS])
        file.write(end)
    return str(path)


def parquet(path):
    """Write a file of Parquet in several row groups."""
    pq.write_table(pa.table({"n": TEXTS}), path, row_group_size=2)
    return str(path)


def halved(path, file):
    """Give half of a line, which the line `x` has not."""
    yield from (int(line) / 2 for line in file)


def table(encoding, end=b""):
    """Return sources of text in an encoding; each meets something bad behind its third item."""
    kinds = {
        "lines": lambda path: text_files(text(path, encoding, end=end), encoding=encoding),
        "long lines": lambda path: text_files(
            text(path, encoding, [*"123", "4" * 200_000]), encoding=encoding, max_record=70_000
        ),
        "JSON": lambda path: json_lines(text(path, encoding), encoding=encoding),
        "CSV": lambda path: csv_rows(text(path, encoding, ["n", *TEXTS]), Number, encoding=encoding),
        "CSV with paths": lambda path: csv_rows(
            text(path, encoding, ["n", *TEXTS]), Number, encoding=encoding, with_path=True
        ),
        "CSV of many fields": lambda path: csv_rows(text(path, encoding, ["n", *"123", "4,5"]), encoding=encoding),
        "CSV of a header": lambda path: csv_rows(text(path, encoding, ["n,n", "1,2"]), encoding=encoding),
        "CSV of a quote": lambda path: csv_rows(text(path, encoding, ["n", *"123", '"4', "5"]), encoding=encoding),
        "CSV of bytes": lambda path: csv_rows(text(path, encoding, ["n", *TEXTS], end), encoding=encoding),
        "long CSV": lambda path: csv_rows(
            text(path, encoding, ["n", *"123", "4" * 200_000]), encoding=encoding, max_record=70_000
        ),
    }
    return {f"{name} in {encoding}": make for name, make in kinds.items()}


SOURCES = {
    **table("utf-8", b"\xff\n"),
    **table("utf-16", b"\x00\xd8\x00\x00"),
    "Parquet": lambda path: parquet_rows(parquet(path), Number),
    "Avro": lambda path: avro_records(avro(path), Number),
    "torn Avro": lambda path: avro_records(avro(path, b"\x04\x02")),
    "files": lambda path: files(text(path), read=halved),
}
WAYS = {
    "items": lambda split: split.read(),
    "blocks": lambda split: split.read_blocks() if hasattr(split, "read_blocks") else None,
    "columns": lambda split: split.arrow_rows() if hasattr(split, "arrow_rows") else None,
    "past bad ones": lambda split: split.read_past(lambda bad: [None]) if hasattr(split, "read_past") else None,
}


@pytest.fixture
def opened(monkeypatch):
    """The streams that readers have opened; the garbage collector does nothing meanwhile."""
    streams, original = [], access._open
    monkeypatch.setattr(access, "_open", lambda file: streams.append(original(file)) or streams[-1])
    gc.disable()
    yield streams
    gc.enable()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", SOURCES)
def test_files_are_closed_however_reading_ends(opened, tmp_path, name, way):
    """Also while the error is kept, whose traceback has the frames of readers: what is dropped is closed."""
    [split] = SOURCES[name](tmp_path / "file").splits(1)
    errors = []
    for end in (next, deque):
        items = WAYS[way](split)
        if items is not None:
            try:
                end(items)
            except (SourceError, ValueError) as error:
                errors.append(error)
        del items

        assert [stream for stream in opened if not stream.closed] == []
    assert errors or way in ("columns", "past bad ones") or WAYS[way](split) is None
