"""Methods and properties of the classes of items: read like functions, where all items are of that class."""

from __future__ import annotations

import functools
import math
import operator
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum, StrEnum
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dstream as ds
from collectors import averaging, counting, grouping_by, summing
from dstream.connectors.dataframes import rows_of_table
from dstream.engine.compiler import ClusterFacts
from dstream.expressions import Expression
from dstream.expressions.callables import member_function
from dstream.expressions.reader import read
from dstream.expressions.resolution import Namespaces, is_plain_enumeration
from dstream.operators.columns.entries import class_of
from dstream.operators.columns.values import ConstantColumn, Ints, NotColumnar, Objects, Tuples
from dstream.plan import Read, ToList, rewrite
from dstream.plan.operations.elementwise import Chain
from dstream.plan.steps import Op
from dstream.spi import Collector
from dstream.stream import Stream
from dstream.values.fields import has_fields_alone
from sources import Items, csv_rows, json_lines, parquet_rows
from tests.engine.graphs_here import GraphHere
from tests.engine.watched_columns import Watched

_ROWS = 1_500
"""More than columns need."""


class Base:
    """A base class with a method and a property."""

    price: float
    quantity: int

    def gross(self) -> float:
        return self.price * self.quantity

    @property
    def is_many(self) -> bool:
        return self.quantity > 4


@dataclass
class Sale(Base):
    """A class with methods."""

    shop: str
    price: float
    quantity: int

    def is_large(self, least: float = 300.0, *, factor: int = 1) -> bool:
        if self.is_many:
            return self.gross() * factor > least
        return False

    def total(self) -> float:
        return self.gross() + 1

    @property
    def region(self) -> str:
        return self.shop[:4].upper()

    @property
    def odd(self) -> str:
        return str(type(self).__mro__)

    def worth(self, other: float) -> float:
        return max(self.price, other)

    def many_ways(self, value: int) -> int:
        for _ in range(value):
            value += self.quantity
        return value

    def failing(self) -> float:
        return 1 / (self.quantity - 3)

    def changing(self) -> int:
        self.quantity += 1
        return self.quantity

    def calling(self) -> float:
        return math.fsum([self.price])

    def endless(self) -> int:
        return self.endless() if self.quantity > 99 else 7

    @staticmethod
    def static(value: float) -> float:
        return value + 1

    @classmethod
    def of_class(cls) -> str:
        return cls.__name__

    @functools.cached_property
    def cached(self) -> float:
        return self.price + 1


@dataclass(slots=True)
class Answering:
    """Any attribute is there."""

    shop: str
    price: float
    quantity: int

    def __getattr__(self, name: str) -> Any:
        return name

    def gross(self) -> float:
        return self.price

    @property
    def region(self) -> Any:
        return self.shop.nothing  # type: ignore[attr-defined]


class Covered:
    """A method that a field covers."""

    def gross(self) -> float:
        return 2.0

    @property
    def region(self) -> float:
        return 1.0


@dataclass
class Covering(Covered):
    """The field comes first, and is no function."""

    shop: str
    price: float
    quantity: int
    gross: float  # type: ignore[assignment]


@dataclass
class Child(Sale):
    """A class that inherits methods."""

    def gross(self) -> float:
        return super().gross() - 1


@dataclass(frozen=True, slots=True)
class Frozen:
    shop: str
    price: float
    quantity: int

    def gross(self) -> float:
        return self.price * self.quantity * 2

    @property
    def region(self) -> str:
        return self.shop[-2:]


class Row(NamedTuple):
    shop: str
    price: float
    quantity: int

    def gross(self) -> float:
        return self[1] + self.quantity

    @property
    def region(self) -> int:
        return self.quantity % 3


@dataclass
class Computing:
    """Objects with more than their fields."""

    shop: str
    price: float
    quantity: int
    extra: Callable[[], float] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self.gross = lambda: -1.0  # type: ignore[method-assign]

    def gross(self) -> float:
        return self.price

    @property
    def region(self) -> str:
        return "computed"


@dataclass
class Hiding:
    shop: str
    price: float
    quantity: int
    region: str = ""

    def __getattribute__(self, name: str) -> Any:
        return (lambda: -2.0) if name == "gross" else object.__getattribute__(self, name)

    def gross(self) -> float:
        return self.price


