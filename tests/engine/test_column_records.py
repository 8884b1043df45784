"""`Records`: rows of Arrow whose parts become columns and whose items are made where somebody needs them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest

import dstream.operators.columns.arrow_rows as column_records
from collectors import counting, summing
from dstream.base.pickling import dumps
from dstream.engine.compiler.evaluation import collector_read, read_op
from dstream.engine.tasks.runtime import StageTask
from dstream.errors import SourceError
from dstream.expressions import Applied, Argument, Choice, Constant, Indexed
from dstream.failures.account import known_of
from dstream.operators.columns.arrow_rows import Records, attribute_of, blocks_of_rows, column_of_array, member_of
from dstream.operators.columns.encoded import Encoded
from dstream.operators.columns.evaluation import evaluated
from dstream.operators.columns.strings import Strings
from dstream.operators.columns.values import Floats, Ints, NotColumnar, Objects, Tuples, items_of
from dstream.operators.rows.batches import Batcher, loads_items
from dstream.operators.rows.blocks import ColumnItems
from dstream.operators.rows.group_tables import collected
from dstream.operators.rows.guards import items_of as read_items
from dstream.operators.rows.operations import operation
from dstream.plan.operations.elementwise import Chain
from dstream.plan.operations.sort_limit import Limit
from dstream.plan.steps import Op, Step
from dstream.spi import ArrowRows

_STEP = Step("read", None, 0, 1)


class Sale(NamedTuple):
    """What the rows become."""

    number: int
    price: float
    name: str


ALL = [Sale(number, number / 4, f"name {number}") for number in range(10)]
VALUES = {
    "number": pa.array([each.number for each in ALL]),
    "price": pa.array([each.price for each in ALL]),
    "name": pa.array([each.name for each in ALL]),
}


class Watched:
    """Makes rows, and notes what is made of them."""

    def __init__(self, **columns: Any) -> None:
        self.asked: list[str] = []
        self.made: list[list[Any]] = []
        self.columns = columns or VALUES

    def rows(self, *ways: Any) -> ArrowRows:
        parts = {name: lambda name=name: self._column(name) for name in self.columns}
        size = len(next(iter(self.columns.values())))
        return ArrowRows(size, parts, frozenset(ways or ("attribute", "place")), self._items, 4)

    def _column(self, name: str) -> Any:
        self.asked.append(name)
        return self.columns[name]

    def _items(self, places: Any) -> list[Any]:
        self.made.append([ALL[place] for place in np.arange(10)[places].tolist()])
        return self.made[-1]

    # As a split

    def read(self) -> Iterator[Any]:
        return iter(ALL)

    def arrow_rows(self) -> Iterator[Any]:
        yield self.rows()


def _through(items: Iterator[Any], *steps: tuple[str, Callable[[Any], Any]]) -> Iterator[Any]:
    ops = tuple(read_op(Op(action, fn, None, _STEP)).op for action, fn in steps)
    assert all(op.evaluation.expression is not None for op in ops), "these tests are about functions that are read"
    return operation(Chain(Limit(None, 0, step=_STEP), ops, step=_STEP))(items, StageTask(0, 2**40))  # type: ignore[arg-type]


def test_only_parts_that_are_asked_for_become_columns() -> None:
    """And no item is made where none is needed."""
    split = Watched()
    items = _through(read_items(split, _STEP, may_be_columns=True), ("filter", lambda sale: sale.number % 2 == 0))

    found = collected(collector_read(summing(lambda sale: sale.price * 2), is_verified=False)[0], items)

    assert summing().finisher(found) == sum(sale.price * 2 for sale in ALL if sale.number % 2 == 0)
    assert split.asked == ["number", "price"]
    assert split.made == []


def test_items_are_made_of_the_rows_that_are_left() -> None:
    """A few at a time."""
    split = Watched()

    found = _through(read_items(split, _STEP, may_be_columns=True), ("filter", lambda sale: sale.number > 4))

    assert list(found) == ALL[5:]
    assert split.made == [ALL[5:9], ALL[9:]]


def test_who_asks_for_items_gets_those_of_the_split() -> None:
    """A function that is called needs no columns, nor does what sends items on."""
    items = read_items(Watched(), _STEP, may_be_columns=True)
    assert isinstance(items, ColumnItems)
    assert list(islice(items, 2)) == ALL[:2]
    assert [list(block) for block in items.blocks()] == [ALL[2:]]  # type: ignore[arg-type]

    split = Watched()
    batches = Batcher().batches(read_items(split, _STEP, may_be_columns=True))
    assert [item for _, data in batches for item in loads_items(data)] == ALL
    assert split.made == []


def test_nothing_becomes_columns_unasked() -> None:
    """The local engine takes items alone."""
    assert not isinstance(read_items(Watched(), _STEP), ColumnItems)


def test_rows_that_are_sent_are_items() -> None:
    """Also inside of tuples."""
    chosen = _through(read_items(Watched(), _STEP, may_be_columns=True), ("filter", lambda sale: sale.number < 3))
    pairs = _through(
        read_items(Watched(), _STEP, may_be_columns=True), ("map", lambda sale: (sale.price, sale, sale.name))
    )

    for items, expected in ((chosen, ALL[:3]), (pairs, [(sale.price, sale, sale.name) for sale in ALL])):
        assert [item for _, data in Batcher().batches(items) for item in loads_items(data)] == expected


def test_rows_that_travel_as_they_are_leave_behind_what_they_are_made_of() -> None:
    """A sort and a join send rows between others; those of Parquet hang on an open file."""
    rows = Records(Watched().rows("key"), _STEP).at(np.array([2, 0]))
    rows.rows.parts["file"] = (each for each in ())  # type: ignore[index,assignment]  # It cannot be pickled.
    pairs = Tuples((Ints(np.array([5, 7]), 5, 7), rows), 2)

    assert items_of(loads_items(dumps(pairs))) == [(5, ALL[2]), (7, ALL[0])]


def test_counting_looks_at_no_part() -> None:
    """The number of rows is known."""
    split = Watched()

    found = collected(collector_read(counting(), is_verified=False)[0], read_items(split, _STEP, may_be_columns=True))

    assert (found, split.asked, split.made) == (10, [], [])


def test_rows_of_rows_are_the_right_ones() -> None:
    """Places are those among all rows."""
    records = Records(Watched().rows(), _STEP).at(np.array([9, 3, 5])).at(np.array([2, 0]))

    assert items_of(records) == [ALL[5], ALL[9]]
    assert items_of(records.part("number")) == [5, 9]


@pytest.mark.parametrize(
    ("ways", "index", "column"),
    [
        (("key",), "price", "price"),
        (("place",), 1, "price"),
        (("place",), -1, "name"),
    ],
)
def test_parts_are_reached_as_the_source_says(ways: Any, index: Any, column: str) -> None:
    """By keys or places."""
    records = Records(Watched().rows(*ways), _STEP)

    assert items_of(member_of(records, index)) == VALUES[column].to_pylist()


@pytest.mark.parametrize(
    ("ways", "index"),
    [(("key",), "other"), (("key",), 0), (("place",), 3), (("place",), -4), (("place",), "price"), (("place",), True)],
)
def test_other_keys_and_places_are_left_to_python(ways: Any, index: Any) -> None:
    """Which raises what it does."""
    with pytest.raises(NotColumnar):
        member_of(Records(Watched().rows(*ways), _STEP), index)


@pytest.mark.parametrize(("ways", "name"), [(("key", "place"), "price"), (("attribute",), "index")])
def test_other_attributes_are_left_to_python(ways: Any, name: str) -> None:
    """Those of things that are no fields, and of dictionaries."""
    with pytest.raises(NotColumnar):
        attribute_of(Records(Watched().rows(*ways), _STEP), name)
    with pytest.raises(NotColumnar):
        attribute_of(Ints(np.arange(3), 0, 2), "real")


@pytest.mark.parametrize("expression", [Argument(0), Applied("not", (Argument(0),)), Choice(*[Argument(0)] * 3)])
def test_the_truth_of_a_row_is_left_to_python(expression: Any) -> None:
    """Its class may say otherwise."""
    records = Records(Watched().rows(), _STEP)
    if expression == Argument(0):
        assert evaluated(expression, (records,)) is records
        return
    with pytest.raises(NotColumnar):
        evaluated(expression, (records,))


@pytest.mark.parametrize(
    ("array", "values", "kind"),
    [
        (pa.array([1, -2], pa.int8()), [1, -2], Ints),
        (pa.array([2**32 - 1], pa.uint32()), [2**32 - 1], Ints),
        (pa.array([2**63 - 1], pa.uint64()), [2**63 - 1], Ints),
        (pa.array([], pa.int32()), [], Ints),
        (pa.array([0.1, -0.0], pa.float32()), [0.10000000149011612, -0.0], Floats),
        (pa.array([1, None]), [1, None], Encoded),
        (pa.array(["a", None]), ["a", None], Encoded),
        (pa.array([math.nan, None]), [math.nan, None], Objects),
        (pa.array([b"a\0"], pa.large_binary()), [b"a\0"], Objects),
        (pa.chunked_array([[1, 2], [3]]), [1, 2, 3], Ints),
    ],
)
def test_arrays_are_columns_of_exact_types(array: Any, values: list[Any], kind: type) -> None:
    """Ints of all sizes are ints, floats of 32 bits the floats that equal them; None needs objects."""
    found = Records(Watched(part=array).rows(), _STEP).part("part")

    assert type(found) is kind
    assert repr(items_of(found)) == repr(values)
    if isinstance(found, Floats):
        assert found.values.dtype == np.float64


@pytest.mark.parametrize("array", [pa.array([2**63], pa.uint64()), pa.nulls(3), pa.array([1.0], pa.float16()), None])
def test_other_arrays_are_left_to_python(array: Any) -> None:
    """Among them ints of 64 bits without a sign that are too long."""
    rows = ArrowRows(3, {"part": lambda: array}, frozenset({"key"}), list, 4)

    with pytest.raises(NotColumnar):
        Records(rows, _STEP).part("part")


def test_rows_without_nulls_are_numbers_after_those_with_some_are_gone() -> None:
    """`is not None` looks at objects, and what follows at ints."""
    rows = Watched(number=pa.array([1, None, 3])).rows("key")
    present = evaluated(
        Applied("is not", (Indexed(Argument(0), Constant("number")), Constant(None))), (Records(rows, _STEP),)
    )
    left = Records(rows, _STEP).at(np.flatnonzero(present.values))  # type: ignore[union-attr]

    assert items_of(evaluated(Applied("+", (Indexed(Argument(0), Constant("number")), Constant(1))), (left,))) == [2, 4]


def test_a_part_may_have_parts() -> None:
    """Those of the rows that are left."""
    inner = Watched().rows()
    outer = ArrowRows(10, {"key": lambda: VALUES["number"], "value": lambda: inner}, frozenset({"place"}), list, 4)

    value = member_of(Records(outer, _STEP).at(np.array([7, 2])), 1)

    assert items_of(attribute_of(value, "price")) == [1.75, 0.5]
    assert items_of(value) == [ALL[7], ALL[2]]


def test_items_that_are_one_part_are_its_column() -> None:
    """Where it has none, they are made."""
    numbers = ArrowRows(2, {"value": lambda: pa.array([1, 2])}, frozenset(), lambda places: [1, 2], 4)
    others = ArrowRows(2, {"value": lambda: None}, frozenset(), lambda places: ["a", math.inf], 4)

    first, second, third = blocks_of_rows(iter([numbers, others, iter([7])]), _STEP)

    assert isinstance(first, Ints)
    assert [list(each) for each in (second, third)] == [["a", math.inf], [7]]  # type: ignore[arg-type]


@pytest.mark.parametrize("fails", ["rows", "part", "items", "stray"])
def test_failures_while_reading_name_the_source(fails: str) -> None:
    """Whenever it reads."""

    def failing(*arguments: Any) -> Any:
        raise SourceError("torn")

    def stray() -> Iterator[Any]:
        yield from map(failing, [1])

    class Split:
        def read(self) -> Iterator[Any]:
            return iter([])

        def arrow_rows(self) -> Iterator[Any]:
            if fails == "rows":
                failing()
            if fails == "stray":
                yield stray()
            part = failing if fails == "part" else lambda: pa.array([1])
            yield ArrowRows(1, {"n": part}, frozenset({"key"}), failing, 4)

    action: tuple[str, Callable[[Any], Any]] = ("map", lambda row: row["n"] + 1)
    if fails == "items":
        action = ("filter", lambda row: row["n"] > 0)
    with pytest.raises(SourceError) as raised:
        list(_through(read_items(Split(), _STEP, may_be_columns=True), action))

    known = known_of(raised.value)
    assert known is not None
    assert known.step is _STEP


_INVALID = pa.Array.from_buffers(
    pa.string(), 2, [None, pa.py_buffer(b"\0\0\0\0\2\0\0\0\3\0\0\0"), pa.py_buffer(b"\xed\xa0a")]
)
_AS_TEXTS = {
    "array": pa.array(["a", "", "é"]),
    "cut out": pa.array(["é", "a", "b", "c"]).slice(1, 2),
    "large": pa.array(["a\n", "\0"], pa.large_string()),
    "chunks": pa.chunked_array([["a"], [], ["𝄞", "b"]], pa.string()),
    "none": pa.chunked_array([], pa.large_string()),
}


@pytest.mark.parametrize("array", _AS_TEXTS.values(), ids=_AS_TEXTS)
def test_texts_of_arrow_stay_a_column(array):
    """They are known as ASCII if each of them is, whatever else stands in the memory of their array."""
    found = column_of_array(array)

    assert isinstance(found, Strings)
    assert (found.tolist(), found.is_ascii) == (array.to_pylist(), "".join(array.to_pylist()).isascii())


def test_texts_that_may_be_none_are_values():
    """A column of texts has no place for None."""
    assert items_of(column_of_array(pa.array(["a", None]))) == ["a", None]


def test_bytes_that_are_no_utf_8_are_left_to_whoever_makes_the_items():
    """They say in which file that is; rows that are left out are not looked at."""
    with pytest.raises(NotColumnar, match="no text"):
        column_of_array(_INVALID)
    rows = Records(Watched(name=_INVALID).rows("key"), _STEP)

    assert rows.at(np.array([1])).part("name").tolist() == ["a"]


def test_texts_of_too_many_bytes_are_objects(monkeypatch):
    """Their places would not fit."""
    monkeypatch.setattr(column_records, "_MOST_BYTES", 8)

    assert column_of_array(pa.array(["a" * 9])).values == ["a" * 9]
