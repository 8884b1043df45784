"""Values of dictionaries of Parquet that take far more bytes in the rows than in the file."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any, TypedDict

import pyarrow as pa
import pyarrow.parquet
import pytest

from dstream.connectors.files import open_parquet, parquet
from dstream.errors import SourceError
from sources import parquet_rows

ROWS = 300
TEXTS = pa.DictionaryArray.from_arrays([None, 0, 1, 2, 1] * 60, ["a", "b" * 1_000, "é"])
"""120 kB in rows, and some 1 kB in a file."""
ENDS = [0, *range(1, 150), *[150] * 150, ROWS]
COLUMNS: dict[str, Any] = {
    "strings": TEXTS,
    "bytes": pa.DictionaryArray.from_arrays(TEXTS.indices, TEXTS.dictionary.cast(pa.binary())),
    "lists": pa.ListArray.from_arrays(ENDS, TEXTS),
    "large lists": pa.LargeListArray.from_arrays(ENDS, TEXTS),
    "structs": pa.StructArray.from_arrays([TEXTS, pa.array(range(ROWS))], ["a", "n"]),
    "maps": pa.MapArray.from_arrays(range(ROWS + 1), [f"k{n}" for n in range(ROWS)], TEXTS),
    "lists of structs": pa.ListArray.from_arrays(ENDS, pa.StructArray.from_arrays([TEXTS], ["a"])),
    "lists of a size": pa.FixedSizeListArray.from_arrays(TEXTS, 1),
}


class Row(TypedDict):
    """A row of a file."""

    n: int
    a: Any


def write(path: Any, column: Any, **options: Any) -> list[dict[str, Any]]:
    """Write rows of a number and a column, and return them."""
    table = pa.table({"n": range(len(column)), "a": column})
    pyarrow.parquet.write_table(table, path, **options)
    return table.to_pylist()


@pytest.fixture(params=[True, False], ids=["typed", "plain"])
def is_stored(request):
    """Whether the file says that the column has dictionaries."""
    return request.param


@pytest.fixture
def few_bytes(monkeypatch):
    """Lower the bound of decoded bytes to 10,000."""
    monkeypatch.setattr(open_parquet, "DECODED_BYTES", 10_000)
    monkeypatch.setattr(parquet, "DECODED_BYTES", 10_000)
    monkeypatch.setattr(parquet, "_GROUP_DECODED", 50_000)


def items_of(source: Any) -> list[Any]:
    """Return the items, made of the rows in columns, some of which are asked for in columns first."""
    found: list[Any] = []
    for rows in (rows for split in source.splits(1) for rows in split.arrow_rows()):
        parts = [part() for part in rows.parts.values()]
        assert all(part is None or len(part) == rows.size for part in parts)
        if parts[1] is not None:
            assert parts[1].to_pylist() == [each["a"] for each in rows.items(slice(0, rows.size))]
        for start in range(0, rows.size, rows.most):
            found += rows.items(slice(start, min(start + rows.most, rows.size)))
    return found


@pytest.mark.parametrize("kind", COLUMNS)
def test_batches_are_cut_by_decoded_bytes(tmp_path, few_bytes, is_stored, kind):
    """Rows are those of the table, and a batch has at most 10,000 bytes, or one row."""
    rows = write(tmp_path / "a", COLUMNS[kind], store_schema=is_stored)
    [split] = parquet_rows(tmp_path).splits(1)

    found = [[row["n"] for row in batch.values] for _, batch in split.format._rows(split.parts[0])]

    assert [n for batch in found for n in batch] == list(range(ROWS))
    assert len(found) >= 7
    assert all(len(batch) == 1 or len(str(rows[batch[0] : batch[-1] + 1])) < 40_000 for batch in found)
    assert list(split.read()) == rows


@pytest.mark.parametrize("kind", COLUMNS)
def test_batches_have_fewer_rows_where_values_are_large(tmp_path, few_bytes, monkeypatch, kind):
    """Where these are enough they are read as ever."""
    monkeypatch.setattr(open_parquet, "_FEWER_ROWS", 5)
    rows = write(tmp_path / "a", COLUMNS[kind], store_schema=False)
    [split] = parquet_rows(tmp_path).splits(1)

    assert 5 <= max(len(batch.values) for _, batch in split.format._rows(split.parts[0])) <= 12
    assert list(split.read()) == rows


@pytest.mark.parametrize("group_bytes", [0, 64 << 20])
@pytest.mark.parametrize("kind", COLUMNS)
def test_rows_in_columns_keep_large_values_in_dictionaries(
    tmp_path, few_bytes, monkeypatch, is_stored, kind, group_bytes
):
    """As a whole or in batches: their items are those of the table."""
    monkeypatch.setattr(parquet, "_GROUP_BYTES", group_bytes)
    rows = write(tmp_path / "a", COLUMNS[kind], store_schema=is_stored)

    assert items_of(parquet_rows(tmp_path)) == rows


def test_items_are_chosen_from_large_values(tmp_path, few_bytes):
    """By an array of places, too, and for items of a class."""
    import numpy as np

    rows = write(tmp_path / "a", TEXTS, store_schema=False)
    [split] = parquet_rows(tmp_path, Row).splits(1)
    [found] = split.arrow_rows()

    assert list(found.items(np.arange(1, ROWS, 3))) == rows[1::3]
    assert found.parts["a"]() is None, "all rows together take too many bytes"


@pytest.mark.parametrize(("room", "is_decoded"), [(130_000, True), (110_000, False)])
def test_columns_are_decoded_while_there_is_room(tmp_path, few_bytes, monkeypatch, room, is_decoded):
    """The largest value says what they may take, and reading tells what they take."""
    monkeypatch.setattr(parquet, "_GROUP_DECODED", room)
    write(tmp_path / "a", TEXTS, store_schema=False)
    [split] = parquet_rows(tmp_path, columns=["a"]).splits(1)

    [found] = split.arrow_rows()

    assert (found.parts["a"]() is not None) == is_decoded


@pytest.mark.parametrize("read", ["items", "columns", "batches"])
def test_a_row_that_takes_too_many_bytes_is_refused(tmp_path, few_bytes, monkeypatch, read):
    """It names the file, the row and the bound."""
    for module in (open_parquet, open_parquet, parquet):
        monkeypatch.setattr(module, "LARGEST_ROW", 50_000)
    monkeypatch.setattr(parquet, "_GROUP_BYTES", 0 if read == "batches" else 1 << 20)
    write(tmp_path / "a", COLUMNS["lists"], store_schema=False)
    source = parquet_rows(tmp_path)

    with pytest.raises(SourceError, match=r"/a, row 300 takes more than 50,000 bytes with the values of its dict"):
        items_of(source) if read != "items" else [list(split.read()) for split in source.splits(1)]


def test_numbers_of_few_bytes_come_in_batches(tmp_path, monkeypatch, read):
    """A number a million times takes no bytes in a file either."""
    monkeypatch.setattr(parquet, "_GROUP_NUMBERS", 3_000)
    rows = write(tmp_path / "a", pa.array([7] * ROWS))
    [split] = parquet_rows(tmp_path).splits(1)
    monkeypatch.setattr(parquet._ColumnsOfGroup, "_read", None)

    assert [row for found in split.arrow_rows() for row in found.items(slice(0, found.size))] == rows


def test_bytes_of_a_fixed_length_bound_the_batch(tmp_path, monkeypatch):
    """Their length is in the schema: absent ones take as many bytes in Arrow."""
    monkeypatch.setattr("dstream.connectors.files.parquet.DECODED_BYTES", 5_000)
    write(tmp_path / "a", pa.array([None] * ROWS, pa.binary(1_000)))
    [split] = parquet_rows(tmp_path).splits(1)

    assert [group.batch_rows for part in split.parts for group in part.groups] == [5]


@pytest.mark.parametrize("codec", ["none", "snappy", "gzip", "brotli", "lz4", "zstd"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("values", [["a", "bb" * 20, "é"], ["a\0\0", "", "b" * 70_000], [""]])
def test_the_largest_value_of_a_dictionary_is_found(tmp_path, codec, version, values):
    """With every codec, with NUL and without, where it is larger than enough."""
    path = tmp_path / "a"
    checks = {"write_page_checksum": version == "2.0"}
    write(path, pa.array(values * 20), compression=codec, data_page_version=version, **checks)
    source = pa.BufferReader(path.read_bytes())
    metadata = pyarrow.parquet.ParquetFile(source).metadata.row_group(0)
    longest = max(len(value.encode()) for value in values)

    assert open_parquet.largest_value(source, metadata.column(1), 5) == max(longest, 4)
    assert open_parquet.largest_value(source, metadata.column(1), 1 << 20) >= longest
    assert open_parquet.largest_value(source, metadata.column(0), 1) == 0


@pytest.mark.parametrize("page", [b"\5\0\0\0ab", b"\1\0\0\0ab", b"\1\0\0\0a\1\0", b"\xff\xff\xff\xffab"])
def test_a_torn_dictionary_has_no_longest_value(page):
    """So it may be as long as the page, until Arrow reads it and says so."""
    assert open_parquet.longest_of_page(page) is None


def test_a_file_of_few_bytes_takes_few_when_it_is_read(tmp_path):
    """800 MB out of some 10 kB: a program takes less than 250 MB more than before."""
    write(tmp_path / "a", pa.DictionaryArray.from_arrays([0] * 800, ["x" * 1_000_000]), compression="zstd")
    assert os.path.getsize(tmp_path / "a") < 50_000
    program = f"""
import resource
from sources import parquet_rows
[split] = parquet_rows({os.fspath(tmp_path / "a")!r}).splits(1)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
assert sum(len(row["a"]) for row in split.read()) == 800_000_000
assert sum(len(row["a"]) for rows in split.arrow_rows() for row in rows.items(slice(0, rows.size))) == 800_000_000
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert int(found.stdout) < 250