_TABLE = pa.table(
    {
        "shop": [f"shop {n % 7}" for n in range(_ROWS)],
        "price": [n % 97 * 1.5 for n in range(_ROWS)],
        "quantity": [n % 9 for n in range(_ROWS)],
    }
)


def _items(kind: Any) -> list[Any]:
    return [kind(**row) for row in _TABLE.to_pylist()]


def _sales(kind: Any) -> Stream[Any]:
    return Stream(Read(rows_of_table(_TABLE, kind)), None).parallel(1)


class Size(Enum):
    """An enumeration with methods."""

    FEW = 0
    SOME = 1
    MANY = 2

    def is_large(self, least: int = 1) -> bool:
        return self.value > least

    @property
    def label(self) -> str:
        return self.name.title()


class Level(StrEnum):
    """Members that are strings, one of whose methods is another one."""

    LOW = "shop 1"
    HIGH = "shop 2"

    def upper(self) -> str:
        return "other"


class Found(Enum):
    """A value that is none of a member's stands for one."""

    FEW = 0

    @classmethod
    def _missing_(cls, value: object) -> Found:
        return cls.FEW


class Added(Enum):
    """Members that Python adds by a method."""

    FEW = 0

    def __add__(self, other: Any) -> int:
        return 1


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Watched:
    """Record the expressions that are evaluated in columns."""
    return Watched(monkeypatch)


def _run(stream: Stream[Any]) -> tuple[list[Any], GraphHere]:
    graph = GraphHere(rewrite(ToList(stream._node)), ClusterFacts(1, 1, 2**22))
    return graph.items(), graph


def _are_columns(graph: GraphHere, watched: Watched) -> list[bool]:
    """Return for each step whether it was evaluated in columns."""
    return [watched.has(op.evaluation.expression) for op in _ops(graph)]


def _ops(graph: GraphHere) -> list[Op]:
    chains = [one.node for vertex in graph.ran for each in vertex.inputs for one in each.applied]
    return [op for one in chains if isinstance(one, Chain) for op in one.ops]


_OF_ALL: list[Callable[[Any], Any]] = [
    lambda s: s.gross(),
    lambda s: (s.region, s.gross()),
    lambda s: s.gross() > 100 and s.shop != "shop 1",
    lambda s: max(s.gross(), s.price),
]
_OF_SALES: list[Callable[[Any], Any]] = [
    lambda s: s.is_large(),
    lambda s: s.is_large(500),
    lambda s: s.is_large(factor=s.quantity, least=s.price),
    lambda s: s.total(),
    lambda s: s.region.lower() if s.is_many else s.shop,
    lambda s: s.worth(s.gross()),
    lambda s: replace(s, price=s.gross()).gross(),
]
_IN_COLUMNS: list[tuple[Any, Callable[[Any], Any]]] = [
    *((kind, fn) for kind in (Sale, Frozen, Row) for fn in _OF_ALL),
    *((Sale, fn) for fn in _OF_SALES),
    (Child, lambda s: s.worth(20)),
]


@pytest.mark.parametrize(("kind", "fn"), _IN_COLUMNS)
def test_methods_are_evaluated_in_columns(kind: Any, fn: Callable[[Any], Any], watched: Watched) -> None:
    """Methods and properties of items that a source makes of a class run in columns, as the functions that they are."""
    found, graph = _run(_sales(kind).map(fn))
    assert found == list(map(fn, _items(kind)))
    assert _are_columns(graph, watched) == [True]


@pytest.mark.parametrize(
    "fn",
    [
        lambda s: Size(s.quantity % 3).is_large(),
        lambda s: Size(s.quantity % 3).is_large(0),
        lambda s: Size(s.quantity % 3).label,
        lambda s: Size(s.quantity % 3) in (Size.FEW, Size.MANY),
    ],
)
def test_members_of_enumerations_have_their_methods(fn: Callable[[Any], Any], watched: Watched) -> None:
    """Of each distinct value the member is looked up once, and asked once."""
    found, graph = _run(_sales(Sale).map(fn))
    assert found == list(map(fn, _items(Sale)))
    assert _are_columns(graph, watched) == [True]


@pytest.mark.parametrize(
    "fn",
    [
        lambda s: Level("shop 1").upper() + s.shop,
        lambda s: Level.LOW.upper() + s.shop,
        lambda s: s.shop == Level.LOW,
        lambda s: s.shop.upper() == Level.LOW,
        lambda s: Found(s.quantity).name,
    ],
)
def test_enumerations_with_code_of_their_own_give_what_they_give(fn: Callable[[Any], Any]) -> None:
    """A method in the place of one of `str`, and members for other values, are the class's own."""
    found, _ = _run(_sales(Sale).map(fn))
    assert found == list(map(fn, _items(Sale)))
    assert list(map(is_plain_enumeration, (Size, Level, Found, Added))) == [True, False, False, False]


