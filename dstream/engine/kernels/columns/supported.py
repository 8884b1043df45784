"""What columns can do, as far as an expression alone tells: the drawing of a plan asks it."""

from __future__ import annotations

from collections.abc import Iterator

from dstream.expressions import (
    Applied,
    Argument,
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

__all__ = ["CALLED", "EACH_BY_PYTHON", "unsupported"]

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

CALLED = EACH_BY_PYTHON | {"abs", "bool", "float", "int", "len", "math.sqrt", "max", "min", "round", "sum"}
"""Functions that take columns."""


def unsupported(expression: Expression) -> str | None:
    """Return why an expression cannot be evaluated over columns, in words that follow "since"; None if it can be."""
    return next(_obstacles(expression), None)


def _obstacles(expression: Expression) -> Iterator[str]:
    for each in expression.walk():
        if isinstance(each, Text | Formatted | Method):
            yield "columns do not work on texts"
        elif isinstance(each, Called) and each.function not in CALLED:
            yield f"columns have no {each.function}()"
        elif isinstance(each, Applied) and any(map(_is_no_number, _compared(each))):
            yield f"{each.operator} has an operand that is no number"
        elif not isinstance(each, _EVALUATED):
            yield f"columns do not work on what is {_WORDS.get(type(each).__name__, 'something else')}"


_EVALUATED = (Applied, Argument, Called, Choice, Constant, Indexed, Let, Local, Together, Text, Formatted, Method)
_WORDS = {"Attribute": "an attribute of an object", "Built": "an object of a class"}


def _compared(applied: Applied) -> tuple[Expression, ...]:
    """Return the operands that have to be numbers."""
    if applied.operator in ("and", "or", "not", "is", "is not"):
        return ()
    return applied.operands[:1] if applied.operator in ("in", "not in") else applied.operands


def _is_no_number(operand: Expression) -> bool:
    return isinstance(operand, Constant) and type(operand.value) not in (int, float, bool)
