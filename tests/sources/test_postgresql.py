"""`sql_rows` and `to_sql` on a PostgreSQL of our own: types, transactions, connections that are cut."""

from __future__ import annotations

import datetime
import re
import uuid
from decimal import Decimal

import pytest
import sqlalchemy

import dstream as ds
from dstream.connectors.sql.rows import Rows
from dstream.connectors.sql.sinks import SqlJob
from dstream.errors import SinkError, SinkUnavailableError, SourceError, SourceUnavailableError
from dstream.failures import origin_of
from reducers import to_sql
from sources import sql_changes, sql_rows
from tests.jobs.unbounded.streams import eventually, pipeline_of
from tests.storage.sinks.sink_contract import SinkCase, SinkContract


@pytest.fixture
def server(postgresql):
    """The URL of the server of the test run."""
    return postgresql


@pytest.fixture
def connection(server):
    """A connection, in whose database the tables of this test are."""
    import psycopg

    with psycopg.connect(host=server.rpartition("=")[2], user="postgres", autocommit=True) as connection:
        connection.execute("CREATE TABLE numbers (n INTEGER)")
        connection.execute("CREATE TABLE people (name TEXT PRIMARY KEY, age INTEGER NOT NULL, note VARCHAR(5))")
        yield connection
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")


CUT = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid != pg_backend_pid() AND usename = 'postgres'"
"""Ends every other connection."""


def tables(connection):
    """Return the names of all tables."""
    return {name for (name,) in connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")}


class TestSqlSink(SinkContract):
    """As on SQLite."""

    @pytest.fixture
    def case(self, local_context, server, connection):
        """The sink, and what is in the table."""
        sink = to_sql(server, "numbers")
        items = [(1,), (2,), (3,)], [(44,), (55,)]

        def content():
            return connection.execute("SELECT n FROM numbers").fetchall()

        return SinkCase(sink, lambda: local_context, *items, content, lambda: tables(connection))


def test_values_come_back(local_context, server, connection):
    """Of every common type, through a table whose name needs quotes, in a schema of its own."""
    connection.execute("CREATE SCHEMA IF NOT EXISTS shop")
    columns = (
        '"a B" BIGINT, price NUMERIC(9, 2), day DATE, at TIMESTAMPTZ, ok BOOLEAN, raw BYTEA, more JSONB, tags TEXT[]'
    )
    connection.execute(f'CREATE TABLE shop."Sales" ({columns})')
    at = datetime.datetime(2026, 1, 31, 23, 59, tzinfo=datetime.UTC)
    item = (2**40, Decimal("1.25"), at.date(), at, True, b"\0x", {"a": [1, None]}, ["é", "'"])
    local_context.stream([item, (None,) * 8]).collect(to_sql(server, "shop.Sales"))
    found = local_context.read(sql_rows(server, 'SELECT * FROM shop."Sales"')).to_list()
    connection.execute("DROP SCHEMA shop CASCADE")

    assert found == [item, (None,) * 8]


EMPTY = {
    "TEXT": "", "VARCHAR(5)": "", "CHAR(1)": " ", "BYTEA": b"", "BOOLEAN": False, "SMALLINT": 0, "INTEGER": 0,
    "BIGINT": 0, "REAL": 0.0, "DOUBLE PRECISION": 0.0, "NUMERIC(9, 2)": Decimal("0.00"), "DATE": datetime.date.min,
    "TIME": datetime.time.min, "TIMETZ": datetime.time(0, tzinfo=datetime.UTC), "TIMESTAMP": datetime.datetime.min,
    "TIMESTAMPTZ": datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC), "INTERVAL": datetime.timedelta(),
    "UUID": uuid.UUID(int=0), "JSON": {}, "JSONB": {}, "TEXT[]": [], "JSONB[]": [], "JSON[]": [{}],
}  # fmt: skip
"""A value of each type of column that is easily taken for none."""


@pytest.fixture
def typed(connection):
    """A table with a column of each type, called after it."""
    names = [f'"{kind}"' for kind in EMPTY]
    columns = ", ".join(map(" ".join, zip(names, EMPTY, strict=True)))
    connection.execute(f"CREATE TABLE typed ({columns})")
    return names


def test_none_is_null_in_every_column(local_context, server, connection, typed):
    """Of JSON too, where it was the JSON value null; what is empty stays so."""
    local_context.stream([EMPTY, dict.fromkeys(EMPTY)]).collect(to_sql(server, "typed"))
    nulls = ", ".join(f"{kind} IS NULL" for kind in typed)

    assert connection.execute(f"SELECT {nulls} FROM typed").fetchall() == [(False,) * len(typed), (True,) * len(typed)]
    found = local_context.read(sql_rows(server, "SELECT * FROM typed")).to_list()
    assert found == [tuple(EMPTY.values()), (None,) * len(typed)]


