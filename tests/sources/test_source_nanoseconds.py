"""Times with nanoseconds, which Python has not: in Parquet and in tables, with and without a class."""

from __future__ import annotations

import datetime
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet
import pytest

import dstream as ds
from dstream.connectors.dataframes import TableRows, table_of
from dstream.errors import SourceError
from dstream.spi import ArrowRows
from reducers import to_ilist
from sources import parquet_rows

MICROSECOND = 1_000
MOMENT = datetime.datetime(1970, 1, 1, 0, 0, 0, 1)
SPAN = datetime.timedelta(microseconds=1)
KINDS = [
    (pa.timestamp("ns"), MOMENT),
    (pa.timestamp("ns", "UTC"), MOMENT.replace(tzinfo=datetime.UTC)),
    (pa.time64("ns"), MOMENT.time()),
    (pa.list_(pa.timestamp("ns")), [MOMENT, None]),
    (pa.struct([pa.field("inner", pa.list_(pa.time64("ns")))]), {"inner": [MOMENT.time(), None]}),
    (pa.map_(pa.string(), pa.timestamp("ns")), [("k", MOMENT), ("l", None)]),
]
FRAMES_ONLY = [
    (pa.duration("ns"), SPAN),
    (pa.large_list(pa.duration("ns")), [SPAN, None]),
    (pa.list_(pa.duration("ns"), 2), [SPAN, None]),
]


class Visit(NamedTuple):
    """A number and anything."""

    number: int
    at: Any


class Moment(NamedTuple):
    """A moment and nothing else."""

    at: datetime.datetime


@pytest.fixture
def moments(tmp_path):
    """Write moments of so many nanoseconds, in row groups of four rows."""

    def write(*nanoseconds: int | None) -> Any:
        columns = {"number": list(range(len(nanoseconds))), "at": pa.array(nanoseconds, pa.timestamp("ns"))}
        pyarrow.parquet.write_table(pa.table(columns), tmp_path / "a.parquet", row_group_size=4)
        return tmp_path / "a.parquet"

    return write


def _column(kind: pa.DataType, value: Any, nanoseconds: int) -> pa.Array:
    """Make a column of a value that some nanoseconds are added to, and of a null."""

    def changed(part: Any) -> Any:
        match part:
            case dict():
                return {name: changed(each) for name, each in part.items()}
            case tuple():
                return (part[0], changed(part[1]))
            case list():
                return [changed(each) for each in part]
        return None if part is None else MICROSECOND + nanoseconds

    return (
        pa.array([changed(value), None], _ints(kind)).cast(kind)
        if pa.types.is_nested(kind)
        else _flat(kind, changed(value))
    )


def _flat(kind: pa.DataType, number: int) -> pa.Array:
    return pa.array([number, None], pa.int64()).view(kind)


