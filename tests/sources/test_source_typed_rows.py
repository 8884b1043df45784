"""`csv_rows(path, Kind)` and `parquet_rows(path, Kind)`: rows as classes, converted by their annotations."""

from __future__ import annotations

import csv
import enum
import math
import pathlib
import tempfile
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Literal, NamedTuple, NotRequired, TypedDict

import pyarrow
import pyarrow.parquet
import pydantic
import pytest
import typing_extensions
from hypothesis import given, settings
from hypothesis import strategies as st

from dstream.errors import SourceError
from sources import csv_rows, parquet_rows


class Level(enum.Enum):
    LOW = "low"
    HIGH = "high"


class Rank(enum.IntEnum):
    FIRST = 1


@dataclass
class Order:
    id: int
    name: str
    price: Decimal
    weight: float
    paid: bool
    day: date
    at: datetime
    until: time
    level: Level
    rank: Rank
    kind: Literal["a", 2]
    note: str | None
    tags: list[str] = field(default_factory=list, init=False)


class Place(NamedTuple):
    lat: float
    names: list[str]


HEADER = "id,name,price,weight,paid,day,at,until,level,rank,kind,note"
ROW = '-12,"Ada ""A""",1.50,1e3,true,2026-01-31,2026-01-31T10:00:00+00:00,09:30:00,high,1,2,'


@pytest.fixture
def write(tmp_path):
    """Write `a.csv` and give its path."""

    def write_csv(*lines, encoding="utf-8"):
        (tmp_path / "a.csv").write_bytes("".join(f"{line}\r\n" for line in lines).encode(encoding))
        return tmp_path / "a.csv"

    return write_csv


def error_of(source):
    """Read a source and give the words of its error."""
    with pytest.raises(SourceError) as caught:
        [list(split.read()) for split in source.splits(1)]
    return str(caught.value)


def test_texts_become_what_annotations_say(write, read):
    """Each as it is written."""
    (order,) = read(csv_rows(write(HEADER, ROW, encoding="utf-8-sig"), Order))

    assert (order.id, order.name, order.price, order.weight, order.paid) == (
        -12,
        'Ada "A"',
        Decimal("1.50"),
        1000,
        True,
    )
    assert (order.day, order.at.hour, order.until) == (date(2026, 1, 31), 10, time(9, 30))
    assert (order.level, order.rank, order.kind, order.note) == (Level.HIGH, Rank.FIRST, 2, None)
    assert type(order.weight) is float


@pytest.mark.parametrize(
    ("column", "text", "words"),
    [
        ("id", "1.0", "expected an int such as 12, got '1.0'"),
        ("id", "1_0", "expected an int such as 12, got '1_0'"),
        ("id", " 1", "expected an int such as 12, got ' 1'"),
        ("id", "", "expected an int such as 12, got an empty field"),
        ("name", "", "expected a text, got an empty field"),
        ("price", "1_0", "expected a number such as 1.50, got '1_0'"),
        ("weight", " 1", "expected a float such as 1.5, got ' 1'"),
        ("weight", "1_0", "expected a float such as 1.5, got '1_0'"),
        ("weight", "1e400", "expected a float such as 1.5, got '1e400'"),
        ("weight", "-1e400", "expected a float such as 1.5, got '-1e400'"),
        ("paid", "yes", "expected true or false, got 'yes'"),
        ("paid", "1", "expected true or false, got '1'"),
        ("day", "31.1.2026", "expected a date such as 2026-01-31, got '31.1.2026'"),
        ("level", "LOW", "expected one of 'low', 'high', got 'LOW'"),
        ("rank", "2", "expected one of 1, got '2'"),
        ("kind", "b", "expected one of 'a', 2, got 'b'"),
    ],
)
def test_a_text_that_does_not_convert_is_named(write, column, text, words):
    """By file, line, column and value; nothing is guessed."""
    values = dict(zip(HEADER.split(","), next(csv.reader([ROW])), strict=True)) | {column: text}
    path = write(
        HEADER, ROW, "", ",".join(f'"{v}"'.replace('"A"', '""A""') if '"' in v else v for v in values.values())
    )

    assert f"{path}, line 4: column {column}: {words}: " in error_of(csv_rows(path, Order))


