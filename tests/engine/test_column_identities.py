"""An object that stands twice in a tuple stands in it twice also where functions run over columns."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dstream.expressions import (
    Applied,
    Argument,
    Attribute,
    Built,
    Called,
    Choice,
    Constant,
    Expression,
    Indexed,
    Let,
    Local,
    Method,
    Together,
)
from dstream.expressions.effects import may_keep, may_share
from dstream.expressions.tree import Operator
from dstream.operators.columns.arrow_rows import Records
from dstream.operators.columns.evaluation import evaluated
from dstream.operators.columns.values import NotColumnar, column_of, items_of
from dstream.spi import ArrowRows
from tests.differential.written_expressions import expression_of

_NAN = math.nan


@pytest.mark.parametrize(
    ("source", "items"),
    [
        ("(x, x)", [1.0, _NAN]),
        ("(x, (1, x))", [1.0, _NAN]),
        ("(x, 1, x if x < 2 else 0.5, 2.0 * x)", [1.0, _NAN]),
        ("(x[1], x[0], x[1])", [(1.0, 1.0), (1.0, _NAN)]),
        ("(x, x)", [(1.0, None), (2.0, _NAN)]),
    ],
)
@pytest.mark.usefixtures("nothing_by_python")
def test_a_nan_that_may_stand_twice_is_left_to_python(source: str, items: list[Any]) -> None:
    """`p.count(p[0])`, `p[0] in p[1:]` and the comparison of tuples find the very same NaN."""
    with pytest.raises(NotColumnar, match="NaN"):
        evaluated(expression_of(f"lambda x: {source}"), [column_of(items)])


@pytest.mark.parametrize(
    ("source", "items"),
    [
        ("(x, x)", [1.0, -0.0, math.inf]),
        ("(x, 1.0, x > 0)", [1.0, _NAN]),
        ("(x[0], x[1])", [(1.0, _NAN), (_NAN, _NAN)]),
        ("(x, x * 2.0, -x, abs(x))", [1.0, _NAN]),
    ],
)
def test_numbers_of_which_no_nan_stands_twice_stay_columns(source: str, items: list[Any]) -> None:
    """Others cannot be told from equal ones; no NaN beside others can."""
    function = eval(f"lambda x: {source}")

    found = items_of(evaluated(expression_of(f"lambda x: {source}"), [column_of(items)]))

    assert list(map(repr, found)) == [repr(function(item)) for item in items]


_ITEM, _TEST = Argument(0), Applied(">", (Argument(0), Constant(0)))
_PART = Attribute(_ITEM, "part")
_WORDS = Method(_ITEM, "split", ())
_JOINING: tuple[Operator, ...] = ("+", "-", "*", "|", "&", "^")
_OF_NUMBERS: tuple[Operator, ...] = ("+", "-", "*", "/", "%")


@pytest.mark.parametrize(
    ("expression", "may"),
    [
        (Together((_ITEM, _ITEM)), True),
        (Together((_ITEM, _PART)), True),
        (Together((_PART, _ITEM)), True),
        (Together((_PART, Attribute(_ITEM, "other"), Attribute(_PART, "part"))), True),
        (Together((_PART, Attribute(_ITEM, "other"))), False),
        (Together((_PART, Indexed(_ITEM, Constant(0)))), True),
        (Together((Indexed(_ITEM, Constant(0)), Indexed(_ITEM, Constant(-1)))), True),
        (Together((Indexed(_ITEM, Constant(0)), Indexed(_ITEM, Applied("-", (Constant(1), Constant(1)))))), True),
        (Together((Indexed(_ITEM, Constant(0)), Indexed(_ITEM, Constant(1)))), False),
        (Together((_ITEM, Applied("*", (_ITEM, _ITEM)))), False),
        *[(Together((_ITEM, Called(name, (_ITEM,)))), True) for name in ("float", "max", "min")],
        *[(Together((_ITEM, Applied(word, (_TEST, _ITEM)))), True) for word in ("and", "or")],
        (Together((_ITEM, Applied("pos", (_ITEM,)))), True),
        (Together((_ITEM, Choice(_TEST, _ITEM, Constant(1)))), True),
        (Together((_ITEM, Choice(_TEST, Constant(1), _ITEM))), True),
        (Together((_ITEM, Choice(_ITEM, Constant(1), Constant(2)))), False),
        (Let(Choice(_TEST, _ITEM, Constant(1)), 1, Together((Local(1), _ITEM))), True),
        (Let(Together((_ITEM, Constant(1))), 1, Together((Indexed(Local(1), Constant(0)), _ITEM))), True),
        (Let(Applied("*", (_ITEM, _ITEM)), 1, Together((Local(1), Local(1)))), True),
        (Let(Applied("*", (_ITEM, _ITEM)), 1, Together((Local(1), _ITEM))), False),
        (Let(_WORDS, 1, Together((Indexed(Local(1), Constant(0)), Indexed(Local(1), Constant(1))))), False),
        (Together((Indexed(Together((_ITEM, Constant(1))), Constant(0)), _ITEM)), True),
        *[(Together((_ITEM, Method(_ITEM, name, ()))), True) for name in ("conjugate", "quantize", "values")],
        *[(Together((_ITEM, Called(name, (_ITEM,)))), True) for name in ("decimal.Decimal", "sorted", "math.prod")],
        *[(Together((_ITEM, Called(name, (_ITEM,)))), False) for name in ("abs", "round", "math.sqrt", "str.upper")],
        *[(Together((_ITEM, Applied(sign, (Together((_ITEM,)), _ITEM)))), True) for sign in _JOINING],
        *[(Together((_ITEM, Applied(sign, (_ITEM, Constant(2))))), False) for sign in _OF_NUMBERS],
        (Built(dict, ("a", "b"), (_ITEM, _ITEM)), True),
        (Built(dict, ("a", "b"), (_ITEM, Applied("+", (_ITEM, _ITEM)))), False),
        (Together((_ITEM, Indexed(Applied("*", (_ITEM, Constant(2))), Constant(0)))), True),
        (Let(Applied("*", (_ITEM, Constant(2))), 1, Together((Indexed(Local(1), Constant(0)), _ITEM))), True),
    ],
)
def test_an_object_may_stand_twice_where_it_is_given_on_as_it_is(expression: Any, may: bool) -> None:
    """What operators make is new."""
    assert may_share(expression) is may


def test_a_nan_in_an_entry_is_left_to_python() -> None:
    """An entry is a tuple, too, and may stand in another one."""
    entry = Called("dstream.Entry", (Together((Argument(0), Constant("a"))),))

    with pytest.raises(NotColumnar, match="NaN"):
        evaluated(Together((entry, Argument(0))), [column_of([_NAN])])


def test_entries_with_equal_numbers_stay_columns() -> None:
    """They are looked into: the numbers in them are no objects that could be changed."""
    entries = [Called("dstream.Entry", (Together((_ITEM, Constant(each))),)) for each in "ab"]

    found = items_of(evaluated(Together(tuple(entries)), [column_of([1, 2])]))

    assert found == [((1, "a"), (1, "b")), ((2, "a"), (2, "b"))]


@pytest.mark.parametrize("source", ["float('nan')", "(float('nan'), 1)", "1e400 - 1e400"])
def test_a_nan_that_is_no_item_is_another_one_for_each(source: str) -> None:
    """Two rows with one NaN would be equal tuples."""
    first, second = items_of(evaluated(expression_of(f"lambda x: (x, {source})"), [column_of([1, 1])]))

    assert first != second
    assert repr(first) == repr(second)


def test_a_nan_that_is_no_float_is_left_to_python() -> None:
    """It would stand in all rows."""
    with pytest.raises(NotColumnar, match="no float"):
        evaluated(expression_of("lambda x: (x, (-2.0) ** 0.5 * 1e400 * 0)"), [column_of([1, 1])])


@pytest.mark.parametrize(
    "twice",
    [Together((Local(1), Local(1))), Together((Together((Local(1), Constant(1))), Local(1)))],
)
def test_a_list_that_stands_twice_is_left_to_python(twice: Together) -> None:
    """What is added to the one is in the other."""
    with pytest.raises(NotColumnar, match="twice"):
        evaluated(Let(_WORDS, 1, twice), [column_of(["a b", "c"])])


def test_two_lists_of_one_text_stay_columns() -> None:
    """To split a text again gives another list."""
    found = items_of(evaluated(Together((_WORDS, _WORDS)), [column_of(["a b", "c"])]))

    assert found == [(["a", "b"], ["a", "b"]), (["c"], ["c"])]
    assert all(one is not other for one, other in found)


def _records(**parts: Any) -> Records:
    columns = {name: pa.array(values) for name, values in parts.items()}
    size = len(next(iter(columns.values())))

    def items(places: Any) -> list[dict[str, Any]]:
        chosen = np.arange(size)[places].tolist()
        return [{name: values[place] for name, values in parts.items()} for place in chosen]

    rows = ArrowRows(size, {name: lambda name=name: columns[name] for name in columns}, frozenset({"key"}), items, 4)
    return Records(rows, None)


_FIRST = Indexed(Argument(0), Constant("first"))


def test_an_object_that_stands_twice_is_left_to_python() -> None:
    """A dictionary may be changed, as may an object of a class, and one that it holds."""
    with pytest.raises(NotColumnar, match="twice"):
        evaluated(Together((Argument(0), Argument(0))), [_records(first=[1, 2])])


@pytest.mark.usefixtures("nothing_by_python")
@pytest.mark.parametrize("first", [[1.0, _NAN], [1.0, None, _NAN]])
@pytest.mark.parametrize("other", [Argument(0), _FIRST])
def test_a_nan_beside_its_row_is_left_to_python(first: list[Any], other: Any) -> None:
    """The row has the very same, whether some are None or not."""
    with pytest.raises(NotColumnar, match="NaN"):
        evaluated(Together((_FIRST, other)), [_records(first=first)])


def test_a_part_beside_its_row_stays_a_column() -> None:
    """It is no NaN."""
    found = items_of(evaluated(Together((_FIRST, Argument(0))), [_records(first=[1.0, 2.0])]))

    assert found == [(1.0, {"first": 1.0}), (2.0, {"first": 2.0})]


def test_operators_may_keep_members_of_items() -> None:
    """Of numbers they make others: only results that are objects are asked."""
    repeated = Together((_ITEM, Applied("*", (_ITEM, Constant(2)))))

    assert may_keep(repeated)
    assert not may_share(repeated)
    assert not may_keep(Together((_ITEM, Applied("*", (_ITEM, Constant(2.0))))))


def test_a_variable_that_is_added_to_itself_again_and_again_is_looked_at_soon() -> None:
    """A part that it may hold twice is counted twice, not 2 ** 60 times."""
    expression: Expression = Local(60)
    for number in range(60, 0, -1):
        before = Local(number - 1) if number > 1 else Together((_ITEM,))
        expression = Let(Applied("+", (before, before)), number, expression)

    assert may_share(expression)
