"""`from_df(df, kind)`: what becomes of a row is what `parquet_rows` makes of the same table, or refuses."""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import enum
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypedDict

import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pydantic
import pytest

import dstream as ds
from dstream.errors import SourceError
from dstream.failures import failure
from dstream.testing.engines import MASTER, SETTINGS
from sources import parquet_rows

MOMENT = dt.datetime(2026, 11, 1, 5, 30, tzinfo=dt.UTC)


class Color(enum.Enum):
    RED = "red"


class Point(NamedTuple):
    x: float
    y: float = 0.5


@dataclass
class Plain:
    n: int
    text: str | None
    price: float


@dataclass(frozen=True)
class Timed:
    at: dt.datetime
    local: dt.datetime
    day: dt.date
    cost: decimal.Decimal
    data: bytes


@dataclass
class Nested:
    name: str
    points: list[Point]
    best: Point | None
    ages: dict[str, int]
    rest: Any = None
    extra: list[int] = field(default_factory=list)


@dataclass
class Converted:
    day: dt.date
    cost: decimal.Decimal
    color: Color
    size: Literal["s", "m"]


@dataclass
class Tree:
    name: str
    within: list[Tree]


class Typed(TypedDict):
    n: int
    best: Point


class Model(pydantic.BaseModel):
    n: int
    best: Point
    at: dt.datetime


@dataclass
class Keys:
    ints: dict[int, Point | None]
    days: dict[dt.date, str]
    others: dict


@dataclass
class Positive:
    n: int

    def __post_init__(self) -> None:
        if self.n < 0:
            raise ValueError("below 0")


@dataclass
class Optional:
    """Nothing that has to be there."""

    other: int = 7


PLAIN = {"price": 1.5, "n": 1, "text": "a", "other": b"left out"}
TIMES = {"at": MOMENT, "local": MOMENT.replace(tzinfo=None), "day": MOMENT.date(), "data": b"\0"}
TIMED = TIMES | {"cost": decimal.Decimal("1.50")}
NESTED = {"name": "a", "points": [{"x": 1.0, "y": 2.0}, {"x": 3.0, "y": 4.0}], "best": None, "ages": [("Ada", 36)]}
AGES = pa.map_(pa.string(), pa.int64())
POINT = pa.struct([("x", pa.float64()), ("y", pa.float64())])
OF_NESTED = pa.schema([("name", pa.string()), ("points", pa.list_(POINT)), ("best", POINT), ("ages", AGES)])
MODEL = {"n": 1, "best": {"x": 1.0, "y": 2.0}, "at": MOMENT}


def _nested(**changed: Any) -> pa.Table:
    schema = OF_NESTED
    for name in [name for name in changed if name not in schema.names]:
        schema = schema.append(pa.field(name, pa.array([changed[name]]).type))
    return pa.Table.from_pylist([NESTED | changed], schema)


