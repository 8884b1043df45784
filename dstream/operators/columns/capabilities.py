"""Support of steps, expressions and patterns by columns, for the compiler. Loads no NumPy."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from enum import Enum
from functools import partial

from dstream.base.records import remembered
from dstream.expressions import (
    Applied,
    Argument,
    Attribute,
    Built,
    Called,
    Changed,
    Choice,
    Comprehension,
    Constant,
    Display,
    Expression,
    Formatted,
    ForTuples,
    Function,
    Indexed,
    Keyword,
    Let,
    Local,
    Loop,
    Method,
    Routine,
    Spread,
    Statement,
    Text,
    Together,
    Tried,
)
from dstream.plan.steps import Op
from dstream.values.fields import field_names, has_own_code, has_plain_fields

__all__ = [
    "CALLED",
    "EACH_BY_PYTHON",
    "METHODS_OF_TIMES",
    "OF_TIMES",
    "STRING_METHODS",
    "are_constants",
    "gives_lists",
    "is_left_to_python",
    "is_part",
    "is_run_of_one_class",
    "left_to_python",
    "obstacle_to_step",
    "operates_on_objects",
    "operators_of",
    "takes_whole_items",
    "unsupported",
    "unsupported_in_flat_map",
]


_ONE_CLASS = re.compile(r"(?:\\[wWdDsS]|\[(\^?)((?:[^\\\[\]^]|\\[wWdDsS\\\]\[^.-])+)\])\+")
"""One class with a plus behind it; inside of brackets no other bracket that is not escaped."""

_FLAGS = re.UNICODE | re.ASCII | re.IGNORECASE
"""Other flags change nothing in such a pattern, or are seldom seen beside one."""


def is_run_of_one_class(pattern: object) -> bool:
    """Return whether the matches of a pattern are the longest runs of characters of one class."""
    if type(pattern) is not re.Pattern or type(pattern.pattern) is not str or pattern.flags & ~_FLAGS:
        return False
    return _ONE_CLASS.fullmatch(pattern.pattern) is not None


EACH_BY_PYTHON = frozenset(
    f"math.{name}"
    for name in (
        *("acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "ceil", "copysign", "cos", "cosh"),
        *("degrees", "dist", "erf", "erfc", "exp", "exp2", "expm1", "fabs", "floor", "fmod", "gamma", "hypot"),
        *("isfinite", "isinf", "isnan", "lgamma", "log", "log10", "log1p", "log2", "nextafter", "pow", "radians"),
        *("remainder", "sin", "sinh", "tan", "tanh", "trunc", "ulp"),
    )
)
"""Functions whose digits differ elsewhere: Python calls them for each row, between steps that stay columns."""

STRING_METHODS: dict[str, tuple[int, int]] = {
    **dict.fromkeys(("capitalize", "casefold", "lower", "swapcase", "title", "upper"), (0, 0)),
    **dict.fromkeys(("isalnum", "isalpha", "isascii", "isdecimal", "isdigit", "isnumeric"), (0, 0)),
    **dict.fromkeys(("isprintable", "isspace"), (0, 0)),
    **dict.fromkeys(("lstrip", "rstrip", "split", "strip"), (0, 1)),
    **dict.fromkeys(("count", "endswith", "find", "findall", "removeprefix", "removesuffix", "startswith"), (1, 1)),
    "replace": (2, 2),
}
"""Methods that take columns of texts, with the least and the most of their arguments: constants, but of `findall`.

