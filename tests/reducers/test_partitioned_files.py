"""`partition_by` and `roll_at`: which file an item stands in."""

from __future__ import annotations

import errno
import json
import os
from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, date, datetime
from enum import Enum
from pathlib import Path

import pyarrow.dataset
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dstream.connectors.files.writers import checked_partitions
from dstream.errors import SinkError
from reducers import replacing, to_files
from sources import csv_rows, text_files


class Color(Enum):
    RED = "red"


@dataclass
class Order:
    id: int
    country: str | None


ORDERS = [Order(n, ["NO", None, "SE/x"][n % 3]) for n in range(9)]


def test_items_stand_in_folders_by_value(engine, tmp_path):
    """Those of a folder in encounter order, in every partition; the field stays in the file."""
    paths = engine.stream(ORDERS, 2).collect(to_files(tmp_path, format="csv", partition_by="country"))

    folders = {Path(path).parent.name for path in paths}
    assert folders == {"country=NO", "country=__HIVE_DEFAULT_PARTITION__", "country=SE%2Fx"}
    found = engine.context.read(csv_rows(tmp_path / "country=NO")).to_list()
    assert found == [{"id": str(n), "country": "NO"} for n in (0, 3, 6)]
    assert json.loads((tmp_path / "_SUCCESS").read_text())["files"] == [
        str(Path(p).relative_to(tmp_path)) for p in paths
    ]


def test_a_folder_that_cannot_be_made_leaves_nothing(local_context, tmp_path, monkeypatch):
    """Files that were moved before are taken back, and the next run begins anew."""
    sink = to_files(tmp_path, format="csv", partition_by="country")
    real = os.makedirs

    def make(path, *args, **named):
        if str(path).endswith("SE"):
            raise OSError(errno.ENAMETOOLONG, "too long", path)
        real(path, *args, **named)

    monkeypatch.setattr(os, "makedirs", make)
    with pytest.raises(SinkError, match="its name is too long for the file system"):
        local_context.stream([Order(1, "NO"), Order(2, "SE"), Order(3, "DK")]).collect(sink)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    paths = local_context.stream(ORDERS[:1]).collect(sink)

    assert [Path(path).name for path in paths] == ["part-000001-00000.csv"]


@pytest.mark.parametrize("country", ["x" * 248, "\xe9" * 124])
def test_a_name_that_is_too_long_for_a_folder_is_refused(local_context, tmp_path, country):
    """Where the item is known; at a URL the commit could be neither finished nor taken back."""
    sink = to_files(tmp_path, format="json", partition_by="country")
    local_context.stream([Order(1, country[:-1])]).collect(sink)
    with pytest.raises(ValueError, match="a folder has a name of 255 bytes at most") as raised:
        local_context.stream([Order(2, country)]).collect(sink)

    assert "on the item Order(id=2" in "\n".join(raised.value.__notes__)


def test_other_programs_read_the_folders(local_context, tmp_path):
    """As Hive calls them."""
    local_context.stream(ORDERS).collect(to_files(tmp_path, format="parquet", partition_by={"by": lambda o: o.country}))
    table = pyarrow.dataset.dataset(tmp_path, partitioning="hive").to_table()

    assert {(row["country"], row["by"]) for row in table.to_pylist()} == {("NO", "NO"), (None, None), ("SE/x", "SE/x")}


def test_half_a_character_is_no_folder(local_context, tmp_path):
    """No file system and no URL has bytes for it; the item is named."""
    orders = [Order(1, "NO"), Order(2, "\ud800")]
    with pytest.raises(UnicodeEncodeError, match="surrogates not allowed") as raised:
        local_context.stream(orders).collect(to_files(tmp_path, format="json", partition_by="country"))

    assert "on the item Order(id=2" in "\n".join(raised.value.__notes__)


