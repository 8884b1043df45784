"""Arithmetic of floats, among which ints may stand: IEEE 754 in both, with Python's rules for what remains."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dstream.engine.kernels.columns.column_values import Bools, Floats, Ints
from dstream.engine.kernels.columns.int_arithmetic import nonzero

__all__ = ["float_operators", "float_unaries", "floats"]


def floats(column: Ints | Floats | Bools) -> Floats:
    """Return numbers as floats: both processors and Python round an int to the nearest, half to even."""
    return Floats(column.values.astype(np.float64, copy=False))


def _operator(values: Callable[[Any, Any], Any]) -> Callable[[Floats, Floats], Floats]:
    return lambda left, right: Floats(values(left.values, right.values))


def _division(values: Callable[[Any, Any], Any]) -> Callable[[Floats, Floats], Floats]:
    def apply(left: Floats, right: Floats) -> Floats:
        nonzero(right)
        return Floats(values(left.values, right.values))

    return apply


float_operators: dict[str, Callable[[Floats, Floats], Floats]] = {
    "+": _operator(np.add),
    "-": _operator(np.subtract),
    "*": _operator(np.multiply),
    "/": _division(np.true_divide),
    "//": _division(np.floor_divide),
    "%": _division(np.remainder),
}

float_unaries: dict[str, Callable[[Floats], Floats]] = {
    "neg": lambda of: Floats(np.negative(of.values)),
    "pos": lambda of: of,
    "abs": lambda of: Floats(np.abs(of.values)),
}
