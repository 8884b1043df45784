"""`parquet_rows`: rows as dictionaries, divided by row groups."""

from __future__ import annotations

import datetime
from typing import NamedTuple, TypedDict

import pyarrow
import pyarrow.parquet
import pytest

from dstream.errors import SourceError
from dstream.spi.source import Source
from sources import parquet_rows

TABLE = pyarrow.table({"n": list(range(10)), "text": [f"t{n}" for n in range(10)]})


class Number(NamedTuple):
    """One column."""

    n: int


@pytest.fixture
def path(tmp_path):
    """A file of five row groups of two rows."""
    pyarrow.parquet.write_table(TABLE, tmp_path / "a.parquet", row_group_size=2)
    return tmp_path / "a.parquet"


def test_parquet_rows_reads_dictionaries(path, read):
    """In the order of the file."""
    source = parquet_rows(path)

    assert isinstance(source, Source)
    assert (source.ordered, source.bounded, source.in_caller) == (True, True, False)
    assert read(source) == [{"n": n, "text": f"t{n}"} for n in range(10)]


@pytest.mark.parametrize("parallelism", [1, 2, 3, 5, 20])
def test_parquet_rows_divides_row_groups(path, read, monkeypatch, parallelism):
    """Row groups are spread over the tasks and never cut; neighbours share one."""
    monkeypatch.setattr("dstream.connectors.files.splits.SMALLEST_SPLIT", 1)
    source = parquet_rows([path, path.parent])

    assert len(source.splits(parallelism)) == min(parallelism, 5)
    assert read(source, parallelism) == TABLE.to_pylist()


def test_parquet_rows_reads_several_files_in_order(path, read):
    """Sorted by path, sharing one split."""
    pyarrow.parquet.write_table(pyarrow.table({"n": [-1]}), path.parent / "A.parquet")
    source = parquet_rows(path.parent)

    assert len(source.splits(4)) == 1
    assert [row["n"] for row in read(source)] == [-1, *range(10)]


def test_parquet_rows_reads_only_the_columns_asked_for(path, read):
    """In the order asked for."""
    assert list(read(parquet_rows(path, columns=["text", "n"]))[0].items()) == [("text", "t0"), ("n", 0)]
    assert list(read(parquet_rows(path, columns=("text",)))[0].items()) == [("text", "t0")]


def test_parquet_rows_reads_columns_of_any_name(tmp_path, read):
    """Also one that is called as a part of another one is."""
    odd = {"_0": 1, "class": 2, "a b": 3, "": 4, "a": {"b": 5}, "a.b": 6}
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist([odd]), tmp_path / "odd.parquet")
    kind = TypedDict("kind", {"_0": int, "class": int, "a b": int, "": int, "a.b": int})

    assert read(parquet_rows(tmp_path / "odd.parquet")) == [odd]
    assert read(parquet_rows(tmp_path / "odd.parquet", columns=["a.b", "_0"])) == [{"a.b": 6, "_0": 1}]
    assert read(parquet_rows(tmp_path / "odd.parquet", kind)) == [{name: odd[name] for name in kind.__annotations__}]


def test_parquet_rows_gives_python_values(tmp_path, read):
    """None, lists, structs and times are what Python calls them."""
    row = {"none": None, "list": [1, None], "struct": {"a": "x"}, "day": datetime.date(2024, 2, 29), "bytes": b"\0"}
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist([row]), tmp_path / "a")

    assert read(parquet_rows(tmp_path)) == [row]


def test_parquet_rows_makes_batches_of_bounded_size(tmp_path):
    """Wide rows become dictionaries a few at a time."""
    table = pyarrow.table({"wide": [bytes([n]) * 100_000 for n in range(50)]})
    pyarrow.parquet.write_table(table, tmp_path / "a", compression="none", use_dictionary=False)
    [split] = parquet_rows(tmp_path).splits(1)

    assert [row_group.batch_rows for part in split.parts for row_group in part.groups] == [10]
    assert [len(rows.values) for _, rows in split.format._rows(split.parts[0])] == [10] * 5


def test_parquet_rows_of_an_empty_table_is_empty(tmp_path, read):
    """A file without rows is a file, and there is a task to run."""
    pyarrow.parquet.write_table(TABLE.slice(0, 0), tmp_path / "a")

    assert len(parquet_rows(tmp_path).splits(4)) == 1
    assert read(parquet_rows(tmp_path)) == []