@pytest.mark.parametrize("columns", ["x,n", "n,x"])
def test_numbers_are_those_of_python(write, read, columns):
    """Digits of other alphabets, too, and infinity by its name; what a float does not hold is no infinity."""

    class Number(NamedTuple):
        x: float
        n: int

    def rows(*texts):
        lines = texts if columns == "x,n" else [",".join(reversed(text.split(","))) for text in texts]
        return csv_rows(write(columns, *lines), Number, on_bad="skip")

    assert read(rows("\u0661.5,\u0661\u0662", "inf,-3", "-Infinity,4", "1e308,5", "1e308,6")) == [
        (1.5, 12), (math.inf, -3), (-math.inf, 4), (1e308, 5), (1e308, 6)
    ]  # fmt: skip
    [split] = rows("1,1", f"{'9' * 400},2", "3,3").splits(1)
    assert list(split.read_past(lambda bad: [bad.record().line])) == [(1, 1), 3, (3, 3)]


def test_quoted_nothing_is_the_empty_text(write, read):
    """Nothing without quotes is None, also beside quotes and line ends in other fields."""

    class Pair(NamedTuple):
        a: str | None
        b: str | None

    path = write("a,b", ',""', '"",', '"x, ""y""\n","z"', '"""",', '"",""')

    assert read(csv_rows(path, Pair)) == [(None, ""), ("", None), ('x, "y"\n', "z"), ('"', None), ("", "")]
    assert read(csv_rows(path))[:2] == [{"a": None, "b": ""}, {"a": "", "b": None}]


def test_columns_are_found_by_their_names(write, read):
    """In any order; other columns are left out, and a field with a default needs none."""

    class Person(NamedTuple):
        name: str
        age: int = 7

    assert read(csv_rows(write("x,age,name", "1,2,Ada"), Person)) == [("Ada", 2)]
    assert read(csv_rows(write("x,name", "1,Ada"), Person)) == [("Ada", 7)]
    assert read(csv_rows(write("Ada;2"), Person, fieldnames=["name", "age"], delimiter=";")) == [("Ada", 2)]
    assert "line 1: there is no column name; there are x, age" in error_of(csv_rows(write("x,age", "1,2"), Person))
    with pytest.raises(ValueError, match=r"fieldnames must hold the fields of Person: there is no name"):
        csv_rows("a", Person, fieldnames=["x"])


def test_typed_dictionaries_and_models(write, read):
    """A model converts by its own rules."""

    class Row(TypedDict):
        name: str
        age: NotRequired[int]

    class Model(pydantic.BaseModel):
        name: str
        age: int | None

    assert read(csv_rows(write("name", "Ada"), Row)) == [{"name": "Ada"}]
    path = write("name,age", "Ada,36", "Bob,x")
    assert error_of(csv_rows(path, Row)) == f"{path}, line 3: column age: expected an int such as 12, got 'x': Bob,x"
    assert f"{path}, line 3: column age: Input should be a valid integer" in error_of(csv_rows(path, Model))
    assert read(csv_rows(write("name,age", "Ada,36", "Bob,"), Model)) == [
        Model(name="Ada", age=36),
        Model(name="Bob", age=None),
    ]


@pytest.mark.parametrize("make", [TypedDict, typing_extensions.TypedDict])
def test_typed_dictionaries_have_fields_of_any_name(write, read, make):
    """They are written as calls, and travel wherever they stand; pydantic wants those of `typing_extensions`."""
    odd = make("odd", {"_0": int, "class": str, "a b": str})

    assert read(csv_rows(write("class,_0,,a b", "x,1,2,y"), odd)) == [{"_0": 1, "class": "x", "a b": "y"}]


def test_what_a_validator_of_a_model_raises_is_said_of_the_row(write):
    """As of a dataclass: pydantic passes on what is neither a ValueError nor an AssertionError."""

    class Model(pydantic.BaseModel):
        name: str

        @pydantic.field_validator("name")
        @classmethod
        def known(cls, name: str) -> str:
            return {"Ada": name}[name]

    path = write("name", "Ada", "Bob")

    assert error_of(csv_rows(path, Model)) == f"{path}, line 3: Model cannot be made of it (KeyError: 'Bob'): Bob"


def test_a_kind_that_no_text_becomes_is_refused_at_the_call():
    """CSV has no lists and no objects."""

    class Nested(NamedTuple):
        tags: list[str]

    with pytest.raises(TypeError, match=r"the field tags of Nested: nothing that stands in a field of such a file"):
        csv_rows("a", Nested)
    with pytest.raises(TypeError, match="a dataclass, a named tuple, a TypedDict, an attrs class or a pydantic model"):
        csv_rows("a", kind=int)


