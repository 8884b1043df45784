"""`to_sql` holds the contract of sinks; what does not fit is an error that names the item."""

from __future__ import annotations

import datetime
import re
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import pytest
import sqlalchemy
from sqlalchemy.dialects.mssql import DATETIMEOFFSET

from dstream.connectors.sql.databases import StagedColumn, row_of, schema_and_table
from dstream.errors import IllegalStateError, SinkError
from reducers import replacing, to_sql
from sources import sql_rows
from tests.storage.sinks.sink_contract import SinkCase, SinkContract


@pytest.fixture
def path(tmp_path):
    """A database with a table of people and an empty one of numbers."""
    path = tmp_path / "shop.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE people (name TEXT PRIMARY KEY, age INTEGER NOT NULL, note TEXT)")
        connection.execute("CREATE TABLE numbers (n INTEGER)")
    return path


@pytest.fixture
def url(path):
    """Where it is."""
    return f"sqlite:///{path}"


def rows(path, query="SELECT * FROM people ORDER BY rowid"):
    """Return the rows of a query."""
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


def tables(path):
    """Return the names of all tables."""
    return {name for (name,) in rows(path, "SELECT name FROM sqlite_master WHERE type = 'table'")}


class TestSqlSink(SinkContract):
    """As it is, and around `replacing`."""

    @pytest.fixture(params=["add", "replace"])
    def case(self, request, local_context, path, url):
        """The sink, and what is in the table."""
        sink = to_sql(url, "numbers")
        sink = replacing(sink) if request.param == "replace" else sink
        items = [(1,), (2,), (3,)], [(44,), (55,)]
        return SinkCase(
            sink, lambda: local_context, *items, lambda: rows(path, "SELECT n FROM numbers"), lambda: tables(path)
        )


@dataclass
class Person:
    name: str
    age: int
    note: str | None = None


def test_items_become_rows(engine, path, url):
    """Dataclasses, mappings and tuples, from several tasks, in encounter order; only the target and epochs stay."""
    items = [Person("Ada", 36), {"name": "Grace", "age": 85, "note": "é\n'"}, ("Alan", 41, ""), ["Emmy", 53, None]]

    assert engine.stream(items, partitions=3).collect(to_sql(url, "people")) is None
    assert rows(path) == [("Ada", 36, None), ("Grace", 85, "é\n'"), ("Alan", 41, ""), ("Emmy", 53, None)]
    assert tables(path) == {"people", "numbers", "dstream_epochs"}
    assert rows(path, "SELECT * FROM dstream_epochs") == []


