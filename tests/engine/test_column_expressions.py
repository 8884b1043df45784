"""Expressions over columns give what Python gives, in value and type, or withhold the block: guard by guard."""

from __future__ import annotations

import math
from typing import Any

import pytest

from dstream.expressions import Applied, Argument, Built, Called, Constant, Let, Local, Method, Together
from dstream.operators.columns import arithmetic
from dstream.operators.columns.capabilities import left_to_python
from dstream.operators.columns.evaluation import evaluated
from dstream.operators.columns.values import Ints, NotColumnar, column_of, items_of
from tests.differential.written_expressions import expression_of

_LEAST, _GREATEST = -(2**63), 2**63 - 1
_NAN, _INF = math.nan, math.inf

SAME: list[tuple[str, list[Any]]] = [
    ("x + 1", [_GREATEST - 1, _LEAST]),
    ("x - 1", [_LEAST + 1, _GREATEST]),
    ("x * 3", [3074457345618258602, -3074457345618258602]),
    ("x * x", [3037000499, -3037000499]),
    ("x // 3", [-7, -6, 7, _LEAST, _GREATEST]),
    ("x // -3", [-7, -6, 7, _GREATEST]),
    ("7 // x", [-3, 3, 8, -8, 1, -1]),
    ("x % 7", [-15, -14, 14, 15, _LEAST, _GREATEST]),
    ("x % 8", [-15, -8, 15, _LEAST, _GREATEST]),
    ("x % -7", [-15, -14, 14, 15, _GREATEST]),
    ("x % -9223372036854775808", [-15, 14, 0, _GREATEST]),
    ("x % (x + 1)", [-15, 14, 1, 2**40]),
    ("x << 3", [5, -5, 2**59]),
    ("x >> 63", [_LEAST, -1, 5, _GREATEST]),
    ("x & -8", [_LEAST, -3, 5, _GREATEST]),
    ("(x | 5) ^ -1", [_LEAST, -3, 5, _GREATEST]),
    ("~x", [_LEAST, -1, 0, _GREATEST]),
    ("-x", [_LEAST + 1, 0, _GREATEST]),
    ("abs(x)", [_LEAST + 1, 0, _GREATEST]),
    ("abs(x)", [-5, 3]),
    ("x ** 2", [3037000499, -3037000499, 0]),
    ("x ** 0", [0, 5, -5]),
    ("2 ** x", [0, 1, 5, 30]),
    ("x / 3", [2**53, -(2**53), 1, 0]),
    ("x / 0.1", [2**53 + 1, _GREATEST, -1]),
    ("x + 0.5", [2**53 + 1, _GREATEST, _LEAST]),
    ("x == 0.5", [0, 2**53, -(2**53)]),
    ("x + x", [True, False]),
    ("-x", [True, False]),
    ("+x", [True, False]),
    ("x & True", [True, False]),
    ("x ^ 1", [True, False]),
    ("x / 2", [True, False]),
    ("x * 0.1", [True, False]),
    ("x // 0.1", [1.0, -1.0, 0.0, -0.0, 1e308, _INF, _NAN]),
    ("x % 0.1", [1.0, -1.0, 0.0, -0.0, 1e308, _INF, _NAN]),
    ("x % -2.5", [1.0, -1.0, 0.0, -0.0, 5e-324]),
    ("x * x", [1e308, -1e308, _NAN, -0.0]),
    ("-x", [0.0, -0.0, _INF]),
    ("abs(x)", [-0.0, -1.5, -_INF]),
    ("min(x, 0.0)", [-0.0, 0.0, _NAN, 1.0]),
    ("min(0.0, x)", [-0.0, 0.0, _NAN, 1.0]),
    ("max(x, 0.0, 1.0)", [-0.0, 0.0, _NAN, 2.0]),
    ("min(x, 3, 2)", [5, 1, 2]),
    ("max((x, 3))", [5, 1, 3]),
    ("x == x", [_NAN, 1.0]),
    ("x != x", [_NAN, 1.0]),
    ("x < 1 <= 2", [_NAN, 0.5, 1.0]),
    ("not x", [_NAN, 0.0, -0.0, 1.0]),
    ("bool(x)", [0, 5, -5]),
    ("int(x)", [2.9, -2.9, -0.0, -(2.0**63), 2.0**62]),
    ("round(x)", [0.5, 1.5, 2.5, -0.5, 0.49999999999999994, 4503599627370497.5]),
    ("round(x, 2)", [2.675, -0.0, 1e300, _NAN]),
    ("float(x)", [2**53 + 1, _GREATEST, -1]),
    ("int(x)", [True, False]),
    ("x ** 0.5", [2.0, 0.0, _INF]),
    ("x ** -1", [2.0, 3.0]),
    ("x in (1, 2.0, 5)", [1, 2, 3]),
    ("x not in (1, 2)", [1.0, 2.5]),
    ("x and 10 // x", [0, 3, -3]),
    ("x or 7", [0, 3, -3]),
    ("10 // x if x else 0", [0, 3, -3]),
    ("x > 1 and x < 3 and x != 2", [0, 1, 2, 3]),
    ("(x, -x, 'a')", [1, 2]),
    ("(x, -x)[1]", [1, 2]),
    ("(x, -x)[-2]", [1, 2]),
    ("len((x, x))", [1, 2]),
    ("x[0] + x[1]", [(1, 2.5), (2, -0.0)]),
    ("(x[1], x[0] * 2)", [(1, "ä"), (2, "")]),
    ("x[1] is None", [(1, None), (2, "a")]),
    ("x[0] if x[1] else -x[0]", [(1, True), (2, False)]),
    ("x is not None", [1, 2]),
]


