"""The contract is small: a third party writes a source in 30 lines, as the how-to shows."""

from __future__ import annotations

import pathlib
import re
import sqlite3
import sys
import types
from contextlib import closing

import pytest

from dstream.spi.source import Source, Split

HOW_TO = pathlib.Path(__file__).parents[2] / "docs" / "how-to" / "write-a-source.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", HOW_TO.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


@pytest.fixture
def how_to(monkeypatch):
    """The module that the how-to calls `sqlite_rows.py`."""
    module = types.ModuleType("sqlite_rows")
    monkeypatch.setitem(sys.modules, "sqlite_rows", module)
    exec(compile(BLOCKS[0], str(HOW_TO), "exec"), vars(module))
    return module


@pytest.fixture
def database(tmp_path):
    """A table of ten rows, one of them deleted."""
    path = tmp_path / "shop.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE sales (item TEXT, price REAL)")
        connection.executemany("INSERT INTO sales VALUES (?, ?)", [(f"i{n}", n / 2) for n in range(10)])
        connection.execute("DELETE FROM sales WHERE item = 'i3'")
    return str(path)


def test_third_party_source_has_thirty_lines():
    """Imports and blank lines included."""
    assert len(BLOCKS[0].splitlines()) <= 30


def test_third_party_source_meets_the_contract(how_to, database):
    """Without a base class, and without a line about any engine."""
    source = how_to.SqliteRows(database, "sales")

    assert isinstance(source, Source)
    assert all(isinstance(split, Split) for split in source.splits(2))


@pytest.mark.parametrize("parallelism", [1, 2, 3, 8, 50])
def test_third_party_source_gives_every_row_in_order(how_to, database, read, parallelism):
    """For every number of tasks, with splits that travelled pickled."""
    rows = read(how_to.SqliteRows(database, "sales"), parallelism)

    assert [item for item, price in rows] == ["i0", "i1", "i2", "i4", "i5", "i6", "i7", "i8", "i9"]


def test_third_party_source_of_an_empty_table_is_empty(how_to, database, read):
    """No rows, no error."""
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("DELETE FROM sales")

    assert read(how_to.SqliteRows(database, "sales")) == []
