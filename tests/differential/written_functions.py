"""Random functions as source text, over random items as source text; and what a chain of them does, in every detail.

`test_written_functions` draws programs and compares. A text is made twice into functions and items, so that no run sees
what another one has changed.
"""

from __future__ import annotations

import functools
import linecache
import traceback
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from random import Random
from typing import Any

from dstream.engine.compiler.evaluation import read_around, step_evaluation
from dstream.expressions import Expression
from dstream.expressions.reader import read
from dstream.failures import failure
from dstream.operators.rows.loops import run_chain
from dstream.plan.steps import Op, Step
from dstream.stream.entries import _IfValue, _OnValue
from dstream.stream.keyed import _Keying
from dstream.stream.shorthands import Starred
from dstream.values import Entry

__all__ = ["Outcome", "Program", "drawn", "is_same", "outcome"]

PRELUDE = '''
import math, operator, re
from dataclasses import dataclass
from functools import partial
from operator import attrgetter, itemgetter, methodcaller
from typing import NamedTuple
from dstream.values import Entry

LOG = []

@dataclass(frozen=True)
class Point:
    x: object
    y: object = 2

class Pair(NamedTuple):
    x: object
    y: object = "y"

class Odd:
    """Has operators of its own, which are seen, and fail at times."""

    def __init__(self, x):
        self.held = x

    def __repr__(self):
        return f"Odd({self.held!r})"

    def _seen(self, what, *others):
        LOG.append((what, self.held, *map(repr, others)))
        if self.held == "stops" and what in ("+", "<", "bool"):
            raise StopIteration(what)
        if self.held == "fails" and what in ("+", "x", "len", "=="):
            try:
                raise KeyError(what)
            except KeyError as error:
                raise ValueError(what, self.held) from error
        if self.held == "inner" and what in ("str", "[]", "in", "iter", "-"):
            try:
                raise KeyError(what)
            except KeyError:
                raise LookupError(what)
        return self

    def __add__(self, other): return self._seen("+", other)
    def __radd__(self, other): return self._seen("r+", other)
    def __sub__(self, other): return self._seen("-", other)
    def __mul__(self, other): return self._seen("*", other)
    def __lt__(self, other): return self._seen("<", other)
    def __gt__(self, other): return self._seen(">", other)
    def __eq__(self, other): return self._seen("==", other)
    def __ne__(self, other): return self._seen("!=", other)
    def __neg__(self): return self._seen("neg")
    def __bool__(self): return bool(self._seen("bool").held)
    def __contains__(self, item): return self._seen("in", item)
    def __getitem__(self, key): return self._seen("[]", key)
    def __len__(self): return len(self._seen("len").held)
    def __iter__(self): return iter([self._seen("iter"), 1])
    def __str__(self): return self._seen("str").held
    def __format__(self, spec): return f"{self._seen('format', spec).held}"
    def __hash__(self): return 1
    def lower(self): return self._seen("lower")
    @property
    def x(self): return self._seen("x")
    @property
    def y(self): return self._seen("y")

NONE, BIG, HALF, WORDS, NUMBERS = None, 2**63, 0.5, "a b", (1, 2.0, "a")
FROZEN = frozenset({"a", 1, None})
PATTERN = re.compile("[a-z]+")
'''

