"""A value that Python does not have makes its row a bad one, and no other."""

from __future__ import annotations

import dataclasses
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from pyspark.sql.types import LongType, StructField, StructType, TimestampType

from dstream.connectors.dataframes import rows_of_table
from dstream.connectors.kafka.consumers import KafkaRange, RecordMaker
from dstream.engine.tasks.frames import rows_of_frame, values_of_frame
from dstream.errors import SourceError
from dstream.operators.columns.arrow_rows import Records, blocks_of_rows
from dstream.plan.steps import Step
from sources import parquet_rows

_FAR = 8_640_000_000_000_000
_NO_TEXTS = pa.array([b"a", b"\xff", b"c"])

UNREAD: dict[str, tuple[Any, str]] = {
    "a moment too late": (pa.array([0, _FAR, 5], pa.timestamp("ms")), "value out of range: 8640000000000000"),
    "a moment too early": (pa.array([0, -_FAR, 5], pa.timestamp("ms")), "value out of range: -8640000000000000"),
    "a zone too far": (pa.array([0, 253402300799000, 5], pa.timestamp("ms", "Asia/Tokyo")), "9999-12-31 23:59:59"),
    "a date too late": (pa.array([0, 3_000_000, 5], pa.date32()), "Python has no such date32.*10183-09-21"),
    "milliseconds of a date": (pa.array([0, _FAR, 5]).view(pa.date64()), "value out of range"),
    "a duration too long": (pa.array([0, 2**62, 5], pa.duration("s")), r"duration\[s\], got 4611686018427387904"),
    "a time of no day": (pa.array([0, 2**62, 5]).view(pa.time64("us")), "value out of range"),
    "nanoseconds": (pa.array([0, 1, 5000], pa.timestamp("ns")), "times of Python have no nanoseconds"),
    "bytes that are no text": (pa.StringArray.from_buffers(3, *_NO_TEXTS.buffers()[1:]), r"no UTF-8 .*b'\\xff'"),
    "a view of none": (pa.array([b"a", b"\xff", b"c"], pa.binary_view()).view(pa.string_view()), "no UTF-8"),
    "months": (pa.array([None, (1, 2, 3), None], pa.month_day_nano_interval()), "1M2d3ns .months and days have no"),
    "within a struct": (
        pa.StructArray.from_arrays([pa.array([0, _FAR, 5], pa.timestamp("ms"))], ["x"]),
        "value out of range",
    ),
    "within a list": (pa.array([[0], [5, _FAR], []], pa.list_(pa.timestamp("ms"))), "value out of range"),
    "months within a list": (pa.array([[], [(1, 2, 3)], []], pa.list_(pa.month_day_nano_interval())), "1M2d3ns"),
}
each_value = pytest.mark.parametrize("name", UNREAD)
each_value_of_parquet = pytest.mark.parametrize("name", [name for name in UNREAD if not name.startswith("months")])


@dataclasses.dataclass
class Numbered:
    """A class of one plain field and one of any type."""

    n: int
    at: Any


def table_of(name: str) -> pa.Table:
    """Return three rows, whose second holds the value."""
    return pa.table({"n": [1, 2, 3], "at": UNREAD[name][0]})


def written(name: str, path: Any) -> Any:
    """Write them into a file."""
    pyarrow.parquet.write_table(table_of(name), path / "a.parquet")
    return path / "a.parquet"


@each_value_of_parquet
@pytest.mark.parametrize("kind", [None, Numbered])
def test_a_row_of_a_file_is_bad(tmp_path, name, kind):
    """The others come, and what is said of it names file, row, column and value."""
    path, found = written(name, tmp_path), []
    [split] = parquet_rows(path, kind=kind, on_bad="skip").splits(1)

    def misread(bad):
        found.append(bad)
        return ()

    assert [row["n"] if kind is None else row.n for row in split.read_past(misread)] == [1, 3]
    [bad] = found
    assert (bad.record().path, bad.record().line) == (str(path), 2)
    with pytest.raises(SourceError, match=f"a.parquet, row 2: column at: .*{UNREAD[name][1]}"):
        raise bad.error()


@each_value_of_parquet
@pytest.mark.parametrize("group_bytes", [0, 64 << 20])
def test_a_row_of_columns_of_a_file_is_named(tmp_path, monkeypatch, name, group_bytes):
    """It ends the run where items are made of rows that steps have chosen; one that is not chosen is no item."""
    monkeypatch.setattr("dstream.connectors.files.parquet._GROUP_BYTES", group_bytes)
    check_columns(parquet_rows(written(name, tmp_path)), "a.parquet", UNREAD[name][1])


@each_value
@pytest.mark.parametrize("kind", [None, Numbered])
def test_a_row_of_a_table_is_named(name, kind):
    """Of `from_df`, whose items are made one by one or of columns."""
    if name == "nanoseconds":
        return  # They are refused at the call.
    source = rows_of_table(table_of(name), kind)
    items = iter(source.splits(1)[0].read())
    with pytest.raises(SourceError, match=f"from_df\\(Table\\), row 2: column at: .*{UNREAD[name][1]}"):
        list(items)
    check_columns(source, r"from_df\(Table\)", UNREAD[name][1])


