"""Attribution of the failures of a generated loop: the step, the item, and the user's exception.

A loop has each step on a line of its own, and calls these with its variables.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from itertools import takewhile
from types import FrameType, TracebackType
from typing import Any

from dstream.base.functions import many
from dstream.failures import blame
from dstream.plan.steps import Op
from dstream.values.numbers import exact_float, exact_int

__all__ = ["blame_step", "call_again"]


def blame_step(error: Exception, ops: Sequence[Op | None], variables: Mapping[str, Any], first_line: int) -> bool:
    """Attribute `error` to the failing step and its item; a failure of the source of the items is not attributed.

    Returns:
        Whether the failure is of an inlined expression that replaces the step's function.
    """
    place = _place(error.__traceback__, sys._getframe(1))
    op, item = _failed(place, ops, variables, first_line)
    if place is None or op is None:
        return False
    blame(error, op.step, item)
    inner = place.tb_next
    return op.evaluation.is_inlined and (inner is None or inner.tb_frame.f_code not in _OF_RESULTS)


_OF_RESULTS = frozenset({exact_int.__code__, exact_float.__code__, many.__code__})
"""The code that takes the result of a function."""


def call_again(
    failed: list[Exception], ops: Sequence[Op | None], variables: Mapping[str, Any], first_line: int
) -> None:
    """Call the user's function whose inlined expression failed, on the same item; raise its error.

    If it does not fail in the same way again, for example on an iterator that is used up, the first error is raised.

    Args:
        failed: contains the failure, which is removed: the loop must not retain a reference to it.
        ops: the steps of the loop.
        variables: the local variables of the loop.
        first_line: the line number of the first step.
    """
    first = failed.pop()
    # `BaseException` is used below, since a user's class may override `with_traceback` or `__setattr__`.
    traceback, context = first.__traceback__, first.__context__
    op, item = _failed(_place(traceback, sys._getframe(1)), ops, variables, first_line)
    assert op is not None, "a step has failed"
    BaseException.with_traceback(first, None)
    try:
        op.fn(item)
    except Exception as error:
        if _are_alike(error, first):
            blame(error, op.step, item)
            raise
    BaseException.with_traceback(first, traceback)
    blame(first, op.step, item)
    # `raise` would set another context: the failure gets its own context again.
    try:
        raise first
    finally:
        BaseException.__setattr__(first, "__context__", context)


def _are_alike(error: Exception, other: Exception) -> bool:
    try:
        return type(error) is type(other) and str(error) == str(other)
    except Exception:  # `__str__` of a class of the user's may fail.
        return False


def _failed(
    place: TracebackType | None, ops: Sequence[Op | None], variables: Mapping[str, Any], first_line: int
) -> tuple[Op | None, Any]:
    """Return the step that failed at a frame of a loop, and its item."""
    index = -1 if place is None else place.tb_lineno - first_line
    op = ops[index] if 0 <= index < len(ops) else None
    if op is None:
        return None, None
    of_branch = takewhile(lambda each: each is not None, reversed(ops[:index]))
    # The variables of a loop are numbered by the `flat_map` steps before them in the branch.
    level = sum(each is not None and each.action == "flat_map" for each in of_branch)
    return op, variables[f"v{level}"]


def _place(traceback: TracebackType | None, loop: FrameType) -> TracebackType | None:
    """Return the loop's entry of a traceback; threads that raise one object put their frames into one traceback."""
    while traceback is not None and traceback.tb_frame is not loop:
        traceback = traceback.tb_next
    return traceback
