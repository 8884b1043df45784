"""Parquet and Avro: values come back as they were, and what does not fit its column is refused."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal, NamedTuple, TypedDict

import fastavro
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dstream as ds
from dstream.errors import SetupError, SinkError
from reducers import to_files
from sources import avro_records, parquet_rows


class Color(Enum):
    RED = "red"


class Point(NamedTuple):
    x: int
    y: float | None = None


@dataclass
class Ship:
    """One of everything that a column holds."""

    name: str
    crew: int | None
    at: datetime | None
    built: date | None
    price: Decimal | None
    color: Color = Color.RED
    kind: Literal["a", "b"] = "a"
    flag: bytes = b"\0\xff"
    sails: bool = True
    noon: time | None = time(12, 0, 0, 1)
    ports: list[Point] = field(default_factory=list)
    home: Point | None = None
    notes: Any = None


SHIPS = [
    Ship(
        'Peq"uod,\n', -(2**63), datetime(1, 1, 1), date(9999, 12, 31), Decimal("0.1"), ports=[Point(1), Point(2, 0.1)]
    ),
    Ship("é\0", None, None, None, None, home=Point(3, float("-inf")), noon=None),
]
PLAIN = [
    {
        **{name: getattr(ship, name) for name in Ship.__annotations__},
        "color": "red",
        "ports": [point._asdict() for point in ship.ports],
        "home": ship.home and ship.home._asdict(),
    }
    for ship in SHIPS
]


def read(path):
    """Return the rows of a file."""
    if str(path).endswith(".parquet"):
        return pq.read_table(path, partitioning=None).to_pylist()
    with open(path, "rb") as file:
        return list(fastavro.reader(file))


@pytest.fixture(params=["parquet", "avro"])
def write(request, local_context, tmp_path):
    """Write items of one partition; return the rows of the files."""

    def write(items, **options):
        sink = to_files(tmp_path / "out", format=request.param, **options)
        return [row for path in local_context.stream(items).collect(sink) for row in read(path)]

    return write


def test_values_come_back(write):
    """With all that they hold; enumerations as their values, what is inside as dicts."""
    assert write(SHIPS) == PLAIN


def test_items_come_back_on_both_engines(engine, tmp_path):
    """In order, and in columns of one type, also where a partition has nothing but None."""
    items = [Point(n, None if n < 3 else n / 2) for n in range(6)]
    paths = engine.stream(items, partitions=2).collect(to_files(tmp_path / "out", format="parquet"))

    assert engine.context.read(parquet_rows(tmp_path / "out")).to_list() == [item._asdict() for item in items]
    assert {str(pq.read_schema(path).field("y").type) for path in paths} == {"double"}


def test_moments_with_a_zone_stay_the_same_moments(write):
    """In UTC."""
    noon = datetime(2024, 1, 1, 12, tzinfo=timezone(timedelta(hours=2)))

    assert write([{"at": noon}, {"at": None}]) == [{"at": noon}, {"at": None}]


def test_zones_can_be_said(tmp_path):
    """So that a partition without values has the type of the others."""

    class Zoned(NamedTuple):
        at: Annotated[datetime, UTC] | None

    rows = [Zoned(None), Zoned(datetime(2024, 1, 1, tzinfo=UTC))]
    job = to_files(tmp_path / "out", format="parquet", columns=Zoned).open(None).begin(None)
    job.commit([receipt for row in rows for receipt in job.writer.write(iter([row]))])

    assert [row for path in job.files() for row in read(path)] == [row._asdict() for row in rows]
    assert {str(pq.read_schema(path).field("at").type) for path in job.files()} == {"timestamp[us, tz=UTC]"}


def test_dicts_say_their_columns(write):
    """A column is of the type of its first value, however late that comes."""
    rows = [{"a": None, "b": []}] * 600 + [{"a": 1, "b": [{"c": [1.5]}]}]

    assert write(rows) == rows


def test_lists_of_none_come_back(write):
    """Whose type nobody knows."""
    assert write([{"a": [None, None]}]) == [{"a": [None, None]}]


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        (1, 1.5, "has no place for float 1.5: it holds int, and this is float: nothing is converted"),
        (1.5, 1, "it holds float, and this is int"),
        (1, True, "it holds int, and this is bool"),
        (True, 1, "it holds bool, and this is int"),
        ("a", b"a", "it holds str, and this is bytes"),
        (1, 2**63, "it has more than 64 bits"),
        ("a", "\ud800", "surrogates not allowed"),
        (date(2024, 1, 1), datetime(2024, 1, 1), "it holds date, and this is datetime"),
        (datetime(2024, 1, 1), datetime(2024, 1, 1, tzinfo=UTC), "some moments have a zone, and others have none"),
        (Decimal(1), Decimal("1e-19"), "would cause data loss"),
        (Decimal(1), Decimal("1e21"), "would cause data loss"),
        (Decimal(1), Decimal("NaN"), "is not a valid decimal128"),
        ([1], ["a"], "it holds int, and this is str"),
        ([1], "abc", "it holds lists, and this is str"),
        ({"a": 1}, {"b": 1}, "it holds fields"),
        ({"a": 1}, {"a": "x"}, "it holds int, and this is str"),
        (Color.RED, "red", "it holds members of Color"),
        (time(1), time(1, tzinfo=UTC), "no column holds times with a zone"),
        (None, {1, 2}, "set cannot be stored in a column; annotate the field"),
        (None, object, "type cannot be stored in a column; map"),
    ],
)
def test_nothing_is_converted(write, tmp_path, first, second, said):
    """A value that does not fit its column is an error that names both, and the item."""
    with pytest.raises(TypeError, match=said) as raised:
        write([{"column": first}, {"column": second}])

    assert "the column 'column' has no place for" in str(raised.value)
    assert f"on the item {{'column': {second!r}}}" in "\n".join(raised.value.__notes__)
    assert [path for path in (tmp_path / "out").rglob("*") if path.is_file()] == []


@dataclass
class Unset:
    """The second field of some is never set."""

    a: int
    b: int = field(init=False)


def _partly_set(a):
    item = Unset(a)
    if a != 3:
        item.b = a
    return item


@pytest.mark.parametrize("form", ["parquet", "avro", "csv"])
def test_the_item_is_named_whose_field_was_never_set(local_context, tmp_path, form):
    """Whatever takes the fields of a whole batch."""
    items = [_partly_set(a) for a in range(6)]

    with pytest.raises(AttributeError) as caught:
        local_context.stream(items).collect(to_files(tmp_path / "out", format=form))

    assert ds.failure(caught.value).item is items[3]
    assert "<string>" not in str(caught.value.__notes__)


def test_an_annotation_decides_over_the_values(write):
    """An int in a field of floats is refused from the first item on."""
    with pytest.raises(TypeError, match="the column 'y' has no place for int 2: it holds float"):
        write([Point(1, 2)])


def test_columns_give_types_to_dicts(write):
    """Those of a class, for files without items too."""

    class Row(TypedDict):
        id: int
        tags: list[str]

    assert write([{"id": 1}], columns=Row) == [{"id": 1, "tags": None}]


def test_an_empty_file_has_its_columns(local_context, tmp_path):
    """Where they are known."""
    [path] = local_context.stream([]).collect(to_files(tmp_path / "out", format="parquet", columns=Point))
    [avro] = local_context.stream([]).collect(to_files(tmp_path / "avro", format="avro", columns=Point))

    assert [(each.name, str(each.type)) for each in pq.read_schema(path)] == [("x", "int64"), ("y", "double")]
    assert read(avro) == []


def test_fields_that_no_column_holds_are_refused_at_the_call(tmp_path):
    """Before anything runs."""

    @dataclass
    class Wrong:
        found: tuple[int, str]

    @dataclass
    class Both:
        found: int | str

    for kind, said in (Wrong, r"tuple\[int, str\]"), (Both, r"int \| str"):
        with pytest.raises(TypeError, match=rf"field 'found' of .*: {said} cannot be stored in a column; map"):
            to_files(tmp_path, format="parquet", columns=kind)


def test_types_that_come_too_late_are_refused(local_context, tmp_path, monkeypatch):
    """A file is begun when its first rows fill a group; columns that were all None then stay so."""
    monkeypatch.setattr("dstream.connectors.files.writers._HELD_OF_ONE", 1)
    rows = local_context.stream([{"a": 1, "b": None}] * 2 + [{"a": 1, "b": "x"}])
    with pytest.raises(
        TypeError, match=r"the column 'b' becomes one of str here.*say its type, with a class in columns="
    ):
        rows.collect(to_files(tmp_path / "out", format="parquet"))


def test_partitions_of_other_types_are_refused(tmp_path):
    """A table has one type for each column. Readers cannot make one of None and ints, so that is refused, too."""
    job = to_files(tmp_path / "out", format="parquet").open(None).begin(None)
    receipts = [each for value in (1, "x", None) for each in job.writer.write(iter([{"a": value}]))]
    ints, texts, nothing = receipts
    with pytest.raises(
        SinkError, match="one partition has int in the column 'a', and another one str: name the columns"
    ):
        job.commit([ints, texts])
    with pytest.raises(SinkError, match="one partition has nothing but None in the column 'a', and another one int"):
        job.commit([nothing, ints])
    assert job.is_done is False


def test_row_groups_are_bounded(local_context, tmp_path, monkeypatch):
    """A row group holds some megabytes, so that readers can divide a file."""
    monkeypatch.setattr("dstream.connectors.files.writers._HELD_OF_ONE", 100_000)
    [path] = local_context.stream(range(50_000)).map(lambda n: {"n": n}).collect(to_files(tmp_path, format="parquet"))

    metadata = pq.read_metadata(path)
    rows = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
    assert (sum(rows), max(rows) <= 25_000) == (50_000, True)


@pytest.mark.parametrize(
    ("format", "codec"),
    [("parquet", "gz"), ("parquet", "zst"), *(("avro", codec) for codec in ("gz", "bz2", "xz", "zst", "snappy"))],
)
def test_columns_are_compressed_inside(local_context, tmp_path, format, codec):
    """The name of the file stays that of the format."""
    sink = to_files(tmp_path / "out", format=format, compression=codec)
    [path] = local_context.stream([Point(1, 2.0)] * 5000).collect(sink)

    assert path.endswith(f"-00000.{format}")
    assert read(path)[4999] == {"x": 1, "y": 2.0}
    source = parquet_rows(path) if format == "parquet" else avro_records(path)
    assert local_context.read(source).to_list()[4999] == {"x": 1, "y": 2.0}


def test_avro_names_what_it_has_no_place_for(local_context, tmp_path):
    """Names of fields, and durations."""
    for row, said in (
        ({"a b": 1}, "letters, digits and _"),
        ({"a": timedelta(1)}, "timedelta cannot be stored in Avro; map"),
    ):
        with pytest.raises(TypeError, match=said):
            local_context.stream([row]).collect(to_files(tmp_path / "out", format="avro"))


def test_avro_tells_fields_apart_whose_names_join_to_the_same(local_context, tmp_path):
    """Each level of records has its own names, whatever stands in them."""
    row = {"a": {"b": {"x": 1}}, "a_b": {"y": 2}, "a_b_": [{"b": {"x": 3}}]}
    [path] = local_context.stream([row]).collect(to_files(tmp_path / "out", format="avro"))

    assert local_context.read(avro_records(path)).to_list() == [row]


def test_avro_says_what_to_install(tmp_path, monkeypatch):
    """When the sink is made, not when it runs."""
    monkeypatch.setattr("dstream.connectors.files.columnar_output.find_spec", lambda name: None)
    with pytest.raises(SetupError, match=r"pip install 'dstream-spark\[avro\]'"):
        to_files(tmp_path, format="avro")


@pytest.mark.parametrize(("codec", "package"), [("snappy", "cramjam"), ("zst", "backports.zstd")])
def test_avro_says_what_its_compression_needs(tmp_path, monkeypatch, codec, package):
    """Each is part of the extra."""
    monkeypatch.setattr("dstream.connectors.files.columnar_output._PACKAGES", {codec: (package,)})
    monkeypatch.setattr(
        "dstream.connectors.files.columnar_output.find_spec", lambda name: None if name == package else name
    )
    with pytest.raises(SetupError, match=rf"needs {package}, .* pip install 'dstream-spark\[avro\]'"):
        to_files(tmp_path, format="avro", compression=codec)


SCALARS = st.one_of(
    *(
        st.lists(st.none() | values, min_size=1, max_size=5)
        for values in (
            st.integers(-(2**63), 2**63 - 1),
            st.floats(allow_nan=False),
            st.text(st.characters(codec="utf-8")),
            st.booleans(),
            st.binary(),
            st.dates(),
            st.datetimes(),
            st.lists(st.none() | st.integers(0, 9)),
        )
    )
)


@settings(max_examples=30)
@given(SCALARS)
def test_every_column_comes_back(tmp_path_factory, values):
    """Of values of one type."""
    import io

    from dstream.connectors.files.formats import NO_LIMIT

    file, rows = io.BytesIO(), [{"a": value} for value in values]
    content = to_files("x", format="parquet").form.content(file, NO_LIMIT, 1 << 20, {})
    content.write(rows)
    content.finish()

    assert read_bytes(file) == rows


def read_bytes(file):
    """Return the rows of a file in memory."""
    file.seek(0)
    return pq.read_table(file).to_pylist()
