"""Forms: expressions without their constants, so that one loop serves all constants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from dstream.expressions.expression import (
    Applied,
    Argument,
    Attribute,
    Built,
    Called,
    Choice,
    Constant,
    Expression,
    Formatted,
    ForTuples,
    Indexed,
    Let,
    Method,
    Text,
    Together,
)

__all__ = ["Compared", "Form", "FormattedBy", "Made", "form_of"]


@dataclass(frozen=True, slots=True)
class Form:
    """An expression without its constants: further arguments stand for them.

    Attributes:
        constants: how many there are.
    """

    expression: Expression
    constants: int


@dataclass(frozen=True, slots=True)
class Compared(Expression):
    """`a < b < c`: each operand is evaluated once, as far as the comparisons before it are true."""

    operators: tuple[str, ...]
    operands: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Made(Expression):
    """A call of a class.

    Attributes:
        names: of the fields; none if they are in the order of the class.
    """

    kind: Expression
    names: tuple[str, ...]
    values: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class FormattedBy(Expression):
    """A `Formatted` whose spec is a constant, too."""

    of: Expression
    conversion: str
    spec: Expression | None


def form_of(expression: Expression) -> tuple[Form, list[Any]]:
    """Return an expression without its constants, and these."""
    constants: list[Any] = []
    form = _without_constants(expression, constants)
    return Form(form, len(constants)), constants


def _without_constants(each: Expression, constants: list[Any]) -> Expression:
    def inner(part: Expression) -> Expression:
        return _without_constants(part, constants)

    def held(value: Any) -> Argument:
        constants.append(value)
        return Argument(len(constants))

    def all_of(parts: Sequence[Expression]) -> tuple[Expression, ...]:
        return tuple(map(inner, parts))

    match each:
        case Constant(value):
            return held(value)
        case Applied("and", operands) if _is_one_comparison(operands):
            comparisons = [operand for operand in operands if isinstance(operand, Applied)]
            compared = [comparisons[0].operands[0], *(comparison.operands[1] for comparison in comparisons)]
            return Compared(tuple(comparison.operator for comparison in comparisons), all_of(compared))
        case Applied(operator, operands):
            return Applied(operator, all_of(operands))
        case Choice(condition, chosen, otherwise):
            return Choice(inner(condition), inner(chosen), inner(otherwise))
        case Indexed(of, index):
            return Indexed(inner(of), inner(index))
        case Attribute(of, name):
            return Attribute(inner(of), name)
        case Called(function, arguments):
            return Called(function, all_of(arguments))
        case Method(of, name, arguments):
            return Method(inner(of), name, all_of(arguments))
        case Together(members):
            return Together(all_of(members))
        case Built(kind, names, values):
            return Made(held(kind), () if _are_in_order(kind, names) else names, all_of(values))
        case Formatted(of, conversion, spec):
            return FormattedBy(inner(of), conversion, held(spec) if spec else None)
        case Text(members):
            return Text(all_of(members))
        case Let(value, number, within):
            return Let(inner(value), number, inner(within))
        case ForTuples(size, within):
            return ForTuples(size, inner(within))
    return each


def _are_in_order(kind: Any, names: tuple[str, ...]) -> bool:
    fields = getattr(kind, "_fields", ()) if issubclass(kind, tuple) else tuple(kind.__dataclass_fields__)
    return bool(fields[: len(names)] == names)


def _is_one_comparison(operands: Sequence[Expression]) -> bool:
    """Say whether comparisons share their operands, and not only equal ones."""
    if not all(isinstance(each, Applied) and each.operator in _COMPARISONS for each in operands):
        return False
    pairs = [each.operands for each in operands if isinstance(each, Applied)]
    return all(left[1] is right[0] for left, right in pairwise(pairs))


_COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">=", "in", "not in", "is", "is not"})