_ITEMS = (
    *(
        "0",
        "1",
        "-1",
        "3",
        "7",
        "2**53",
        "2**53 + 1",
        "2**63 - 1",
        "2**63",
        "-2**63",
        "10**400",
        "True",
        "False",
        "None",
    ),
    *("0.0", "-0.0", "1.0", "0.5", "-2.5", "1e308", "float('nan')", "float('inf')", "2.0**53"),
    *(
        "''",
        "'a'",
        "'A b c'",
        "'1'",
        "'1_0'",
        "' 12 '",
        "'\\u0130i'",
        "'stra\\u00dfe'",
        "'\\x1c a'",
        "'\\ud800'",
        "b'a'",
    ),
    *("(1, 2)", "('a', 1.0)", "()", "('b', (1, 'a'))", "[1, 2]", "{'x': 1}", "{'a': 'b', 'x': None}"),
    *("Point(1)", "Point('a', None)", "Point(2.0, (1, 2))", "Pair(1)", "Pair('a', Point(1, 2))"),
    *("Odd('ok')", "Odd('')", "Odd('stops')", "Odd('fails')", "Odd('inner')"),
)
_CONSTANTS = ("0", "1", "2", "-1", "3", "0.0", "-0.0", "1.5", "''", "'a'", "'b c'", "True", "None", "(1, 'a')", "2**53")
_CAPTURED = ("NONE", "BIG", "HALF", "WORDS", "NUMBERS", "k", "math.pi")
_BINARY = ("+", "-", "*", "/", "//", "%", "&", "|", "^", "+", "-")
_COMPARED = ("==", "!=", "<", "<=", ">", ">=", "<", "in", "not in")
_METHODS = ("lower()", "upper()", "strip()", "split()", "title()", "isdigit()", "startswith('a')", "replace('a', 'bb')")
_MORE_METHODS = ("get('x')", "keys()", "is_integer()", "bit_length()", "count('a')", "splitlines()", "casefold()")
_CALLED = ("abs", "bool", "float", "int", "len", "str", "repr", "round", "sorted", "tuple", "sum", "max", "min", "ord")
_CALLED_WITH_DOTS = ("math.floor", "math.sqrt", "math.isnan", "str.lower", "str.split", "operator.neg", "operator.not_")
_OBJECTS = (
    *("itemgetter(0)", "itemgetter('x', 0)", "attrgetter('x')", "attrgetter('y.x', 'x')", "methodcaller('split', 'a')"),
    *("partial(operator.add, 1)", "partial(operator.mul, 'a')", "str", "len", "int", "float", "bool", "str.upper"),
    *("PATTERN.findall", "'-'.join", "operator.neg", "abs", "Point", "Pair", "partial(helper1, b=2)"),
)


@dataclass(frozen=True)
class Program:
    """A chain as source text.

    Attributes:
        text: defines `items()` and `functions`.
        steps: what each function is for: the action, and the kind of its results.
        is_apart: the items run one by one, so that a failure of one hides nothing.
        around: what stands around the function of each step, if anything does: a call such as `map_values`.
    """

    text: str
    steps: tuple[tuple[str, type | None], ...]
    is_apart: bool
    around: tuple[Callable[[Any], Any] | None, ...]