@pytest.mark.parametrize(
    "fn",
    [
        lambda s: s.changing(),
        lambda s: (s.changing(), s.quantity),
        lambda s: s.calling(),
        lambda s: s.static(s.price),
        lambda s: s.of_class(),
        lambda s: s.cached,
        lambda s: (s.cached, s.cached),
        lambda s: s.gross.__name__,
        lambda s: s.is_large.__func__.__name__,
        lambda s: s.endless(),
        lambda s: s.many_ways(s.quantity),
    ],
)
def test_other_methods_give_what_they_give(fn: Callable[[Any], Any]) -> None:
    """Methods that change their object, or do more than an expression, are called."""
    found, _ = _run(_sales(Sale).map(fn))
    assert found == list(map(fn, _items(Sale)))


@pytest.mark.parametrize("kind", [Computing, Hiding, Child, Answering, Covering])
def test_objects_with_lookups_of_their_own_give_what_they_give(kind: Any) -> None:
    """Objects that may have another attribute than the text of their class says are asked."""

    def fn(sale: Any) -> object:
        try:
            return sale.gross()
        except TypeError as error:
            return str(error)

    for each in (fn, lambda s: s.region):
        found, _ = _run(_sales(kind).map(each))
        assert found == list(map(each, _items(kind)))


def test_an_exception_of_a_method_is_that_of_its_item() -> None:
    """An exception inside a method names the item."""
    with ds.connect(progress=False) as ctx, pytest.raises(ZeroDivisionError) as raised:
        ctx.read(rows_of_table(_TABLE, Sale)).map(lambda s: s.failing()).to_list()
    assert "Sale(shop='shop 3', price=4.5, quantity=3)" in "".join(raised.value.__notes__)


def test_steps_know_the_classes_that_steps_before_them_make(watched: Watched) -> None:
    """A step takes the methods of what a step before it has made."""
    stream = _sales(Row).map(lambda r: Sale(r.shop, r.price, r.quantity)).filter(lambda s: s.is_many)
    found, graph = _run(stream.map(lambda s: s.gross()))
    assert found == [sale.gross() for sale in _items(Sale) if sale.is_many]
    assert _are_columns(graph, watched) == [True, True, True]


@pytest.mark.parametrize(
    "collector",
    [
        summing(lambda s: s.gross()),
        grouping_by(lambda s: s.region, counting()),
        grouping_by(lambda s: s.is_large(200), averaging(lambda s: s.total())),
    ],
)
def test_collectors_take_methods_in_columns(collector: Collector[Any, Any, Any], watched: Watched) -> None:
    """Collectors and keys take methods."""
    with ds.connect(progress=False) as ctx:
        found = ctx.read(rows_of_table(_TABLE, Sale)).parallel(1).collect(collector)
        assert found == ctx.stream(_items(Sale)).collect(collector)
    assert watched.has_method()


@pytest.mark.parametrize("kinds", [(Sale, Frozen), (Frozen, Sale), (Sale, Row), (Row, Frozen, Sale)])
def test_each_item_has_the_method_of_its_own_class(kinds: tuple[Any, ...]) -> None:
    """Items of several classes with one name of a method each have their own."""
    several = functools.reduce(operator.add, map(_sales, kinds))
    found, _ = _run(several.map(lambda s: (s.gross(), s.region)))
    assert found == [(item.gross(), item.region) for kind in kinds for item in _items(kind)]


def test_a_property_that_cannot_be_read_keeps_no_other_part_from_it() -> None:
    """It is asked for each item, as often as it is named."""
    found, graph = _run(_sales(Sale).map(lambda s: (s.odd, s.odd, s.odd, s.odd, s.odd, s.gross())))
    assert found == [(*[item.odd] * 5, item.gross()) for item in _items(Sale)]
    assert _ops(graph)[0].evaluation.expression is not None