@pytest.mark.parametrize(("source", "items"), SAME)
def test_a_column_gives_what_python_gives(source: str, items: list[Any]) -> None:
    """The values and their types, also at the ends of 64 bits, of NaN and of -0.0."""
    function = eval(f"lambda x: {source}")

    found = evaluated(expression_of(f"lambda x: {source}"), [column_of(items)])

    assert list(map(_told, items_of(found))) == [_told(function(item)) for item in items]
    _check_interval(found)


@pytest.mark.parametrize("items", [[1, 99, 2**62, _LEAST], [2.0, 2.5, -0.0, _INF], [True, False]])
@pytest.mark.parametrize("sign", ["in", "not in"])
def test_many_members_are_found_by_their_hash(sign: Any, items: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """As Python finds them: to compare each of 8,192 with all rows took forty times as long as the function."""
    monkeypatch.setattr(arithmetic, "compared", None)
    among = frozenset({*range(100), 2.5, 2**62, 2**70, "a", None})
    looking = Applied(sign, (Argument(0), Constant(among)))

    found = evaluated(looking, [column_of(items)])

    assert items_of(found) == [(item in among) is (sign == "in") for item in items]


@pytest.mark.usefixtures("nothing_by_python")
def test_a_nan_is_not_looked_for_among_many_members() -> None:
    """Python finds one that is the same object."""
    looking = Applied("in", (Argument(0), Constant(frozenset(range(100)))))

    with pytest.raises(NotColumnar, match="NaN"):
        evaluated(looking, [column_of([1.0, _NAN])])


def _told(value: Any) -> Any:
    return tuple(map(_told, value)) if type(value) is tuple else (type(value), repr(value))


def _check_interval(column: Any) -> None:
    if isinstance(column, Ints):
        assert all(column.least <= value <= column.greatest for value in column.values.tolist())


WITHHELD: list[tuple[str, list[Any], str]] = [
    ("x + 1", [_GREATEST, 0], "64 bits"),
    ("x - 1", [_LEAST, 0], "64 bits"),
    ("x * 3", [3074457345618258603], "64 bits"),
    ("-x", [_LEAST], "64 bits"),
    ("abs(x)", [_LEAST], "64 bits"),
    ("x // -1", [_LEAST], "64 bits"),
    ("x % -1", [_LEAST], "refuse"),
    ("x // x", [0, 1], "zero"),
    ("x % x", [0, 1], "zero"),
    ("1 / x", [0, 1], "zero"),
    ("1.5 / x", [0.0, 1.0], "zero"),
    ("1.5 // x", [-0.0, 1.0], "zero"),
    ("1.5 % x", [0.0, 1.0], "zero"),
    ("1 / x", [True, False], "zero"),
    ("x / 3", [2**53 + 1], "2\\*\\*53"),
    ("x == 0.5", [2**53 + 1], "2\\*\\*53"),
    ("x < 2.0", [-(2**53) - 1], "2\\*\\*53"),
    ("x << 1", [2**62], "64 bits"),
    ("1 << x", [1, -1], "64 bits"),
    ("1 >> x", [1, 64], "64 bits"),
    ("x ** -1", [2], "64 bits"),
    ("x ** 64", [2], "64 bits"),
    ("x ** 0.5", [-2.0, 1.0], "several types"),
    ("x ** 0.5", [-2.0], "complex"),
    ("10.0 ** x", [400.0], "OverflowError"),
    ("~x", [True], "bool"),
    ("~True", [1], "bool"),
    ("int(x)", [_NAN], "64 bits"),
    ("int(x)", [2.0**63], "64 bits"),
    ("round(x)", [_INF], "64 bits"),
    ("min(x, 1)", [1.5, 0.5], "several types"),
    ("min(x, True)", [2], "several types"),
    ("x if x > 1 else 'a'", [1, 2], "no number"),
    ("x if x > 1 else 0.5", [1, 2], "several types"),
    ("x and 0.5", [0, 2], "several types"),
    ("x in (x, 1)", [_NAN], "NaN"),
    ("x in (1, y)", [1.0, _NAN], "NaN"),
    ("x + 1", [2**63], "64 bits"),
    ("x + 1", [1, True], "several types"),
    ("x + 1", [1, None], "several types"),
    ("x + 1", ["a"], "no text"),
    ("x[0] + 1", [("a", 1)], "no text"),
    ("x[0] + 1", [(1, 1), (1,)], "several lengths"),
    ("x[2]", [(1, 1)], "out of range"),
    ("not x[0]", [(None, 1)], "truth"),
    ("x & 1", [1.5], "floats have no"),
    ("1 // (y - y)", [1], "ZeroDivisionError"),
]


@pytest.mark.parametrize(("source", "items", "reason"), WITHHELD)
@pytest.mark.usefixtures("nothing_by_python")
def test_a_block_falls_back_where_a_column_cannot_give_the_same(source: str, items: list[Any], reason: str) -> None:
    """What Python would do then, a column does not try."""
    expression = expression_of(f"lambda x: {source.replace('y', '3')}")

    with pytest.raises(NotColumnar, match=reason):
        evaluated(expression, [column_of(items)])


def test_a_name_is_evaluated_in_the_rows_that_are_left() -> None:
    """A `Local` behind a short circuit has the rows of its place."""
    within = expression_of("lambda x: x and 10 // x")
    named = Let(Together((Argument(0), Constant(1))), 1, _with_local(within))

    found = evaluated(named, [column_of([0, 3, 4])])

    assert items_of(found) == [0, 3, 2]


def _with_local(expression: Any) -> Any:
    """Put the first member of local 1 in place of the argument."""
    from dataclasses import fields, replace

    from dstream.expressions import Indexed

    if expression == Argument(0):
        return Indexed(Local(1), Constant(0))
    changed = {}
    for field in fields(expression):
        value = getattr(expression, field.name)
        if type(value) is tuple:
            changed[field.name] = tuple(map(_with_local, value))
    return replace(expression, **changed) if changed else expression


def test_the_square_root_is_that_of_python() -> None:
    """Also of ints beyond 2**53; that of a negative number is Python's to refuse."""
    expression = Called("math.sqrt", (Argument(0),))
    items = [2, 2**53 + 1, 10**18, 0]

    assert items_of(evaluated(expression, [column_of(items)])) == list(map(math.sqrt, items))
    with pytest.raises(NotColumnar):
        evaluated(expression, [column_of([-1.0])])


def test_ranges_become_columns_without_their_items() -> None:
    """Whatever their step, up to the ends of 64 bits."""
    for items in (range(5, 50, 7), range(50, 5, -7), range(_LEAST, _GREATEST + 1, 2**62), range(0)):
        assert items_of(column_of(items)) == list(items)
    with pytest.raises(NotColumnar):
        column_of(range(2**63, 2**63 + 5))


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        (Method(Argument(0), "zfill", (Constant(3),)), r"\.zfill()"),
        (Built(complex, ("real",), (Argument(0),)), "objects of a class"),
        (Called("sorted", (Argument(0),)), r"sorted\(\)"),
        (expression_of("lambda x: x + b'a'"), "no number"),
    ],
)
def test_what_columns_cannot_do_is_known_without_items(expression: Any, reason: str) -> None:
    """The drawing of a plan says it."""
    assert reason.replace("\\", "") in str(left_to_python(expression))


def test_what_columns_can_do_is_known_without_items() -> None:
    """Constants that are only handed on may be of any type."""
    assert left_to_python(expression_of("lambda x: (x % 2 == 0, 'even' if x else None)")) is None