def _table(*rows: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist(list(rows))


OF_KEYS = pa.schema(
    [
        ("ints", pa.map_(pa.int32(), POINT)),
        ("days", pa.map_(pa.string(), pa.string())),
        ("others", pa.map_(pa.float64(), pa.bool_())),
    ]
)
KEYS = {"ints": [(1, {"x": 1.0, "y": 2.0}), (2, None)], "days": [("2026-01-31", "a")], "others": [(0.5, True)]}


def _keys(**changed: Any) -> pa.Table:
    return pa.Table.from_pylist([KEYS | changed], OF_KEYS)


GOOD: list[tuple[Any, pa.Table]] = [
    (Keys, _keys()),
    (Keys, _keys(ints=[])),
    (Plain, _table(PLAIN, PLAIN | {"text": None})),
    (Plain, _table(PLAIN | {"price": 3})),
    (
        Plain,
        _table(PLAIN).cast(pa.schema([("price", "float32"), ("n", "int8"), ("text", "string"), ("other", "binary")])),
    ),
    (Timed, _table(TIMED)),
    (Nested, _nested()),
    (Nested, _nested(best={"x": 1.0, "y": 2.0}, rest={"a": [{"b": 1}]}, extra=[1])),
    (Converted, _table({"day": "2026-01-31", "cost": "1.50", "color": "red", "size": "m"})),
    (Converted, _table({"day": dt.date(2026, 1, 31), "cost": decimal.Decimal("1.5"), "color": "red", "size": "s"})),
    (Tree, _table({"name": "a", "within": [{"name": "b", "within": []}]})),
    (Typed, _table({"n": 1, "best": {"x": 1.0, "y": 2.0}})),
    (Point, _table({"x": 1})),
    (Point, _table({"x": 1, "y": 2.0, "z": 3})),
    (Model, _table(MODEL, MODEL | {"n": 2})),
    (Positive, _table({"n": 1}, {"n": 2})),
    (Optional, _table({"n": 1}, {"n": 2})),
    (Optional, _table({"other": 1})),
]

BAD: list[tuple[Any, pa.Table, str]] = [
    (Keys, _keys(ints=[(7, {"x": None, "y": 1.0})]), "column ints[7].x: expected float, got NoneType None"),
    (Keys, _keys(days=[("soon", "a")]), "column days: a key: expected a date such as '2026-01-31', got str 'soon'"),
    (Keys, _keys(days=[("2026-01-31", "a"), ("20260131", "b")]), "become one"),
    (Plain, _table(PLAIN | {"n": "1"}), "column n: expected int, got str '1': {'n': '1', 'text': 'a', 'price': 1.5}"),
    (Plain, _table(PLAIN | {"n": 1.0}), "column n: expected int, got float 1.0"),
    (Plain, _table(PLAIN, PLAIN | {"n": None}), "column n: expected int, got NoneType None"),
    (Plain, _table(PLAIN | {"text": b"a"}), "column text: expected str or null, got bytes b'a'"),
    (Plain, _table(PLAIN | {"n": True}), "column n: expected int, got bool True"),
    (Timed, _table(TIMED | {"day": MOMENT}), "column day: expected a date such as"),
    (Timed, _table(TIMED | {"cost": 1.5, "at": "soon"}), "column at: expected a time such as"),
    (Nested, _nested(best={"x": 1.0, "y": None}), "column best.y: expected float, got NoneType None"),
    (Nested, _nested(points=[{"x": 1.0, "y": 2.0}, None]), "column points[1]: expected Point, got NoneType None"),
    (Nested, _nested(ages=[("Ada", None)]), "column ages.Ada: expected int, got NoneType None"),
    (Nested, _nested(extra=["a"]), "column extra[0]: expected int, got str 'a'"),
    (Converted, _table({"day": "x", "cost": "1", "color": "red", "size": "m"}), "column day: expected a date such as"),
    (Converted, _table({"day": "2026-01-31", "cost": "1", "color": "blue", "size": "m"}), "column color: expected one"),
    (
        Tree,
        _table({"name": "a", "within": [{"name": 1, "within": []}]}),
        "column within[0].name: expected str, got int 1",
    ),
    (Typed, _table({"n": 1, "best": {"x": "1"}}), "column best.x: expected float, got str '1'"),
    (Model, _table(MODEL | {"n": "x"}), "column n: Input should be a valid integer"),
    (Positive, _table({"n": -1}), "Positive cannot be made of it (ValueError: below 0)"),
]


def _outcome(stream: ds.Stream[Any]) -> list[str]:
    """Return the items, or what is said of one that is none."""
    try:
        return sorted(map(repr, stream.to_list()))
    except SourceError as error:
        said = str(error).splitlines()[0]
        return [said[said.index(": ") + 2 :]]


@pytest.mark.on_spark("kind", "table")
@pytest.mark.parametrize(("kind", "table"), GOOD)
def test_rows_of_tables_become_what_those_of_parquet_become(engine, local_context, kind, table, tmp_path):
    """On both engines, from tables of this process and from DataFrames of Spark."""
    expected = _outcome(local_context.read(_parquet(table, kind, tmp_path)))

    assert len(expected) == table.num_rows
    assert _outcome(_from_df(engine, table, kind, tmp_path)) == expected


@pytest.mark.parametrize(("kind", "table", "message"), BAD)
def test_rows_of_tables_are_refused_as_those_of_parquet(local_context, kind, table, message, tmp_path):
    """With the same words, which name the field and the row."""
    expected = _outcome(local_context.read(_parquet(table, kind, tmp_path)))

    assert message in expected[0]
    assert _outcome(local_context.from_df(table, kind)) == expected


@pytest.mark.parametrize(("kind", "table", "message"), BAD[1::4])
def test_rows_of_data_frames_are_refused_as_those_of_parquet(
    spark_context, local_context, kind, table, message, tmp_path
):
    """The words come from the workers of Spark."""
    expected = _outcome(local_context.read(_parquet(table, kind, tmp_path)))

    assert message in expected[0]
    assert _outcome(spark_context.from_df(spark_context.spark.read.parquet(str(tmp_path)), kind)) == expected


def _parquet(table: pa.Table, kind: Any, folder: Any) -> Any:
    pyarrow.parquet.write_table(table, folder / "a.parquet")
    return parquet_rows(folder / "a.parquet", kind)


def _from_df(engine: Any, table: pa.Table, kind: Any, folder: Any) -> ds.Stream[Any]:
    if engine.name == "local":
        return engine.context.from_df(table, kind)
    return engine.context.from_df(engine.context.spark.read.parquet(str(folder)), kind)


def test_a_row_that_is_refused_is_named(engine):
    """By its number in the table, however that is divided, and by the call."""
    table = pa.table({"x": [*range(20_000), None]})

    with pytest.raises(SourceError, match=r"from_df\(Table, Point\), row 20,001: column x: expected float") as caught:
        engine.context.from_df(table, Point).map(lambda point: point.x).sorted().to_list()

    assert isinstance(caught.value.__cause__, ValueError)
    assert "from_df(Table, Point)" in str(failure(caught.value))


def test_a_row_of_a_data_frame_that_is_refused_is_named(spark_context):
    """By its values: it has no number."""
    df = spark_context.spark.range(3)

    with pytest.raises(SourceError, match=r"from_df\(DataFrame, Id\): column id: expected str, got int") as caught:
        spark_context.from_df(df, NamedTuple("Id", [("id", str)])).to_list()

    assert "from_df(DataFrame, Id) at " in "".join(caught.value.__notes__)


def test_missing_values_of_pandas_are_none(local_context):
    """As they are in Parquet: a field without None refuses them."""
    frame = pd.DataFrame({"x": [1.0, None], "y": [1, 2]})

    with pytest.raises(SourceError, match="row 2: column x: expected float, got NoneType None"):
        local_context.from_df(frame, Point).to_list()


def test_values_of_spark_alone_stay(spark_context):
    """Where the annotation is Any, as what PySpark makes of them; structs within are dictionaries."""
    query = "select parse_json('[1]') as own, array(struct(1 as a)) as rows, map(1, struct(2 as b)) as others"
    kind = dataclasses.make_dataclass("Own", ["own", "rows", "others"])

    (found,) = spark_context.from_df(spark_context.spark.sql(query), kind).to_list()

    assert (found.own.toPython(), found.rows, found.others) == ([1], [{"a": 1}], {1: {"b": 2}})


def test_a_field_that_no_value_becomes_is_refused_at_the_call(local_context):
    """As in Parquet."""
    kind = dataclasses.make_dataclass("Own", [("x", range)])

    with pytest.raises(TypeError, match="the field x of Own: nothing that stands in a file becomes a range"):
        local_context.from_df(pa.table({"x": [1]}), kind)


@pytest.mark.parametrize("columns", ["verify", "off"])
def test_rows_in_columns_are_those_that_are_made(columns, data):
    """Ints of a field for floats, and a text that may be None."""
    table = pa.table({"n": [1, 2, 3], "text": ["a", None, "c"], "price": [1, 2, 3]})
    with ds.connect(MASTER, config=SETTINGS, storage=data, columns=columns) as ctx:
        rows = ctx.from_df(table, Plain)

        assert rows.map(lambda row: row.price / 2).to_list() == [0.5, 1.0, 1.5]
        assert rows.filter(lambda row: row.text is None).to_list() == [Plain(2, None, 2.0)]
        assert type(rows.map(lambda row: row.price).to_list()[0]) is float


@pytest.mark.parametrize("hint", [dict[str, int], Any])
def test_a_map_that_has_a_key_twice_is_refused_with_its_row(local_context, hint):
    """A dictionary would keep one of the two values. So does a file of Parquet refuse it."""
    rows = pa.array([[("a", 1)], [("b", 2), ("b", 3)]], pa.map_(pa.string(), pa.int64()))
    kind = dataclasses.make_dataclass("Own", [("ages", hint), ("n", int)])

    with pytest.raises(SourceError, match=r"Own\), row 2: column ages: a map has a key twice: \[\('b', 2\), \('b', 3"):
        local_context.from_df(pa.table({"ages": rows, "n": [1, 2]}), kind).map(lambda own: own.ages).to_list()


def test_a_map_of_a_data_frame_that_has_a_key_twice_is_refused(spark_context, tmp_path):
    """PySpark would keep the last of the two values."""
    rows = pa.array([[("b", 2), ("b", 3)]], pa.map_(pa.string(), pa.int64()))
    pyarrow.parquet.write_table(pa.table({"ages": rows}), tmp_path / "a.parquet")
    kind = dataclasses.make_dataclass("Own", [("ages", dict[str, int])])

    with pytest.raises(SourceError, match=r"column ages: a map has a key twice \(.*'b'"):
        spark_context.from_df(spark_context.spark.read.parquet(str(tmp_path)), kind).to_list()


def test_an_empty_map_of_a_data_frame_stays(spark_context):
    """Also one whose types Spark does not know."""
    kind = dataclasses.make_dataclass("Own", ["none", "empty"])
    df = spark_context.spark.sql("select map() as none, array() as empty")

    assert spark_context.from_df(df, kind).to_list() == [kind({}, [])]
    assert spark_context.from_df(df).map(tuple).to_list() == [({}, [])]
