"""Comprehensions, `try`, loops and enumerations over columns, with the results of Python and an object for each row."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest

from dstream.expressions import Applied, Constant, Display, Expression, Local
from dstream.expressions.reader import read
from dstream.operators.columns import python_rows
from dstream.operators.columns.arrow_rows import Records
from dstream.operators.columns.capabilities import obstacle_to_step
from dstream.operators.columns.chain_evaluation import is_same
from dstream.operators.columns.evaluation import evaluated
from dstream.operators.columns.python_rows import PythonRaises, rows_by_python
from dstream.operators.columns.values import NotColumnar, Objects, column_of, items_of
from dstream.plan.steps import Op, Step
from dstream.spi import ArrowRows

_ROWS = 600


class Sale(NamedTuple):
    number: int
    tags: str
    day: date
    note: str | None
    price: float


class Status(Enum):
    RED = "red"
    NEW = "new"


@dataclass
class Counted:
    tag: str

    def __post_init__(self) -> None:
        _made.append(self.tag)


_made: list[str] = []


_PARTS: dict[str, list[Any]] = {
    "number": list(range(_ROWS)),
    "tags": [("new,red", "red", "old , x,y")[n % 3] for n in range(_ROWS)],
    "day": [date(2024, 1, 1 + n % 28) for n in range(_ROWS)],
    "note": [None if n % 4 == 0 else str(n % 7) for n in range(_ROWS)],
    "price": [n / 8 for n in range(_ROWS)],
}


def _rows() -> Records:
    columns = {name: pa.array(values) for name, values in _PARTS.items()}

    def items(places: Any) -> list[Sale]:
        chosen = np.arange(_ROWS)[places].tolist()
        return [Sale(*(values[place] for values in _PARTS.values())) for place in chosen]

    access = frozenset({"attribute", "place"})
    rows = ArrowRows(_ROWS, {name: lambda name=name: columns[name] for name in columns}, access, items, 4)
    return Records(rows, Sale)


def _expression(fn: Callable[[Any], Any]) -> Expression:
    found = read(fn)
    assert isinstance(found, Expression), found
    return found


def _as_int(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        return -1


def _digits(sale: Sale) -> float:
    total = 0
    for weight in (3, 5, 7):
        total += sale.number % weight
    return total


def _split(text: str) -> list[str]:
    return str.split(text)


def _checked(sale: Sale) -> int:
    if sale.number < 0:
        raise ValueError(f"{sale.number} is below 0")
    return sale.number * 2


IN_COLUMNS: list[Callable[[Any], Any]] = [
    *(_digits, _checked),
    lambda sale: [tag for tag in sale.tags.split(",") if len(tag) > 1],
    lambda sale: {tag.strip(): sale.number for tag in sale.tags.split(",")},
    lambda sale: {sale.tags: sale.number, "n": 1},
    lambda sale: {sale.number % 3, sale.number % 5},
    lambda sale: [(tag, sale.price) for tag in sale.tags.split(",")],
    lambda sale: sum(len(tag) for tag in sale.tags.split(",")),
    lambda sale: ", ".join(sorted(set(sale.tags.split(",")))),
    lambda sale: max(sale.tags.split(","), key=len),
    lambda sale: any(word in sale.tags for word in ("red", "y")),
    lambda sale: next((word for word in ("red", "y") if word in sale.tags), "none"),
    lambda sale: _as_int(sale.note or "none"),
    lambda sale: json.loads(f"[{sale.number % 5}]"),
    lambda sale: json.dumps({"tags": sale.tags, "n": sale.number}),
    lambda sale: type(sale.number) is int and type(sale.price) is not int,
    lambda sale: Status(sale.tags[:3]) if sale.tags[0] in "rn" else None,
    lambda sale: sale.tags == Status.RED.value,
    lambda sale: (Status.NEW, sale.number),
    lambda sale: sale._replace(price=sale.price * 2, tags=sale.tags.upper()),
    lambda sale: sale.day.strftime("%d") + "".join(reversed(sale.tags)),
    lambda sale: ["a", "b"] if sale.number < 0 else sale.tags,
]


@pytest.mark.parametrize("fn", IN_COLUMNS, ids=lambda fn: str(fn.__code__.co_firstlineno))
def test_columns_give_what_python_gives_for_each_row(fn: Callable[[Any], Any]) -> None:
    """Of all values, with their types."""
    expected = [fn(item) for item in items_of(_rows())]

    assert is_same(items_of(evaluated(_expression(fn), (_rows(),))), expected)


@pytest.mark.parametrize(
    "fn",
    [
        lambda sale: [tag for tag in sale.tags.split(",") if tag],
        lambda sale: {sale.tags: 1},
        lambda sale: {sale.tags, "x"},
        lambda sale: json.loads(f'{{"a": [{len(sale.tags)}]}}'),
        lambda sale: sorted(sale.tags),
        lambda sale: [*sale.tags.split(",")],
    ],
)
def test_each_row_has_a_container_of_its_own(fn: Callable[[Any], Any]) -> None:
    """Also where a value repeats: a later step may change one of them."""
    found = items_of(evaluated(_expression(fn), (_rows(),)))

    assert len(set(map(id, found))) == _ROWS


def test_constants_make_no_container_that_rows_share() -> None:
    """The same function in a loop makes one for each item."""
    with pytest.raises(NotColumnar):
        evaluated(_expression(lambda sale: _split("a b")), (_rows(),))


def test_members_of_an_enumeration_are_the_same_in_all_rows() -> None:
    """There is one object for each."""
    column = column_of([(tag, 1) for tag in ("red", "new")] * 300)
    found = items_of(evaluated(_expression(lambda item: Status(item[0])), (column,)))

    assert set(map(id, found)) == {id(Status.RED), id(Status.NEW)}


@pytest.mark.parametrize(
    "fn",
    [
        lambda sale: [int(tag) for tag in sale.tags.split(",")],
        lambda sale: Status(sale.tags),
        lambda sale: json.loads(sale.tags),
        lambda sale: {sale.tags: 1}[sale.note],
        lambda sale: min((tag for tag in sale.tags.split(",") if len(tag) > 5), key=len),
    ],
)
def test_a_row_for_which_python_raises_leaves_the_block_to_the_loop(fn: Callable[[Any], Any]) -> None:
    """Which names the item and the line."""
    with pytest.raises(PythonRaises):
        evaluated(_expression(fn), (_rows(),))


def test_a_raise_that_a_row_reaches_leaves_the_block_to_the_loop() -> None:
    """The loop raises the user's own exception."""

    def below(sale: Sale) -> int:
        if sale.number > 500:
            raise ValueError(sale.number)
        return sale.number

    with pytest.raises(NotColumnar):
        evaluated(_expression(below), (_rows(),))


