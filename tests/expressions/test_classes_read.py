"""Classes whose objects are made by setting fields alone are read; each that does anything more is left to Python."""

from __future__ import annotations

import ast
import functools
import json
import operator
import runpy
from collections.abc import Callable
from dataclasses import InitVar, dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from dstream.expressions import Argument, Built, Called, Constant, Expression
from dstream.expressions import calls as calls_read
from dstream.expressions import syntax as syntax_read
from dstream.expressions.reader import Unreadable, read
from dstream.expressions.resolution import Namespaces


class _Counting(type):
    def __call__(cls, *given: Any) -> Any:
        return super().__call__(*(each + 1 for each in given))


class _Doubled:
    def __get__(self, item: Any, kind: type) -> Any:
        return self if item is None else vars(item)["doubled"]

    def __set__(self, item: Any, value: Any) -> None:
        vars(item)["doubled"] = value * 2 if isinstance(value, int) else 0


@dataclass
class OwnNew:
    x: int

    def __new__(cls, x: int) -> Any:
        made = object.__new__(cls)
        return made if x else None


@dataclass
class OwnSetting:
    x: int

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value + 1)


@dataclass
class Computed:
    x: int = _Doubled()  # type: ignore[assignment]


@dataclass
class ByKeyword:
    x: int = field(kw_only=True)


@dataclass
class NotGiven:
    y: int = field(init=False, default=3)
    x: int = 0


@dataclass
class OnlyForInit:
    x: int
    more: InitVar[int] = 0


@dataclass
class OwnInit:
    x: int

    def __init__(self, x: int) -> None:
        self.x = -x


@dataclass
class _Parent:
    x: int


@dataclass(init=False)
class InitOfParent(_Parent):
    y: int = 0


@dataclass
class AfterInit:
    x: int

    def __post_init__(self) -> None:
        self.x = abs(self.x)


@dataclass
class MadeByItsMeta(metaclass=_Counting):
    x: int


class _Pair(NamedTuple):
    x: int


class PairWithNew(_Pair):
    def __new__(cls, x: int) -> Any:
        return super().__new__(cls, -x)


class PairWithInit(_Pair):
    def __init__(self, x: int) -> None:
        self.seen = x


class PairOfMeta(_Pair, metaclass=_Counting):
    pass


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: OwnNew(x),
        lambda x: OwnSetting(x),
        lambda x: Computed(x),
        lambda x: ByKeyword(x=x),
        lambda x: NotGiven(x),
        lambda x: OnlyForInit(x),
        lambda x: OwnInit(x),
        lambda x: InitOfParent(x),
        lambda x: AfterInit(x),
        lambda x: MadeByItsMeta(x),
        lambda x: PairWithNew(x),
        lambda x: PairWithInit(x),
        lambda x: PairOfMeta(x),
    ],
)
def test_classes_that_do_more_than_to_keep_their_fields_are_not_read(fn: Callable[[Any], Any]) -> None:
    """In whatever way they do it."""
    found = read(fn)
    assert isinstance(found, Unreadable), found
    assert found.reason.startswith("calls ")


@pytest.mark.parametrize("fn", [lambda x: _Parent(x), lambda x: _Pair(x=x)])
def test_classes_that_keep_their_fields_are_read(fn: Callable[[Any], Any]) -> None:
    """So what the others lack is told by their code, and by nothing else."""
    assert isinstance(read(fn), Built)


@pytest.mark.parametrize("fn", [operator.methodcaller("sort"), operator.methodcaller("pop", 0), "".__format__])
def test_methods_that_may_change_something_are_not_read(fn: Callable[[Any], Any]) -> None:
    """Only those are that are known to change nothing."""
    assert isinstance(read(fn), Unreadable)


def test_what_is_contained_is_read_in_the_order_of_its_evaluation() -> None:
    """`contains(a, b)` evaluates `a` first, and `b in a` does `b`."""
    assert isinstance(read(lambda x: operator.contains(x, 1)), Unreadable) is False
    assert isinstance(read(lambda x: operator.contains(x[0], x[1] / 0)), Unreadable)


def test_functions_of_python_are_read_with_known_keywords_alone() -> None:
    """A function that builtins would call for each item may be any."""
    assert isinstance(read(lambda x: round(x, ndigits=1)), Unreadable) is False
    assert isinstance(read(lambda x: json.dumps(x, default=len)), Unreadable)


def test_keywords_of_times_are_read_in_the_order_of_their_parameters_alone() -> None:
    """A worker is given arguments by place, which Python evaluates in the order in which they are written."""
    hours = read(lambda x: timedelta(hours=x))

    assert isinstance(hours, Called)
    assert hours.arguments == (*[Constant(0)] * 5, Argument(0))
    assert isinstance(read(lambda x: date(day=x[0], month=x[1], year=2026)), Unreadable)
    assert isinstance(read(lambda x: round(number=x)), Unreadable)


class _Row(NamedTuple):
    """Its `_replace` and `strip` are members of the plan's class that cannot be read."""

    name: str

    def strip(self, *chars: str) -> str:
        while self.name.endswith(chars):
            pass
        return self.name

    def finditer(self, text: str) -> str:
        return self.strip(text)


_CHAINS = [
    ("{}.strip()", "x.name"),
    ("{}._replace(name='a')", "x"),
    ("x.name.strip({})", "x.name"),
    ("list(x.finditer({}))", "x.name"),
    ("x in [{}, 1]", "x"),
]


@pytest.mark.parametrize(("link", "first"), _CHAINS)
def test_what_cannot_be_read_in_one_way_is_not_read_twice_in_each_link(
    link: str, first: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The readings of a chain grow with its length, where two of each link would double them with each."""
    readings: list[object] = []
    original = syntax_read.read_syntax

    def counted(syntax: ast.AST, body: syntax_read.Body) -> Expression:
        readings.append(syntax)
        return original(syntax, body)

    for module in (calls_read, syntax_read):
        monkeypatch.setattr(module, "read_syntax", counted)

    def count(links: int) -> int:
        written = functools.reduce(lambda inner, _: link.format(inner), range(links), first)
        file = tmp_path / f"chain_{links}.py"
        file.write_text(f"fn = lambda x: {written}\n")
        namespaces = Namespaces()
        namespaces.classes[_Row] = None
        readings.clear()
        read(runpy.run_path(str(file))["fn"], namespaces=namespaces)
        return len(readings)

    assert count(5) >= 5
    assert count(10) <= 3 * count(5)
