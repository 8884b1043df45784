"""`to_arrow`, `to_pandas`: items as columns."""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import dataclass
from decimal import Decimal
from itertools import chain
from typing import NamedTuple

import pyarrow as pa
import pytest

from dstream import Entry
from dstream.schema.tables import batches_of, table_of

MORNING = dt.datetime(2024, 1, 1, 5)


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


@pytest.mark.parametrize(
    "items",
    [
        [1.5, True],
        [1, Decimal("1.5")],
        [dt.date(2024, 1, 1), MORNING],
        [MORNING, MORNING.replace(tzinfo=dt.UTC)],
        [MORNING.replace(tzinfo=dt.UTC), MORNING],
        [dt.timedelta(1), 1],
        [["a"], [b"b"]],
        [{"a": {"x": [1.5]}}, {"a": {"x": [False]}}],
        [Entry([MORNING], 1), Entry([MORNING.replace(tzinfo=dt.UTC)], 1)],
    ],
)
@pytest.mark.parametrize("cut", [1, 2])
def test_values_that_arrow_would_change_are_refused(items, cut):
    """Not cut, not converted and not moved to a zone, in one batch or in two, also inside of lists and dicts."""
    with pytest.raises(TypeError, match=r"column '(value|a|key)' .*; map\(\)"):
        table_of(chain(batches_of(items[:cut]), batches_of(items[cut:])))


@pytest.mark.parametrize("items", [[{1, 2}], [[frozenset()]], ["\ud800"], [Order("Ada", 2**60 + 1)]])
def test_values_without_a_column_are_named(items):
    """Sets have no order to keep, half a character is no text, and a large int is no float."""
    with pytest.raises(TypeError, match=r"column '(value|price)' .*; map\(\)"):
        table_of(batches_of(items))


def test_moments_of_several_zones_have_that_of_the_first(engine):
    """They stay the same moments, in one partition and in two."""
    zone = dt.timezone(dt.timedelta(hours=2))
    table = engine.stream([MORNING.replace(tzinfo=zone), MORNING.replace(tzinfo=dt.UTC)], 2).to_arrow()

    assert table.schema.types == [pa.timestamp("us", "+02:00")]
    assert table.column("value").to_pylist() == [MORNING.replace(tzinfo=zone), MORNING.replace(tzinfo=dt.UTC)]


def test_batches_with_other_columns_are_one_table():
    """What is missing in one of them is None; a moment has the zone of the first; other shapes are refused."""

    def table(*parts):
        return table_of(chain.from_iterable(map(batches_of, parts)))

    zones = [[MORNING.replace(tzinfo=dt.timezone(dt.timedelta(hours=hours)))] for hours in (2, 1)]
    assert table([{"a": 1}] * 2, [{"b": "x"}]).to_pylist() == [{"a": 1, "b": None}] * 2 + [{"a": None, "b": "x"}]
    assert table(*zones).schema.types == [pa.timestamp("us", "+02:00")]
    with pytest.raises(TypeError, match="there are tuples of 1 and tuples of 2"):
        table([(1,)], [(1, 2)])


def test_an_annotation_that_says_nothing_is_passed_by():
    """Its column comes from the values."""

    @dataclass
    class Found:
        what: Nowhere  # noqa: F821 - this is what is tested

    assert table_of(batches_of([Found(1)])).to_pylist() == [{"what": 1}]


def test_decimals_of_any_length_are_one_column():
    """Those beyond 38 digits need a wider type, wherever they stand."""
    items = [Decimal(1), Decimal(10) ** 40]

    assert table_of(chain(batches_of(items[:1]), batches_of(items[1:])))["value"].to_pylist() == items


def test_items_without_fields_are_rows(engine):
    """An empty dict is a row of None, or of no columns at all; none is lost."""
    assert engine.stream([{}, {"a": 1}], 2).to_arrow().to_pylist() == [{"a": None}, {"a": 1}]
    assert engine.stream([{}, {}], 2).to_arrow().num_rows == 2


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
