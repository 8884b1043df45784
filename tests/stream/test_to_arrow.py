"""`to_arrow`, `to_pandas`: items as columns."""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import dataclass
from decimal import Decimal
from typing import NamedTuple

import pyarrow as pa
import pytest

from dstream import Entry


@dataclass
class Order:
    who: str
    price: float
    paid: dt.date | None = None


class Line(NamedTuple):
    order: Order
    tags: list[str]


@pytest.mark.parametrize(
    ("items", "columns"),
    [
        ([1, None, 3], {"value": [1, None, 3]}),
        (["a", "b"], {"value": ["a", "b"]}),
        ([(1, "a"), (2, None)], {"_1": [1, 2], "_2": ["a", None]}),
        ([{"a": 1}, {"b": "x"}, {"a": 2, "b": "y"}], {"a": [1, None, 2], "b": [None, "x", "y"]}),
        ([Entry("a", [1]), Entry("b", [])], {"key": ["a", "b"], "value": [[1], []]}),
        ([1, 2.5], {"value": [1.0, 2.5]}),
        ([Decimal("1.5"), Decimal("22.25")], {"value": [Decimal("1.50"), Decimal("22.25")]}),
        ([], {}),
    ],
)
def test_items_become_columns(engine, items, columns):
    """By fields, keys or places, in encounter order; what is missing is None; parts may differ in what they have."""
    assert engine.stream(items, 3).to_arrow().to_pydict() == columns


def test_annotations_say_what_values_do_not(engine):
    """A column of None only, and ints in a field for floats."""
    table = engine.stream([Order("Ada", 3), Order("Bob", 4)], 2).to_arrow()

    assert table.schema.types == [pa.string(), pa.float64(), pa.date32()]
    assert table.column("price").to_pylist() == [3.0, 4.0]


def test_nested_values_become_structs(engine):
    """A dataclass inside of an item is a struct, and a list stays a list."""
    table = engine.stream([Line(Order("Ada", 1.5), ["x"])]).to_arrow()

    assert table.to_pylist() == [{"order": {"who": "Ada", "price": 1.5, "paid": None}, "tags": ["x"]}]


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ([1, "a"], "column 'value'"),
        (["a", b"b"], "column 'value'"),
        ([(1,), (1, 2)], "no common columns: there are tuples of"),
        ([{"a": 1}, 3], "no common columns"),
        ([{1: 2}], "keys of dicts .* must be str, not 1"),
        ([2**70], "column 'value' has no Arrow type for values such as 1180591620717411303424"),
        ([2**60 + 1, 0.5], "column 'value'"),
        ([object()], "no Arrow type"),
    ],
)
@pytest.mark.parametrize("partitions", [1, 2])
def test_what_fits_no_columns_is_refused(engine, items, message, partitions):
    """Nothing is turned into texts or rounded."""
    with pytest.raises(TypeError, match=message):
        engine.stream(items, partitions).to_arrow()


def test_the_step_is_named(engine):
    """The failure is that of the last call."""
    with pytest.raises(TypeError) as failed:
        engine.stream([1, "a"], 1).map(lambda item: item).to_arrow()

    assert "step 3 of 3, .to_arrow()" in failed.value.__notes__[1]


def test_many_batches_are_one_table(engine):
    """More rows than a batch holds."""
    table = engine.stream(range(20_000), 2).map(lambda n: (n, str(n))).to_arrow()

    assert (table.num_rows, table.column("_2")[19_999].as_py()) == (20_000, "19999")


def test_pandas_gets_the_same_columns(engine):
    """As pandas converts them: None among numbers is NaN."""
    frame = engine.stream([Entry("a", 1.5), Entry("b", None)]).to_pandas()

    assert (list(frame.columns), list(frame["key"])) == (["key", "value"], ["a", "b"])
    assert math.isnan(frame["value"][1])


def test_what_peek_saw_is_seen(engine):
    """The actions run in the caller's process, in order."""
    seen = []
    engine.stream([1, 2], 2).peek(seen.append).to_arrow()

    assert seen == [1, 2]