def check_columns(source: Any, where: str, words: str) -> None:
    """Choose rows of columns, if they stand in some."""
    [split] = source.splits(1)
    step = Step("source", None, 1, 1)
    for block in blocks_of_rows(split.arrow_rows(), step):
        if isinstance(block, Records):
            assert len(list(chain.from_iterable(block.at(np.array([0, 2])).portions()))) == 2
        chosen = block.at(np.array([2, 1])).portions() if isinstance(block, Records) else [block]
        with pytest.raises(SourceError, match=f"{where}, row 2: column at: .*{words}"):
            list(chain.from_iterable(chosen))


def test_a_map_with_a_key_twice_is_a_bad_row_of_a_class(tmp_path):
    """Of a file too, where a dictionary would keep one of the values; without a class, rows hold lists of pairs."""
    pairs = [[("a", 1)], [("a", 1), ("a", 2)], []]
    table = pa.table({"n": [1, 2, 3], "at": pa.array(pairs, pa.map_(pa.string(), pa.int64()))})
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
    [split] = parquet_rows(tmp_path, kind=Numbered, on_bad="skip").splits(1)

    assert list(split.read_past(lambda bad: [bad.record().line])) == [Numbered(1, {"a": 1}), 2, Numbered(3, {})]
    with pytest.raises(SourceError, match=r"a.parquet, row 2: column at: a map has a key twice"):
        list(split.read())


@each_value
@pytest.mark.parametrize("kind", [None, Numbered])
def test_a_row_of_a_table_is_bad(name, kind):
    """Where somebody deals with it: `.ignore(ValueError)` and its kin stand behind `from_df`, too."""
    if name == "nanoseconds":
        return  # They are refused at the call.
    [split] = rows_of_table(table_of(name), kind, "from_df(Table)").splits(1)
    items = list(split.read_past(lambda bad: [bad.record().line]))

    assert [item if item == 2 else item["n"] if kind is None else item.n for item in items] == [1, 2, 3]


@dataclasses.dataclass
class Exact:
    """A class of which some rows become none."""

    n: int


def test_rows_of_a_table_that_do_not_fit_are_dealt_with(local_context):
    """As those of files; the advice names no argument that `from_df` does not have."""
    rows = local_context.from_df(pa.table({"n": [1.5, 2.0, None]}), Exact)

    assert rows.ignore(ValueError).to_list() == []
    assert rows.resolve(ValueError, lambda bad, error: bad.line).to_list() == [1, 2, 3]
    with pytest.raises(SourceError, match=r"row 1: column n.*\n.*\n(.*\n)*.*correct the record, or put .ignore"):
        rows.to_list()


@pytest.mark.parametrize("read", [rows_of_frame, values_of_frame])
def test_a_value_of_a_data_frame_of_spark_is_named(read):
    """With its column; rows of such a frame come in no order."""
    batch = pa.record_batch({"n": [1, 2], "at": pa.array([0, 10**18], pa.timestamp("us", "Asia/Tokyo"))})
    schema = StructType([StructField("n", LongType()), StructField("at", TimestampType())])

    with pytest.raises(SourceError, match=r"column at: Python has no such timestamp\[us, tz=UTC\], got .*0{18}"):
        read(batch, schema)


class Message:
    """A message of Kafka whose offset is its value."""

    def __init__(self, value):
        self._value = value

    def offset(self):
        """Return the value."""
        return int(self._value)

    def timestamp(self):
        """Return none."""
        return 0, 0

    def key(self):
        """Return none."""
        return

    def value(self):
        """Return the value."""
        return self._value

    def headers(self):
        """Return none."""
        return


def test_a_message_of_kafka_is_bad(monkeypatch):
    """One of which a function makes no value: the others come, and it is named with its offset and its value."""
    monkeypatch.setattr(KafkaRange, "_messages", lambda self: [[Message(b"1"), Message(b"2"), Message(b"3")]])
    making = RecordMaker(value=lambda value: 6 // (int(value) - 2), projection=lambda record: record.value)
    split = KafkaRange("kafka('t')", None, "t", 0, 0, 3, making, False)
    found = []

    assert list(split.read_past(lambda bad: found.append(bad) or ())) == [-6, 6]
    [bad] = found
    assert (bad.record().path, bad.record().line, bad.record().text) == ("kafka('t'): t-0", 2, "None: b'2'")
    with pytest.raises(SourceError, match=r"kafka\('t'\): the message at offset 2 of t-0: integer division"):
        raise bad.error()


def test_bad_rows_go_where_they_are_sent(engine, tmp_path):
    """Skipped, or as dead letters, on both engines."""
    path = written("a moment too late", tmp_path)
    letters = engine.context.read(parquet_rows(path)).ignore(ValueError)

    assert letters.map(lambda row: row["n"]).to_list() == [1, 3]
    assert engine.context.read(parquet_rows(path, on_bad="skip")).count() == 2


def test_many_bad_rows_are_found_among_good_ones(tmp_path):
    """Each of them, in order, in every batch and row group."""
    moments = [_FAR if number % 7 == 3 else number for number in range(1_000)]
    table = pa.table({"n": range(1_000), "at": pa.array(moments, pa.timestamp("ms"))})
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet", row_group_size=300)
    lines = []
    splits = parquet_rows(tmp_path, on_bad="skip").splits(1)
    kept = [row["n"] for split in splits for row in split.read_past(lambda bad: lines.append(bad.record().line) or ())]

    assert kept == [number for number in range(1_000) if number % 7 != 3]
    assert lines == [number + 1 for number in range(1_000) if number % 7 == 3]
