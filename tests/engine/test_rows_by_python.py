"""Parts of an expression that Python evaluates for each row, between columns."""

from __future__ import annotations

import contextlib
import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest

from dstream.expressions import Expression
from dstream.expressions.reader import read
from dstream.operators.columns import python_rows
from dstream.operators.columns.arrow_rows import Records
from dstream.operators.columns.capabilities import obstacle_to_step, operates_on_objects
from dstream.operators.columns.chain_evaluation import column_chain, is_same
from dstream.operators.columns.encoded import Encoded
from dstream.operators.columns.evaluation import evaluated
from dstream.operators.columns.python_rows import PythonRaises
from dstream.operators.columns.strings import Strings
from dstream.operators.columns.values import (
    Bools,
    Ints,
    NotColumnar,
    Objects,
    Tuples,
    column_of,
    items_of,
)
from dstream.plan.steps import Op, Step, StepEvaluation
from dstream.spi import ArrowRows

_NAN = float("nan")
_SKU = re.compile(r"([A-Z]+)-(\d+)")


def _records(**parts: Sequence[Any]) -> Records:
    columns = {name: pa.array(values) for name, values in parts.items()}
    size = len(next(iter(columns.values())))

    def items(places: Any) -> list[dict[str, Any]]:
        chosen = np.arange(size)[places].tolist()
        return [{name: values[place] for name, values in parts.items()} for place in chosen]

    rows = ArrowRows(size, {name: lambda name=name: columns[name] for name in columns}, frozenset({"key"}), items, 4)
    return Records(rows, None)


def _expression(fn: Any) -> Expression:
    found = read(fn)
    assert isinstance(found, Expression), found
    return found


_ROWS = _records(
    sku=["AB-12", "C-0", "Zü", "AB-12"],
    note=[None, "", "x y", "ÄÖ"],
    price=[2.5, -0.0, _NAN, 1e300],
    count=[0, 3, -7, 2**40],
    rate=[None, 0.5, _NAN, 1.0],
)


@pytest.mark.parametrize(
    "fn",
    [
        lambda r: r["note"] or "none",
        lambda r: r["note"].upper() if r["note"] is not None else None,
        lambda r: len(r["note"]) if r["note"] else 0,
        lambda r: r["price"] * (1 - (r["rate"] or 0)),
        lambda r: f"{r['sku']}/{r['count']:06d}",
        lambda r: f"{r['price']:.2f}|{r['sku']!r}",
        lambda r: _SKU.match(r["sku"]) is not None,
        lambda r: _SKU.match(r["sku"]).group(1) if "-" in r["sku"] else r["note"],
        lambda r: (r["sku"].split("-", 1), r["count"]),
        lambda r: (r["price"], (r["price"], r["sku"].partition("-"))),
        lambda r: r["price"] in (r["price"], 1),
        lambda r: r["sku"].startswith(("A", "C")) and r["count"].bit_length(),
        lambda r: " ".join(r["sku"].split("-")),
        lambda r: divmod(r["count"], 5),
        lambda r: 5 in (r["count"], r["rate"], r["note"]) or r["count"] * 2**70,
    ],
)
def test_python_gives_the_rows_what_it_gives_the_items(fn: Any) -> None:
    """Of fields with and without None, beyond ASCII, NaN and ints of more than 64 bits."""
    items = list(_ROWS.rows.items(slice(0, 4)))

    assert is_same(items_of(evaluated(_expression(fn), [_ROWS])), [fn(item) for item in items])


def test_one_object_is_in_both_places_of_a_tuple() -> None:
    """A NaN that is there twice is found by `in`, and a list that is there twice is changed twice."""
    (both,) = items_of(evaluated(_expression(lambda r: (r["price"], r["price"])), [_records(price=[_NAN])]))
    (lists,) = items_of(evaluated(_expression(lambda r: _twice(r["sku"].split("-", 1))), [_records(sku=["A-1"])]))

    assert both[0] in both[1:]
    assert lists[0] is lists[1]