def test_none_is_null_in_json(local_context, path, url):
    """Where it was the text 'null', as in every other column."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE t (a JSON, b JSON, c TEXT, d BLOB)")
    items = [(None,) * 4, ({}, [None], "", b""), (sqlalchemy.JSON.NULL, "", None, None)]
    local_context.stream(items, 1).collect(to_sql(url, "t"))

    assert rows(path, "SELECT * FROM t") == [(None,) * 4, ("{}", "[null]", "", b""), ("null", '""', None, None)]


def test_columns_are_chosen(local_context, path, url):
    """Others of the items are left out, and others of the table have their defaults."""
    local_context.stream([{"age": 36, "name": "Ada", "more": 1}]).collect(to_sql(url, "people", ["name", "age"]))

    assert rows(path) == [("Ada", 36, None)]


@pytest.mark.parametrize(
    ("columns", "error", "said"),
    [
        ("name", TypeError, r"columns must be several names: write columns=\['name'\]"),
        (5, TypeError, "columns must be several names, not int"),
        ([], ValueError, "columns is empty"),
        (["name", 1], TypeError, "columns must hold names, not 1"),
        (["name", ""], ValueError, "a name in columns must not be empty"),
        (["name", "name"], ValueError, "columns holds 'name' more than once"),
    ],
)
def test_columns_are_checked_at_the_call(url, columns, error, said):
    """Before the database is asked for its table."""
    with pytest.raises(error, match=said):
        to_sql(url, "people", columns)


def test_a_named_job_inserts_once(local_context, path, url):
    """The table of epochs knows it."""
    for _ in range(2):
        local_context.stream([(1,), (2,)]).collect(to_sql(url, "numbers", job="nightly"))

    assert rows(path, "SELECT n FROM numbers") == [(1,), (2,)]
    assert rows(path, "SELECT * FROM dstream_epochs") == [("numbers", "nightly", 1)]


def test_a_key_that_is_there_fails(local_context, path, url):
    """And inserts nothing at all; what was staged is gone."""
    local_context.stream([Person("Ada", 36)]).collect(to_sql(url, "people"))
    with pytest.raises(SinkError, match=r"to_sql\('sqlite:.*, 'people'\): UNIQUE constraint failed: people.name"):
        local_context.stream([Person("Grace", 85), Person("Ada", 37)]).collect(to_sql(url, "people"))

    assert rows(path) == [("Ada", 36, None)]
    assert tables(path) == {"people", "numbers", "dstream_epochs"}
    assert rows(path, "SELECT * FROM dstream_epochs") == []


BOTH = "; on_conflict='update' updates the row of the key, on_conflict='ignore' leaves such items out"
CONFLICTS = {
    "there": ([(1, 8, "b"), (2, 7, "z")], f"since a=2, b=7 has a row already: nothing was inserted{BOTH}"),
    "twice": ([(3, 4, "c"), (3, 5, "c"), (3, 4, "d")], f"since a=3, b=4 comes twice: nothing was inserted{BOTH}"),
    "other": ([(3, 4, "a")], "t.c: nothing was inserted; on_conflict='ignore' leaves such items out"),
}


@pytest.mark.parametrize("name", CONFLICTS)
def test_a_conflict_is_said_with_its_key(local_context, path, url, name):
    """Which SQLite does not name; and what to do about it."""
    items, words = CONFLICTS[name]
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE t (a INTEGER, b INTEGER, c TEXT, PRIMARY KEY (a, b))")
        connection.execute("CREATE UNIQUE INDEX one_a ON t (c) WHERE c = 'a'")
        connection.execute("INSERT INTO t VALUES (2, 7, 'a')")
    with pytest.raises(SinkError, match=rf"{re.escape(words)}\n"):
        local_context.stream(items, 1).collect(to_sql(url, "t"))

    assert rows(path, "SELECT * FROM t") == [(2, 7, "a")]


def test_a_row_that_breaks_another_rule_is_no_conflict(local_context, path, url):
    """Of the table, which the database names; `on_conflict` would not help."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b INTEGER CONSTRAINT small CHECK (b < 9))")
    with pytest.raises(SinkError, match=r"to_sql\(.*, 't'\): CHECK constraint failed: small\n"):
        local_context.stream([(1, 10)]).collect(to_sql(url, "t"))


@pytest.mark.parametrize(("on_conflict", "age"), [("update", [37, 2]), ("ignore", [36, 1])])
def test_conflicts_are_settled(local_context, path, url, on_conflict, age):
    """With what is there, within a task and between tasks: the last one wins, or the first."""
    local_context.stream([Person("Ada", 36)]).collect(to_sql(url, "people"))
    items = [Person("Zoe", 1), Person("Zoe", 9), Person("Ada", 37), Person("Zoe", 2)]
    for partitions in 1, 4:
        local_context.stream(items, partitions).collect(to_sql(url, "people", on_conflict=on_conflict))

    assert [row[1] for row in sorted(rows(path))] == age


def test_updating_needs_a_key(local_context, url):
    """Which is among the columns."""
    for table, columns in ("numbers", None), ("people", ["age", "note"]):
        with pytest.raises(SinkError, match="on_conflict='update' needs the primary key of the table"):
            local_context.stream([(1,)]).collect(to_sql(url, table, columns, "update"))


WRONG = {
    "type": (("Ada", "old", None), "the column 'age' takes int, not str"),
    "truth": (("Ada", True, None), "the column 'age' takes int, not bool"),
    "null": (("Ada", None, None), "the column 'age' takes no None"),
    "short": (("Ada", 36), r"an item has 2 values for 3 columns \(name, age, note\)"),
    "missing": ({"name": "Ada", "age": 36}, "an item has no 'note'"),
    "unknown": ({"name": "Ada", "age": 36, "note": "", "x": 1}, "the table has no column 'x'"),
    "no item": ("Ada", "an item must be a mapping, dataclass or tuple, not str"),
    "huge": (("Ada", 2**70, None), "the database refuses an item: .*too large"),
}