@pytest.mark.parametrize("format", ["parquet", "avro"])
def test_none_has_the_type_of_the_others(local_context, tmp_path, format):
    """In its folder there is nothing else; what is empty has it as well."""
    moments = [None, datetime(2024, 1, 1, tzinfo=UTC)]
    rows = [{"v": n, "at": moments[n or 0], "l": [n] if n else []} for n in (None, 1, None)]
    paths = local_context.stream(rows).collect(to_files(tmp_path, format=format, partition_by="v"))

    assert [Path(path).parent.name for path in paths] == ["v=1", "v=__HIVE_DEFAULT_PARTITION__"]
    if format == "parquet":
        types = [[str(kind) for kind in pyarrow.parquet.read_schema(path).types] for path in paths]
        assert types == [["int64", "timestamp[us, tz=UTC]", "list<element: int64>"]] * 2
        assert pyarrow.parquet.read_table(paths[1], partitioning=None).to_pylist() == [rows[0], rows[2]]


@pytest.mark.parametrize(
    ("value", "folder"),
    [
        ("a b=c%", "v=a%20b%3Dc%25/"),
        ("..", "v=../"),
        ("", "v=/"),
        ("\x00é", "v=%00é/"),
        (3, "v=3/"),
        (True, "v=true/"),
        (date(2024, 1, 2), "v=2024-01-02/"),
        (datetime(2024, 1, 2, 3), "v=2024-01-02T03%3A00%3A00/"),
        (Color.RED, "v=red/"),
    ],
)
def test_values_become_names(value, folder):
    """Escaped as Hive does it, so that none of them leads elsewhere."""
    assert list(checked_partitions("v").divided([{"v": value}])) == [(folder, [{"v": value}])]


def test_levels_follow_one_another():
    """In the order that they are named."""
    parts = checked_partitions({"year": lambda item: item["day"].year, "even": lambda item: item["n"] % 2 == 0})

    assert [folder for folder, _ in parts.divided([{"day": date(2024, 1, 1), "n": 1}])] == ["year=2024/even=false/"]
    assert [folder for folder, _ in checked_partitions(["a", "b"]).divided([{"a": 1, "b": 2}])] == ["a=1/b=2/"]


@pytest.mark.parametrize(
    ("item", "error", "said"),
    [
        ({"v": 1.5}, TypeError, "'v' is 1.5; a folder is called after a str, int, bool, date or None"),
        ({"v": "__HIVE_DEFAULT_PARTITION__"}, ValueError, "which means None"),
        ({"w": 1}, TypeError, "the item has no field 'v'"),
    ],
)
def test_values_without_a_name_are_refused(local_context, tmp_path, item, error, said):
    """With the item."""
    with pytest.raises(error, match=said) as raised:
        local_context.stream([item]).collect(to_files(tmp_path, format="json", partition_by="v"))

    assert f"on the item {item!r}" in "\n".join(raised.value.__notes__)


def test_replacing_removes_folders_that_hold_nothing(local_context, tmp_path):
    """And those with files of others are refused."""
    sink = to_files(tmp_path, format="json", partition_by="v")
    local_context.stream([{"v": 1}, {"v": 2}]).collect(sink)
    local_context.stream([{"v": 2}]).collect(replacing(sink))
    assert [path.name for path in tmp_path.glob("v=*")] == ["v=2"]
    (tmp_path / "v=2" / "mine.jsonl").touch()

    with pytest.raises(SinkError, match=r"holds 'v=2/mine\.jsonl', which no to_files\(\) has written"):
        local_context.stream([{"v": 2}]).collect(sink)


def test_open_files_are_bounded(local_context, tmp_path, monkeypatch):
    """The one that was used least lately ends, and goes on in another file; the order stays."""
    monkeypatch.setattr("dstream.connectors.files.writers.MOST_OPEN", 2)
    items = [{"v": n % 3, "n": n} for n in range(2000)]
    paths = local_context.stream(items).collect(to_files(tmp_path, format="json", partition_by="v"))

    by_folder = defaultdict(list)
    for path in sorted(paths):
        by_folder[Path(path).parent.name] += [json.loads(line) for line in Path(path).read_text().splitlines()]
    assert by_folder == {f"v={v}": [item for item in items if item["v"] == v] for v in range(3)}


