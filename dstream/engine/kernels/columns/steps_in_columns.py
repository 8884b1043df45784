"""Which steps run over columns, as far as their expressions and their source tell. Loads no NumPy."""

from __future__ import annotations

from collections.abc import Sequence

from dstream.engine.kernels.columns.supported import unsupported, unsupported_in_flat_map
from dstream.expressions import Applied, Argument, Called, Expression
from dstream.plan.steps import Op, unchanged

__all__ = ["expression_of_step", "is_in_columns", "obstacle_to_columns", "work_of"]


def is_in_columns(op: Op) -> bool:
    """Say whether a step takes columns and gives some; one that counts does."""
    return obstacle_to_columns(op) is None


def obstacle_to_columns(op: Op) -> str | None:
    """Return why a step does not run over columns, in words that follow "since"; None if it may."""
    if op.action == "count":
        return None
    if op.action not in ("map", "filter", "flat_map") or op.guards:
        return f"a {op.action} takes one item at a time"
    expression = expression_of_step(op)
    if expression is None:
        return "its function is called"
    if op.action != "flat_map":
        return unsupported(expression)
    return unsupported_in_flat_map(expression) if op.kind is None else "a flat_map to numbers takes one item at a time"


def expression_of_step(op: Op) -> Expression | None:
    """Return what the function of a step gives, if that is known."""
    return Argument(0) if op.fn is unchanged else op.expression


def work_of(ops: Sequence[Op]) -> int:
    """Return how many operators steps apply to each item."""
    expressions = [op.expression for op in ops if op.expression is not None]
    return sum(isinstance(each, Applied | Called) for expression in expressions for each in expression.walk())