@pytest.mark.parametrize("name", WRONG)
def test_an_item_that_does_not_fit_is_named(local_context, path, url, name):
    """With its column and its value; nothing is inserted, nothing is left."""
    item, words = WRONG[name]
    with pytest.raises(SinkError, match=words) as raised:
        local_context.stream([Person("Grace", 85), item], 1).collect(to_sql(url, "people"))

    assert "Ada" in str(raised.value)
    assert (rows(path), tables(path)) == ([], {"people", "numbers", "dstream_epochs"})


AWARE = datetime.datetime(2026, 1, 31, 12, 0, tzinfo=datetime.UTC)


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("DATE", AWARE, "date, not datetime"),
        ("TIMESTAMP", AWARE.timetz(), "datetimes without a zone, not time"),
        ("TIME", AWARE, "times without a zone, not datetime"),
    ],
)
def test_no_time_is_cut_to_fit(local_context, path, url, column, value, words):
    """SQLAlchemy would leave out the time of the day, or the day."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"CREATE TABLE moments (x {column})")
    with pytest.raises(SinkError, match=rf"the column 'x' takes {words}: \("):
        local_context.stream([(value,)]).collect(to_sql(url, "moments"))

    assert rows(path, "SELECT * FROM moments") == []


@pytest.mark.parametrize(
    ("column", "value", "text"),
    [
        ("TIMESTAMP", AWARE, "2026-01-31 12:00:00.000000+00:00"),
        ("DATETIME", AWARE.replace(tzinfo=None), "2026-01-31 12:00:00.000000"),
        ("TIMESTAMP", AWARE.date(), "2026-01-31 00:00:00.000000"),
        ("TIME", AWARE.timetz(), "12:00:00.000000+00:00"),
        ("TIME", AWARE.time(), "12:00:00.000000"),
    ],
)
def test_sqlite_has_moments_as_texts(local_context, path, url, column, value, text):
    """As SQLAlchemy writes them, and those with a zone with its offset."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"CREATE TABLE moments (x {column})")
    local_context.stream([(value,)]).collect(to_sql(url, "moments"))

    assert rows(path, "SELECT * FROM moments") == [(text,)]


@pytest.mark.parametrize(
    ("column", "value", "stored"),
    [
        ("INTEGER", np.int64(5), ("integer", 5)),
        ("INTEGER", np.uint8(3), ("integer", 3)),
        ("REAL", np.float32(0.5), ("real", 0.5)),
        ("REAL", np.int64(3), ("real", 3.0)),
        ("NUMERIC(10, 2)", np.float64(1.5), ("real", 1.5)),
        ("BOOLEAN", np.bool_(True), ("integer", 1)),
        ("TEXT", np.str_("a"), ("text", "a")),
    ],
)
def test_values_of_numpy_are_stored_as_those_of_python(local_context, path, url, column, value, stored):
    """sqlite3 would store the memory of an int of NumPy as a BLOB, in a column of ints too."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"CREATE TABLE found (x {column})")
    local_context.stream([(value,)]).collect(to_sql(url, "found"))

    assert rows(path, "SELECT typeof(x), x FROM found") == [stored]


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("INTEGER", np.timedelta64(5, "ns"), "no timedelta64"),
        ("INTEGER", np.timedelta64(5), "no timedelta64"),
        ("REAL", np.timedelta64(5, "ns"), "no timedelta64"),
        ("REAL", np.longdouble(0.5), "no longdouble"),
        ("NUMERIC(10, 2)", np.timedelta64(5, "ns"), "no timedelta64"),
        ("DATETIME", np.datetime64("2026-01-31T12:00:00.000000001"), "datetimes without a zone, not datetime64"),
    ],
)
def test_values_that_only_numpy_has_are_refused(local_context, path, url, column, value, words):
    """sqlite3 would store their memory."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"CREATE TABLE found (x {column})")
    with pytest.raises(SinkError, match=f"the column 'x' takes {words}: "):
        local_context.stream([(value,)]).collect(to_sql(url, "found"))

    assert rows(path, "SELECT typeof(x), x FROM found") == []


