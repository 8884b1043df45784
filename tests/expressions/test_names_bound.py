"""Each way in which Python gives a name a value, at each place of a function, and containers that have two names."""

from __future__ import annotations

import copy
import itertools
import json
import linecache
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from random import Random
from typing import Any, NamedTuple

import pytest

from dstream.expressions import Argument, Expression, Local, Routine
from dstream.expressions.effects import ChangedInPlace
from dstream.expressions.reader import read
from dstream.expressions.tree import rewritten
from dstream.operators.columns import python_rows
from dstream.operators.rows.syntax import form_of

_BINDINGS = {
    "assign": "x = len(v)",
    "annotate": "x: int = 5",
    "declare": "x: int",
    "change": "x += 'c'",
    "unpack": "x, y = v, 1",
    "walrus": "if (x := len(v)) > 1:\n    y = x",
    "walrus inside": "y = [1 for c in v if (x := c)]",
    "comprehension": "y = [x for x in v]",
    "lambda": "y = sorted(v, key=lambda x: x)",
    "for": "for x in v:\n    y = x",
    "for each": "for y, x in enumerate(v):\n    pass",
    "capture": "match v:\n    case 'a,b':\n        pass\n    case x if len(x) > 3:\n        pass\n"
    "    case _:\n        pass",
    "capture and return": "match v:\n    case x if len(x) > 3:\n        return 0\n    case _:\n        pass",
    "as": "match v:\n    case str() as x if len(x) > 2:\n        pass",
    "star": "match v.split(','):\n    case ['a', *x] if x:\n        pass",
    "rest": "match {'k': v, 'n': 1}:\n    case {'k': 'a', **x}:\n        pass",
    "except": "try:\n    y = int(v)\nexcept ValueError as x:\n    y = str(x)",
    "nested except": "try:\n    y = int(v)\nexcept ValueError as x:\n    try:\n        y = int(v)\n"
    "    except ValueError as x:\n        pass\n    y = str(x)",
    "def": "def x(y):\n    return y + 'd'",
    "class": "class x:\n    pass",
    "import": "import json as x",
    "from": "from json import dumps as x",
    "with": "with SUPPRESS as x:\n    y = 1",
    "del": "del x",
    "global": "global x\nx = 7",
}

_PLACES = {
    "alone": "{}",
    "branch": "if len(v) > 1:\n    {}",
    "loop": "for c in v:\n    {}",
    "loop that ends": "for c in v:\n    if c == 'b':\n        break\n    {}\n    continue",
    "end of a loop": "for c in v:\n    if c == 'b':\n        break\nelse:\n    {}",
    "try": "try:\n    {}\n    z = int(v)\nexcept ValueError:\n    pass",
    "end of a try": "try:\n    z = int(v)\nexcept ValueError:\n    pass\nelse:\n    {}",
    "handler": "try:\n    z = int(v)\nexcept ValueError:\n    {}",
    "finally": "try:\n    x = 3\n    z = int(v)\nexcept ValueError:\n    pass\nfinally:\n    {}",
    "finally alone": "try:\n    z = len(v)\nfinally:\n    {}",
    "case": "match v:\n    case 'a':\n        {}\n    case _:\n        pass",
    "function": "def g():\n    {}\n    return 1\nz = g()",
}

_BEFORE = {
    "nothing": "",
    "value": "x = 'b'",
    "function": "def x(y):\n    return y",
    "capture": "match v:\n    case str() as x:\n        pass",
    "parameter": "parameter",
}
_AFTER = ("return x", "return x(v)", "def h():\n    return x\nreturn [h() for _ in 'ab']", "return [x for c in v]")
_TEXTS = ("a", "12", "a,b", "a,xyz", "")


def _functions() -> Iterator[str]:
    for (binding, place), before, after in itertools.product(
        itertools.product(_BINDINGS.values(), _PLACES.values()), _BEFORE.values(), _AFTER
    ):
        name, first = ("x", "v = x") if before == "parameter" else ("v", before)
        inner = place.replace("{}", _indented(binding, place))
        yield _function(name, "\n".join(("y = 'y'", first, inner, after)))


def _indented(text: str, place: str) -> str:
    line = next(each for each in place.split("\n") if "{}" in each)
    return text.replace("\n", "\n" + " " * line.index("{"))


def _function(parameter: str, text: str) -> str:
    return f"def f({parameter}):\n" + "".join(f"    {line}\n" for line in text.split("\n") if line)


def _made(text: str, names: dict[str, Any]) -> Callable[[Any], Any] | None:
    """Return the function of a text; None if Python does not take it."""
    file = f"<bound {hash(text)}>"
    try:
        code = compile(text, file, "exec")
    except SyntaxError:
        return None
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
    found = {"__name__": "__main__", **names}
    exec(code, found)
    return found["f"]


_ITEM = 1_000_000


def _run_by(expression: Expression) -> Callable[[Any], Any]:
    """Return what a block in columns calls for a row."""
    form, constants = form_of(rewritten(expression, lambda each: Local(_ITEM) if each == Argument(0) else None))
    loop = python_rows._loop(form, (_ITEM,))
    return lambda item: loop([[item]], constants)[0]


