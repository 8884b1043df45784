"""Results of an operation over epochs, and items that came too late for it: one output has both; this parts them."""

from __future__ import annotations

from typing import Any

from dstream.values.event_time import Late

__all__ = ["is_in_time", "late_ones"]


def is_in_time(item: Any) -> bool:
    """Say whether an item is a result."""
    return type(item) is not Late


def late_ones(item: Any) -> tuple[Any, ...]:
    """Return the item that came too late, as it came, in a tuple; an empty one for a result."""
    return (item.item,) if type(item) is Late else ()
