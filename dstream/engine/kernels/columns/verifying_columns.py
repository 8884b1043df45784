"""`columns="verify"`: what columns gave is compared with what the functions give for the same items."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, time
from decimal import Decimal
from itertools import zip_longest
from typing import Any

from dstream.engine.kernels.columns.column_values import Column, items_of
from dstream.engine.kernels.fused_steps import converted
from dstream.errors import ColumnsDifferError
from dstream.failures import shown
from dstream.plan.steps import Op, Step

__all__ = ["compare_results", "compare_step", "is_same"]


def compare_step(op: Op, before: Column, found: Column) -> None:
    """Call the function of a step for each row, and compare.

    Args:
        op: a `map` or a `filter`.
        before: the items of the step.
        found: what columns gave for each of them: a result, or whether it passes.

    Raises:
        ColumnsDifferError: one of them differs in value or type, or Python raises.
    """
    for item, value in zip(items_of(before), items_of(found), strict=True):
        try:
            result = op.fn(item)
            expected = converted(result, op.kind) if op.action == "map" else bool(result)
        except Exception as error:
            raise _different(op.step, value, f"raises {error!r}", item) from error
        if not is_same(value, expected):
            raise _different(op.step, value, f"gives {shown(expected)}", item)


def compare_results(step: str, found: Sequence[Any], expected: Sequence[Any], of: Callable[[], str]) -> None:
    """Compare what columns made of a block with what functions made of it, in order.

    Raises:
        ColumnsDifferError: a value, a type or the order differs.
    """
    for one, other in zip_longest(found, expected, fillvalue=_NOTHING):
        if not is_same(one, other):
            raise ColumnsDifferError(f"{step}: columns give {shown(one)} where Python gives {shown(other)} for {of()}")


_NOTHING = object()


def _different(step: Step, value: Any, other: str, item: Any) -> ColumnsDifferError:
    return ColumnsDifferError(f"{step}: columns give {shown(value)} where Python {other} for {shown(item)}")


def is_same(one: Any, other: Any) -> bool:
    """Say whether two values have one type and hold the same, down to the digits: -0.0 is not 0.0, and NaN is NaN.

    Objects are alike if what they keep is. They may have been made twice of one row, of a class that compares by
    identity; and `==` of another class takes a 1 for a 1.0, and no NaN for another one.
    """
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, tuple | list):
        return len(one) == len(other) and all(map(is_same, one, other))
    if isinstance(one, dict):
        return len(one) == len(other) and all(map(is_same, one.items(), other.items()))
    if isinstance(one, _TOLD_BY_DIGITS):
        return repr(one) == repr(other)
    state = None if isinstance(one, str | bytes) else one.__getstate__()
    return is_same(state, other.__getstate__()) if state else bool(one == other)


_TOLD_BY_DIGITS = (int, float, Decimal, date, time)
"""Types of which two equal values may be of different forms, as 1.0 and 1.00 or moments with different zones are."""