def test_rows_of_a_join_have_their_methods(watched: Watched) -> None:
    """The rows of both sides are known as those of their classes."""
    with ds.connect(progress=False) as ctx:
        left = ctx.read(rows_of_table(_TABLE, Sale)).parallel(1)
        right = ctx.read(rows_of_table(_TABLE.slice(0, 9), Frozen)).parallel(1)
        joined = left.join(right, on=lambda s: s.quantity)
        watched.begin()
        found = joined.map(lambda e: e.value[0].worth(1.0) + e.value[1].gross()).to_list()
    by_quantity = {item.quantity: item for item in _items(Frozen)[:9]}
    assert sorted(found) == sorted(item.worth(1.0) + by_quantity[item.quantity].gross() for item in _items(Sale))
    assert watched.has_method()


def test_the_callers_objects_have_the_attributes_that_they_have() -> None:
    """An object of the caller may have its own attribute in the place of a method, or be of a subclass."""
    items = _items(Sale)
    items[700].gross = lambda: -1.0
    items[701] = Child("shop", 2.0, 3)
    both = _sales(Sale) + Stream(Read(Items(items)), None)
    found, _ = _run(both.map(lambda s: s.gross()))
    assert found == [item.gross() for item in [*_items(Sale), *items]]


def test_a_method_is_not_that_of_the_class_where_an_object_has_more_than_fields() -> None:
    """An attribute of the object itself hides the method."""
    sale = _items(Sale)[0]
    assert [has_fields_alone(item, Sale) for item in (sale, _items(Child)[0], _items(Row)[0])] == [True, False, False]
    sale.gross = lambda: -1.0
    assert not has_fields_alone(sale, Sale)


def test_keys_are_those_of_the_objects() -> None:
    """A key function of the caller's objects is called, though the plan knows their class."""
    items = _items(Sale)[:99]
    items[7].gross = lambda: -1.0
    with ds.connect(progress=False) as ctx:
        both = ctx.read(rows_of_table(_TABLE, Sale)) + ctx.stream(items)
        found = both.collect(grouping_by(lambda s: s.gross(), counting()))
    assert found == Counter(item.gross() for item in [*_items(Sale), *items])


def test_a_method_that_is_exchanged_is_read_anew(monkeypatch: pytest.MonkeyPatch, watched: Watched) -> None:
    """A method that a test replaces is the one that runs, and so is the first one afterwards."""
    stream = _sales(Sale).map(lambda s: s.gross())
    first, _ = _run(stream)

    def other(self: Any) -> float:
        return -3.0

    monkeypatch.setattr(Base, "gross", other)
    second, graph = _run(stream)
    # A worker that imports the class has its own method.
    assert _are_columns(graph, watched) == [False]
    monkeypatch.undo()
    third, _ = _run(stream)
    assert second == [-3.0] * _ROWS
    assert first == third == [sale.gross() for sale in _items(Sale)]


def test_a_plan_does_not_know_the_classes_of_another_plan(watched: Watched) -> None:
    """One function in plans of several classes has the method of each."""
    fn: Callable[[Any], Any] = lambda s: s.gross()  # noqa: E731
    for _ in range(2):
        for kind in (Sale, Frozen, Hiding, Sale):
            found, graph = _run(_sales(kind).map(fn))
            assert found == [item.gross() for item in _items(kind)]
            assert _are_columns(graph, watched) == [kind is not Hiding]
            watched.begin()


@pytest.mark.parametrize("source", [csv_rows, json_lines, parquet_rows])
def test_sources_of_files_know_the_class_of_their_items(source: Callable[..., Any]) -> None:
    """It is the one that was named."""
    assert source("sales", kind=Sale).item_class is Sale
    assert source("sales").item_class is None


def test_a_method_of_a_member_that_is_exchanged_is_read_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """The class may have another one, and a member one of its own."""
    stream = _sales(Sale).map(lambda s: Size(s.quantity % 3).is_large())
    for of_its_own in ({}, {"is_large": lambda: "own"}):
        vars(Size.FEW).update(of_its_own)
        assert _run(stream)[0] == [Size(item.quantity % 3).is_large() for item in _items(Sale)]
    del vars(Size.FEW)["is_large"]
    monkeypatch.setattr(Size, "is_large", lambda self: "other")
    assert set(_run(stream)[0]) == {"other"}


@dataclass
class Named:
    """A class whose methods have names of builtin ones, one of which cannot be read."""

    shop: str
    price: float
    quantity: int

    def startswith(self, start: str) -> bool:
        return self.startswith(start) if self.quantity > 99 else self.shop == start

    def lower(self) -> str:
        return self.shop.lower()

    def join(self, parts: Any) -> str:
        return self.shop.join(parts)

    @property
    def value(self) -> float:
        return self.price