`string_methods` has their functions, which load pyarrow.
"""

_OF_STR = frozenset(f"str.{name}" for name in STRING_METHODS if name != "findall")

OF_TIMES = frozenset({"decimal.Decimal"}) | frozenset(
    f"datetime.{name}"
    for name in (
        *("date", "date.fromisoformat", "date.fromordinal", "datetime", "datetime.combine"),
        *("datetime.fromisoformat", "datetime.fromtimestamp", "datetime.strptime", "time", "timedelta"),
    )
)
"""Constructors of dates, times and Decimals, which Python calls for each distinct value."""

METHODS_OF_TIMES = frozenset(
    {
        "astimezone",
        "date",
        "isoformat",
        "isoweekday",
        "quantize",
        "replace",
        "strftime",
        "time",
        "timestamp",
        "total_seconds",
        "weekday",
    }
)
"""Methods of dates, times and Decimals alone, which take keywords, and whose arguments may be columns."""

CALLED = (
    EACH_BY_PYTHON
    | _OF_STR
    | OF_TIMES
    | {"abs", "bool", "dataclasses.asdict", "float", "int", "len", "math.sqrt", "max", "min", "round", "str", "sum"}
)
"""Functions that take columns."""


def unsupported(expression: Expression, *, may_give_lists: bool = False) -> str | None:
    """Return why columns take no such function of a collector, or key, in words that follow "since"; None if they do.

    Python evaluates some parts of records for each row (`left_to_python`).

    Args:
        expression: of the function.
        may_give_lists: the collector takes its results as they are.
    """
    if gives_lists(expression) and not may_give_lists:
        return "columns hold no lists"
    if operates_on_objects(expression):
        return _OWN_OPERATORS
    return left_to_python(expression) if takes_whole_items(expression) else None


_OWN_OPERATORS = "an operator may run code of a user's class"


def operates_on_objects(expression: Expression, *, is_result: bool = True, own: frozenset[int] = frozenset()) -> bool:
    """Return whether an object of a class with code of its own is more than a result, or a member of one.

    Its operators may have side effects, which a loop has in the order of the items.

    Args:
        expression: what is evaluated.
        is_result: its value is returned, and nothing is done with it.
        own: the numbers of variables of such objects.
    """
    inside = partial(operates_on_objects, is_result=is_result, own=own)
    operand, result = partial(inside, is_result=False), partial(inside, is_result=True)
    match expression:
        case Local(number):
            return number in own and not is_result
        case Built(kind, _, values):
            return (not is_result and _has_own_code(kind)) or any(map(inside, values))
        case Attribute(Local() | Argument(), _):
            return False
        case Attribute(Built(kind, _, _) as of, name) if name in field_names(kind):
            return result(of)
        case Let(value, number, within):
            is_own = any(isinstance(each, Built) and _has_own_code(each.kind) for each in value.walk())
            return result(value) or inside(within, own=own | {number} if is_own else own)
        case Choice(condition, chosen, otherwise):
            return operand(condition) or inside(chosen) or inside(otherwise)
        case Together() | Changed() | ForTuples() | Called("dstream.Entry", _):
            return any(map(inside, expression.parts()))
    return any(map(operand, expression.parts()))


def _has_own_code(kind: type) -> bool:
    return kind not in (dict, list) and has_own_code(kind)


def unsupported_in_flat_map(expression: Expression) -> str | None:
    """Return why the members of an expression's results cannot be found in columns; None if they can be."""
    return None if gives_lists(expression) else "columns divide items by functions that return lists alone"


def gives_lists(expression: Expression) -> bool:
    """Return whether each value is a list or a tuple of texts."""
    match expression:
        case Method(_, name, _):
            return name in _GIVING_LISTS
        case Called(function, _):
            return function.removeprefix("str.").removeprefix("re.") in _GIVING_LISTS
        case Let(_, _, within):
            return gives_lists(within)
        case Choice(_, chosen, otherwise):
            return gives_lists(chosen) and gives_lists(otherwise)
        case Constant(value):
            return type(value) is tuple and not value
    return False


_GIVING_LISTS = ("findall", "groups", "partition", "rpartition", "rsplit", "sorted", "split", "splitlines")


def left_to_python(expression: Expression) -> str | None:
    """Return why Python evaluates a part of an expression for each row, in words that follow "since"; None: no part."""
    return next((reason for each in expression.walk() for reason in _obstacles(each)), None)


@remembered
def is_left_to_python(part: Expression) -> bool:
    """Return whether Python evaluates a part for each row, in one expression with what that is a part of."""
    if any(_obstacles(part)) or any(isinstance(each, _WITHIN_OTHERS) for each in part.parts()):
        return True
    match part:
        case Attribute(of, _) | Indexed(of, _) | Method(of, _, _) | Called(_, (of,)):
            return is_left_to_python(of)
    return False


_WITHIN_OTHERS = (Comprehension, Function, Keyword, Loop, Spread, Statement)
"""A part without a value of its own, or with one that another part uses up."""


def takes_whole_items(expression: Expression) -> bool:
    """Return whether a part that is left to Python takes an item as a whole, which a loop does as fast."""
    parts = [each for each in expression.walk() if is_left_to_python(each)]
    return any(map(_has_bare_argument, parts))


def _has_bare_argument(expression: Expression) -> bool:
    if isinstance(expression, Argument):
        return True
    return not is_part(expression) and any(map(_has_bare_argument, expression.parts()))


def is_part(expression: Expression) -> bool:
    """Return whether an expression is an attribute of another one, or has a constant as its key or place."""
    match expression:
        case Attribute() | Indexed(_, Constant()):
            return True
        case Method(_, "get", (Constant(str()),) | (Constant(str()), Constant())):
            return True
    return False


def are_constants(expressions: Sequence[Expression]) -> bool:
    """Return whether all expressions are constants."""
    return all(isinstance(each, Constant) for each in expressions)


