"""Names that may stand for something else when a function runs: on a worker, or after another function has run."""

from __future__ import annotations

import builtins
import functools
import importlib
import linecache
import math
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any
from uuid import uuid4

import pytest

from dstream.expressions import Applied, Argument, Built, Called, Constant, Expression, Together
from dstream.expressions import resolution as names_module
from dstream.expressions.reader import Unreadable, read
from dstream.expressions.resolution import Namespaces

_X = Argument(0)
_KIND = "import enum\nclass Kind(enum.Enum):\n    A = 1\n"


def _script(text: str, names: dict[str, Any] | None = None) -> dict[str, Any]:
    """Run a script, or another cell with the names of one."""
    file = f"<script {uuid4()}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    names = {"__name__": "__main__"} if names is None else names
    exec(compile(text, file, "exec"), names)
    return names


def _reason(fn: Callable[..., Any]) -> str:
    found = read(fn)
    assert isinstance(found, Unreadable), found
    return found.reason


@pytest.mark.parametrize(
    "body",
    ["globals()['rate'] = x", "exec('global rate; rate = x')", "eval('globals')()", "change.__globals__.clear()"],
)
@pytest.mark.parametrize("is_another_cell", [False, True])
def test_read_refuses_a_global_that_a_function_reaches_without_naming_it(body: str, is_another_cell: bool) -> None:
    """Functions of one plan share their globals on a worker."""
    first, second = "rate = 3\nfn = lambda x: x * rate\n", f"def change(x):\n    {body}\n    return x\n"
    names = _script(first if is_another_cell else first + second)
    if is_another_cell:
        _script(second, names)
    assert _reason(names["fn"]) == "looks at rate, which globals(), exec or eval may change"


def test_read_refuses_a_global_that_a_function_without_a_name_reaches() -> None:
    """No global leads to it: it stands in a plan, or in a list."""
    names = _script("rate = 3\nfn = lambda x: x * rate\nothers = [lambda x: globals().update(rate=x)]\n")
    assert _reason(names["fn"]) == "looks at rate, which globals(), exec or eval may change"


@pytest.mark.parametrize("body", ["exec('rate = 5', {})", "model.eval()", "eval('x + 1', {'x': x})"])
def test_read_takes_a_global_that_a_text_with_names_of_its_own_cannot_change(body: str) -> None:
    """Nor do methods that are called `eval`."""
    names = _script(f"rate = 3\nfn = lambda x: x * rate\ndef other(x):\n    {body}\n    return x\n")
    assert read(names["fn"]) == Applied("*", (_X, Constant(3)))


