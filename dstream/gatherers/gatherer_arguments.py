"""Checks of what the factories are given."""

from __future__ import annotations

import operator
import sys
from typing import Any, TypeVar

__all__ = ["function", "optional_function", "window_size"]

F = TypeVar("F")


def function(value: F, name: str) -> F:
    """Return `value` if it can be called.

    Raises:
        TypeError: it cannot; the message names the argument.
    """
    if not callable(value):
        raise TypeError(f"{name} must be a function, not {_kind(value)}")
    return value


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
        raise TypeError(f"n must be an int, not {_kind(value)}")
    number = operator.index(value)
    if number < 1:
        raise ValueError(f"n must be at least 1: {number}")
    return min(number, sys.maxsize)


def _kind(value: object) -> str:
    return "None" if value is None else type(value).__name__