def test_parquet_rows_of_an_empty_table_with_lists_is_empty(tmp_path, read):
    """Its one row group has no rows to divide the values of lists by."""
    schema = pyarrow.schema({"text": pyarrow.string(), "numbers": pyarrow.list_(pyarrow.int64())})
    pyarrow.parquet.write_table(schema.empty_table(), tmp_path / "a.parquet")
    rows = [{"text": "a", "numbers": [1, 2]}, {"text": "b", "numbers": []}]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows, schema), tmp_path / "b.parquet")

    assert read(parquet_rows(tmp_path / "a.parquet")) == []
    assert read(parquet_rows([tmp_path / "a.parquet", tmp_path / "b.parquet"])) == rows


def test_parquet_rows_names_the_columns_there_are(path):
    """When the source is divided, before any task runs."""
    with pytest.raises(SourceError, match=r"a.parquet has no column age; there are n, text"):
        parquet_rows(path, columns=["age", "n"]).splits(1)


@pytest.mark.parametrize("content", [b"", b"name,age\n" * 100, b"PAR1" + b"x" * 50 + b"PAR1"])
def test_parquet_rows_refuses_what_is_not_parquet(tmp_path, content):
    """The file is named, and pyarrow's own words are kept."""
    (tmp_path / "a").write_bytes(content)

    with pytest.raises(SourceError, match=f"cannot read {tmp_path}/a: ") as caught:
        parquet_rows(tmp_path).splits(1)
    assert caught.value.__cause__ is not None


def test_parquet_rows_names_a_file_that_vanished_or_was_replaced(path):
    """Between the metadata and the rows."""
    [split] = parquet_rows(path).splits(1)
    path.write_bytes(b"x" * 10_000)

    with pytest.raises(SourceError, match=f"cannot read {path}: Arrow"):
        list(split.read())
    path.unlink()
    with pytest.raises(SourceError, match=f"cannot read {path}: there is no such file"):
        list(split.read())


def test_parquet_rows_refuses_two_columns_of_one_name(tmp_path, read):
    """A row would have the last of them alone; who does not read them is not concerned."""
    table = pyarrow.table([[1], [2], [3]], names=["n", "n", "m"])
    pyarrow.parquet.write_table(table, tmp_path / "a")

    for source in (parquet_rows(tmp_path), parquet_rows(tmp_path, Number), parquet_rows(tmp_path, columns=["n"])):
        with pytest.raises(SourceError, match=r"a holds the column 'n' more than once"):
            source.splits(1)
    assert read(parquet_rows(tmp_path, columns=["m"])) == [{"m": 3}]


def test_parquet_rows_reads_urls(path, read):
    """Any URL that fsspec knows."""
    import fsspec

    fsspec.filesystem("memory").pipe("/tables/a.parquet", path.read_bytes())

    assert read(parquet_rows("memory://tables/*.parquet")) == TABLE.to_pylist()


def test_parquet_rows_refuses_bad_columns_at_the_call():
    """One str is a likely slip; so is a name twice."""
    with pytest.raises(TypeError, match=r"write columns=\['name'\]"):
        parquet_rows("a", columns="name")
    with pytest.raises(ValueError, match="columns holds 'n' more than once"):
        parquet_rows("a", columns=["n", "n"])
    with pytest.raises(ValueError, match="columns is empty"):
        parquet_rows("a", columns=[])


@pytest.mark.parametrize("kind", [(), (Number,)])
def test_a_flipped_bit_of_a_page_with_a_checksum_is_an_error(tmp_path, kind):
    """As Spark writes them; whoever writes no checksums is believed."""
    table = pyarrow.table({"n": list(range(500))})
    path = tmp_path / "a.parquet"
    plain = {"compression": "none", "use_dictionary": False}
    pyarrow.parquet.write_table(table, path, write_page_checksum=True, **plain)
    data = bytearray(path.read_bytes())
    data[data.index((400).to_bytes(8, "little"))] ^= 1
    path.write_bytes(data)

    with pytest.raises(SourceError, match=r"a\.parquet"):
        [list(split.read()) for split in parquet_rows(path, *kind).splits(1)]