def _twice(value: Any) -> Any:
    return value, value


def test_a_failure_is_left_to_the_function() -> None:
    """Its line, and the item, are those of the user."""
    with pytest.raises(PythonRaises, match="AttributeError"):
        evaluated(_expression(lambda r: _SKU.match(r["sku"]).group(1)), [_ROWS])
    with pytest.raises(PythonRaises, match="TypeError"):
        evaluated(_expression(lambda r: r["note"] + "x"), [_ROWS])


class _Own:
    def __len__(self) -> int:
        raise AssertionError("it is evaluated once, in the loop")


def test_objects_of_a_class_are_left_to_the_function() -> None:
    """Their operators may have side effects."""
    column = Tuples((Objects([_Own()]), column_of([1])), 1)

    with pytest.raises(NotColumnar):
        evaluated(_expression(lambda pair: pair[1].bit_length() + len(pair[0])), [column])
    with pytest.raises(NotColumnar):
        evaluated(_expression(lambda pair: 5 if pair[0] else 6), [column])


_COUNT = itertools.count()


@dataclass
class _Counted:
    n: int

    def __str__(self) -> str:
        return str(next(_COUNT))

    def __eq__(self, other: object) -> bool:
        return next(_COUNT) > 0

    def __bool__(self) -> bool:
        return next(_COUNT) > 0

    @property
    def number(self) -> int:
        return next(_COUNT)


def _in_variable(r: Any) -> Any:
    made = _Counted(r["x"])
    return made, made == 1


@pytest.mark.parametrize(
    "fn",
    [
        lambda r: (f"{_Counted(r['x'])}", f"{_Counted(r['x'])}"),
        lambda r: (_Counted(r["x"]) == 1, r["x"]),
        lambda r: 5 if _Counted(r["x"]) else 6,
        lambda r: _Counted(r["x"]) or 5,
        lambda r: (r["x"], _Counted(r["x"]).number),
        lambda r: 1 in (_Counted(r["x"]), 5),
        _in_variable,
    ],
)
def test_operators_of_a_class_are_left_to_the_function(fn: Any) -> None:
    """They are evaluated in the order of the items, and once for each; the compiler has the reason."""
    before = next(_COUNT)

    with pytest.raises(NotColumnar):
        evaluated(_expression(fn), [_records(x=[0, 1, 2])])
    assert next(_COUNT) == before + 1
    assert operates_on_objects(_expression(fn))
    assert obstacle_to_step(_op(fn, 0), _expression(fn)) == "an operator may run code of a user's class"


def _member(r: Any) -> Any:
    made = _Counted(r["x"])
    return made, made.n * 2


@pytest.mark.parametrize("fn", [lambda r: _Counted(r["x"]), lambda r: {"of": (_Counted(r["x"]),)}, _member])
def test_objects_of_a_class_with_operators_are_results_of_columns(fn: Any) -> None:
    """Nothing is done with them, except by a filter, which tests them."""
    found = _expression(fn)

    assert [repr(each) for each in items_of(evaluated(found, [_records(x=[0, 1])]))] == [
        repr(fn({"x": n})) for n in (0, 1)
    ]
    assert obstacle_to_step(_op(fn, 0), found) is None
    assert obstacle_to_step(replace(_op(fn, 0), action="filter"), found) is not None


class _Pair(NamedTuple):
    a: int
    b: int = 0


@dataclass(frozen=True)
class _Plain:
    a: int
    b: str = "x"