def test_an_absent_value_is_no_none(local_context, server, connection, typed):
    """In no column; `columns=` leaves it to the default of the table."""
    for name in EMPTY:
        item = {kind: value for kind, value in EMPTY.items() if kind != name}
        with pytest.raises(SinkError, match=re.escape(f"an item has no {name!r}: columns=[...] names")):
            local_context.stream([item], 1).collect(to_sql(server, "typed"))

    assert connection.execute("SELECT * FROM typed").fetchall() == []


def test_the_null_of_json_can_be_written(local_context, server, connection):
    """As SQLAlchemy calls it; within a value it is None, and in an array of JSON values None is SQL's."""
    connection.execute("CREATE TABLE typed (a JSON, b JSONB, c JSONB[], d JSON)")
    item = (sqlalchemy.JSON.NULL, sqlalchemy.JSON.NULL, [None, [None]], {"x": None})
    local_context.stream([item]).collect(to_sql(server, "typed"))

    query = "SELECT a::text, b::text, c[1] IS NULL, c[2]::text, d::text FROM typed"
    assert connection.execute(query).fetchall() == [("null", "null", True, "[null]", '{"x": null}')]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("timestamp '20000-01-01'", "timestamp too large"),
        ("date '10000-01-01'", "date too large"),
        ("date 'infinity'", "date too large"),
        ("date '0044-03-15 BC'", "date too small"),
        ("timestamptz '-infinity'", "timestamp too small"),
        ("interval '2000000000 days'", "2000000000 days"),
        ("interval '1 mon 2 days'", "an interval of months has no fixed length: '1 mon 2 days'"),
        ("ARRAY[interval '1 year']", "an interval of months has no fixed length: '1 year'"),
    ],
)
def test_a_value_that_python_does_not_have_is_named_with_its_row(local_context, server, connection, value, words):
    """Where the driver says which value it is; months were 30 days."""
    query = f"SELECT n, CASE WHEN n = 2500 THEN {value} END AS v FROM generate_series(1, 3000) AS n ORDER BY n"
    with pytest.raises(SourceError, match=rf"sql_rows\(.*row 2,500: a value is none of Python: .*{words}"):
        local_context.read(sql_rows(server, query)).to_list()

    rows = local_context.read(sql_rows(server, query)).resolve(SourceError, lambda record, error: (record, str(error)))
    (record, error), *others = [rows.to_list()[2499], *rows.to_list()[2500:]]
    assert (record.line, len(others)) == (2500, 500)
    assert re.search(rf"row 2,500: a value is none of Python: column 'v', .*{words}", error)
    assert local_context.read(sql_rows(server, "SELECT interval '1 day 2 hours'")).to_list() == [
        (datetime.timedelta(hours=26),)
    ]


NAIVE = datetime.datetime(2026, 1, 31, 12, 0)
AWARE = NAIVE.replace(tzinfo=datetime.UTC)


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("TIMESTAMPTZ", NAIVE, "datetimes with a zone"),
        ("TIMESTAMPTZ", NAIVE.date(), "datetimes with a zone"),
        ("TIMESTAMP", AWARE, "datetimes without a zone"),
        ("TIMESTAMP", "2026-01-31 12:00+02", "datetimes without a zone"),
        ("TIMESTAMP[]", [[NAIVE], [None, AWARE]], "datetimes without a zone"),
        ("DATE", NAIVE, "date"),
        ("TIME", AWARE.timetz(), "times without a zone"),
        ("TIME", NAIVE, "times without a zone"),
        ("TIMETZ", NAIVE.time(), "times with a zone"),
        ("INTEGER[]", [1, 1.5], "int"),
        ("TEXT[]", ["a", 1], "str"),
    ],
)
def test_no_value_is_changed_to_fit(local_context, server, connection, column, value, words):
    """The server would give a moment its own zone, take that of another away, cut off a time, or round."""
    connection.execute(f"CREATE TABLE moments (x {column})")
    with pytest.raises(SinkError, match=rf"the column 'x' takes {words}, not .*: \("):
        local_context.stream([(value,)]).collect(to_sql(server, "moments"))

    assert connection.execute("SELECT * FROM moments").fetchall() == []