def _obstacles(each: Expression) -> Iterator[str]:
    match each:
        case Method(_, "get", (Constant(str()),) | (Constant(str()), _)):
            pass
        case Method(_, name, _, keywords) if name in METHODS_OF_TIMES and (keywords or name != "replace"):
            pass
        case Method(Constant(dict() | list() | set()), _, (_, *others)) if are_constants(others):
            pass
        case Method(_, "_replace", values, keywords) if len(values) == len(keywords):
            pass
        case Method(_, name, _, keywords) if keywords:
            yield f"columns have no .{name}() with keywords"
        case Applied("is" | "is not" | "==" | "!=" | "in" | "not in", (Called("type", (_,)), Constant())):
            pass
        case Applied(_, operands) if any(map(_has_member, operands)):
            yield "columns have no members of enumerations"
        case Formatted(Constant() as of, _, _) if _has_member(of):
            yield "columns have no members of enumerations"
        case Built(kind, _, _) if kind not in (dict, list) and not has_plain_fields(kind):
            yield "columns build no objects of a class with code of its own"
        case Built(_, ("*",), _):
            yield "columns make no object of any number of values"
        case Method(of, name, arguments):
            yield from _of_method(name, of, arguments)
        case Called("slice" | "str" | "dstream.Entry" | "dstream.is_of" | "isinstance", _):
            pass
        case Called(function, (of, *arguments)) if function in _OF_STR:
            yield from _of_method(function.removeprefix("str."), of, arguments)
        case Called("type", _):
            yield "columns have no types"
        case Called(function, _) if function.startswith("operator.i"):
            pass
        case Called(function, _) if function not in CALLED:
            yield f"columns have no {function}()"
        case Applied(operator, _) if any(map(_is_no_number, _compared(each))):
            yield f"{operator} has an operand that is no number"
        case Formatted(_, conversion, spec) if conversion not in ("", "s") or spec:
            yield "columns format no values"
    if not isinstance(each, _EVALUATED):
        yield _OTHERS.get(type(each), "columns do not work on what is something else")


_OTHERS: dict[type[Expression], str] = {
    Comprehension: "columns have no comprehension",
    Display: "columns make no such container",
    Routine: "columns run no statements",
    Tried: "columns catch no exceptions",
}


def _of_method(name: str, of: Expression, arguments: Sequence[Expression]) -> Iterator[str]:
    if name not in STRING_METHODS:
        yield f"columns have no .{name}()"
        return
    fewest, most = STRING_METHODS[name]
    if not fewest <= len(arguments) <= most:
        yield f"columns have no .{name}() with {len(arguments)} arguments"
    elif name == "findall":
        if not isinstance(of, Constant) or not is_run_of_one_class(of.value):
            yield "columns find runs of one class of characters alone, such as [a-z]+"
    elif not all(isinstance(each, Constant) and type(each.value) is str for each in arguments):
        yield f".{name}() has an argument that is no constant text"


_EVALUATED = (
    Applied,
    Argument,
    Attribute,
    Built,
    Called,
    Changed,
    Choice,
    Constant,
    ForTuples,
    Indexed,
    Let,
    Local,
    Together,
    Text,
    Formatted,
    Method,
)


def _compared(applied: Applied) -> tuple[Expression, ...]:
    """Return the operands that have to be numbers or texts."""
    if applied.operator in ("and", "or", "not", "is", "is not"):
        return ()
    return applied.operands[:1] if applied.operator in ("in", "not in") else applied.operands


def _has_member(operand: Expression) -> bool:
    """Return whether an operand is a member of an enumeration, or has one, which may be equal to a number or string."""
    value = operand.value if isinstance(operand, Constant) else None
    return any(isinstance(each, Enum) for each in (value if isinstance(value, tuple | frozenset) else (value,)))


def _is_no_number(operand: Expression) -> bool:
    return isinstance(operand, Constant) and type(operand.value) not in _COMPARED


_COMPARED = (int, float, bool, str, datetime.date, datetime.datetime, datetime.time, datetime.timedelta, Decimal)


def obstacle_to_step(op: Op, expression: Expression | None) -> str | None:
    """Return why a step does not run over columns, in words that follow "since"; None if it may.

    Args:
        op: the step.
        expression: what its function gives, if that is known.
    """
    if op.action == "count":
        return None
    if op.action in ("pair", "unpair"):
        return None
    if op.action not in ("map", "filter", "flat_map") or op.guards:
        return f"a {op.action} takes one item at a time"
    if expression is None:
        return "its function is called"
    if operates_on_objects(expression, is_result=op.action != "filter"):
        return _OWN_OPERATORS
    if op.action != "flat_map":
        return None
    return unsupported_in_flat_map(expression) if op.kind is None else "a flat_map to numbers takes one item at a time"


def operators_of(expression: Expression) -> int:
    """Return how many operators and calls an expression applies to each item."""
    return sum(isinstance(each, Applied | Called) for each in expression.walk())
