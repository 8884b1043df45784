"""Which functions of a plan are read: those of steps that tasks run for each item."""

from __future__ import annotations

import dataclasses

from dstream.expressions.expression import Expression
from dstream.expressions.function_reading import Unread, read
from dstream.plan.core_of_services import Served
from dstream.plan.steps import Op, unchanged

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
    if op.guards:
        return Unread("is called, so that the call after it sees what it fails on")
    return read(op.fn)


_READ = ("map", "filter", "flat_map")
