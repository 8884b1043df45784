"""`InstantOf`: what a user takes for the timestamp of an item, in milliseconds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dstream.plan.steps import shown_function
from dstream.values.time_units import instant

__all__ = ["InstantOf"]


class InstantOf:
    """Gives the milliseconds since 1970 of an item, whose timestamp may be a datetime with a time zone."""

    __slots__ = ("__qualname__", "fn")

    def __init__(self, fn: Callable[[Any], Any]) -> None:
        self.fn = fn
        self.__qualname__ = shown_function(fn)

    def __call__(self, item: Any) -> int:
        """Return the timestamp of one item.

        Raises:
            TypeError: what the function gives is no timestamp.
            ValueError: it is a datetime without a time zone, or too far away.
        """
        found = self.fn(item)
        return found if type(found) is int and -_NEAR < found < _NEAR else instant(found)


_NEAR = 2**62
"""Nearly all timestamps need no further look."""