def test_a_type_of_sql_server_has_a_zone():
    """SQLAlchemy says that it has none."""
    column = StagedColumn("x", DATETIMEOFFSET(), True, False)

    assert row_of((AWARE,), (column,), "to_sql()", True) == {"x": AWARE}


def test_an_error_of_a_task_travels(engine, url):
    """From a worker too, with the call."""
    with pytest.raises(SinkError, match="the column 'n' takes int, not str") as raised:
        engine.stream([(1,), ("x",)], 2).collect(to_sql(url, "numbers"))

    assert "collect(to_sql(" in "\n".join(raised.value.__notes__)


def test_an_error_says_what_helps(local_context, url):
    """That no step is to blame does not help, nor does that the sink takes more than one item where one is named."""
    with pytest.raises(SinkError) as missing:
        local_context.stream([1]).collect(to_sql(url, "sales"))
    with pytest.raises(SinkError) as misfit:
        local_context.stream([("x",)]).collect(to_sql(url, "numbers"))

    happened, *_, to_do = missing.value.__notes__
    assert happened == "What happened: the sink could not be written"
    assert to_do.startswith("What to do: check that what it writes into is there")
    assert any("on the item ('x',)" in note for note in misfit.value.__notes__)
    assert "replayed" not in misfit.value.__notes__[-1]


def test_what_is_not_there_is_an_error(local_context, path, url):
    """The file, the table, the column; nothing runs, no file is made."""
    numbers = local_context.stream([1]).map(lambda n: n // 0)
    with pytest.raises(SinkError, match=r"there is no table 'sales': CREATE TABLE makes one"):
        numbers.collect(to_sql(url, "sales"))
    with pytest.raises(SinkError, match=r"the table has no column 'size', but name, age, note"):
        numbers.collect(to_sql(url, "people", ["name", "size"]))
    with pytest.raises(SinkError, match=r"there is no file .*/other.db"):
        numbers.collect(to_sql(f"sqlite:///{path.parent / 'other.db'}", "people"))
    assert [each.name for each in path.parent.iterdir()] == ["shop.db"]


def test_receipts_lead_nowhere_else(local_context, path, url):
    """Nor to rows that are gone, or fewer than were staged."""
    case = SinkCase(to_sql(url, "numbers"), lambda: local_context, [], [], list, set)
    job = case.target().begin("job")
    [[name, count]] = case.written(job, [(1,), (2,)])
    for receipt in ["people", 1], [name], [name, 3], [name[:-1] + "z", 2], ["dstream_00000000_" + "0" * 16, 1]:
        with pytest.raises(IllegalStateError, match="nothing was changed"):
            job.commit([receipt])
    with pytest.raises(IllegalStateError, match="which is no more"):
        job.commit([[name, count], [name[:-16] + "0" * 16, 1]])

    assert (rows(path, "SELECT n FROM numbers"), job.is_done) == ([], False)


def test_old_staged_rows_are_swept(local_context, path, url):
    """A week after a run that nobody committed; younger ones and tables of others stay."""
    import time

    names = [f"dstream_{int(time.time()) - age:08x}_{'0' * 16}_{'0' * 16}" for age in (8 * 86400, 86400)]
    with closing(sqlite3.connect(path)) as connection, connection:
        for name in [*names, "dstream_mine"]:
            connection.execute(f"CREATE TABLE {name} (n INTEGER)")
    local_context.stream([(1,)]).collect(to_sql(url, "numbers"))

    assert tables(path) == {"people", "numbers", "dstream_epochs", "dstream_mine", names[1]}


def test_columns_that_the_database_computes_are_left_out(local_context, path, url):
    """Unless they are named, which it refuses; a column without a type is refused before anything runs."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE doubled (n INTEGER, twice INTEGER GENERATED ALWAYS AS (n * 2) STORED)")
        connection.execute("CREATE TABLE untyped (n)")
    local_context.stream([(4,)]).collect(to_sql(url, "doubled"))
    assert rows(path, "SELECT * FROM doubled") == [(4, 8)]
    with pytest.raises(SinkError, match="cannot INSERT into generated column"):
        local_context.stream([(4, 8)]).collect(to_sql(url, "doubled", ["n", "twice"]))
    with pytest.raises(SinkError, match=r"the column 'n' has no type that is known here: columns="):
        local_context.stream([(4,)]).map(lambda row: 1 // 0).collect(to_sql(url, "untyped"))


@pytest.mark.parametrize("mode", ["DELETE", "WAL"])
def test_a_table_of_the_same_file_is_read(local_context, path, url, monkeypatch, mode):
    """In the mode that lets readers and a writer work at a time; else the error says so, and nothing is written."""
    monkeypatch.setattr("dstream.connectors.sql.databases._PATIENCE", 0.1)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"PRAGMA journal_mode={mode}")
        connection.executemany("INSERT INTO numbers VALUES (?)", [(n,) for n in range(5_000)])
        connection.execute("CREATE TABLE copy (n INTEGER)")
    copying = local_context.read(sql_rows(url, "SELECT n FROM numbers"))
    if mode == "DELETE":
        with pytest.raises(SinkError, match=r"database is locked, .* unless PRAGMA journal_mode=WAL was set"):
            copying.collect(to_sql(url, "copy"))
    else:
        copying.collect(to_sql(url, "copy"))

    assert rows(path, "SELECT count(*) FROM copy") == [(5_000 if mode == "WAL" else 0,)]


@pytest.fixture
def measured(path):
    """The database, with a table of two columns for numbers with a point."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE measured (exact NUMERIC(30, 5), rough REAL)")
    return path


