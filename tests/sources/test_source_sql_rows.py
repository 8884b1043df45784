"""`sql_rows`: rows of a query, divided without losing any."""

from __future__ import annotations

import datetime
import pickle
import re
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from decimal import Decimal
from typing import NamedTuple, TypedDict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dstream.errors import SetupError, SourceError
from sources import sql_rows


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A database with ten sales, one without a number."""
    path = tmp_path_factory.mktemp("sql") / "shop.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE sales (id INTEGER, item TEXT, price NUMERIC, day TEXT, paid BOOLEAN)")
        values = [(n or None, f"item {n} é", n / 4, f"2026-01-{n + 1:02}", n % 2) for n in range(10)]
        connection.executemany("INSERT INTO sales VALUES (?, ?, ?, ?, ?)", values)
    return path


@pytest.fixture(scope="module")
def url(path):
    """Where it is."""
    return f"sqlite:///{path}"


def test_rows_are_named_tuples(engine, url):
    """In the order of the query, with parameters; they are equal and named wherever they come from."""
    query = "SELECT id, item AS what FROM sales WHERE id > :least AND id != :not ORDER BY id DESC;"
    found = engine.context.read(sql_rows(url, query, {"least": 6, "not": 8})).to_list()

    assert found == [(9, "item 9 é"), (7, "item 7 é")]
    assert [row.what for row in found] == ["item 9 é", "item 7 é"]
    assert pickle.loads(pickle.dumps(found[0]))._asdict() == {"id": 9, "what": "item 9 é"}


@pytest.mark.parametrize("value", [np.int64(6), np.float32(6), np.uint8(6)])
def test_numbers_of_numpy_are_parameters(local_context, url, value):
    """sqlite3 would compare the memory of one with the column, and find no row."""
    source = sql_rows(
        url, "SELECT id FROM sales WHERE id = :id AND paid = :paid", {"id": value, "paid": np.bool_(False)}
    )

    assert local_context.read(source).to_list() == [(6,)]


def test_arrays_of_numpy_are_left_to_the_driver(local_context, url):
    """Some take them; sqlite3 has the memory of one."""
    source = sql_rows(url, "SELECT hex(:a) AS found", {"a": np.array([1, 2], "u1")})

    assert local_context.read(source).to_list() == [("0102",)]


def test_a_text_that_is_none_is_named_with_its_row(local_context, url):
    """Where other rows were fetched before; SQLite keeps any bytes as a text."""
    numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)"
    query = f"{numbers} SELECT i, CASE WHEN i = 2500 THEN CAST(x'ff' AS TEXT) ELSE 'a' END AS t FROM n"

    with pytest.raises(SourceError, match=r"sql_rows\(.*row 2,500: a value is none of Python: .* column 't'"):
        local_context.read(sql_rows(url, query)).to_list()


def test_a_row_with_a_text_that_is_none_is_a_bad_record(engine, url):
    """The others come, before and behind it; the record has the query, the row, and the values by their columns."""
    numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)"
    query = f"{numbers} SELECT i, CASE WHEN i = 2500 THEN CAST(x'ff' AS TEXT) ELSE 'é' END AS t FROM n"
    rows = engine.context.read(sql_rows(url, query))
    resolved = rows.resolve(SourceError, lambda record, error: (record, str(error))).to_list()
    record, words = resolved[2499]

    assert [row.i for row in rows.ignore(SourceError).to_list()] == [*range(1, 2500), *range(2501, 3001)]
    assert rows.ignore(UnicodeDecodeError).count() == 2999
    assert (record.path[:9], record.line, record.text) == ("sql_rows(", 2500, "{'i': 2500, 't': b'\\xff'}")
    assert re.search(r"row 2,500: a value is none of Python: column 't', b'\\xff': .*invalid start byte", words)
    assert resolved[2] == (3, "é")


class Numbered(TypedDict):
    """Two numbers."""

    id: int
    n: int


def test_a_row_that_is_no_kind_is_a_bad_record(local_context, url):
    """With the field's name; a row behind it is numbered on."""
    query = "SELECT id, CASE WHEN id IN (3, 5) THEN 'x' ELSE 1 END AS n FROM sales WHERE id <= 6 ORDER BY id"
    rows = local_context.read(sql_rows(url, query, kind=Numbered))
    found = rows.resolve(SourceError, lambda record, error: record.line).to_list()

    assert [each if isinstance(each, int) else each["id"] for each in found] == [1, 2, 3, 4, 5, 6]
    assert [each for each in found if isinstance(each, int)] == [3, 5]


@pytest.mark.parametrize("n", [1, 2, 3, 7, 20])
def test_a_partitioned_query_loses_no_row(read, url, n):
    """What is below, above, or NULL is among them; a query may end in a comment."""
    source = sql_rows(url, "SELECT id FROM sales -- all", partition_on=("id", 3, 6, n))

    assert len(source.splits(8)) == source.count_splits(8) == n
    assert sorted(row.id or 0 for row in read(source)) == list(range(10))
    assert [source.ordered, sql_rows(url, "SELECT 1").ordered] == [False, True]


