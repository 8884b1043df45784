"""`Route`: how tasks evaluate the function of a step, and why in that way."""

from __future__ import annotations

from dataclasses import dataclass

from dstream.engine.compiler.reading_steps import read_step, with_expression
from dstream.engine.kernels.inlined import is_inlined
from dstream.expressions.expression import Expression
from dstream.expressions.function_reading import Unread, name_of_callable
from dstream.plan.steps import Op

__all__ = ["Route", "route_of"]


@dataclass(frozen=True, slots=True)
class Route:
    """How tasks evaluate a function.

    Attributes:
        name: `"columns"`, `"inlined"`, or `"Python: "` with what the function does that keeps it there.
        why: sentences: the reason, and what to write instead where that is easy.
    """

    name: str
    why: str


def route_of(op: Op) -> Route | None:
    """Return how tasks evaluate the function of a step; None if they call none of the user's."""
    found = read_step(op)
    if found is None:
        return None
    if isinstance(found, Unread):
        return Route(f"Python: {found.reason}", _why_called(found))
    obstacle = _obstacle_to_columns(found)
    if obstacle is None:
        return Route("columns", "It is evaluated for many items at a time.")
    if is_inlined(with_expression(op)):
        return Route("inlined", f"Python evaluates it in the loop of the task, since {obstacle}.")
    name = name_of_callable(op.fn)
    return Route(f"Python: calls {name}", f"{name} is written in C, and called for each item, since {obstacle}.")


def _obstacle_to_columns(expression: Expression) -> str | None:
    """Return why an expression is not evaluated over columns, in words that follow "since"."""
    return "nothing runs as columns yet"


def _why_called(unread: Unread) -> str:
    place = f" at {unread.where}" if unread.where else ""
    advice = f" Instead: {unread.advice}." if unread.advice else ""
    return f"The function is called for each item, since it {unread.reason}{place}.{advice}"
