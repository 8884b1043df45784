"""New objects whose parts are columns: displays, dataclasses, named tuples and copies with other fields."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest

from dstream.engine.compiler.evaluation import read_op
from dstream.engine.tasks.runtime import StageTask
from dstream.expressions.reader import Unreadable, read
from dstream.operators.columns.arrow_rows import Records
from dstream.operators.columns.built_rows import BuiltRows
from dstream.operators.columns.evaluation import evaluated
from dstream.operators.columns.values import Column, NotColumnar, column_of, items_of
from dstream.operators.rows.blocks import ColumnItems
from dstream.operators.rows.operations import operation
from dstream.plan.operations.elementwise import Chain
from dstream.plan.operations.sort_limit import Limit
from dstream.plan.steps import Op, Step
from dstream.spi import ArrowRows
from tests.differential.column_programs import watched as counted

_STEP = Step("map", None, 0, 1)


@dataclass
class Sale:
    """Kinds of rows, and what they become."""

    city: str
    price: float
    n: int = 3


@dataclass(frozen=True)
class Frozen:
    """It cannot be changed."""

    city: str
    price: float


@dataclass(slots=True)
class Slotted:
    """It has no dictionary."""

    price: float
    city: str = "none"


class Named(NamedTuple):
    """It has places, too."""

    city: str
    n: int = 7


class Rounded(NamedTuple):
    """It has a method."""

    price: float

    def rounded(self) -> int:
        """Return an int."""
        return round(self.price)


@dataclass
class Gap:
    """One of its defaults may be used, and not the other."""

    a: int
    b: int = 1
    c: int = 2


@dataclass
class Deleted:
    """Its code shows whether an object was made."""

    city: str

    def __del__(self) -> None:
        """Do nothing."""


_SALES = [Sale("Rome", 2.5, 1), Sale("Oslo", math.nan, 2), Sale("", -0.0, 3), Sale("Rome", 1e300, 4)]


def _rows(items: list[Any], names: tuple[str, ...], *ways: Any) -> Records:
    def made(places: Any) -> list[Any]:
        found = [items[place] for place in np.arange(len(items))[places].tolist()]
        return [dict(each) if isinstance(each, dict) else dataclasses.replace(each) for each in found]

    def of(item: Any, name: str) -> Any:
        return item[name] if isinstance(item, dict) else getattr(item, name)

    columns = {name: pa.array([of(each, name) for each in items]) for name in names}
    parts = {name: lambda name=name: columns[name] for name in names}
    return Records(ArrowRows(len(items), parts, frozenset(ways), made, 3), None)


def _of_objects() -> Records:
    return _rows(_SALES, ("city", "price", "n"), "attribute")


def _of_dicts() -> Records:
    return _rows([dataclasses.asdict(each) for each in _SALES], ("city", "price", "n"), "key")


def _evaluated(column: Column, *functions: Callable[[Any], Any]) -> Column:
    for function in functions:
        expression: Any = read(function)
        column = evaluated(expression, (column,))
    return column


def _is_as_called(column: Column, *functions: Callable[[Any], Any]) -> None:
    """Compare with the functions themselves, on items of their own."""
    expected = items_of(column)
    for function in functions:
        expected = list(map(function, expected))
    found = items_of(_evaluated(column, *functions))
    assert list(map(repr, found)) == list(map(repr, expected))
    assert list(map(type, found)) == list(map(type, expected))


OF_OBJECTS: list[Callable[[Any], Any]] = [
    lambda o: {"city": o.city, "total": o.price * o.n},
    lambda o: {"total": o.price, "one": 1, "none": None},
    lambda o: dict(city=o.city, n=o.n),  # noqa: C408
    lambda o: {},
    lambda o: [o.city, o.n, o.price],
    lambda o: [],
    lambda o: {"inner": {"n": [o.n, (o.city, 1)]}, "é": o.price},
    lambda o: Sale(o.city, o.price * 2),
    lambda o: Sale(n=o.n, city="x", price=o.price),
    lambda o: Frozen(price=o.price, city=o.city.upper()),
    lambda o: Slotted(o.price),
    lambda o: Named(o.city),
    lambda o: Named(n=o.n, city=o.city),
    lambda o: (Rounded(o.price * 2), o.n),
    lambda o: dataclasses.replace(o, price=o.price * 2),
    lambda o: dataclasses.replace(o, n=1, city=o.city + "!"),
    lambda o: dataclasses.replace(o),
    lambda o: {"o": o},
    lambda o: Gap(o.n, c=o.n + 1),
    lambda o: {"a": 1, "b": o.n} if o.n > 2 else {"b": 1, "a": o.n},
    lambda o: Named(o.city, o.n) if o.n > 2 else {"city": o.city, "n": o.n},
]
OF_DICTS: list[Callable[[Any], Any]] = [
    lambda d: {**d, "total": d["price"] * d["n"]},
    lambda d: {**d, "n": 1, "z": d["city"]},
    lambda d: {**d},
    lambda d: {"n": d.get("n"), "city": d.get("city", "none")},
    lambda d: {"has": "city" in d},
]


@pytest.mark.parametrize("function", OF_OBJECTS)
def test_objects_are_built_of_columns(function: Callable[[Any], Any]) -> None:
    """Each row becomes an object of its own."""
    _is_as_called(_of_objects(), function)
    found = items_of(_evaluated(_of_objects(), function))
    assert len(set(map(id, found))) == len(found)


@pytest.mark.parametrize("function", OF_DICTS)
def test_dicts_are_copied_with_other_values(function: Callable[[Any], Any]) -> None:
    """A key that was there keeps its place."""
    _is_as_called(_of_dicts(), function)
    assert [list(each) for each in items_of(_evaluated(_of_dicts(), function))] == [
        list(function(each)) for each in items_of(_of_dicts())
    ]


CHAINS: list[tuple[Callable[[Any], Any], ...]] = [
    (lambda o: {"city": o.city, "total": o.price * o.n}, lambda d: d["total"] > 2),
    (lambda o: {"city": o.city, "o": o}, lambda d: (d["city"], d["o"].n + 1)),
    (lambda o: {"city": o.city}, lambda d: d.get("city", 1), lambda city: city.upper()),
    (lambda o: {"city": o.city}, lambda d: (d.get("other"), d.get("more", 5), len(d), "city" in d, "x" in d)),
    (lambda o: {"a": o.n, "b": o.n}, lambda d: {**d, "b": d["a"] + 1, "c": 0}, lambda d: d["b"] + d["c"]),
    (lambda o: [o.n, o.price], lambda x: (x[0], x[-1], len(x))),
    (lambda o: [o.n, o.n * 2], lambda x: (max(x), min(x), sum(x), 3 in x)),
    (lambda o: Sale(o.city, o.price), lambda s: (s.n, s.city, s.price * 2)),
    (lambda o: Slotted(o.price), lambda s: s.city),
    (lambda o: Named(o.city), lambda s: (s.n, s[0], s.city, s[-1])),
    (lambda o: dataclasses.replace(o, n=o.n + 1), lambda o: o.n * 2),
    (lambda o: dataclasses.replace(o, n=o.n + 1), lambda o: dataclasses.replace(o, n=o.n * 3), lambda o: (o.n, o.city)),
    (lambda o: {"n": o.n} if o.n > 2 else {"n": 0}, lambda d: d["n"]),
]


@pytest.mark.parametrize("functions", CHAINS)
def test_parts_of_built_objects_are_columns(functions: tuple[Callable[[Any], Any], ...]) -> None:
    """In steps behind the one that builds them; no object is made."""
    _is_as_called(_of_objects(), *functions)


REFUSED: list[tuple[tuple[Callable[[Any], Any], ...], str]] = [
    ((lambda o: {"city": o.city}, lambda d: d["town"]), "not there"),
    ((lambda o: {"city": o.city}, lambda d: d[0]), "not there"),
    ((lambda o: {"city": o.city}, lambda d: d.city), "an attribute of something else"),
    ((lambda o: [o.city], lambda x: x[1]), "not there"),
    ((lambda o: [o.city], lambda x: x["0"]), "not there"),
    ((lambda o: [o.city], lambda x: x.get("0")), "something else than a dict"),
    ((lambda o: Sale(o.city, o.price), lambda x: x[0]), "not there"),
    ((lambda o: Sale(o.city, o.price), lambda x: x.town), "not there"),
    ((lambda o: Named(o.city), lambda x: dataclasses.replace(x, n=1)), "something else than a record"),
    ((lambda o: Rounded(o.price), lambda x: x.rounded), "not there"),
    ((lambda o: dataclasses.replace(o, town=1),), "a field that is not there"),
    ((lambda o: {**o, "n": 1},), "something else than a record"),
    ((lambda o: {"o": o, "p": o},), "twice"),
    ((lambda o: {"o": o.price, "p": o.price},), "NaN"),
    ((lambda o: {"w": o.city.split()}, lambda d: (d, d["w"])), "twice"),
    ((lambda o: {"n": o.n}, lambda d: (d, d)), "twice"),
    ((lambda o: {"n": o.n}, lambda d: d == d), "number"),
    ((lambda o: {"n": o.n}, lambda d: not d), "truth"),
]


@pytest.mark.usefixtures("nothing_by_python")
@pytest.mark.parametrize(("functions", "reason"), REFUSED)
def test_rows_are_left_to_python(functions: tuple[Callable[[Any], Any], ...], reason: str) -> None:
    """It raises, or shows whether one object is there twice."""
    with pytest.raises(NotColumnar, match=reason):
        _evaluated(_of_objects(), *functions)


def test_a_key_that_some_rows_of_a_source_may_have_is_left_to_python() -> None:
    """Its rows may have more keys than columns."""
    with pytest.raises(NotColumnar, match="only some rows"):
        _evaluated(_of_dicts(), lambda d: d.get("other"))


def test_a_class_whose_code_shows_its_objects_is_left_to_python() -> None:
    """Its `__del__` runs once for each."""
    with pytest.raises(NotColumnar, match="code of its own"):
        _evaluated(_of_objects(), lambda o: Deleted(o.city))


def test_built_rows_are_chosen_and_made_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few at a time, so that not all objects are in memory."""
    monkeypatch.setattr("dstream.operators.columns.built_rows._MOST", 2)
    rows = BuiltRows(dict, {"n": column_of(range(5))}, 5)

    assert [list(each) for each in rows.portions()] == [[{"n": 0}, {"n": 1}], [{"n": 2}, {"n": 3}], [{"n": 4}]]
    assert items_of(rows.at(np.array([3, 1]))) == [{"n": 3}, {"n": 1}]