def test_operators_that_dataclasses_writes_are_evaluated_by_python() -> None:
    """Nothing shows when and how often they are."""
    for fn in (lambda r: (f"{_Plain(r['x'])}", r["x"]), lambda r: _Pair(r["x"]) == (1, 0)):
        items = [{"x": n} for n in (0, 1)]
        assert items_of(evaluated(_expression(fn), [_records(x=[0, 1])])) == list(map(fn, items))
        assert obstacle_to_step(_op(fn, 0), _expression(fn)) is None


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of rows for which Python is asked."""
    found: list[int] = []
    real = python_rows._evaluated

    def counting(loop: Any, constants: Any, may_grow: Any, lists: list[list[Any]]) -> list[Any]:
        found.append(len(lists[0]))
        return real(loop, constants, may_grow, lists)

    monkeypatch.setattr(python_rows, "_evaluated", counting)
    return found


@pytest.mark.parametrize(
    ("values", "fn", "kind"),
    [
        (["é-1", "b", "é-1", "b"], lambda r: r["x"].partition("-")[0], Strings),
        (["é-1", "b", "é-1", "b"], lambda r: "-" in r["x"] or None, Encoded),
        ([3, -2, 3, -2], lambda r: r["x"].bit_length(), Ints),
        ([3, -2, 3, -2], lambda r: f"{r['x']:b}".startswith("-"), Bools),
    ],
)
def test_python_is_asked_once_for_each_distinct_value(values: Any, fn: Any, kind: type, asked: list[int]) -> None:
    """Of strings and of ints that lie close together."""
    values = values * 100
    found = evaluated(_expression(fn), [_records(x=values)])

    assert asked == [2]
    assert type(found) is kind
    assert is_same(items_of(found), [fn({"x": each}) for each in values])


def test_each_row_has_a_list_of_its_own(asked: list[int]) -> None:
    """A change of the one is none of the other."""
    found = items_of(evaluated(_expression(lambda r: r["x"].split("-", 1)), [_records(x=["a-b"] * 400)]))

    assert asked == [1, 400]
    assert len({id(each) for each in found}) == 400


@pytest.mark.parametrize(
    "values", [list(range(400)), [f"{n}" for n in range(400)], [n * 2**50 for n in (1, 2)] * 200, ["a", "b"] * 20]
)
def test_python_is_asked_for_each_row_of_many_values(values: Any, asked: list[int]) -> None:
    """Also where the rows are few."""
    evaluated(_expression(lambda r: f"{r['x']:>9}".find("9")), [_records(x=values)])

    assert max(asked) == len(values) or sum(asked) == len(values)


@pytest.mark.parametrize("make", [lambda x: [x], lambda x: {"key": {x}}, lambda x: {x: 1}, lambda x: ([(x,)], 1)])
def test_each_member_of_results_is_measured(make: Any) -> None:
    """One of a thousand may take more than all others; a sample would not find it."""
    few = python_rows._size_of_all([make("x")] * 1024)

    assert (
        python_rows._size_of_all([make("x" * 10**7 if row == 777 else "x") for row in range(1024)]) - few == 10**7 - 1
    )
    assert few > python_rows._size_of_all([make("x")] * 1023) + 100


def test_the_measurement_of_results_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of a list in itself."""
    monkeypatch.setattr(python_rows, "_MOST_MADE", 2**16)
    endless: list[Any] = []
    endless.append(endless)

    assert python_rows._size_of_all(endless) > 2**16


@pytest.mark.parametrize(("long", "is_left"), [("x", False), ("x" * 200_000, True)])
def test_a_rare_long_member_leaves_results_to_a_loop(
    monkeypatch: pytest.MonkeyPatch, long: str, *, is_left: bool
) -> None:
    """One in 1,024 rows, wherever it is."""
    monkeypatch.setattr(python_rows, "_MOST_MADE", 2**21)
    rows = _records(x=list(range(8192)), y=[long] * 8192)
    fn = _expression(lambda r: [r["y"] + "!" if r["x"] % 1024 == 5 else "", r["x"]].copy())

    with pytest.raises(NotColumnar, match="much memory") if is_left else contextlib.nullcontext():
        evaluated(fn, [rows])