class _Writer:
    """Writes random functions."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def one_of(self, *choices: str) -> str:
        return self._random.choice(choices)

    def number(self, *choices: int) -> int:
        return self._random.choice(choices)

    def leaf(self, names: Sequence[str]) -> str:
        kind = self._random.random()
        if kind < 0.65:
            return self.one_of(*names)
        return self.one_of(*(_CONSTANTS if kind < 0.85 else _CAPTURED))

    def expression(self, depth: int, names: Sequence[str], helpers: Sequence[str]) -> str:
        if depth == 0 or self._random.random() < 0.12:
            return self.leaf(names)

        def part() -> str:
            return self.expression(depth - 1, names, helpers)

        match self._random.randrange(17):
            case 0 | 1 | 2:
                return f"({part()} {self.one_of(*_BINARY)} {part()})"
            case 3:
                return f"({part()} {self.one_of(*_COMPARED)} {part()})"
            case 4:
                return f"({part()} {self.one_of(*_COMPARED)} {part()} {self.one_of(*_COMPARED)} {part()})"
            case 5:
                return f"({part()} {self.one_of('and', 'or')} {part()} {self.one_of('and', 'or')} {part()})"
            case 6:
                return f"({self.one_of('not ', '-', '+')}{part()})"
            case 7:
                return f"({part()} if {part()} else {part()})"
            case 8:
                return f"({part()})[{self.one_of('0', '1', '-1', repr('x'), '1:', ':2', '::-1', 'k', part())}]"
            case 9:
                return f"({part()}).{self.one_of('x', 'y', 'real', 'held')}"
            case 10:
                return f"({part()}).{self.one_of(*_METHODS, *_MORE_METHODS)}"
            case 11:
                return f"{self.one_of(*_CALLED, *_CALLED_WITH_DOTS)}({part()})"
            case 12:
                return f"({part()}, {part()})"
            case 13:
                return self.one_of(f"Point({part()}, {part()})", f"Pair(y={part()}, x={part()})", f"Pair({part()})")
            case 14:
                spec = self.one_of("", ":>5", "!r", ":.2f", "!s:<4")
                return f"f'{{{part_of_text(part())}{spec}}}-{{{part_of_text(part())}}}'"
            case 15:
                looked_into = self.one_of("FROZEN", "{'a', 1}", "[1, 'b']", "NUMBERS")
                return self.one_of(f"({part()} in {looked_into})", f"({part()} is {self.one_of('', 'not ')}None)")
            case _:
                helper = self.one_of(*helpers) if helpers else "abs"
                return f"{helper}({part()}, {part()})" if helpers else f"abs({part()})"

    def function(self, number: int) -> str:
        """Return lines that define `fn<number>`."""
        helpers = ("helper1", "helper2")
        kind = self._random.random()
        if kind < 0.12:
            return f"fn{number} = {self.one_of(*_OBJECTS)}"
        names, depth = ("a", "a", "a", "k"), self.number(1, 1, 2, 2, 3)
        if kind < 0.75:
            default = self.one_of("2", "0.5", repr("x"))
            return f"fn{number} = lambda a, k={default}: {self.expression(depth, names, helpers)}"
        lines = [f"def fn{number}(a):", "    k = 1"]
        for name in "bc":
            if self._random.random() < 0.7:
                lines.append(f"    {name} = {self.expression(self.number(1, 1, 2), names, helpers)}")
                names = (*names, name, name)
            if self._random.random() < 0.4:
                lines.append(f"    if {self.expression(1, names, helpers)}:")
                lines.append(f"        return {self.expression(1, names, helpers)}")
        lines.append(f"    return {self.expression(self.number(1, 1, 2), names, helpers)}")
        return "\n".join(lines)

    def program(self) -> Program:
        count = self.number(1, 1, 2, 3)
        steps = tuple(self._step() for _ in range(count))
        lines: list[str] = []
        for number in (1, 2):
            lines.append(f"def helper{number}(a, b):")
            lines.append("    k = 3")
            lines.append(f"    return {self.expression(self.number(1, 2), ('a', 'b', 'a'), ())}")
        lines += ["k = 4", *(self.function(number) for number in range(count))]
        items = [self.one_of(*_ITEMS) for _ in range(self._random.randint(2, 8))]
        lines.append(f"def items(): return [{', '.join(items)}]")
        lines.append(f"functions = [{', '.join(f'fn{number}' for number in range(count))}]")
        is_apart = self._random.random() < 0.8
        around = tuple(self._around(action, kind) for action, kind in steps)
        if any(around):
            written = ", ".join(
                self.one_of("Entry({0}, {0})", "({0}, {0})", "(1, {0})", "{0}").format(x) for x in items
            )
            lines[-2] = f"def items(): return [{written}]"
        steps = tuple(
            ("flat_map", None) if each is _IfValue else step for step, each in zip(steps, around, strict=True)
        )
        return Program("\n".join(lines) + "\n", steps, is_apart, around)

    def _around(self, action: str, kind: type | None) -> Callable[[Any], Any] | None:
        if action == "flat_map" or kind is not None or self._random.random() < 0.7:
            return None
        return _IfValue if action == "filter" else self._random.choice((_Keying, _OnValue, Starred))

    def _step(self) -> tuple[str, type | None]:
        action = self.one_of("map", "map", "map", "filter", "filter", "flat_map")
        kind: type | None = self._random.choice((None, None, None, None, int, float))
        return action, None if action == "filter" else kind


def part_of_text(text: str) -> str:
    """Return an expression that may stand in an f-string of Python 3.11, which nests no quotes of one kind."""
    return "a" if "'" in text or "\\" in text or "{" in text else text


def drawn(seed: int) -> Program:
    """Return the program of a number."""
    return _Writer(Random(seed)).program()


@dataclass(frozen=True)
class Outcome:
    """What a chain does.

    Attributes:
        items: what it gives, in every detail.
        errors: of each exception its type, text, cause and context, the step and the item to blame, the user's lines.
        logs: the operators of the user's that ran; those of items one by one.
        read: how many functions were inlined.
    """

    items: list[str]
    errors: list[tuple[Any, ...]]
    logs: list[list[Any]]
    read: int


def outcome(program: Program, reading: Callable[[Any], Any] | None = read) -> Outcome:
    """Run a program.

    Args:
        program: what runs.
        reading: reads functions; None: all of them are called.
    """
    file = f"<program {hash(program.text)}>"
    linecache.cache[file] = (len(program.text), None, program.text.splitlines(keepends=True), file)
    names = dict(_prelude())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)  # Some functions make no sense.
        exec(compile(program.text, file, "exec"), names)
    ops = [
        _op(action, kind, around(fn) if around else fn, Step(f".{action}", None, number, len(program.steps)), reading)
        for number, ((action, kind), around, fn) in enumerate(
            zip(program.steps, program.around, names["functions"], strict=True), start=1
        )
    ]
    result = Outcome([], [], [], sum(op.evaluation.expression is not None for op in ops))
    log, source = names["LOG"], names["items"]()
    for items in [[item] for item in source] if program.is_apart else [source]:
        try:
            for item in islice(run_chain(ops, items), _MOST_ITEMS):
                result.items.append(told(item))
                log.append("given")
        except Exception as problem:
            result.errors.append(_failure(problem, file))
            log.append("failed")
        result.logs.append(list(log))
        log.clear()
    del linecache.cache[file]
    return result


def is_same(called: Outcome, inlined: Outcome) -> bool:
    """Say whether both do the same; an expression that fails is called then, so its operators run twice."""
    logs = zip(called.logs, inlined.logs, strict=True)
    are_same = all(more[: len(log) - 1] == log[:-1] if "failed" in log else more == log for log, more in logs)
    return are_same and (called.items, called.errors) == (inlined.items, inlined.errors)


_MOST_ITEMS = 60


@functools.cache
def _prelude() -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(PRELUDE, "<prelude>", "exec"), names)
    return names


def _op(action: str, kind: type | None, fn: Any, step: Step, reading: Callable[[Any], Any] | None) -> Op:
    if reading is None:
        return Op(action, fn, kind, step)
    found = read_around(fn, None) if hasattr(type(fn), "around") else reading(fn)
    op = Op(action, fn, kind, step)
    return replace(op, evaluation=step_evaluation(op, found if isinstance(found, Expression) else None))


def _failure(error: BaseException, file: str) -> tuple[Any, ...]:
    known = failure(error)
    lines = [(frame.f_code.co_name, line) for frame, line in traceback.walk_tb(error.__traceback__)
             if frame.f_code.co_filename == file]  # fmt: skip
    behind = [_of(error.__cause__, file), _of(error.__context__, file), error.__suppress_context__]
    place = None if known is None else (known.step.position, told(known.item))
    return type(error), str(error), told(error.args), *behind, place, lines


def _of(error: BaseException | None, file: str) -> object:
    return None if error is None else (type(error), told(error.args), _of(error.__context__, file))


def told(value: Any) -> str:
    """Write a value in every detail: its type, its sign, and those of what it is made of."""
    kind = type(value)
    if kind.__name__ in ("Point", "Pair"):
        return f"{kind.__name__}({told(value.x)}, {told(value.y)})"
    if kind in (list, tuple, Entry):
        return f"{kind.__name__}({', '.join(map(told, value))})"
    return f"{kind.__name__} {_shown(value)}"


def _shown(value: Any) -> str:
    try:
        return f"{value:x}" if type(value) is int else repr(value)
    except Exception as error:
        return type(error).__name__
