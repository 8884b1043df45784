"""Which values count as ints and floats where a numeric stream needs them."""

from __future__ import annotations

import operator
from typing import Any

from dstream.failures import shown
from dstream.values.flattened import refuse_awaitable

__all__ = ["exact_float", "exact_int"]


def exact_int(value: Any) -> int:
    """Return `value` if it is an int (a bool or a numpy int becomes one).

    Raises:
        TypeError: it is anything else; the message names it.
    """
    if type(value) is int:
        return value
    try:
        return int(operator.index(value))
    except TypeError:
        refuse_awaitable(value)
        raise TypeError(f"an int is needed here, not {type(value).__name__}: {shown(value)}") from None


def exact_float(value: Any) -> float:
    """Return `value` as a float if it is a number.

    Raises:
        TypeError: it is no number; the message names it.
    """
    if type(value) is float:
        return value
    if isinstance(value, str | bytes | bytearray) or not (hasattr(value, "__float__") or hasattr(value, "__index__")):
        refuse_awaitable(value)
        raise TypeError(f"a number is needed here, not {type(value).__name__}: {shown(value)}")
    return float(value)