@pytest.mark.parametrize(
    ("item", "words"),
    [
        ((Decimal("12345678901234567890.12345"), None), "'exact' takes floats, of which none is 12345678901234567890"),
        ((Decimal("NaN"), None), "'exact' takes floats, of which none is NaN"),
        ((None, 2**53 + 1), "'rough' takes floats, of which none is 9007199254740993"),
        ((None, float("nan")), "'rough' takes no NaN, which it would keep as NULL"),
    ],
)
def test_numbers_that_would_come_back_as_others_are_refused(local_context, measured, url, item, words):
    """SQLite keeps all numbers with a point as floats, and NaN as NULL."""
    with pytest.raises(SinkError, match=words):
        local_context.stream([item]).collect(to_sql(url, "measured"))
    assert rows(measured, "SELECT * FROM measured") == []


def test_numbers_that_come_back_the_same_are_taken(local_context, measured, url):
    """Ints and Decimals that a float shows, and infinity."""
    items = [(Decimal("1.10"), 2**53), (7, Decimal("0.1")), (1.25, float("inf")), (None, -0.0)]
    local_context.stream(items).collect(to_sql(url, "measured"))

    assert rows(measured, "SELECT * FROM measured") == [(1.1, 2.0**53), (7, 0.1), (1.25, float("inf")), (None, 0.0)]


def test_a_decimal_has_no_more_digits_than_its_column():
    """A server would round it."""
    column = StagedColumn("exact", sqlalchemy.Numeric(10, 2), True, False)

    assert row_of((Decimal("1.20"),), (column,), "to_sql()", True) == {"exact": Decimal("1.20")}
    with pytest.raises(SinkError, match=r"'exact' takes 2 digits behind the point, not 1\.205"):
        row_of((Decimal("1.205"),), (column,), "to_sql()", True)


def test_a_table_with_a_dot_in_its_name_is_quoted(local_context, path, url):
    """A dot stands behind a schema otherwise; the error of a name that is none of these says so."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute('CREATE TABLE "a.b" (n INTEGER)')
    numbers = local_context.stream([(1,)])
    numbers.collect(to_sql(url, '"a.b"'))
    local_context.stream([(2,)]).collect(to_sql(url, 'main."a.b"'))
    with pytest.raises(SinkError, match=r"""there is no table 'a\.b': one with a dot in its name is written '"a.b"'"""):
        local_context.stream([(3,)]).collect(to_sql(url, "a.b"))

    assert rows(path, 'SELECT n FROM "a.b"') == [(1,), (2,)]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("t", (None, "t")),
        ("s.t", ("s", "t")),
        ("c.s.t", ("c.s", "t")),
        ('"a.b"', (None, "a.b")),
        ('"s.1"."t ""x"""', ("s.1", 't "x"')),
        ('s."t.1"', ("s", "t.1")),
    ],
)
def test_names_of_tables_are_divided(text, parts):
    """At the last dot that is not quoted."""
    assert schema_and_table(text) == parts
