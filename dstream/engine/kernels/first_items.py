"""The first items in order, of many of which few are held."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from dstream.memory import pieces
from dstream.values.order import before, sort

__all__ = ["FEWER_THAN_COLLECTED", "taken_first", "top_items"]

FEWER_THAN_COLLECTED = 512
"""So many items may be made and let go of again before Python's garbage collector looks at them (700, CPython 3.11)."""


def top_items(items: Iterable[Any], count: int, key: Callable[[Any], Any] | None, reverse: bool) -> Iterator[Any]:
    """Give the first `count` of `items` in order, stable, holding little more than `count` of them."""
    return iter(taken_first([], items, count, key, reverse))


def taken_first(
    held: list[Any], items: Iterable[Any], count: int, key: Callable[[Any], Any] | None, reverse: bool
) -> list[Any]:
    """Return the first `count` of what is held, in order, and of later items."""
    for chunk in pieces(items, max(FEWER_THAN_COLLECTED, count)) if count else ():
        # Most chunks hold few items that belong to the first ones: comparing costs less than sorting.
        if found := chunk if len(held) < count else before(chunk, held[-1], key, reverse):
            held += found
            sort(held, key, reverse)
            del held[count:]
    return held
