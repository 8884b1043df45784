"""`sql_changes`: rows that are added to a table, each once."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import datetime
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dstream.errors import SourceError
from dstream.spi import StreamSource
from sources import sql_changes


@pytest.fixture
def path(tmp_path):
    """A database with an empty table."""
    return made(tmp_path / "shop.db")


def made(path):
    """Make the table."""
    execute(path, 'CREATE TABLE sales (id INTEGER PRIMARY KEY, "a:t" INTEGER, item TEXT)')
    return path


def execute(path, *statement):
    """Execute a statement."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(*statement)


def add(path, *rows):
    """Add rows of a time and an item."""
    for row in rows:
        execute(path, "INSERT INTO sales VALUES (NULL, ?, ?)", row)


def items(rows):
    """Return the items."""
    return [row.item for row in rows]


def test_rows_are_given_once(path, follow):
    """In the order of the column; those that come while a range is read belong to the next one."""
    job = follow(sql_changes(f"sqlite:///{path}", "sales", order_by="id"))
    assert isinstance(job.source, StreamSource)
    assert job.news() == []
    add(path, (0, "tea"), (0, "cake"))
    splits = job.ranges()
    add(path, (0, "jam"))

    assert items(row for split in splits for row in split.read()) == ["tea", "cake"]
    assert items(job.news()) == ["jam"]
    assert job.news() == []


def test_current_begins_behind_what_is_there(path, follow):
    """Also where nothing is."""
    url = f"sqlite:///{path}"
    first = follow(sql_changes(url, "sales", order_by="id", start="current"))
    add(path, (0, "tea"))
    second = follow(sql_changes(url, "sales", order_by="id", start="current"))
    add(path, (0, "cake"))

    assert [items(job.news()) for job in (first, second)] == [["tea", "cake"], ["cake"]]


@given(st.lists(st.tuples(st.integers(0, 2), st.booleans()), max_size=10), st.one_of(st.none(), st.integers(1, 3)))
@settings(max_examples=12)
def test_ties_are_told_apart_by_a_key(tmp_path_factory, follow, steps, most):
    """However many rows have one time, and however ranges are cut, each comes once, in order."""
    path, time = made(tmp_path_factory.mktemp("changes") / "shop.db"), 0
    job, seen = follow(sql_changes(f"sqlite:///{path}", "sales", "id", order_by="a:t")), []
    for step, is_looked_at in steps:
        time += step
        add(path, (time, str(time)))
        seen += job.news(most) if is_looked_at else []
    while news := job.news(most):
        assert most is None or len(news) <= most
        seen += news

    assert [row.id for row in seen] == list(range(1, len(steps) + 1))


class Sale(NamedTuple):
    id: int
    item: str


def test_rows_become_a_kind(path, follow):
    """By name, and those without a value of the column are left out."""
    add(path, (1, "tea"), (None, "cake"))

    assert follow(sql_changes(f"sqlite:///{path}", "sales", order_by="a:t", kind=Sale)).news() == [Sale(1, "tea")]


def test_what_is_not_there_is_an_error(path):
    """The table, the column, a value that has an order, an offset."""
    add(path, (1, "tea"))
    execute(path, "CREATE TABLE raw (b BLOB)")
    execute(path, "INSERT INTO raw VALUES (x'00')")
    url = f"sqlite:///{path}"
    for table, column, words in ("no", "id", "no such table"), ("raw", "b", "must hold numbers, texts, dates or times"):
        with pytest.raises(SourceError, match=words):
            sql_changes(url, table, order_by=column).reach({})
    for offset in {"rows": 1}, {"rows": [1, 2]}, {"rows": [{"date": "x"}]}:
        with pytest.raises(SourceError, match=r"is no offset of a row|is no value of an offset"):
            sql_changes(url, "sales", order_by="id").reach(offset)


def test_a_start_at_a_time_needs_a_column_of_moments(path):
    """SQLite has none: it compares texts as they are written."""
    add(path, (1, "tea"))
    source = sql_changes(f"sqlite:///{path}", "sales", order_by="item", start=datetime(2026, 1, 31))

    with pytest.raises(SourceError, match=r"start=2026-01-31 00:00:00 needs .* moments without.* item holds 'tea'"):
        source.begin()


def test_wrong_arguments_are_refused_at_the_call():
    """Before anything is asked."""
    with pytest.raises(ValueError, match="start must be 'oldest', 'current' or a datetime, not 'new'"):
        sql_changes("sqlite:///x", "sales", order_by="id", start="new")
    with pytest.raises(TypeError, match="start must be 'oldest', 'current' or a datetime, not int"):
        sql_changes("sqlite:///x", "sales", order_by="id", start=5)
    with pytest.raises(TypeError, match="key must be a str, not int"):
        sql_changes("sqlite:///x", "sales", 5, order_by="id")


def test_changes_of_a_table_with_a_dot_in_its_name(path):
    """It is quoted, as for `to_sql`."""
    execute(path, 'CREATE TABLE "a.b" (id INTEGER)')
    execute(path, 'INSERT INTO "a.b" VALUES (7)')
    source = sql_changes(f"sqlite:///{path}", '"a.b"', order_by="id")
    [start], [stop] = source.begin().values(), source.reach(source.begin()).values()

    assert [row.id for row in source.split("rows", start, stop).read()] == [7]