@settings(max_examples=25)
@given(st.lists(st.text("ab\u00e9", max_size=9)), st.integers(1, 30))
def test_no_file_has_more_bytes(tmp_path_factory, texts, most):
    """Unless one item has; the order of the names is that of the items."""
    job = to_files(tmp_path_factory.mktemp("out"), roll_at=(most, None)).open(None).begin(None)
    job.commit(list(job.writer.write(iter(texts))))

    contents = [Path(path).read_bytes().decode() for path in job.files()]
    assert "".join(contents).splitlines() == texts
    assert all(len(content.encode()) <= most or content.count("\n") == 1 for content in contents)
    sizes = [len(f"{text}\n".encode()) for text in texts]
    assert len(contents) <= 2 * (sum(sizes) // most + sum(size > most for size in sizes)) + 1


@pytest.mark.parametrize("format", ["csv", "parquet", "avro"])
def test_rows_roll_too(local_context, tmp_path, format):
    """Each file has the header, and can be read alone."""
    rows = local_context.stream(range(1000)).map(lambda n: {"n": n})
    paths = rows.collect(to_files(tmp_path, format=format, roll_at=(2000, None)))

    assert len(paths) > 1
    assert paths == sorted(paths)
    if format == "csv":
        assert max(Path(path).stat().st_size for path in paths) <= 2000
        assert [int(row["n"]) for row in local_context.read(csv_rows(tmp_path)).to_list()] == list(range(1000))


def test_files_roll_with_the_time(local_context, tmp_path, monkeypatch):
    """With the first item after so many seconds."""
    seconds = iter(range(1000))
    monkeypatch.setattr("dstream.connectors.files.writers.monotonic", lambda: next(seconds))
    paths = local_context.stream(range(100)).collect(to_files(tmp_path, roll_at=(None, 2)))

    assert len(paths) > 2
    assert local_context.read(text_files(tmp_path)).to_list() == [str(n) for n in range(100)]


def test_wrong_arguments_are_refused_at_the_call(tmp_path):
    """With what to write instead."""
    for wrong, error, said in [
        ({"partition_by": len}, TypeError, "write partition_by={'name': function}"),
        ({"partition_by": 3}, TypeError, "partition_by must be the name of a field, or several, not 3"),
        ({"partition_by": []}, ValueError, "partition_by must hold names, each once"),
        ({"partition_by": ["a", "a"]}, ValueError, "each once"),
        ({"partition_by": "a/b"}, ValueError, "begins a name of folders, which 'a/b' cannot"),
        ({"partition_by": {"a": 3}}, TypeError, r"partition_by\['a'\] must be a function"),
        ({"roll_at": 5}, TypeError, r"roll_at must be a tuple \(bytes, seconds\)"),
        ({"roll_at": (None, None)}, ValueError, "roll_at has neither bytes nor seconds"),
        ({"roll_at": (0, None)}, ValueError, "the bytes of roll_at must be an int of at least 1"),
        ({"roll_at": (None, -1)}, ValueError, "the seconds of roll_at must be a number above 0"),
    ]:
        with pytest.raises(error, match=said):
            to_files(tmp_path, **wrong)


@pytest.mark.parametrize("folder", ["../", "a/", "a=1", ".a=1/", "a=1/../", "_=1/"])
def test_receipts_lead_to_no_other_folder(tmp_path, folder):
    """They may have been kept anywhere, so they are input."""
    job = to_files(tmp_path / "out").open(None).begin(None)
    [[name, size, _, columns, count]] = job.writer.write(iter("a"))

    with pytest.raises(Exception, match="is no receipt of a file"):
        job.commit([[name, size, folder, columns, count]])