def test_a_chain_makes_no_object_that_nothing_needs() -> None:
    """From a record by a dict to a number."""
    functions = [
        ("map", lambda o: {"city": o.city, "total": o.n * 2}),
        ("filter", lambda d: d["total"] > 2),
        ("map", lambda d: d["total"]),
    ]
    ops: tuple[Op, ...] = tuple(read_op(Op(action, fn, None, _STEP)).op for action, fn in functions)
    chain = Chain(Limit(None, 0, step=_STEP), ops, step=_STEP)  # type: ignore[arg-type]  # Nobody asks it.
    counts: Any = __import__("collections").Counter()
    with counted(counts):
        found = list(operation(chain)(ColumnItems(iter((_of_objects(),))), StageTask(0, 2**40)))

    assert found == [4, 6, 8]
    assert counts == {"blocks": 1, "blocks in columns": 1}


def test_a_field_has_the_default_of_the_constructor(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may have been assigned later, also once the function was read."""

    class Pair(NamedTuple):
        a: int
        b: Any = 0

    @dataclass
    class Point:
        a: int
        b: Any = 0

    for kind, made in ((Pair, Pair.__new__), (Point, Point.__init__)):
        fn = lambda n, kind=kind: kind(n).b  # noqa: E731
        earlier = lambda n: kind(n).b  # noqa: B023, E731
        before = read(earlier)
        monkeypatch.setattr(made, "__defaults__", (5,))
        for found in (before, read(earlier)):
            assert items_of(evaluated(found, [column_of([1, 2])])) == [5, 5]  # type: ignore[arg-type]
        monkeypatch.setattr(made, "__defaults__", ([],))
        with pytest.raises(NotColumnar):
            evaluated(before, [column_of([1, 2])])  # type: ignore[arg-type]
        assert isinstance(read(fn), Unreadable)


def _read(fn: Any) -> Any:
    return read(fn)


_LOW, _HIGH = 1, 2


@pytest.mark.parametrize(
    "fn",
    [
        lambda r: max([_LOW, _HIGH]) > 1,
        lambda r: sum([2, 5]),
        lambda r: max([2]),
        lambda r: min([0.5, 2]),
        lambda r: sum([]),
        lambda r: (r["n"], max([_LOW, _HIGH])),
        lambda r: [max([_LOW, _HIGH]), r["n"]],
        lambda r: max([_LOW, _HIGH]) and 5,
        lambda r: r["n"] if sum([0, 0]) else min([3, 4]),
        lambda r: abs(sum([-2, r["n"]])),
    ],
)
def test_lists_of_what_is_the_same_for_all_rows_give_each_a_result(fn: Any) -> None:
    """Also where `sum`, `max` or `min` takes them apart."""
    items: list[Any] = [{"n": n} for n in range(300)]
    found = evaluated(_read(fn), [_rows(items, ("n",), "key")])

    assert items_of(found) == [fn(item) for item in items]


def test_the_greatest_of_an_empty_list_is_left_to_python() -> None:
    """It raises, for an item."""
    with pytest.raises(NotColumnar):
        evaluated(_read(lambda r: (r["n"], max([]))), [_rows([{"n": 1}], ("n",), "key")])