def _outcome(run: Callable[[], Any]) -> Any:
    try:
        return repr(run())
    except Exception as error:
        return type(error), str(error)


class _Suppress:
    def __enter__(self) -> str:
        return "entered"

    def __exit__(self, *_: object) -> None:
        return None


@pytest.mark.parametrize("part", range(3))
def test_a_name_has_the_value_that_python_gives_it(part: int) -> None:
    """Or the function is not read: wherever a name gets a value, loses it, or has another one before."""
    read_in_all = 0
    for text in itertools.islice(_functions(), part, None, 13):
        fn = _made(text, {"SUPPRESS": _Suppress(), "x": "global"})
        expression = None if fn is None else read(fn)
        if fn is None or not isinstance(expression, Expression):
            continue
        read_in_all += 1
        for item in _TEXTS:
            _check_value(fn, _run_by(expression), item, text)
    assert read_in_all > 60


def _check_value(fn: Callable[[Any], Any], run: Callable[[Any], Any], item: str, text: str) -> None:
    assert _outcome(lambda: run(item)) == _outcome(lambda: fn(item)), f"{item!r}\n{text}"


class Pair(NamedTuple):
    first: Any
    second: Any


_SIMPLE = [
    *("{a} = []", "{a} = {{}}", "{a} = [[]]", "{a} = {{'k': []}}", "{a} = [[], {b}]", "{a} = [{b}]"),
    *("{a} = r['k']", "{a} = [r['k']]", "{a} = {{'k': r['k']}}", "{a} = list(r['k'])", "{a} = r.copy()", "{a} = 5"),
    *("{a} = {b}", "{a} = {b} if r['n'] else []", "{a} = {b} or []", "{a} = {{'k': {b}}}", "{a} = [{b} for _ in 'ab']"),
    *("{a} = {b} = []", "{a}, {b} = {b}, []", "{a} = {b} + {b}", "{a} = [*{b}]", "{a} = {{**{b}}}", "{a} = ({b},)"),
    *("{a} = Pair({b}, [])", "{a} = Pair(**{b})", "{a} = {{'first': {b}, 'second': []}}", "{a} = {b}.copy()"),
    *("{a} = {b}[0]", "{a} = dict({b})", "{a} = [[{b}]]", "{a} = {b} if r['n'] else {c}", "{a} = same({b})"),
    *("{a} = json.loads(r['t'])", "{a} = defaultdict(list)", "{a} = r['t'].split(',')", "{a} = made({b})"),
]
_CHANGES = [
    *("{a}.append({b})", "{a}.append(r['k'])", "{a}.append([])", "{a}.append({{'k': {b}}})", "{a}.extend({b})"),
    *("{a}['k'].append({b})", "{a}['k'].append(r['k'])", "{a}[0].append(1)", "{a}[0].append(r['k'])"),
    *("{a} += {b}", "{a} += [r['k']]", "{a} += [{b}]", "{a}['k'] += [1]", "{a}[0] += [1]", "{a}[0] += 1"),
    *("{a}['k'] = {b}", "{a}['k'] = r['k']", "{a}['k'] = []", "{a}[0] = {b}", "{a}.insert(0, {b})"),
    *("{a}.setdefault('k', {b})", "{a}.setdefault('k', []).append(1)", "{a}.setdefault('k', {b}).append(1)"),
    *(
        "{a}.update({b})",
        "{a}.update({{'k': {b}}})",
        "{a}.clear()",
        "n = add(1)",
        "{a}.setdefault('k', []).append({b})",
    ),
]
_AROUND = [
    *(
        "{0}",
        "{0}",
        "{0}",
        "if r['n']:\n    {0}\nelse:\n    {1}",
        "for {a} in list({b})[:3]:\n    {0}",
        "for n in 'ab':\n    {0}\n    {1}",
    ),
    *("try:\n    {0}\n    {1}\nexcept Exception:\n    {2}", "try:\n    {0}\nfinally:\n    {1}"),
    *("for n in 'ab':\n    try:\n        {0}\n    finally:\n        break", "try:\n    {0}\nfinally:\n    return {a}"),
    *("try:\n    try:\n        {0}\n    finally:\n        n = int('x')\nexcept ValueError:\n    {1}",),
    *("match {b}:\n    case [{a}, *_]:\n        {0}\n    case {{'k': {a}}}:\n        {1}\n    case _:\n        {2}",),
]
_FIRST = """def same(o):
    return o
def made(o):
    return [o]
def add(o):
    {}
    return o
"""
_ITEMS: list[dict[str, Any]] = [
    {"k": [], "n": 0, "t": '{"k": [1]}'},
    {"k": [[1], [2]], "n": 1, "t": "[[1], []]"},
    {"k": {"k": [3]}, "n": 0, "t": "5"},
    {"k": 5, "n": 1, "t": "[]"},
]


_EMPTY = ("[]", "[]", "{}", "[[]]", "{'k': []}")