def test_results_of_much_memory_are_left_to_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """It makes one after another."""
    monkeypatch.setattr(python_rows, "_MOST_MADE", 2**20)
    few, many = (_records(x=list(range(300)), y=[size] * 300) for size in (10, 10_000))
    fn = _expression(lambda r: str(r["x"]).ljust(r["y"]))

    assert items_of(evaluated(fn, [few]))[7] == "7         "
    with pytest.raises(NotColumnar, match="much memory"):
        evaluated(fn, [many])


def test_a_string_in_many_rows_takes_memory_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A column would have it in each of them."""
    monkeypatch.setattr(python_rows, "_MOST_MADE", 2**20)
    long = "y" * 10_000
    found = evaluated(_expression(lambda r: max(long, str(r["x"]))), [_records(x=list(range(300)))])

    assert items_of(found)[1] is items_of(found)[2]


def test_steps_before_one_that_is_left_to_a_loop_stay_in_columns() -> None:
    """A loop goes on with their results."""
    seen: list[str] = []

    def noted(item: Any) -> Any:
        seen.append(item)
        return item.zfill(4)

    ops = [_op(lambda x: x.upper(), 0), _op(lambda x: x.zfill(4), 1)]
    ops[1] = Op("map", noted, None, ops[1].step, evaluation=ops[1].evaluation)

    found = list(column_chain(ops, ops, iter([column_of(["a", "b"])])))

    assert found == ["000A", "000B"]


def _op(fn: Any, place: int) -> Op:
    return Op("map", fn, None, Step("map", None, place, 2), evaluation=StepEvaluation(_expression(fn), None, True))


def test_lists_of_python_are_taken_apart() -> None:
    """Patterns that columns do not find are searched there; others are left to a loop."""
    fn = lambda r: re.findall(r"\d|[a-z]", r["x"])  # noqa: E731
    op = Op("flat_map", fn, None, Step("x", None, 0, 1), evaluation=StepEvaluation(_expression(fn), None, True))
    blocks: Iterator[Any] = iter([_records(x=["a1b", "", "ü7"])])

    assert list(column_chain([op], [op], blocks)) == ["a", "1", "b", "7"]


@pytest.mark.parametrize(
    "fn",
    [
        lambda r: r["price"] in [r["price"]] + [1],
        lambda r: r["price"] in sorted([r["price"], 1.0]),
        lambda r: r["price"] in tuple([r["price"]]),  # noqa: C409
        lambda r: r["price"] in list((r["price"], 1)),  # noqa: C410
        lambda r: r["price"] in frozenset([r["price"]]),
        lambda r: r["price"] in {"a": r["price"]}.values(),
        lambda r: (r["price"], 1)[:1] == (r["price"],),
        lambda r: [r["price"]] == list((r["price"],)),  # noqa: C410
        lambda r: list((r["price"],)) == sorted([r["price"]]),  # noqa: C410
        lambda r: _same(list((r["price"],)), sorted([r["price"]])),  # noqa: C410
        lambda r: _among(r["price"], [r["price"]] + []),
        lambda r: _equal(list((r["price"],)), sorted([r["price"]])),  # noqa: C410
    ],
)
def test_a_nan_in_a_container_is_the_one_beside_it(fn: Any) -> None:
    """Python makes the container again from the same NaN, or a loop does all of it."""
    rows = _records(price=[1.0, _NAN], count=[1, 2])
    op = Op("map", fn, None, Step("map", None, 0, 1), evaluation=StepEvaluation(_expression(fn), None, True))

    assert list(column_chain([op], [op], iter([rows]))) == [True, True]


def _same(one: Any, other: Any) -> Any:
    return one == other


def _among(one: Any, others: Any) -> Any:
    return one in others and len(others) == 1


def _equal(one: Any, other: Any) -> Any:
    return one == other and len(one) == len(other)


@pytest.mark.parametrize(
    "fn",
    [
        lambda r: _joined_words(r["sku"].split("-")),
        lambda r: _repeated_words(r["sku"].split("-")),
        lambda r: _first_of_joined(r["sku"].split("-")),
        lambda r: _sliced_and_joined([r["sku"].split("-")]),
        lambda r: _in_a_set_of_keys(r["sku"].split("-")),
    ],
)
def test_a_list_that_an_operator_keeps_is_the_one_beside_it(fn: Any) -> None:
    """Containers that are added or repeated keep their members: what is added to such a list is in both."""
    rows = _records(sku=["A-1", "B"], count=[1, 2])
    op = Op("map", fn, None, Step("map", None, 0, 1), evaluation=StepEvaluation(_expression(fn), None, True))

    for inner, outer in column_chain([op], [op], iter([rows])):
        assert inner is outer or any(each is outer for each in inner)


def _joined_words(words: Any) -> Any:
    return [words] + [], words


def _repeated_words(words: Any) -> Any:
    return (words,) * 2, words


def _first_of_joined(words: Any) -> Any:
    return ([words] + [])[0], words


def _sliced_and_joined(lists: Any) -> Any:
    return lists[:1] + [], lists[0]


def _in_a_set_of_keys(words: Any) -> Any:
    return list({"a": words}.values()), words


@pytest.mark.parametrize(
    "fn",
    [
        lambda r: (r["price"], (r["price"],) + (1,)),
        lambda r: (r["price"], [r["price"].conjugate()]),
        lambda r: (r["price"], [max([r["price"]] * 2)]),
        lambda r: (r["price"], sum(([r["price"]], []), [])),  # noqa: RUF017
    ],
)
def test_a_nan_that_an_operator_keeps_is_the_one_beside_it(fn: Any) -> None:
    """It is found among the members of the container."""
    rows = _records(price=[1.0, _NAN], count=[1, 2])
    op = Op("map", fn, None, Step("map", None, 0, 1), evaluation=StepEvaluation(_expression(fn), None, True))

    assert all(one in others for one, others in column_chain([op], [op], iter([rows])))


def test_a_nan_of_a_list_that_is_repeated_is_the_one_beside_it() -> None:
    """A list may be a part of an item, too, where an operator makes no number of it."""
    fns: list[Any] = [lambda r: {"t": [r["price"]] + []}, lambda d: (d["t"] * 2, d["t"][0])]
    ops = [
        Op("map", fn, None, Step("x", None, place, 2), evaluation=StepEvaluation(_expression(fn), None, True))
        for place, fn in enumerate(fns)
    ]

    assert all(one in others for others, one in column_chain(ops, ops, iter([_records(price=[1.0, _NAN])])))


def test_strings_that_become_signaling_nans_are_left_to_a_loop() -> None:
    """They may be compared nowhere, and are no error."""
    fn = lambda r: Decimal(r["sku"])  # noqa: E731
    op = Op("map", fn, None, Step("x", None, 0, 1), evaluation=StepEvaluation(_expression(fn), None, False))

    found = column_chain([op], [op], iter([_records(sku=["sNaN", "1"])]))

    assert list(map(repr, found)) == ["Decimal('sNaN')", "Decimal('1')"]


def test_a_signaling_nan_stands_in_rows_as_it_is() -> None:
    """To compare it raises."""
    fn = lambda r: (r["count"], Decimal("sNaN"))  # noqa: E731
    op = Op("map", fn, None, Step("x", None, 0, 1), evaluation=StepEvaluation(_expression(fn), None, True))

    assert list(map(repr, column_chain([op], [op], iter([_ROWS])))) == list(
        map(repr, map(fn, _ROWS.rows.items(slice(0, 4))))
    )


@pytest.mark.parametrize("fn", [lambda r: r["count"] == Decimal("sNaN"), lambda r: r["d"] < Decimal("sNaN")])
def test_a_signaling_nan_that_is_compared_is_left_to_the_function(fn: Any) -> None:
    """Its line, and the item, are those of the user."""
    rows = _records(count=[1, 2], d=[Decimal("1.5"), None])

    with pytest.raises(PythonRaises, match="InvalidOperation"):
        evaluated(_expression(fn), [rows])
