"""Cells: what other programs see, and that nothing is lost in them."""

from __future__ import annotations

import math
import sqlite3
from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dstream.spi.store import Options
from dstream.storage.codec.collection import Codec
from dstream.storage.codec.pickles import Pickles
from dstream.storage.sqlite import rows as cells

CODEC = Codec.of("map", "m", Options(), Pickles("never"))
NUMBERS = (
    st.integers() | st.floats() | st.booleans() | st.sampled_from([2**63 - 1, 2**63, -(2**63), -(2**63) - 1, -0.0])
)
TEXTS = st.text() | st.text(st.characters(categories=["Cs", "Ll"])) | st.sampled_from(["a\0b", "1", "\ud800", ""])
PLAIN = NUMBERS | TEXTS | st.binary()


def _through_sqlite(cell):
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE t (key PRIMARY KEY, value NOT NULL) WITHOUT ROWID")
    connection.execute("INSERT INTO t VALUES (?, ?)", (cell, cell))
    [(key, value)] = connection.execute("SELECT key, value FROM t")
    connection.close()
    assert type(key) is type(value) is type(cell)
    return value


@given(PLAIN | st.none() | st.lists(PLAIN) | st.tuples(PLAIN) | st.dates())
def test_values_come_back_as_they_were(value):
    """Of the same type and with the same digits, by the way of a single change and by that of a job."""
    encoded = CODEC.encode_value(value)
    cell = cells.cell_of_value(CODEC, value)
    back = cells.value_of(CODEC, _through_sqlite(cell))

    assert (type(back), repr(back)) == (type(value), repr(value))
    assert repr(cells.value_cell(CODEC, encoded)) == repr(cell)
    assert cells.value_data(CODEC, _through_sqlite(cell)) == encoded


@given(PLAIN | st.tuples(PLAIN) | st.dates() | st.decimals(allow_nan=False, allow_infinity=False))
def test_keys_come_back_as_encoded_keys_do(key):
    """A cell and encoded bytes stand for each other, whatever the way to them."""
    encoded = CODEC.encode_key(key)
    cell = cells.cell_of_key(CODEC, key)

    assert repr(cells.key_of(CODEC, _through_sqlite(cell))) == repr(CODEC.decode_key(encoded))
    assert repr(cells.key_cell(CODEC, encoded)) == repr(cell)
    assert cells.key_data(CODEC, cell) == encoded


@given(NUMBERS, NUMBERS)
def test_keys_are_one_in_a_table_if_they_are_equal(left, right):
    """SQLite compares cells as Python compares keys: 1, 1.0 and True are one, 2**53 + 1 and 2.0**53 are not."""
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE t (key PRIMARY KEY) WITHOUT ROWID")
    for key in (left, right):
        connection.execute("INSERT INTO t VALUES (?) ON CONFLICT DO NOTHING", (cells.cell_of_key(CODEC, key),))
    [(count,)] = connection.execute("SELECT count(*) FROM t")
    connection.close()

    is_one = left == right or (left != left and right != right)
    assert count == (1 if is_one else 2)


@pytest.mark.parametrize("value", ["text", "naïve", 1, -(2**63), 1.5, math.inf])
def test_plain_values_are_plain_cells(value):
    """Any program that reads SQLite sees texts and numbers."""
    assert cells.cell_of_value(CODEC, value) is value


@pytest.mark.parametrize("value", [True, 2**63, math.nan, -0.0, "\ud800", b"bytes", [1], date(2026, 1, 1), Decimal(1)])
def test_other_values_are_encoded(value):
    """What SQLite would take for something else, or does not know, stands as bytes."""
    assert type(cells.cell_of_value(CODEC, value)) is bytes