def _program(random: Random) -> str:
    # Of few kinds each, so that they meet.
    simple_kinds, changes = random.sample(_SIMPLE, 5), random.sample(_CHANGES, 5)

    def simple() -> str:
        return _named(random.choice(changes if random.random() < 0.7 else simple_kinds), random)

    def statement() -> str:
        around = _named(random.choice(_AROUND).replace("{0}", "§0").replace("{1}", "§1").replace("{2}", "§2"), random)
        for number in "012":
            around = around.replace(f"§{number}", simple())
        return around

    empty = random.choice(_EMPTY)
    start = [f"{name} = {empty}" for name in "abc"]
    rest = [
        *(_named(each, random) for each in simple_kinds[:2]),
        *(statement() for _ in range(random.choice((2, 3, 4)))),
    ]
    first = _FIRST.format(simple() if random.random() < 0.3 else "o = [o]")
    return _function("r", "\n".join((*start, first, *rest, "return a, b, c")))


def _named(text: str, random: Random) -> str:
    a, b, c = random.sample("abc", 3)
    return text.replace("{a}", a).replace("{b}", b).replace("{c}", c).replace("{{", "{").replace("}}", "}")


_LINKS = [
    *("d = a", "d = a if r['n'] else []", "d = [a]", "d = {'k': a}", "d = [a for _ in 'ab']", "d = {'k': [a]}"),
    *("d['k'] = a", "d = a or []", "d = same(a)", "d = Pair(a, [])", "d = a.copy()", "d.setdefault('k', a)"),
    *(
        "d = []\nd.append(a)",
        "d = (a, 1)",
        "d, e = a, 1",
        "d = e = a",
        "d = {'k': a if r['n'] else []}",
        "e = a\nd = e",
    ),
    *("d = []\nd.insert(0, a)", "d = []\nd.extend([a])", "d.update({'k': a})", "d = {**d, 'k': a}", "d = [*[a]]"),
    *("d = made(a)", "d = []\nd += [a]", "d = 5", "for d in [a]:\n    pass", "match [a]:\n    case [d]:\n        pass"),
    "match a:\n    case d:\n        pass",
]
_ADDS = [
    *("d.append(r['k'])", "d['k'].append(r['k'])", "d[0].append(r['k'])", "d += [r['k']]", "d['k'] += [r['k']]"),
    *("d.insert(0, r['k'])", "d.extend([r['k']])", "d.setdefault('k', []).append(r['k'])", "n = add(r['k'])"),
    *("d['k'] = r['k']", "a.append(r['k'])", "a = [r['k']]", "a = r.copy()", "d = r.copy()", "a['k'] = r['k']"),
    *("d = Pair(**{'first': r['k'], 'second': []})", "d = [r['k']].copy()", "a += [r['k']]", "d = dict(r)"),
]
_ENDS = [
    *("a[0].append('z')", "d[0].append('z')", "a['k'].append('z')", "d['k'].append('z')", "a[0] += ['z']"),
    *("d['k'] += ['z']", "a.append('z')", "d.append('z')", "n = change()", "a.setdefault('k', []).append('z')"),
    "for e in d:\n    e.append('z')",
]
_STARTS = ["a = []\nd = {}", "a = {}\nd = {}", "a = {'k': []}\nd = [[]]"]
_SECOND = """def add(x):
    a.append(x)
    return 1
def change():
    a[0].append('z')
    return 1
"""


def _linked() -> Iterator[str]:
    for start, link, add, end in itertools.product(_STARTS, _LINKS, _ADDS, _ENDS):
        calls = _SECOND if "add(" in add or "change(" in end else ""
        yield _function("r", "\n".join((start, _FIRST.format("o = [o]"), calls, link, add, end, "return a, d")))


def test_a_container_with_two_names_is_no_way_to_an_item() -> None:
    """A routine that changed a part of an item would do so twice where its block leaves the columns."""
    assert judged(itertools.islice(_linked(), 0, None, 23))["changed"] > 120


def test_containers_of_items_are_not_changed() -> None:
    """Programs by chance, also where they raise, or leave a block before its end."""
    counts = judged(_program(Random(seed)) for seed in range(300))

    assert counts["read"] > 60
    assert counts["changed"] > 30


def judged(texts: Iterable[str]) -> dict[str, int]:
    """Return how many programs were read, and how many of these changed containers of their own."""
    names = {"json": json, "defaultdict": defaultdict, "Pair": Pair}
    counts = {"read": 0, "changed": 0}
    for text in texts:
        fn = _made(text, names)
        assert fn is not None, text
        expression = read(fn)
        if isinstance(expression, Expression):
            counts["read"] += 1
            counts["changed"] += isinstance(expression, Routine) and ".append" in text
            for item in _ITEMS:
                _check(fn, _run_by(expression), item, text)
    return counts


def _check(fn: Callable[[Any], Any], run: Callable[[Any], Any], item: Any, text: str) -> None:
    by_python, by_rows = copy.deepcopy(item), copy.deepcopy(item)
    expected = _outcome(lambda: fn(by_python))
    try:
        found = _outcome(lambda: run(by_rows))
    except ChangedInPlace:
        found = ()
    assert by_rows == item, text
    # Where it raises, the function is called.
    assert found == () or isinstance(found, tuple) or (found, by_rows) == (expected, by_python), text
