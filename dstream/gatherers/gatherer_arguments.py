"""Checks of what the factories are given."""

from __future__ import annotations

import operator
import sys
from typing import Any, TypeVar

from dstream.spi.wrong_arguments import checked_function as function
from dstream.spi.wrong_arguments import kind_of

__all__ = ["function", "optional_function", "window_size"]

F = TypeVar("F")


def optional_function(value: F, name: str) -> F:
    """Return `value` if it is None or can be called."""
    return value if value is None else function(value, name)


def window_size(value: Any) -> int:
    """Return the number of items of a window; no stream has more than `sys.maxsize`.

    Raises:
        TypeError: it is no int.
        ValueError: it is less than 1.
    """
    if isinstance(value, bool) or not hasattr(type(value), "__index__"):
        raise TypeError(f"n must be an int, not {kind_of(value)}")
    number = operator.index(value)
    if number < 1:
        raise ValueError(f"n must be at least 1: {number}")
    return min(number, sys.maxsize)