@pytest.mark.parametrize(
    "fn",
    [
        lambda s: s.shop.startswith("shop 1"),
        lambda s: s.shop.lower(),
        lambda s: (s.lower(), s.shop.lower().startswith("shop")),
        lambda s: ",".join(part for part in s.shop.split()),
    ],
)
def test_strings_have_their_own_methods(fn: Callable[[Any], Any], watched: Watched) -> None:
    """A method of the same name, of a class of the plan, keeps nothing out of columns."""
    found, graph = _run(_sales(Named).map(fn))
    assert found == list(map(fn, _items(Named)))
    assert _are_columns(graph, watched) == [True]


def test_entries_have_their_own_parts(watched: Watched) -> None:
    """A property of the same name as a part of an entry keeps nothing out of columns."""
    found, graph = _run(_sales(Named).key_by(lambda s: s.shop).map(lambda e: e.value.price))
    assert found == [item.price for item in _items(Named)]
    assert _are_columns(graph, watched) == [True, True]


def test_classes_of_builtin_columns_are_known() -> None:
    """Objects alone may be of any class."""
    columns = Ints(np.array([1]), 1, 1), Tuples((), 1), ConstantColumn("a", 1)
    assert [class_of(each) for each in columns] == [object, object, str]
    with pytest.raises(NotColumnar):
        class_of(Objects([1]))


def test_the_text_of_a_class_tells_a_method_if_no_object_has_another_one() -> None:
    """An object may have a field of the name, or any attribute."""
    found = [member_function(kind, "gross", is_property=False) for kind in (Sale, Covering, Answering, Hiding)]
    assert found == [Base.gross, None, None, None]
    assert member_function(Sale, "region", is_property=True) is vars(Sale)["region"].fget
    assert member_function(Answering, "region", is_property=True) is None


def _deep() -> Any:
    @dataclass
    class Deep:
        price: float
        quantity: int

        @property
        def total(self) -> float:
            if self.quantity < 99:
                return self.price
            return self.total + self.total + self.total + self.total + self.total + self.total

    return Deep


def test_a_property_that_names_itself_is_read_once() -> None:
    """A reading of each of its ways would take as long as there are ways, for each class that has it."""
    namespaces = Namespaces()
    namespaces.classes.update(dict.fromkeys(_deep() for _ in range(4)))
    began = time.process_time()
    assert isinstance(read(lambda s: s.total, 1, namespaces), Expression)
    assert time.process_time() - began < 0.2


def test_a_reading_with_methods_is_remembered_until_one_of_them_is_exchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    """The classes are asked for their methods, not read again."""
    namespaces = Namespaces()
    namespaces.classes[Sale] = None
    fn: Callable[[Any], Any] = lambda s: (s.gross(), s.is_many)  # noqa: E731
    first = read(fn, 1, namespaces)
    assert read(fn, 1, namespaces) is first

    def gross(self: Any) -> float:
        return -self.price

    gross.__module__, gross.__qualname__ = Base.__module__, "Base.gross"
    for name, other in (("gross", gross), ("gross", property(gross)), ("is_many", property(gross))):
        monkeypatch.setattr(Base, name, other)
        assert read(fn, 1, namespaces) != first
        monkeypatch.undo()
    assert read(fn, 1, namespaces) == first


@pytest.mark.parametrize("change", ["a property", "setting"])
def test_a_class_that_changes_behind_its_first_run_is_called(tmp_path, change):
    """Its fields were plain then."""

    @dataclass
    class Kind:
        number: int
        factor: float

    pq.write_table(pa.table({"number": range(_ROWS), "factor": [1.5] * _ROWS}), tmp_path / "rows.parquet")
    with ds.connect(storage="memory:") as context:

        def numbers() -> list[Any]:
            return context.read(parquet_rows(tmp_path / "rows.parquet", Kind)).map(lambda row: row.number).to_list()

        assert numbers() == [*range(_ROWS)]
        if change == "setting":
            Kind.__setattr__ = lambda row, name, value: object.__setattr__(row, name, value * 2)  # type: ignore[method-assign]
            assert numbers() == [2 * n for n in range(_ROWS)]
        else:
            Kind.number = property(lambda row: 42, lambda row, value: None)  # type: ignore[assignment]
            assert numbers() == [42] * _ROWS