def test_read_refuses_builtins_and_functions_of_modules_that_changed_places(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker has those that Python has."""
    monkeypatch.setattr(builtins, "abs", len)
    monkeypatch.setattr(math, "floor", math.ceil)
    monkeypatch.setattr(math, "pi", 3)
    assert _reason(lambda x: abs(x)) == "looks at abs, which was put among the builtins of this process"
    assert _reason(lambda x: math.floor(x)) == "calls math.floor"
    assert _reason(lambda x: x * math.pi) == "looks at math.pi"
    assert read(lambda x: math.ceil(x)) == Called("math.ceil", (_X,))


_MODULE = """
import os
from dataclasses import dataclass

def helper(x):
    return x + 1

def other(x):
    return x + 100

def calls(x):
    return helper(x)

@dataclass(frozen=True)
class Place:
    name: object
    process: int = os.getpid()
"""


@pytest.fixture
def imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A module that workers import."""
    name = f"module_{uuid4().hex}"
    (tmp_path / f"{name}.py").write_text(_MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield importlib.import_module(name)
    del sys.modules[name]


def test_read_refuses_a_stand_in_for_a_function_that_workers_import(imported: Any) -> None:
    """They find the original under its name."""

    @functools.wraps(imported.helper)
    def stand_in(x: int) -> int:
        return x + 7

    helper = imported.helper
    assert read(imported.calls) == Applied("+", (_X, Constant(1)))
    imported.helper = stand_in
    assert _reason(imported.calls) == "has the name of another function, which every worker imports anew"
    of_another: Any = _script("def helper(x):\n    return x + 9\n")["helper"]
    of_another.__module__ = imported.__name__
    imported.helper = of_another
    assert _reason(imported.calls) == "has the name of another function, which every worker imports anew"
    imported.helper = helper
    imported.helper.__code__ = imported.other.__code__
    assert _reason(lambda x: helper(x)) == "has the name of another function, which every worker imports anew"


def test_read_leaves_to_a_class_what_it_takes_by_default(imported: Any) -> None:
    """A worker that imports the class may compute another value."""
    kind = imported.Place
    assert read(lambda x: kind(x)) == Built(kind, ("name",), (_X,))


def test_read_looks_again_for_statements_that_change_variables_when_a_file_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The function itself and its line are the same in both versions."""
    name = f"module_{uuid4().hex}"
    path = tmp_path / f"{name}.py"
    text = (
        "def made(k):\n    fn = lambda x: x + k\n    def bump(x):\n        {}k += 1\n        return x\n    return fn\n"
    )
    path.write_text(text.format("k = 1; "))
    monkeypatch.syspath_prepend(str(tmp_path))
    module: ModuleType = importlib.import_module(name)
    before = read(module.made(5))
    path.write_text(text.format("nonlocal k; "))
    fn = importlib.reload(module).made(5)
    del sys.modules[name]
    assert before == Applied("+", (_X, Constant(5)))
    assert _reason(fn) == "looks at k, which a global or nonlocal statement changes"


def test_read_looks_at_the_functions_of_a_module_once_for_a_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    """A notebook may have thousands of them."""
    names = _script("rate = 3\nfn = lambda x: x * rate\nother = lambda x: (x + rate) * rate\n")
    looked: list[Any] = []
    functions = names_module._functions
    monkeypatch.setattr(names_module, "_functions", lambda held: looked.append(held) or functions(held))
    namespaces = Namespaces()
    found = [read(names[name], 1, namespaces) for name in ("fn", "other", "fn")]
    assert all(isinstance(each, Expression) for each in found)
    assert len(looked) == 1


def _imported_text(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> Any:
    name = f"module_{uuid4().hex}"
    (folder / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(str(folder))
    module = importlib.import_module(name)
    monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, name, module)
    return module


@pytest.mark.parametrize(
    ("statement", "value"),
    [
        ("RATE = 5", 5),
        ("RATE: int = 2**32 - 1", 2**32 - 1),
        ("RATE = -0.0", -0.0),
        ("RATE = ('a', True, None)", ("a", True, None)),
    ],
)
def test_read_takes_a_constant_of_a_module_that_workers_import(
    statement: str, value: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its text says what each of them finds."""
    module = _imported_text(tmp_path, monkeypatch, f"{statement}\ndef fn(x):\n    return x, RATE\n")
    found = read(module.fn)
    assert isinstance(found, Together)
    assert repr(found.members[1]) == repr(Constant(value))


_HELD = "import re\nP = re.compile('a+', re.I | re.A)\nD = {'a': (1, -2)}\nL = ['a', 2]\nS = {1, 'b'}\n"
_LOOKS = "def fn(x, k=3):\n    return P.search(x), D[x], x in L, x in S, k\n"


def test_read_takes_patterns_and_containers_of_literals_of_a_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the default of a parameter: each import gives them again."""
    assert isinstance(read(_imported_text(tmp_path, monkeypatch, _HELD + _LOOKS).fn), Together)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("P", re.compile("a+")),
        ("P", re.compile("b+", re.I | re.A)),
        ("D", {"a": (1, -2.0)}),
        ("D", {"a": (1, -2), "b": 1}),
        ("L", ["a", True + 1.0]),
        ("S", {1}),
        ("re", None),
    ],
)
def test_read_refuses_patterns_and_containers_of_a_module_that_were_replaced(
    name: str, value: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker finds those of the text."""
    module = _imported_text(tmp_path, monkeypatch, _HELD + _LOOKS)
    monkeypatch.setattr(module, name, value)
    assert _reason(module.fn).endswith("of its module, which every worker imports anew")


def test_read_refuses_a_default_that_is_not_the_one_of_the_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker calls the function with that of the text."""
    module = _imported_text(tmp_path, monkeypatch, _HELD + _LOOKS)
    module.fn.__defaults__ = (3.0,)
    assert _reason(module.fn) == "has a default for k, which every worker computes anew"


def test_read_refuses_a_pattern_that_other_calls_make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They may give another one elsewhere."""
    text = "import os, re\nP = re.compile(os.environ.get('NO', 'a'))\ndef fn(x):\n    return P.search(x)\n"
    assert _reason(_imported_text(tmp_path, monkeypatch, text).fn).endswith("which every worker imports anew")


@pytest.mark.parametrize("other", [5.0, True, 6, "5"])
def test_read_refuses_a_constant_of_a_module_that_was_replaced(
    other: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker finds the one of the text; what was read before does not stay."""
    module = _imported_text(tmp_path, monkeypatch, "RATE = 5\ndef fn(x):\n    return x * RATE\n")
    assert read(module.fn) == Applied("*", (_X, Constant(5)))
    monkeypatch.setattr(module, "RATE", other)
    assert _reason(module.fn) == "looks at RATE of its module, which every worker imports anew"


@pytest.mark.parametrize(
    "text",
    [
        "import os\nRATE = os.getpid() * 0 + 5",
        "RATE = 5\nimport os\nif os.getpid():\n    RATE = 5",
        "RATE = 5\nfor RATE in (5,):\n    pass",
        "RATE = 5\nRATE += 0",
        "RATE = 5\nimport math as RATE",
        "if True:\n    RATE = 5",
        "RATE = 5\ntry:\n    pass\nexcept OSError as RATE:\n    pass",
        "RATE = 5\nmatch 5:\n    case RATE:\n        pass",
        "RATE = 5\nmatch [5]:\n    case [*RATE]:\n        pass",
        "RATE = 5\nmatch {}:\n    case {**RATE}:\n        pass",
        "RATE = 5\nfrom math import *",
        "RATE = 5\nvars()['RATE'] = 5",
        "RATE = 5\nlocals()['RATE'] = 5",
        "RATE = 5\nimport sys\nsetattr(sys.modules[__name__], 'RATE', 5)",
        "RATE = 5\nclass RATE:\n    pass",
        "RATE = 5\ndel RATE",
        "RATE = 5\nif (RATE := 5):\n    pass",
        "other = 5\nRATE = other",
        "RATE = '5'.__hash__() * 0 + 5",
    ],
)
def test_read_refuses_a_variable_of_a_module_that_its_text_may_give_other_values(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever it is here, a worker may find another one."""
    module = _imported_text(tmp_path, monkeypatch, f"{text}\ndef fn(x):\n    return x * RATE\n")
    module.RATE = 5
    assert _reason(module.fn) == "looks at RATE of its module, which every worker imports anew"


def test_read_refuses_a_constant_of_a_module_that_its_functions_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a statement in it, or in a text that was executed in its names from elsewhere."""
    text = "RATE = 5\ndef fn(x):\n    return x * RATE\n"
    changing = "def change():\n    global RATE\n    RATE = 6\n"
    module = _imported_text(tmp_path, monkeypatch, text + changing)
    assert _reason(module.fn) == "looks at RATE, which a global or nonlocal statement changes"
    module = _imported_text(tmp_path, monkeypatch, text)
    _script(changing, vars(module))
    assert _reason(module.fn) == "looks at RATE, which a global statement changes"


def test_read_refuses_a_constant_of_a_file_that_is_not_the_one_of_the_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was executed in the names of a module is not what a worker imports."""
    module = _imported_text(tmp_path, monkeypatch, "RATE = 6\n")
    _script("RATE = 5\ndef fn(x):\n    return x * RATE\n", vars(module))
    assert _reason(module.fn) == "looks at RATE of its module, which every worker imports anew"


@pytest.mark.parametrize(
    ("text", "change"),
    [
        ("import math\nfn = lambda x: math.floor(x)\n", lambda names: (math, "floor", abs)),
        ("import math\nfn = lambda x: x * math.pi\n", lambda names: (math, "pi", 3)),
        ("import re\nfn = lambda x: re.sub('a', 'b', x)\n", lambda names: (re, "sub", max)),
        (
            "def inner(x, *, by=1):\n    return x + by\nfn = lambda x: inner(x)\n",
            lambda names: (names["inner"], "__kwdefaults__", {"by": 2}),
        ),
        (_KIND + "fn = lambda x: x + Kind.A.value\n", lambda names: (names["Kind"], "value", property(len))),
        (_KIND + "fn = lambda x: x + Kind.A.name\n", lambda names: (names["Kind"], "name", property(len))),
        (_KIND + "fn = lambda x: x + Kind.A.value\n", lambda names: (names["Kind"].A, "_value_", 7)),
    ],
)
def test_a_reading_is_remembered_until_what_it_used_is_exchanged(
    text: str, change: Callable[[Any], tuple[Any, str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Members of Python's modules, defaults of parameters by name, and the parts of members of enumerations, too."""
    names = _script(text)
    first = read(names["fn"])
    assert isinstance(first, Expression)
    assert read(names["fn"]) is first
    monkeypatch.setattr(*change(names), raising=False)
    assert read(names["fn"]) != first


def test_a_default_that_is_changed_in_place_is_read_anew() -> None:
    """Its dictionary is the same one."""
    names = _script("def inner(x, *, by=1):\n    return x + by\nfn = lambda x: inner(x)\n")
    assert read(names["fn"]) == Applied("+", (_X, Constant(1)))
    names["inner"].__kwdefaults__["by"] = 2
    assert read(names["fn"]) == Applied("+", (_X, Constant(2)))


def test_a_global_that_gets_a_value_later_is_read_then() -> None:
    """As where the cell of a notebook that defines it runs after the one with the function."""
    names = _script("fn = lambda x: x + rate\n")
    assert _reason(names["fn"]) == "looks at rate, which has no value"
    names["rate"] = 2
    assert read(names["fn"]) == Applied("+", (_X, Constant(2)))
