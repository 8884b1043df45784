"""Forms: expressions without their constants, which share one generated loop, as `syntax` writes it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from dstream.base.records import record
from dstream.expressions.tree import Applied, Expression, Tried

__all__ = [
    "Compared",
    "Form",
    "FormattedBy",
    "Invoked",
    "Made",
    "TriedFor",
    "are_in_order",
    "is_one_comparison",
]


@record
class Form:
    """An expression without its constants: further arguments replace them.

    Attributes:
        constants: the number of constants.
    """

    expression: Expression
    constants: int


@record
class Compared(Expression):
    """`a < b < c`: each operand is evaluated once, as far as the comparisons before it are true."""

    operators: tuple[str, ...]
    operands: tuple[Expression, ...]


@record
class Made(Expression):
    """A call of a class.

    Attributes:
        names: of the fields; none if they are in the order of the class.
    """

    kind: Expression
    names: tuple[str, ...]
    values: tuple[Expression, ...]


@record
class TriedFor(Expression):
    """A `Tried` whose kinds of exceptions are constants, too."""

    tried: Tried
    kinds: tuple[Expression, ...]


@record
class Invoked(Expression):
    """A call of a `Routine`, which is compiled to a function of its own."""

    function: Expression
    arguments: tuple[Expression, ...]


@record
class FormattedBy(Expression):
    """A `Formatted` whose spec is a constant, too."""

    of: Expression
    conversion: str
    spec: Expression | None


def are_in_order(kind: Any, names: tuple[str, ...]) -> bool:
    """Return whether names are the first fields of a class, in their order."""
    fields = getattr(kind, "_fields", ()) if issubclass(kind, tuple) else tuple(kind.__dataclass_fields__)
    return bool(fields[: len(names)] == names)


def is_one_comparison(operands: Sequence[Expression]) -> bool:
    """Return whether neighbouring comparisons share an operand as one object, such as `a < b and b < c`."""
    if not all(isinstance(each, Applied) and each.operator in _COMPARISONS for each in operands):
        return False
    pairs = [each.operands for each in operands if isinstance(each, Applied)]
    return all(left[1] is right[0] for left, right in pairwise(pairs))


_COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">=", "in", "not in", "is", "is not"})
