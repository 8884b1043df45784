"""`Route`: how tasks evaluate the function of a step, and why in that way."""

from __future__ import annotations

from dataclasses import dataclass

from dstream.engine.compiler.reading_steps import read_step, with_expression
from dstream.engine.kernels.columns.steps_in_columns import may_stand_in_columns, obstacle_to_columns
from dstream.engine.kernels.inlined import is_inlined
from dstream.expressions.function_reading import Unread, name_of_callable
from dstream.plan.core import Chain, Hint, Read
from dstream.plan.steps import Op

__all__ = ["BY_ITEM", "Route", "obstacle_before", "route_of"]


@dataclass(frozen=True, slots=True)
class Route:
    """How tasks evaluate a function.

    Attributes:
        name: `"columns"`, `"inlined"`, or `"Python: "` with what the function does that keeps it there.
        why: sentences: the reason, and what to write instead where that is easy.
    """

    name: str
    why: str


BY_ITEM = "the items before it come one by one"


def route_of(op: Op, before: str | None = BY_ITEM) -> Route | None:
    """Return how tasks evaluate the function of a step; None if they call none of the user's.

    Args:
        op: the step.
        before: why the items that it gets do not stand in columns, in words that follow "since"; None if they do.
    """
    found = read_step(op)
    if found is None:
        return None
    if isinstance(found, Unread):
        return Route(f"Python: {found.reason}", _why_called(found))
    obstacle = before or obstacle_to_columns(with_expression(op))
    if obstacle is None:
        return Route("columns", "It is evaluated for many items at a time, where that gives the same.")
    if is_inlined(with_expression(op)):
        return Route("inlined", f"Python evaluates it in the loop of the task, since {obstacle}.")
    name = name_of_callable(op.fn)
    return Route(f"Python: calls {name}", f"{name} is written in C, and called for each item, since {obstacle}.")


def obstacle_before(node: Chain) -> str | None:
    """Return why the items that a chain gets do not stand in columns; None if they do."""
    upstream = node.upstream
    while isinstance(upstream, Hint):
        upstream = upstream.upstream
    if not isinstance(upstream, Read):
        return BY_ITEM
    return None if may_stand_in_columns(upstream.source, [with_expression(op) for op in node.ops]) else BY_ITEM


def _why_called(unread: Unread) -> str:
    place = f" at {unread.where}" if unread.where else ""
    advice = f" Instead: {unread.advice}." if unread.advice else ""
    return f"The function is called for each item, since it {unread.reason}{place}.{advice}"