BOUNDS = st.one_of(
    st.tuples(st.integers(-99, 99), st.integers(100, 999)),
    st.tuples(st.floats(-99, 0), st.floats(1, 99)),
    st.tuples(st.dates(datetime.date(2020, 1, 1), datetime.date(2025, 1, 1)), st.dates(datetime.date(2025, 1, 2))),
    st.just((Decimal("0.1"), Decimal("7"))),
    st.just((datetime.datetime(2020, 1, 1), datetime.datetime(2020, 1, 1, 0, 0, 1))),
)


@given(BOUNDS, st.integers(1, 50))
@settings(max_examples=60)
def test_borders_lie_in_order_within_the_bounds(bounds, n):
    """One fewer than parts, of the type of the bounds."""
    lower, upper = bounds
    borders = sql_rows("sqlite:///x.db", "SELECT 1", partition_on=("id", lower, upper, n)).ranges.borders

    assert len(borders) == n - 1
    assert list(borders) == sorted(borders)
    assert all(lower <= each <= upper and type(each) is type(lower) for each in borders)


class Sale(NamedTuple):
    item: str
    price: Decimal
    day: datetime.date
    paid: bool
    id: int | None = None


@dataclass
class Priced:
    price: float


def test_rows_become_a_kind(local_context, url):
    """By name; texts and numbers of SQLite become what they stand for, and other columns are left out."""
    query = "SELECT price, item, day, paid, id, 1 AS more FROM sales WHERE id = 5"

    assert local_context.read(sql_rows(url, query, kind=Sale)).to_list() == [
        Sale("item 5 é", Decimal("1.25"), datetime.date(2026, 1, 6), True, 5)
    ]
    assert local_context.read(sql_rows(url, query, kind=Priced)).to_list() == [Priced(1.25)]


def test_a_row_that_does_not_fit_is_named(read, url):
    """With its number, its field and its value."""
    with pytest.raises(SourceError, match=r"row 1: field price: expected float, got str 'x'.*: \{'price': 'x'\}"):
        read(sql_rows(url, "SELECT 'x' AS price", kind=Priced))
    with pytest.raises(SourceError, match=r"row 2: field price: expected float, got NoneType None"):
        read(sql_rows(url, "SELECT 1 AS price UNION ALL SELECT NULL", kind=Priced))


def test_a_column_that_the_query_does_not_give_is_named(read, url):
    """Also where there is no row."""
    with pytest.raises(SourceError, match="the query gives no column price, day, paid of Sale; there are item, id"):
        read(sql_rows(url, "SELECT item, id FROM sales WHERE id > 99", kind=Sale))


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("SELECT * FROM ships", "no such table: ships"),
        ("SELEKT id", "syntax error"),
        ("SELECT id, id FROM sales", "gives 'id' more than once: name one of them apart with AS"),
        ("DELETE FROM sales", "gives no rows, and what it changed was taken back"),
    ],
)
def test_a_query_that_cannot_be_is_an_error(local_context, url, query, words):
    """Of the source, with what the database says; nothing is deleted."""
    with pytest.raises(SourceError, match=words):
        local_context.read(sql_rows(url, query)).to_list()
    assert local_context.read(sql_rows(url, "SELECT id FROM sales")).count() == 10


def test_an_error_travels(engine, tmp_path):
    """From a worker; a file that is not there is not made."""
    with pytest.raises(SourceError, match=r"sql_rows\('sqlite:.*no.db', 'SELECT 1'\): there is no file"):
        engine.context.read(sql_rows(f"sqlite:///{tmp_path / 'no.db'}", "SELECT 1")).to_list()
    assert list(tmp_path.iterdir()) == []


def test_an_unnamed_column_has_its_place(read, url):
    """As `count(*)`."""
    assert read(sql_rows(url, "SELECT count(*), max(id) AS most FROM sales"))[0]._asdict() == {"_0": 10, "most": 9}


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ('1 AS "_1", 2 AS "_0"', "column 2 is called '_0', which column 1, '_1', becomes by its place"),
        ('count(*), 3 AS "_0"', r"column 2 is called '_0', which column 1, 'count\(\*\)', becomes by its place"),
        ('1 AS "fi", 2 AS "\ufb01"', "Python reads 'fi' and '\ufb01' as one name"),
        ("1 AS a, 2 AS a", "the query gives 'a' more than once"),
    ],
)
def test_names_that_mean_two_columns_are_refused(local_context, url, columns, words):
    """Nobody gets the value of another column than the one they name."""
    with pytest.raises(SourceError, match=f"{words}: name one of them apart with AS"):
        local_context.read(sql_rows(url, f"SELECT {columns}")).to_list()


