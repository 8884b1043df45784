"""Joins of records by key functions that are read: rows travel and match as columns, and become items once."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import tests.differential.column_operators as programs
from dstream.operators.columns.built_rows import BuiltRows, PackedRows, RowsWithParts, packed_rows
from dstream.operators.columns.entries import RowValues, SharedRows
from dstream.operators.columns.values import Column, ConstantColumn, Ints, NotColumnar, Objects, items_of
from dstream.operators.joins.columns import JoinBatch, sent_to_targets
from dstream.operators.rows.batches import loads, loads_items
from dstream.plan.steps import KeyInColumns
from tests.differential.column_operators import Program, outcomes
from tests.differential.random_functions import function_of
from tests.differential.written_expressions import expression_of


@pytest.fixture(autouse=True)
def one_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    """This one process routes keys to itself."""
    monkeypatch.setenv("PYTHONHASHSEED", "0")


_GROW = ("map", programs._grow)
_BEHIND = {
    "a filter before a change": [("filter", "lambda x: x.value[1]['v'] < 12"), _GROW],
    "a change of what a display has": [
        ("map", "lambda x: (x.key, ({'row': x.value[1], 'v': x.value[0]['v']}, 1))"),
        _GROW,
    ],
    "a change of a row within a display": [
        ("map", "lambda x: (x.key, ({'row': x.value[1], 'v': x.value[1]['v']}, 1))"),
        _GROW,
    ],
    "a copy": [("map", "lambda x: (x.key, ({**x.value[1], 'v': 5}, x.value[1]['v']))")],
    "a row of one side": [("map", "lambda x: x.value[1]"), _GROW],
    "numbers of both sides": [("map", "lambda x: (x.key, (x.value[0]['v'], x.value[1]['v']))")],
    "no step": [],
}


def _rows(*numbers: int) -> list[Any]:
    return [{"k": number % 3, "v": number, "t": str(number)} for number in numbers]


@pytest.mark.parametrize("way", ["travels", "meets"])
@pytest.mark.parametrize("targets", [1, 2])
@pytest.mark.parametrize("behind", _BEHIND)
def test_rows_that_pairs_share_are_one_item(way: str, targets: int, behind: str) -> None:
    """Steps behind a join see the changes of earlier ones, as if no row was a column."""
    key = "lambda x: x['k']"
    columns = KeyInColumns(expression_of(key), False)
    parts = [
        [_rows(*range(9)), _rows(3, 4)],
        [_rows(1, 2)],
        [_rows(0, 1, 5), _rows(6)],
        [[{"k": None, "v": 1, "t": ""}]],
    ]
    for last in ([], parts[3]):
        made = Program([*parts[:3], last], f"join inner right {way}", function_of(key), columns, False, targets, "")
        made = Program(**{**vars(made), "behind": tuple(_BEHIND[behind])})
        for seed in range(6):
            found, expected = outcomes(made, seed)
            assert found == expected
            assert found[0] == "gives"


@pytest.mark.parametrize("behind", ["lambda x: x.value[0][1]", "lambda x: (x.value[0][1], x.value[0][0])"])
def test_a_row_within_a_tuple_is_one_item_of_all_its_pairs(behind: str) -> None:
    """As one that is the whole value is: a step behind the join changes it in each of them."""
    pairs = [(row["k"], (1, row)) for row in _rows(0, 1, 2, 3, 4)]
    parts: list[list[list[Any]]] = [[pairs], [], [[(1, "a"), (1, "b")]], []]
    columns = KeyInColumns(None, False)
    made = Program(parts, "join inner right travels", None, columns, False, 2, "", (("map", behind), _GROW))

    found, expected = outcomes(made, 1)
    assert found == expected
    assert found[0] == "gives"


def test_a_passing_block_of_other_keys_gets_the_same_items() -> None:
    """The items of the side that is held are made once, whatever comes after they have been looked up in columns."""
    key = "lambda x: x['k']"
    others: list[Any] = [{"k": 1.0, "v": 7, "t": ""}]
    parts: list[Any] = [[_rows(1, 2), others], [], [_rows(4)], []]
    made = Program(
        parts, "join inner right travels", function_of(key), KeyInColumns(expression_of(key), False), False, 2, ""
    )

    found, expected = outcomes(made, 1)
    assert found == expected


class _Part(RowsWithParts):
    """Rows of dicts that have more keys than columns."""

    size = 2
    access = frozenset({"key"})  # type: ignore[assignment]
    names: Sequence[str] = ("a",)  # type: ignore[assignment]

    def part(self, name: str) -> Column:
        return Ints(np.array([1, 2]), 1, 2)

    def at(self, places: Any) -> RowsWithParts:
        return self

    def portions(self) -> Iterator[Any]:
        yield [{"a": 1, "b": 1}, {"a": 2, "b": 2}]


def test_records_travel_as_columns_where_these_are_all_that_they_have() -> None:
    """Parts that are objects, or keys without a column, make them travel as items."""
    numbers = Ints(np.array([1, 2]), 1, 2)
    packed = packed_rows(BuiltRows(dict, {"a": numbers, "b": numbers}, 2))

    assert isinstance(packed, PackedRows)
    assert list(*packed.unpacked().portions()) == [{"a": 1, "b": 1}, {"a": 2, "b": 2}]
    assert packed_rows(BuiltRows(dict, {"a": Objects([None, 1])}, 2)) is None
    assert packed_rows(BuiltRows(dict, {"a": ConstantColumn(1, 2)}, 2)) is None
    assert packed_rows(_Part()) is None


def test_records_are_sent_as_columns_unless_rows_share_an_item() -> None:
    """Rows of an earlier join arrive as the one item that they have."""
    own = BuiltRows(dict, {"a": Ints(np.array([1, 2]), 1, 2)}, 2)
    shared = SharedRows(RowValues([own]), np.array([0, 0]))

    for rows, kind, are_one in ((own, PackedRows, False), (shared, Objects, True)):
        ((_, _, data),) = sent_to_targets((np.array([7, 7]), rows), 1)
        batch: JoinBatch = loads(data)
        one, other = batch.values()
        assert type(loads_items(batch.data)) is kind
        assert (one is other) is are_one
    # An item is made once for all blocks that have it.
    assert items_of(SharedRows(shared._values, np.array([0])))[0] is items_of(shared)[1]


def test_rows_of_several_layouts_are_not_put_together() -> None:
    """Rows of one class may have other keys, or the same in another order."""
    numbers = Ints(np.array([1, 2]), 1, 2)
    for other in ({"b": numbers, "a": numbers}, {"a": numbers, "b": numbers, "c": numbers}, {"a": numbers}):
        with pytest.raises(NotColumnar, match="several layouts"):
            BuiltRows.stacked([BuiltRows(dict, {"a": numbers, "b": numbers}, 2), BuiltRows(dict, other, 2)])
