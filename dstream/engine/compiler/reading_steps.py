"""Which functions of a plan are read: those of steps that tasks run for each item."""

from __future__ import annotations

import dataclasses

from dstream.expressions.expression import Expression
from dstream.expressions.function_reading import Unread, read
from dstream.failures import is_our_name
from dstream.plan.core_of_services import Served
from dstream.plan.steps import Emitted, Op, shown_function, unchanged
from dstream.values import Predicate

__all__ = ["read_step", "with_expression"]


def with_expression(op: Op) -> Op:
    """Return a step with what its function gives, if that can be read."""
    found = read_step(op)
    return dataclasses.replace(op, expression=found) if isinstance(found, Expression) else op


def read_step(op: Op) -> Expression | Unread | None:
    """Return what the function of a step gives, or why it is not known; None if a task calls no function of the user's.

    A step that looks after its failures calls its function: what failed is known by the exception alone.
    """
    if op.action not in _READ or op.fn is unchanged:
        return None
    if isinstance(op.fn, Served):
        return Unread("calls a service")
    if isinstance(op.fn, Emitted):
        return Unread("emits its items one by one", advice="return a tuple of them to flat_map()")
    if isinstance(op.fn, Predicate):
        return Unread(f"calls {shown_function(op.fn)}", advice="a lambda can be read")
    if is_our_name(type(op.fn).__module__):
        return Unread("stands in a call that does more with each item")
    if op.guards:
        return Unread("is followed by a call that handles its failures")
    return read(op.fn)


_READ = ("map", "filter", "flat_map")