def test_a_constructor_that_refuses_is_named(write):
    """As a value that does not convert."""

    @dataclass
    class Positive:
        n: int

        def __post_init__(self):
            if self.n < 0:
                raise ValueError("below 0")

    assert "line 3: Positive cannot be made of it (ValueError: below 0): -1" in error_of(
        csv_rows(write("n", "1", "-1"), Positive)
    )


def test_an_open_quote_ends_the_run_unless_it_is_the_last_line(write, read):
    """Where the next row begins is not known; a file that was cut short has one bad row."""
    path = write("a,b", "1,2", '3,"4')

    (split,) = csv_rows(path).splits(1)
    assert [*split.read_past(lambda misread: [misread.record().text])] == [{"a": "1", "b": "2"}, '3,"4']
    (split,) = csv_rows(write("a,b", "1,2", '3,"4', "5,6")).splits(1)
    with pytest.raises(SourceError, match="line 3: unexpected end of data"):
        list(split.read_past(lambda misread: []))


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.tuples(*[st.none() | st.text("a,\"'\n\r é")] * 2, st.none() | st.integers()), max_size=6),
    st.integers(1, 9),
)
def test_what_a_writer_writes_is_read_again(rows, block):
    """None, empty texts, quotes, line ends and large numbers, wherever blocks are cut."""

    class Row(NamedTuple):
        x: str | None
        y: str | None
        n: int | None

    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr("dstream.connectors.files.lines.BLOCK", block)
        path = pathlib.Path(folder) / "a.csv"
        lines = [
            ",".join("" if each is None else '"' + str(each).replace('"', '""') + '"' for each in row) for row in rows
        ]
        path.write_bytes("\r\n".join(["x,y,n", *lines]).encode())
        assert [row for split in csv_rows(path, Row).splits(2) for row in split.read()] == rows


def test_values_of_parquet_become_what_annotations_say(tmp_path, read):
    """Dates and the like are there already; texts that stand for them are taken, too; nested rows become classes."""

    class Stay(NamedTuple):
        day: date
        since: date
        at: datetime
        price: Decimal
        data: bytes
        length: timedelta
        level: Level
        place: Place | None
        counts: dict[str, int]
        missing: int = 5

    table = pyarrow.table(
        {
            "day": pyarrow.array([date(2026, 1, 31)]),
            "since": ["2025-01-01"],
            "at": pyarrow.array([datetime(2026, 1, 31, 10)], pyarrow.timestamp("ns")),
            "price": [Decimal("1.50")],
            "data": [b"\x00"],
            "length": [timedelta(seconds=2)],
            "level": ["low"],
            "place": [{"lat": 1.5, "names": ["x", "y"]}],
            "counts": pyarrow.array([[]], pyarrow.map_(pyarrow.string(), pyarrow.int64())),
            "other": [1],
        }
    )
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")

    (stay,) = read(parquet_rows(tmp_path / "a.parquet", Stay))
    assert stay[:4] == (date(2026, 1, 31), date(2025, 1, 1), datetime(2026, 1, 31, 10), Decimal("1.50"))
    assert stay[4:] == (b"\x00", timedelta(seconds=2), Level.LOW, Place(1.5, ["x", "y"]), {}, 5)


def test_parquet_names_the_row_and_the_column(tmp_path, tiny_splits):
    """Also in a later row group, which another task reads."""

    class Row(NamedTuple):
        n: int

    pyarrow.parquet.write_table(pyarrow.table({"n": [1, 2, None, 4]}), tmp_path / "a.parquet", row_group_size=2)
    path = tmp_path / "a.parquet"

    second = parquet_rows(path, Row).splits(2)[-1]
    with pytest.raises(SourceError, match=r"a\.parquet, row 3: column n: expected int, got NoneType None: {'n': None}"):
        list(second.read())
    with pytest.raises(SourceError, match="has no column m; there are n"):
        parquet_rows(path, NamedTuple("Other", [("m", int)])).splits(1)
    with pytest.raises(ValueError, match=r"columns must hold the fields of .*Row: there is no n"):
        parquet_rows(path, Row, columns=["m"])