def _ints(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, _ints(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, _ints(kind.item_type))
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(_ints(kind.value_type), kind.list_size)
    if pa.types.is_large_list(kind):
        return pa.large_list(_ints(kind.value_type))
    return pa.list_(_ints(kind.value_type)) if pa.types.is_list(kind) else pa.int64()


@pytest.mark.parametrize("with_kind", [False, True])
@pytest.mark.parametrize(("kind", "value"), KINDS, ids=str)
def test_whole_microseconds_are_times_of_python(tmp_path, read, kind, value, with_kind):
    """With their very types, and further inside, too; a map is a dictionary for a class, as it always is."""
    table = pa.table({"number": [1, 2], "at": _column(kind, value, 0)})
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
    asked = {"kind": Visit} if with_kind else {}
    found = read(parquet_rows(tmp_path / "a.parquet", **asked))

    given = [row.at if with_kind else row["at"] for row in found]
    assert given == [dict(value) if with_kind and pa.types.is_map(kind) else value, None]
    assert not isinstance(given[0], datetime.datetime) or type(given[0]) is datetime.datetime


@pytest.mark.parametrize("with_kind", [False, True])
@pytest.mark.parametrize(("kind", "value"), KINDS, ids=str)
def test_nanoseconds_are_not_cut(tmp_path, kind, value, with_kind):
    """They are an error that names the row, the column and the value."""
    table = pa.table({"number": [1, 2], "at": _column(kind, value, 7)})
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
    asked = {"kind": Visit} if with_kind else {}

    with pytest.raises(SourceError, match=r"(?s)a\.parquet, row 1: column at: .* no nanoseconds, got .*00001007"):
        [list(split.read()) for split in parquet_rows(tmp_path / "a.parquet", **asked).splits(1)]


@pytest.mark.parametrize("bad", [[0], [3], [4, 5], [9], list(range(10))])
def test_rows_with_nanoseconds_are_bad_rows(moments, local_context, bad):
    """They are left out or sent away with their numbers; all others come in order."""
    numbers = [index * MICROSECOND + (index in bad) for index in range(10)]
    letters = local_context.get_list("nanoseconds")
    good = [index for index in range(10) if index not in bad]

    for kind in (None, Visit):
        rows = local_context.read(parquet_rows(moments(*numbers), kind=kind, into=to_ilist("nanoseconds"))).to_list()
        assert [row[0] if kind else row["number"] for row in rows] == good
        assert [letter.item.line for letter in letters] == [index + 1 for index in bad]
        assert all("no nanoseconds" in letter.message and "'number': " in letter.item.text for letter in letters)
        letters.clear()
    skipping = local_context.read(parquet_rows(moments(*numbers), on_bad="skip"))
    assert [row["number"] for row in skipping.to_list()] == good


@pytest.mark.parametrize("columns", ["auto", "off", "verify"])
def test_moments_in_columns_are_those_of_rows(moments, data, columns):
    """Whether or not some have nanoseconds; the error is the same, also of a column that nobody looks at."""
    with ds.connect(engine="local", storage=data, columns=columns) as context:
        fine = context.read(parquet_rows(moments(0, MICROSECOND, None)))
        assert fine.filter(lambda row: row["number"] > 0).map(lambda row: row["at"]).to_list() == [MOMENT, None]
        assert context.read(parquet_rows(moments(MICROSECOND), Moment)).to_list() == [Moment(MOMENT)]

        torn = moments(*[0] * 5, 1)
        numbers = [
            context.read(parquet_rows(torn)).map(lambda row: row["number"]),
            context.read(parquet_rows(torn, Visit)).map(lambda row: row.number),
        ]
        for each in numbers:
            with pytest.raises(SourceError, match=r"row 6: column at: .*got 1970-01-01 00:00:00\.000000001: "):
                each.filter(lambda n: n >= 0).to_list()


@pytest.mark.parametrize("group_bytes", [0, 2**20])
def test_row_groups_with_nanoseconds_stand_in_no_columns(moments, monkeypatch, group_bytes):
    """Others do, in microseconds, if their columns are read as a whole."""
    monkeypatch.setattr("dstream.connectors.files.parquet._GROUP_BYTES", group_bytes)
    [split] = parquet_rows(moments(*[0] * 5, 1)).splits(1)
    found = split.arrow_rows()
    first = next(found)

    assert isinstance(first, ArrowRows) is bool(group_bytes)
    assert not group_bytes or first.parts["at"]().type == pa.timestamp("us")
    second = next(found)
    assert not isinstance(second, ArrowRows)
    with pytest.raises(SourceError, match="row 6: column at"):
        list(second)


@pytest.mark.parametrize(("kind", "value"), [*KINDS, *FRAMES_ONLY], ids=str)
def test_tables_have_times_of_python(kind, value):
    """As the rows of Parquet; nanoseconds are refused where the table is given."""
    [split] = TableRows(table_of(pa.table({"at": _column(kind, value, 0)}))).splits(1)
    found = [row["at"] for row in split.read()]

    assert found == [value, None]
    assert not isinstance(found[0], datetime.datetime | datetime.timedelta) or type(found[0]).__module__ == "datetime"
    with pytest.raises(TypeError, match=r"the table holds nanoseconds, .*round them before"):
        table_of(pa.table({"at": _column(kind, value, 7)}))


_NS = pa.timestamp("ns")
INSIDE = {
    "list": lambda numbers: pa.array([[n] for n in numbers], pa.list_(pa.int64())).cast(pa.list_(_NS)),
    "large list": lambda numbers: pa.array([[n] for n in numbers], pa.large_list(pa.int64())).cast(pa.large_list(_NS)),
    "fixed list": lambda numbers: pa.array([[n] for n in numbers], pa.list_(pa.int64())).cast(pa.list_(_NS, 1)),
    "map": lambda numbers: pa.array([[("k", n)] for n in numbers], pa.map_(pa.string(), pa.int64())).cast(
        pa.map_(pa.string(), _NS)
    ),
    "lists in records": lambda numbers: pa.StructArray.from_arrays([INSIDE["list"](numbers)], ["inner"]),
}


@pytest.mark.parametrize("kind", INSIDE)
def test_one_bad_list_is_one_bad_row(local_context, tmp_path, kind):
    """Arrow looks at the values of other rows when it casts some rows of lists; none of these is bad for that."""
    column = INSIDE[kind]([1000 * n + (n == 5000) for n in range(9_000)])
    table = pa.table({"number": range(9_000), "at": column})
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
    read = parquet_rows(tmp_path / "a.parquet", on_bad="skip")
    numbers = [row["number"] for row in local_context.read(read)]

    assert numbers == [n for n in range(9_000) if n != 5000]
    assert [row["number"] for row in local_context.from_df(table.slice(4990, 5))] == list(range(4990, 4995))
    with pytest.raises(SourceError, match=r"row 5,?001"):
        local_context.read(parquet_rows(tmp_path / "a.parquet")).to_list()


@pytest.mark.parametrize("kind", [pa.list_view(_NS), pa.large_list_view(_NS)])
def test_nanoseconds_in_types_that_arrow_does_not_change_are_refused(local_context, tmp_path, kind):
    """They would become Timestamps of pandas, or what Arrow makes of them."""
    table = pa.table({"at": pa.array([[1000], [3001]], kind)})
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")

    with pytest.raises(TypeError, match="nanoseconds are not read from a"):
        local_context.from_df(table)
    with pytest.raises(SourceError, match="nanoseconds are not read from a"):
        local_context.read(parquet_rows(tmp_path / "a.parquet")).to_list()


def test_objects_of_pandas_with_nanoseconds_are_refused(local_context):
    """In columns of objects, where Arrow would cut them; others pass, as do missing ones."""
    pandas = pytest.importorskip("pandas")
    late, span = pandas.Timestamp(1001, unit="ns"), pandas.Timedelta(1001, unit="ns")
    for bad in (late, span, [late], {"k": late}, (1, [late])):
        frame = pandas.DataFrame({"at": pandas.Series([None, bad], dtype=object)})
        with pytest.raises(TypeError, match="column 'at' holds nanoseconds"):
            local_context.from_df(frame)
    good = [pandas.Timestamp(1000, unit="ns"), None, pandas.NaT]
    rows = local_context.from_df(pandas.DataFrame({"at": pandas.Series(good, dtype=object)})).to_list()

    assert [row["at"] for row in rows] == [MOMENT, None, None]


FAR = [datetime.datetime(9999, 12, 31, 23, 59, 59, 999_999), datetime.datetime(1, 1, 1), None, MOMENT] * 3


@pytest.mark.parametrize("rows", [1, 5, 8_192])
def test_times_of_12_bytes_have_any_year(tmp_path, monkeypatch, rows):
    """As Spark and Hive write them: Arrow reads nanoseconds, which those of most years overflow."""
    monkeypatch.setattr("dstream.connectors.files.parquet.BATCH_ROWS", rows)
    near = [MOMENT] * 11 + [FAR[0]]
    table = pa.table({"number": pa.array(near, pa.timestamp("us")), "at": pa.array(FAR, pa.timestamp("us"))})
    pyarrow.parquet.write_table(table, tmp_path / "a", use_deprecated_int96_timestamps=True, row_group_size=7)
    source = parquet_rows(tmp_path)
    read = [row for split in source.splits(1) for row in split.read()]
    columns = [row for each in source.splits(1)[0].arrow_rows() for row in each_row(each)]

    assert [row["at"] for row in read] == [row["at"] for row in columns] == FAR
    assert [row["number"] for row in read] == near


def each_row(rows):
    """Give the items of rows that are in columns, or in none."""
    return rows.items(slice(0, rows.size)) if isinstance(rows, ArrowRows) else rows


def test_times_of_12_bytes_with_nanoseconds_are_bad(tmp_path):
    """Beside those of far years, which are not."""
    ns = pa.array([1_000, 1_001, 2_000, None], pa.timestamp("ns"))
    columns = {"far": pa.array(FAR[:4], pa.timestamp("us")), "ns": ns}
    pyarrow.parquet.write_table(pa.table(columns), tmp_path / "a", use_deprecated_int96_timestamps=True)
    [split] = parquet_rows(tmp_path).splits(1)

    found = list(split.read_past(lambda bad: [(bad.record().line, str(bad.problem))]))
    assert found[1] == (2, "field ns: times of Python have no nanoseconds, got 1970-01-01 00:00:00.000001001")
    assert [row["far"] for row in [found[0], *found[2:]]] == [FAR[0], None, MOMENT]