@pytest.mark.parametrize(
    ("column", "value", "found"),
    [
        ("TIMESTAMPTZ", AWARE, AWARE),
        ("TIMESTAMP", NAIVE, NAIVE),
        ("TIMESTAMP", NAIVE.date(), NAIVE.replace(hour=0)),
        ("TIMESTAMPTZ[]", (AWARE, None), [AWARE, None]),
        ("TIME", NAIVE.time(), NAIVE.time()),
        ("TIMETZ", AWARE.timetz(), AWARE.timetz()),
        ("INTEGER[]", [[1], [2]], [[1], [2]]),
    ],
)
def test_times_that_fit_come_back(local_context, server, connection, column, value, found):
    """As the same moment, whatever the zone of the server is."""
    connection.execute("ALTER ROLE postgres SET TimeZone = 'America/New_York'")
    connection.execute(f"CREATE TABLE moments (x {column})")
    local_context.stream([(value,)]).collect(to_sql(server, "moments"))

    assert local_context.read(sql_rows(server, "SELECT * FROM moments")).to_list() == [(found,)]


@pytest.mark.parametrize(("on_conflict", "age"), [("update", [37, 2]), ("ignore", [36, 1])])
def test_conflicts_are_settled(local_context, server, connection, on_conflict, age):
    """With what is there, within a task and between tasks: the last one wins, or the first."""
    connection.execute("INSERT INTO people VALUES ('Ada', 36, '')")
    items = [("Zoe", 1, ""), ("Zoe", 9, ""), ("Ada", 37, ""), ("Zoe", 2, "")]
    for partitions in 1, 4:
        local_context.stream(items, partitions).collect(to_sql(server, "people", on_conflict=on_conflict))

    assert [row[0] for row in connection.execute("SELECT age FROM people ORDER BY name")] == age


@pytest.mark.parametrize(
    ("item", "words"),
    [
        (
            ("Ada", 1, "too long"),
            r"database refuses an item: value too long.*varying\(5\): \('Ada', 1, 'too long'\)",
        ),
        (("Ada", 2**40, ""), "the database refuses an item: .*out of range.*'Ada', 1099511627776"),
        (("A\0", 1, ""), "the database refuses an item: .*NUL"),
        (("Grace", 1, ""), "duplicate key value .*Grace.*: nothing was inserted; on_conflict='update' updates the row"),
    ],
)
def test_an_item_that_does_not_fit_is_named(local_context, server, connection, item, words):
    """Nothing is inserted, nothing is left."""
    with pytest.raises(SinkError, match=words):
        local_context.stream([("Grace", 85, None), item], 1).collect(to_sql(server, "people"))

    assert connection.execute("SELECT count(*) FROM people").fetchone() == (0,)
    assert tables(connection) == {"people", "numbers", "dstream_epochs"}


def test_a_partitioned_query_loses_no_row(read, server, connection):
    """By a date, with parameters beside."""
    connection.execute("CREATE TABLE days AS SELECT DATE '2026-01-01' + n AS day, n FROM generate_series(0, 99) AS n")
    connection.execute("INSERT INTO days VALUES (NULL, 100)")
    borders = ("day", datetime.date(2026, 1, 20), datetime.date(2026, 3, 1), 4)
    source = sql_rows(server, "SELECT n, day FROM days WHERE n >= :n", {"n": 5}, borders)

    assert [len(list(split.read())) for split in source.splits(1)] == [25, 10, 10, 51]
    assert sorted(row.n for row in read(source)) == list(range(5, 101))


def test_a_connection_that_is_cut_is_an_error(local_context, server, connection):
    """Of a source in the middle of reading; a sink connects again for each batch."""
    rows = iter(sql_rows(server, "SELECT n FROM generate_series(1, 1000000) AS n").splits(1)[0].read())
    assert next(rows).n == 1
    connection.execute(CUT)
    with pytest.raises(SourceUnavailableError, match="the connection was cut"):
        list(rows)

    def cutting(batch):
        connection.execute(CUT)
        return batch

    sink = to_sql(server, "numbers", job="nightly")
    local_context.stream(range(3)).map(lambda n: (cutting(n),)).collect(sink)
    assert connection.execute("SELECT count(*) FROM numbers").fetchone() == (3,)


def test_a_commit_that_is_cut_can_be_repeated(local_context, server, connection, monkeypatch):
    """Whether the server had heard of it or not: the rows are there once."""
    case = SinkCase(to_sql(server, "numbers"), lambda: local_context, [], [], list, set)
    job = case.target().begin("nightly")
    receipts = case.written(job, [(1,), (2,)])
    move = type(job)._move

    def cutting(job, target, staged):
        move(job, target, staged)
        connection.execute(CUT)

    with monkeypatch.context() as patch:
        patch.setattr(type(job), "_move", cutting)
        with pytest.raises(SinkUnavailableError):
            job.commit(receipts)
    assert connection.execute("SELECT count(*) FROM numbers").fetchone() == (0,)
    for again in job, case.target().begin("nightly"):
        again.commit(receipts)

    assert connection.execute("SELECT n FROM numbers ORDER BY n").fetchall() == [(1,), (2,)]


