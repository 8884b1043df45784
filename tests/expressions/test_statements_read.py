"""Assignments inside of expressions, unpacking, enumerations and type checks of functions that are read."""

from __future__ import annotations

import enum
import re
from collections.abc import Callable
from typing import Any

import pytest

from dstream.expressions import Attribute, Called, Constant, Expression, Let
from dstream.expressions.reader import Unreadable, read
from dstream.operators.rows.loops import run_chain
from dstream.plan.steps import Op, Step, StepEvaluation

_DIGITS = re.compile(r"\d+")


def _domain(text: str) -> str:
    name, _, host = text.partition("@")
    return host or name


def _two(text: str) -> Any:
    first, second = text.split(",")
    return second, first


def _tested(text: str) -> str:
    if (found := re.search(r"\d+", text)) is not None:
        return found.group()
    if (length := len(text)) > 3:
        return str(length)
    return text


class Status(enum.Enum):
    PAID = "paid"
    LOST = "lost"

    @property
    def name_of(self) -> str:
        return self.name


class Odd(enum.Enum):
    PAID = "paid"

    @property
    def value(self) -> str:
        return "another one"


def _of_script(text: str) -> dict[str, Any]:
    import linecache

    file = "<script of enumerations>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(text, file, "exec"), names)
    return names


_FUNCTIONS: list[Callable[[Any], Any]] = [
    _domain,
    _two,
    _tested,
    lambda text: (m := _DIGITS.search(text)) and int(m.group()),
    lambda text: n if (n := len(text)) > 3 else -n,
    lambda text: (n := len(text)) * n,
    lambda text: (parts := text.split("@"))[0] + parts[-1],
    lambda text: isinstance(text, str) and len(text),
    lambda text: isinstance(text, (int, float)) or text,
]


@pytest.mark.parametrize("fn", _FUNCTIONS)
@pytest.mark.parametrize("text", ["a@b", "12,x", "abcdef", "a,b@7", ""])
def test_statements_give_what_python_gives(fn: Callable[[Any], Any], text: str) -> None:
    """Also where they raise, with the error of the function itself."""
    expression = read(fn)
    assert isinstance(expression, Expression), expression

    assert _outcome(lambda: list(run_chain([_op(fn, expression)], [text]))) == _outcome(lambda: [fn(text)])


def _op(fn: Any, expression: Expression) -> Op:
    return Op("map", fn, None, Step("map", None, 0, 1), evaluation=StepEvaluation(expression, None, True))


def _outcome(run: Callable[[], Any]) -> Any:
    try:
        return run()
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize(
    "fn",
    [
        lambda text: len(text) + (n := 3) + n,
        lambda text: text and (n := len(text)) and n,
        lambda text: [n := 1, n],
        lambda text: isinstance(text, Status),
        lambda text: isinstance(text, int | str),
    ],
)
def test_other_statements_are_not_read(fn: Callable[[Any], Any]) -> None:
    """A part that is evaluated before the assignment might fail, and a class of the user's may check in its own way."""
    assert isinstance(read(fn), Unreadable)


def test_members_of_an_enumeration_are_constants() -> None:
    """A worker imports an enumeration of a module anew; one with code in the place of Python's is not read."""
    text = "import enum\nclass Kind(enum.Enum):\n    A = 'a'\n    B = [1]\nclass Odd(enum.Enum):\n    A = 1\n"
    text += "    @property\n    def value(self):\n        return 7\n"
    text += "fns = [lambda x: Kind.A.value, lambda x: Kind.B.name, lambda x: Kind.B.value, lambda x: Odd.A.value]\n"
    first, second, of_list, odd = map(read, _of_script(text)["fns"])

    assert (first, second) == (Constant("a"), Constant("B"))
    assert isinstance(of_list, Unreadable)
    assert isinstance(odd, Unreadable)
    assert read(lambda x: Status.PAID.value) == Attribute(Constant(Status.PAID), "value")
    assert isinstance(read(lambda x: Odd.PAID.value), Unreadable)


def test_unpacking_checks_how_many_members_there_are() -> None:
    """Before anything that follows."""
    found = read(_two)

    assert isinstance(found, Let)
    assert found.value == Called("dstream.unpacked", (found.value.arguments[0], Constant(2)))  # type: ignore[attr-defined]
