"""Lists, dicts and sets of a script that functions look into, and that no function of the plan changes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from types import FunctionType
from typing import Any

import pytest

from dstream.engine.compiler import ClusterFacts
from dstream.engine.compiler.evaluation import read_op
from dstream.engine.compiler.walk import containers_changed
from dstream.expressions import Expression
from dstream.expressions.reader import Unreadable, read
from dstream.expressions.resolution import Namespaces, container_of
from dstream.expressions.tree import Constant
from dstream.operators.columns.chain_evaluation import is_same
from dstream.operators.columns.evaluation import evaluated
from dstream.operators.columns.values import NotColumnar, column_of, items_of
from dstream.plan import Read, ToList, rewrite
from dstream.stream import Stream
from sources import Items
from tests.engine.graphs_here import GraphHere

_RATES = {"de": 0.19, "fr": 0.2, "é": -0.0, 1: 5.0}
_NAMES = {1: "one", 2.0: "two", False: "none"}
_STOP = {"the", "a", 3, None, 2**70}
_WORDS = ["the", "sea", "the", 7]


@pytest.mark.parametrize(
    ("fn", "items"),
    [
        (lambda x: _RATES[x], ["de", "fr", "de", "é"]),
        (lambda x: _RATES.get(x), ["de", "uk"]),
        (lambda x: _RATES.get(x, 0), ["de", "uk"]),
        (lambda x: x in _RATES, ["de", "uk", "é", ""]),
        (lambda x: x not in _STOP, ["the", "sea"]),
        (lambda x: x in _STOP, [3, 4, -1]),
        (lambda x: x in _STOP, [3.0, 4.5]),
        (lambda x: x in _NAMES, [True, False]),
        (lambda x: _NAMES[x], [1, 2, 0, 1]),
        (lambda x: _NAMES[x], [1.0, 2.0, -0.0]),
        (lambda x: _NAMES.get(x), [True, False]),
        (lambda x: _WORDS[x], [0, -1, 3]),
        (lambda x: x in _WORDS, ["sea", "7"]),
        (lambda x: _WORDS.count(x) + _WORDS.index(x), ["sea", "the"]),
        (lambda x: _RATES[x] * 2 if x in _RATES else 0.5, ["de", "uk"]),
    ],
)
def test_containers_give_columns_what_they_give_python(fn: Callable[[Any], Any], items: list[Any]) -> None:
    """By the rules of Python for equal keys: 1, 1.0 and True are one."""
    found = read(fn)
    assert isinstance(found, Expression)

    assert is_same(items_of(evaluated(found, [column_of(items)])), list(map(fn, items)))


@pytest.mark.parametrize(
    ("fn", "items"),
    [
        (lambda x: _RATES[x], ["de", "uk"]),
        (lambda x: _WORDS[x], [0, 4]),
        (lambda x: _WORDS[x], ["0"]),
        (lambda x: _WORDS.index(x), ["whale"]),
        (lambda x: _RATES.get(x, x), ["de", "uk"]),
        (lambda x: x in _STOP, [float("nan")]),
        (lambda x: (x,) in _STOP and _RATES[x], [("de", 1)]),
    ],
)
def test_what_is_not_there_is_left_to_the_function(fn: Callable[[Any], Any], items: list[Any]) -> None:
    """Its error names the step and the item."""
    found = read(fn)
    assert isinstance(found, Expression)

    with pytest.raises(NotColumnar):
        evaluated(found, [column_of(items)])


_LISTS = {"de": [1]}
_OBJECTS = {"de": object()}
_NAN = {"x": float("nan")}


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: (x, _WORDS),
        lambda x: _WORDS,
        lambda x: _WORDS or x,
        lambda x: _RATES.items(),
        lambda x: _STOP.pop(),
        lambda x: _LISTS.get(x),
        lambda x: _OBJECTS[x],
        lambda x: _NAN.get(x),
        lambda x: _WORDS.append(x),
        lambda x: _RATES.setdefault(x, 1),
    ],
)
def test_a_container_that_gets_out_is_not_read(fn: Callable[[Any], Any]) -> None:
    """Another step may change it, or what it contains."""
    assert isinstance(read(fn), Unreadable)


def _plan(*steps: Callable[[Any], Any]) -> Any:
    stream: Stream[Any] = Stream(Read(Items(["the", "sea", "the"], 1)), None)
    for step in steps:
        stream = stream.map(step)
    return rewrite(ToList(stream._node))


def test_a_container_that_another_function_may_change_is_not_read() -> None:
    """By its name, in an object, by a method, or in a container; functions that are read change none."""
    seen: set[str] = set()
    held = {"inner": [seen]}

    def looks(word: str) -> bool:
        return word in seen

    class Own:
        def __init__(self) -> None:
            self.words = seen

        def __call__(self, word: str) -> str:
            return word

    def by_name(word: str) -> str:
        seen.add(word)
        return word

    for changes in (by_name, Own(), seen.add, lambda word: print(held, word)):
        plan = _plan(looks, changes)
        reading = read(looks, 1, Namespaces(functools.partial(containers_changed, plan)))
        assert isinstance(reading, Unreadable), changes
        assert reading.reason == "captures seen, a set"
    both = _plan(looks, lambda word: (word, word in seen), lambda word: print(word))
    assert isinstance(read(looks, 1, Namespaces(lambda: containers_changed(both))), Expression)


def test_a_container_that_code_of_a_class_may_change_is_not_read() -> None:
    """The code is in a base, in a metaclass, or in an operator that a function which is read evaluates."""
    seen: set[int] = set()

    class Base:
        words = seen

    class Child(Base):
        def __call__(self, word: int) -> bool:
            self.words.add(word)
            return True

    class Meta(type):
        def __call__(cls, word: int) -> bool:
            seen.add(word)
            return True

    class Made(metaclass=Meta):
        pass

    @dataclass
    class Tested:
        n: int

        def __bool__(self) -> bool:
            seen.add(self.n)
            return True

    one = Tested(1)
    steps: list[Any] = [Child(), Made, lambda n: 1 if Tested(n) else 0, lambda n, other=one: n or other]
    for changes in steps:
        assert id(seen) in (containers_changed(_plan(changes)) or ()), changes


def test_a_container_behind_a_global_method_is_not_read() -> None:
    """A method written in C has the object that it changes."""
    seen: set[str] = set()
    adds = FunctionType((lambda word: add(word)).__code__, {"add": seen.add})  # type: ignore[name-defined]  # noqa: F821

    assert id(seen) in (containers_changed(_plan(adds)) or ())


def test_members_of_a_container_are_looked_at_by_their_types() -> None:
    """One by one are those alone whose type does not tell: a NaN, tuples, Decimals and times."""
    constants = [{n: str(n) for n in range(9)}, {1.5, (2, 0.5)}, [Decimal(1), datetime(2024, 1, 1), None]]
    others = [{1: float("nan")}, [(1, [])], {Decimal("nan")}, {"x": object()}]

    assert [container_of(each, Namespaces()) for each in constants] == list(map(Constant, constants))
    assert [container_of(each, Namespaces()) for each in others] == [None] * 4


def test_a_plan_whose_objects_are_many_reads_no_container(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any of them may have it."""
    monkeypatch.setattr("dstream.engine.compiler.walk._MOST_REACHED", 3)
    many = [[each] for each in range(9)]

    assert containers_changed(_plan(lambda word: print(many, word))) is None
    namespaces = Namespaces(lambda: None)
    assert isinstance(read(lambda word: word in _STOP, 1, namespaces), Unreadable)


def test_the_compiler_asks_which_containers_change() -> None:
    """Of the plan that it compiles."""
    seen = {"sea": 1}
    changing = GraphHere(_plan(lambda w: seen.get(w, 0), lambda n: seen.update(a=n)), ClusterFacts(1, 1, 2**22))
    looking = GraphHere(_plan(lambda w: seen.get(w, 0), lambda n: print(n)), ClusterFacts(1, 1, 2**22))
    routes = []
    for graph in (changing, looking):
        graph.run()
        chain = graph.ran[0].inputs[0].applied[0].node
        routes.append([op.evaluation.expression is None for op in chain.ops])  # type: ignore[attr-defined]

    assert routes == [[True, True], [False, True]]


def test_a_name_has_the_value_of_the_run() -> None:
    """An assignment to a container before it counts."""
    rates = {"de": 1}
    op = next(iter(_plan(lambda w: rates.get(w, 0)).upstream.ops))
    rates["de"] = 2

    assert items_of(evaluated(read_op(op).op.evaluation.expression, [column_of(["de"])])) == [2]  # type: ignore[arg-type]