def test_objects_with_code_of_their_own_are_made_by_the_loop() -> None:
    """In the order of the items, once for each."""
    found = read(lambda sale: [Counted(tag) for tag in sale.tags.split(",")])

    if isinstance(found, Expression):
        step = Op("map", len, None, Step("map", None, 1, 3))
        assert obstacle_to_step(step, found) is not None
    assert _made == []


def test_adding_to_a_variable_changes_no_list_of_an_item() -> None:
    """A list of two rows is not shared with what `+=` makes of it."""
    lists = [[1], [2]] * 300
    column = Objects(lists, is_plain=True)

    def added(item: Any) -> Any:
        total = item[0] + []
        total += [3]
        return total

    column = column_of([(each, 1) for each in lists])
    with pytest.raises(NotColumnar):
        evaluated(_expression(added), (column,))
    assert lists == [[1], [2]] * 300


def test_other_parts_that_become_columns_are_evaluated_anew(monkeypatch):
    """Values of Python are kept for blocks of which the same parts are columns, and no others."""
    made, rewritten = [], python_rows.rewritten
    monkeypatch.setattr(python_rows, "rewritten", lambda *given: made.append(given) or rewritten(*given))
    first, second = Local(1), Local(2)
    added = Applied("+", (second, Constant(1)))
    pairs = Display("list", (first, added))

    def found(columns):
        return rows_by_python(pairs, {part: column_of(items) for part, items in columns}.get).values

    assert found([(first, [1, 2]), (second, [10, 20])]) == [[1, 11], [2, 21]]
    assert found([(first, [1, 2]), (added, [10, 20])]) == [[1, 10], [2, 20]]
    assert found([(first, [3, 4]), (added, [30, 40])]) == [[3, 30], [4, 40]]
    assert found([(first, [5.0]), (second, [50.0]), (added, [7.0])]) == [[5.0, 7.0]]
    assert len(made) == 2