def test_columns_are_fields_by_their_names(read, url):
    """Also where Python writes a name in another way, as it does in code; what is no field has its place."""
    (row,) = read(sql_rows(url, 'SELECT 1 AS "\u00b5g", 2 AS "class", 3 AS "_2", 4 AS "a b"'))

    assert (row.µg, row._asdict()) == (1, {"\u03bcg": 1, "_1": 2, "_2": 3, "_3": 4})
    assert type(pickle.loads(pickle.dumps(row))) is type(row)


def test_a_kind_has_columns_of_any_name(read, url):
    """A `TypedDict` names what no named tuple can."""
    odd = TypedDict("odd", {"_0": int, "class": int, "a b": int, "": int})
    query = 'SELECT 1 AS "class", 2 AS "_0", 3 AS "a b", 4 AS ""'

    assert read(sql_rows(url, query, kind=odd)) == [{"_0": 2, "class": 1, "a b": 3, "": 4}]


def test_reading_is_lazy(url):
    """A few rows of a query without an end are read at once."""
    endless = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT n FROM c"
    items = sql_rows(url, endless).splits(1)[0].read()

    assert [next(items).n, next(items).n] == [1, 2]


WRONG = {
    "no url": (lambda: sql_rows("shop.db", "SELECT 1"), "url must be one of a database"),
    "no scheme": (lambda: sql_rows("ada:secret@host/shop", "SELECT 1"), "host/name, not a text without '://'$"),
    "half a scheme": (lambda: sql_rows("postgresql:/ada:secret@host", "SELECT 1"), "not a text without '://'$"),
    "no dialect": (lambda: sql_rows("nosuch://ada:secret@h/x", "SELECT 1"), r"not 'nosuch://ada:\*\*\*@h/x'"),
    "memory": (lambda: sql_rows("sqlite://", "SELECT 1"), "a database in memory is another one in every process"),
    "param": (lambda: sql_rows("sqlite:///x", "SELECT :a"), "params has no 'a', which the query names"),
    "more": (lambda: sql_rows("sqlite:///x", "SELECT 1", {"b": 1}), "params has 'b', which the query does not name"),
    "params": (lambda: sql_rows("sqlite:///x", "SELECT 1", Priced), "not type: kind=Priced makes items of rows"),
    "nanoseconds": (
        lambda: sql_rows("sqlite:///x", "SELECT :a", {"a": np.datetime64("2026-01-01T00:00:00.000000001")}),
        "params has 'a', and databases have no type for",
    ),
    "three": (lambda: sql_rows("sqlite:///x", "SELECT 1", None, ("a", 1, 2)), "partition_on must be"),
    "mixed": (lambda: sql_rows("sqlite:///x", "SELECT 1", None, ("a", 1, 2.0, 2)), "of one type, not 1 and 2.0"),
    "bounds": (lambda: sql_rows("sqlite:///x", "SELECT 1", None, ("a", 2, 2, 2)), "lower bound below the upper one"),
    "n": (lambda: sql_rows("sqlite:///x", "SELECT 1", None, ("a", 1, 2, 0)), "must be between 1 and 10,000"),
    "kind": (lambda: sql_rows("sqlite:///x", "SELECT 1", kind=int), "kind must be a dataclass"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_arguments_are_refused_at_the_call(name):
    """Before anything is asked."""
    make, words = WRONG[name]
    with pytest.raises((TypeError, ValueError), match=words):
        make()


def test_what_is_not_installed_is_named_at_the_call(monkeypatch):
    """The extra that brings SQLAlchemy, or the driver; no password."""
    with pytest.raises(SetupError, match=r"needs the driver \w+ of mysql://: install it"):
        sql_rows("mysql://ada:secret@host/shop", "SELECT 1")
    monkeypatch.setitem(__import__("sys").modules, "sqlalchemy", None)
    with pytest.raises(
        SetupError, match=r"sql_rows\(\) needs the package sqlalchemy: pip install 'dstream-spark\[sql\]'"
    ):
        sql_rows("sqlite:///x", "SELECT 1")


def test_no_password_is_shown():
    """Neither of the source nor of its splits."""
    source = sql_rows("postgresql+psycopg://ada:secret@127.0.0.1:1/shop", "SELECT 1")

    assert "secret" not in repr([source, source.splits(1)])
    with pytest.raises(SourceError, match="onnection refused") as raised:
        list(source.splits(1)[0].read())
    assert "secret" not in f"{raised.value!r} {raised.value.__cause__!r}"


def test_the_column_that_divides_a_query_is_one_of_its_columns(read, url):
    """SQLite takes another name for a text, and all rows came from one task; case is that of the database."""
    assert len(read(sql_rows(url, "SELECT id FROM sales", partition_on=("ID", 0, 9, 3)))) == 10
    words = "gives no column 'sales.id' for partition_on, but id, item; name it as the query does, without its table"
    with pytest.raises(SourceError, match=words):
        read(sql_rows(url, "SELECT id, item FROM sales", partition_on=("sales.id", 0, 9, 3)))
    aliased = sql_rows(url, 'SELECT id AS "sales.id" FROM sales', partition_on=("sales.id", 0, 9, 3))

    assert len(read(aliased)) == 10
