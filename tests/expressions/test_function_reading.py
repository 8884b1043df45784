"""Functions are read from their source, if this is proven to be theirs, with what their names stand for now."""

from __future__ import annotations

import functools
import json
import linecache
import math
import operator
import re
import sys
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import cloudpickle
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
    Formatted,
    Indexed,
    Let,
    Local,
    Method,
    Text,
    Together,
)
from dstream.expressions.reader import Unreadable, read
from dstream.failures import near

_X, _Y = Argument(0), Argument(1)
_RATE, _NOT_A_NUMBER, _STOPS, _FROZEN = 3, float("nan"), {"a"}, frozenset("ab")
_DIGITS = re.compile("[0-9]+")


@dataclass(frozen=True)
class Point:
    x: int
    y: int = 0


class Named(NamedTuple):
    x: int
    y: int = 0


@dataclass
class Checked:
    x: int

    def __post_init__(self) -> None:
        self.x = abs(self.x)


@dataclass
class WithList:
    x: int
    held: list[int] = field(default_factory=list)


class Plain:
    def __init__(self, x: int) -> None:
        self.x = x


def _made_by_value(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function as one of a script: pickled with what its names stand for."""
    fn.__module__ = "__main__"
    return fn


def _applied(operator: Any, *operands: Expression) -> Applied:
    return Applied(operator, operands)


def _constant(value: Any) -> Constant:
    return Constant(value)


def _square(x: int) -> int:
    return x * x


def _by_place(x: int, /, *, y: int = 1) -> int:
    return x + y


def _half(x: int) -> float:
    return x / 2


@_made_by_value
def _in_steps(text: str) -> Any:
    """Return something, in steps."""
    words: Any = text.split()
    if not words:
        return None
    return words[0], len(words)


@_made_by_value
def _with(x: Any) -> Any:
    with x:
        return 1


def _calls_itself(x: int) -> int:
    return _calls_itself(x - 1)


_SPLIT = Method(_X, "split", ())

READ: list[tuple[Callable[..., Any], Expression]] = [
    (lambda x: x + 1, _applied("+", _X, _constant(1))),
    (lambda x: -1 if x else not -x, Choice(_X, _constant(-1), _applied("not", _applied("neg", _X)))),
    (lambda x: (x and x.y) or 1.0, _applied("or", _applied("and", _X, Attribute(_X, "y")), _constant(1.0))),
    (lambda x: 0 < x < 5, _applied("and", _applied("<", _constant(0), _X), _applied("<", _X, _constant(5)))),
    (lambda x: x is not None, _applied("is not", _X, _constant(None))),
    (lambda x: x in {"a", "b"}, _applied("in", _X, _constant(_FROZEN))),
    (lambda x: x in ["a", "b"], _applied("in", _X, _constant(("a", "b")))),
    (lambda x: x in _FROZEN, _applied("in", _X, _constant(_FROZEN))),
    (lambda x: (x[0], x["k"]), Together((Indexed(_X, _constant(0)), Indexed(_X, _constant("k"))))),
    (lambda x: x[1:], Indexed(_X, Called("slice", (_constant(1), _constant(None), _constant(None))))),
    (lambda x: f"{x!r:>9}, {x}", Text((Formatted(_X, "r", ">9"), _constant(", "), Formatted(_X, "", "")))),
    (lambda x: x.strip().lower(), Method(Method(_X, "strip", ()), "lower", ())),
    (lambda x: round(abs(x), 2), Called("round", (Called("abs", (_X,)), _constant(2)))),
    (lambda x: math.sqrt(x) * math.pi, _applied("*", Called("math.sqrt", (_X,)), _constant(math.pi))),
    (lambda x: re.split(r"\W+", x), Called("re.split", (_constant(r"\W+"), _X))),
    (lambda x: _DIGITS.findall(x), Method(_constant(_DIGITS), "findall", (_X,))),
    (lambda x: str.lower(x), Called("str.lower", (_X,))),
    (lambda x: operator.mul(x, 2), _applied("*", _X, _constant(2))),
    (lambda x: x * _RATE, _applied("*", _X, _constant(3))),
    (lambda x, k=4: x * k, _applied("*", _X, _constant(4))),
    (lambda x: Point(x), Built(Point, ("x",), (_X,))),
    (lambda x: Point(y=x, x=1), Built(Point, ("y", "x"), (_X, _constant(1)))),
    (lambda x: Named(x, x), Built(Named, ("x", "y"), (_X, _X))),
    (lambda x: _square(x) + 1, _applied("+", _applied("*", _X, _X), _constant(1))),
    (_by_place, _applied("+", _X, _constant(1))),
    (lambda x: _half(x + 1), _applied("/", _applied("+", _X, _constant(1)), _constant(2))),
    (lambda x: _square(x + 1), Let(_applied("+", _X, _constant(1)), 1, _applied("*", Local(1), Local(1)))),
    (
        _in_steps,
        Let(
            _SPLIT,
            1,
            Choice(
                _applied("not", Local(1)),
                _constant(None),
                Together((Indexed(Local(1), _constant(0)), Called("len", (Local(1),)))),
            ),
        ),
    ),
    (len, Called("len", (_X,))),
    (str.upper, Called("str.upper", (_X,))),
    (" ".join, Method(_constant(" "), "join", (_X,))),
    (_DIGITS.findall, Method(_constant(_DIGITS), "findall", (_X,))),
    (operator.neg, _applied("neg", _X)),
    (operator.itemgetter(0, "k"), Together((Indexed(_X, _constant(0)), Indexed(_X, _constant("k"))))),
    (operator.attrgetter("a.b"), Attribute(Attribute(_X, "a"), "b")),
    (operator.methodcaller("split", ","), Method(_X, "split", (_constant(","),))),
    (functools.partial(operator.add, 1), _applied("+", _constant(1), _X)),
    (functools.partial(lambda x, k: x * k, k=2), _applied("*", _X, _constant(2))),
    (Named, Built(Named, ("x",), (_X,))),
]


@pytest.mark.parametrize(("fn", "expression"), READ, ids=range(len(READ)))
def test_read_says_what_a_function_gives(fn: Callable[..., Any], expression: Expression) -> None:
    """Operator by operator, in Python's order."""
    assert read(fn) == expression


def _counter() -> tuple[Callable[[int], int], Callable[[int], int]]:
    count = 0

    def counting(x: int) -> int:
        nonlocal count
        count += 1
        return x

    return counting, lambda x: x + count


def _with_default(x: int, k: int = _RATE) -> int:
    return x + k


def _of_module(x: int) -> int:
    return x + _RATE


def _generates(x: int) -> Iterator[int]:
    yield x


async def _awaits(x: int) -> int:
    return x


REFUSED: dict[str, Callable[..., Any]] = {
    "calls json.JSONEncoder": lambda x: json.JSONEncoder(x),
    "captures _STOPS, a set": lambda x: (x, _STOPS),
    "captures _NOT_A_NUMBER, a float": lambda x: x in (_NOT_A_NUMBER, 1),
    "compares with is": lambda x: x is _RATE,
    "looks at count, which a global or nonlocal statement changes": _counter()[1],
    "looks at _RATE of its module, which every worker imports anew": _of_module,
    "has a default for k, which every worker computes anew": _with_default,
    "is no plain function: it yields or awaits": _generates,
    "takes *args or **kwargs": lambda *x: x[0],
    "takes an argument y that is not given": lambda x, y: x + y,
    "has a generator expression that no call uses up": lambda x: (n for n in x),
    "calls map, whose result no call uses up": lambda x: map(str, x),
    "calls .append()": lambda x: x.append(1),
    "calls .zfill() with a keyword": lambda x: x.zfill(width=1),
    "calls id": lambda x: id(x),
    "calls Checked": lambda x: Checked(x),
    "calls WithList without held": lambda x: WithList(x),
    "calls Plain": lambda x: Plain(x),
    "calls itself": lambda x: _calls_itself(x),
    "unpacks arguments with *": lambda x: max(*x),
    "has a with statement": _with,
    "has a constant of complex": lambda x: x + 1j,
}


@pytest.mark.parametrize("reason", REFUSED)
def test_read_says_why_a_function_is_not_read(reason: str) -> None:
    """With the place; what may be something else when the function runs is no constant."""
    found = read(REFUSED[reason])
    assert isinstance(found, Unreadable)
    assert found.reason == reason
    assert found.where.rpartition(":")[0] == near(__file__, 1).removesuffix(":1")


def test_read_refuses_functions_that_await() -> None:
    """What they give is a coroutine."""
    assert read(_awaits) == Unreadable(
        "is no plain function: it yields or awaits", near(__file__, _awaits.__code__.co_firstlineno)
    )


def test_read_finds_each_of_several_lambdas_in_a_line() -> None:
    """By their columns, also if they have one code but for these."""
    first, second = (lambda x: x - 1), (lambda x: x - 1.0)  # fmt: skip
    assert [read(first), read(second)] == [_applied("-", _X, Constant(1)), _applied("-", _X, Constant(1.0))]


def test_read_finds_a_lambda_in_a_decorator() -> None:
    """Which begins in the line in which the decorated function does."""
    kept: list[Callable[..., Any]] = []

    @functools.partial(_keeping, kept, lambda x: x + 1)
    def decorated(x: int) -> int:
        return x + 2

    assert read(kept[0]) == Applied("+", (_X, Constant(1)))
    assert read(decorated) == Applied("+", (_X, Constant(2)))


def _keeping(kept: list[Callable[..., Any]], fn: Callable[..., Any], decorated: Callable[..., Any]) -> Any:
    kept.append(fn)
    return decorated


def test_read_finds_a_lambda_inside_of_one_in_its_line() -> None:
    """Compiling the outer one gives the inner one too."""
    outer = lambda rate: lambda x: x * rate  # noqa: E731
    assert read(outer(3)) == _applied("*", _X, Constant(3))


def test_read_finds_each_of_two_lambdas_that_are_the_same() -> None:
    """CPython 3.12 does not say where in their line they stand; each has the names that it was made with."""
    first, second = lambda n: 1, lambda n: 1
    assert read(first) == read(second) == Constant(1)


def test_read_refuses_a_source_that_has_changed(tmp_path: Path) -> None:
    """The code that runs is that of before."""
    file = tmp_path / "changed.py"
    file.write_text("fn = lambda x: x + 1\n")
    names: dict[str, Any] = {}
    exec(compile(file.read_text(), str(file), "exec"), names)
    file.write_text("fn = lambda x: x + 2\n")
    found = read(names["fn"])
    assert isinstance(found, Unreadable)
    assert found.reason == "has a source that changed after it was loaded"


def test_read_refuses_code_without_a_source() -> None:
    """As in `python -c`."""
    found = read(eval("lambda x: x + 1", {}))
    assert isinstance(found, Unreadable)
    assert found.reason == "has no readable source"


def _script(text: str, name: str = "__main__") -> dict[str, Any]:
    """Run a script, whose functions are pickled by value."""
    file = f"<script {text}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    names: dict[str, Any] = {"__name__": name}
    exec(compile(text, file, "exec"), names)
    return names


def test_read_refuses_a_builtin_that_is_shadowed_by_something_unknown() -> None:
    """A name is what it stands for, not what it says."""
    names = _script("class len:\n    def __init__(self, x): pass\nfn = lambda x: len(x)\n")
    found = read(names["fn"])
    assert isinstance(found, Unreadable)
    assert found.reason == "calls len"


def test_read_reads_a_function_that_shadows_a_builtin() -> None:
    """That function is what is called."""
    names = _script("def len(x):\n    return x.size\nfn = lambda x: len(x)\n")
    assert read(names["fn"]) == Attribute(_X, "size")


def test_read_looks_again_at_what_names_stand_for() -> None:
    """The same code was read before, when its global had another value."""
    names = _script("rate = 1\nfn = lambda x: x + rate\n")
    first = read(names["fn"])
    names["rate"] = 1.0
    assert [first, read(names["fn"])] == [_applied("+", _X, Constant(1)), _applied("+", _X, Constant(1.0))]


def test_read_looks_again_at_the_code_of_what_is_called() -> None:
    """Notebooks that load modules again give functions another code."""
    names = _script("def inner(x):\n    return x + 1\nfn = lambda x: inner(x)\nother = lambda x: x + 2\n")
    first = read(names["fn"])
    names["inner"].__code__ = names["other"].__code__
    assert [first, read(names["fn"])] == [_applied("+", _X, Constant(1)), _applied("+", _X, Constant(2))]


def test_read_refuses_what_was_put_into_modules_of_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker has what Python has there."""
    monkeypatch.setattr(math, "sqrt", _square)
    monkeypatch.setattr("builtins.abs", _square)
    names = _script("import math\nfirst = lambda x: math.sqrt(x)\nsecond = lambda x: abs(x)\n")
    assert all(isinstance(read(names[name]), Unreadable) for name in ("first", "second"))


def test_read_refuses_a_global_that_a_function_of_another_cell_changes() -> None:
    """On a worker both functions have the same globals."""
    names = _script("rate = 1\nfn = lambda x: x + rate\n")
    cell = "def change(x):\n    global rate\n    rate += 1\n"
    exec(cell, names)
    found = read(names["fn"])
    assert isinstance(found, Unreadable)
    assert found.reason == "looks at rate, which a global statement changes"


@pytest.mark.parametrize(
    ("name", "cell"),
    [
        ("price", "class Changing:\n    def __call__(self, x):\n        global {0}\n        {0} += 1\n"),
        ("amount", "import functools\n@functools.cache\ndef change(x):\n    global {0}\n    {0} += 1\n"),
        ("weight", "def kept(fn):\n    return lambda x: fn(x)\n@kept\ndef change(x):\n    global {0}\n    {0} += 1\n"),
    ],
)
def test_read_refuses_a_global_that_is_changed_by_what_holds_a_function(name: str, cell: str) -> None:
    """A class, a wrapper or a closure of another cell has it: they share their globals on a worker, too."""
    names = _script(f"{name} = 1\nfn = lambda x: x + {name}\n")
    assert isinstance(read(names["fn"]), Expression)
    exec(cell.format(name), names)
    assert isinstance(read(names["fn"]), Unreadable)


def test_read_reads_nothing_while_somebody_watches_calls() -> None:
    """A debugger wants to see them."""
    before = sys.getprofile()
    sys.setprofile(lambda *event: None)
    try:
        found = read(_square)
    finally:
        sys.setprofile(before)
    assert isinstance(found, Unreadable)
    assert found.reason.startswith("is watched")


def test_read_takes_what_is_pickled_by_reference_as_a_worker_imports_it() -> None:
    """A function of a module that the driver alone has changed: its globals count only under their own names."""
    module = types.ModuleType("replaced_on_the_driver")
    text = "from operator import add, sub\ndef fn(x):\n    return add(x, 1)\n"
    linecache.cache["<module>"] = (len(text), None, text.splitlines(keepends=True), "<module>")
    exec(compile(text, "<module>", "exec"), module.__dict__)
    sys.modules[module.__name__] = module
    try:
        before = read(module.fn)
        module.add = module.sub  # type: ignore[attr-defined]
        after = read(module.fn)
    finally:
        del sys.modules[module.__name__]
    assert before == _applied("+", _X, Constant(1))
    assert isinstance(after, Unreadable)


def test_read_refuses_what_is_enclosed_by_a_function_that_workers_import() -> None:
    """A decorated function finds there what the import made, whose globals are those of the worker."""
    module = types.ModuleType("decorated_in_a_module")
    text = (
        "import functools\nrate = 1\n"
        "def twice(fn):\n    @functools.wraps(fn)\n    def call(x):\n        return fn(x) * 2\n    return call\n"
        "@twice\ndef priced(x):\n    return x + rate\n"
    )
    linecache.cache["<decorated>"] = (len(text), None, text.splitlines(keepends=True), "<decorated>")
    exec(compile(text, "<decorated>", "exec"), module.__dict__)
    sys.modules[module.__name__] = module
    try:
        module.rate = 5  # type: ignore[attr-defined]
        found = read(module.priced)
    finally:
        del sys.modules[module.__name__]
    assert isinstance(found, Unreadable)
    assert found.reason == "has the name of another function, which every worker imports anew"


def test_read_does_not_write_down_what_becomes_very_long() -> None:
    """Each way through a function that is called stands in the place of the call."""
    ways = "".join(f"    if x == {number}:\n        x = x + 1\n" for number in range(8))
    names = _script(f"def helper(x):\n{ways}    return x\nfn = lambda x: {'helper(' * 8}x{')' * 8}\n")
    found = read(names["fn"])
    assert isinstance(found, Unreadable)
    assert found.reason == "is long"


@pytest.mark.parametrize("text", ["fn = lambda x: " + "-" * 180 + "x\n", "fn = lambda x: x" + " + x" * 120 + "\n"])
def test_read_does_not_read_what_is_too_deep_to_be_pickled(text: str) -> None:
    """A plan with its function alone is not."""
    found = read(_script(text)["fn"])
    assert isinstance(found, Unreadable)
    assert found.reason == "is long"


def test_an_expression_knows_how_large_it_is() -> None:
    """In values, and in levels."""
    assert read(lambda x: x + 1 + x).extent() == (5, 3)  # type: ignore[union-attr]
    assert Constant(1).extent() == (1, 1)


def test_read_takes_a_list_for_a_constant_only_where_python_does() -> None:
    """In the middle of comparisons it stays a list, which equals no tuple."""
    made = Built(list, (), (_constant(1), _constant(2)))
    assert made in read(lambda x: x in [1, 2] == (1, 2)).walk()  # type: ignore[union-attr]
    assert made not in read(lambda x: 0 < x in [1, 2]).walk()  # type: ignore[union-attr]


def test_expressions_travel_to_workers() -> None:
    """With classes and patterns in them, and equal to what was read."""
    for fn, _ in READ:
        expression = read(fn)
        assert cloudpickle.loads(cloudpickle.dumps(expression)) == expression