def cutting_once(connection, method, cuts):
    """Return a method that first cuts all connections, once; `cuts` gets their number."""

    def cutting(*args):
        if not cuts:
            cuts.append(connection.execute(CUT).rowcount)
        return method(*args)

    return cutting


def test_a_job_goes_on_when_its_database_is_back(local_context, server, connection, monkeypatch):
    """Connections that end while rows are read, and in a commit: each row is there once in the end."""
    connection.execute("CREATE TABLE sales (n INTEGER)")
    pipeline = pipeline_of(sql_changes(server, "sales", order_by="n"), to_sql(server, "numbers"))
    job = local_context.new_job(pipeline, name="copied", config=ds.JobConfig(epoch_length=0.02, auto_restart=(9, 0.05)))

    def numbers():
        return [n for (n,) in connection.execute("SELECT n FROM numbers ORDER BY n")]

    connection.execute("INSERT INTO sales VALUES (1)")
    eventually(lambda: numbers() == [1])
    for number, (owner, name) in enumerate([(Rows, "maker"), (SqlJob, "_move")], start=2):
        cuts = []
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, cutting_once(connection, getattr(owner, name), cuts))
            connection.execute(f"INSERT INTO sales VALUES ({number})")
            eventually(lambda number=number: number in numbers())
        assert cuts[0] > 0
    job.cancel()

    assert numbers() == [1, 2, 3]


def test_a_failure_while_rows_come_blames_no_library(local_context, server):
    """A compiled module of SQLAlchemy names its files by a path that is on no machine; they are not the user's."""
    rows = sql_rows(server, "SELECT 1 / (3 - n) FROM generate_series(1, 5) AS n")
    with pytest.raises(SourceError, match="division by zero\nWhat happened: the source could not be read") as caught:
        local_context.read(rows).to_list()

    assert "sqlalchemy" not in str(origin_of(caught.value))


def test_a_server_that_is_not_there_is_an_error(local_context, server):
    """It says where it was looked for, and no password."""
    for url in "postgresql+psycopg://ada:secret@127.0.0.1:1/shop", "postgresql+psycopg://ada:secret@/x?host=/nowhere":
        with pytest.raises(
            SinkUnavailableError, match=r"to_sql\('postgresql.psycopg://ada:\*\*\*@.*onnection"
        ) as raised:
            local_context.stream([(1,)]).collect(to_sql(url, "numbers"))
        assert "secret" not in repr(raised.value)


def test_changes_by_a_time(follow, server, connection):
    """With a zone, to the microsecond, and a key of another type."""
    connection.execute("CREATE TABLE events (at TIMESTAMPTZ, name TEXT, cost NUMERIC)")
    for order_by in "at", "cost":
        connection.execute("DELETE FROM events")
        job = follow(sql_changes(server, "events", "name", order_by=order_by))
        connection.execute("INSERT INTO events SELECT now(), name, 0.1 FROM unnest(ARRAY['b', 'a']) AS name")
        assert [row.name for row in job.news(1) + job.news()] == ["a", "b"]
        connection.execute("INSERT INTO events SELECT max(at) + interval '1 microsecond', 'a', 0.11 FROM events")

        assert [row.name for row in job.news()] == ["a"]


@pytest.mark.parametrize("zone", [None, datetime.UTC])
@pytest.mark.parametrize("key", [None, "name"])
def test_changes_begin_at_a_time(server, connection, follow, zone, key):
    """With the rows that are not older, also several of one time, and those that come; an empty table gives all."""
    connection.execute(f"CREATE TABLE visits (at TIMESTAMP{'TZ' if zone else ''}, name TEXT)")
    noon = datetime.datetime(2026, 1, 31, 12, tzinfo=zone)

    def job(start):
        return follow(sql_changes(server, "visits", key, order_by="at", start=start))

    def add(*visits):
        for minute, name in visits:
            connection.execute("INSERT INTO visits VALUES (%s, %s)", (noon.replace(minute=minute), name))

    empty = job(noon)
    add((1, "a"), (2, "b"), (2, "c"), (3, "d"))
    jobs = [job(noon.replace(minute=minute)) for minute in (0, 2, 4)]
    add((5, "e"))

    assert ["".join(sorted(row.name for row in each.news())) for each in (empty, *jobs)] == [
        "abcde",
        "abcde",
        "bcde",
        "e",
    ]
    other = noon.replace(tzinfo=None if zone else datetime.UTC)
    with pytest.raises(
        SourceError, match=f"needs a column of moments with{'out' if zone else ''} a time zone, and at holds"
    ):
        job(other)
