"""`ItemCount`: how many items passed a step of one task, counted one by one or many at a time."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

from dstream.plan.steps import Op

__all__ = ["ItemCount", "one_by_one"]


class ItemCount:
    """A number that grows.

    Attributes:
        each: counts one item, in C code.
        of_open_block: says how much of a block that is still being used counts.
    """

    __slots__ = ("_many", "_ones", "each", "of_open_block")

    def __init__(self) -> None:
        self._ones = count()
        self._many = 0
        self.each: Callable[[Any], object] = functools.partial(next, self._ones)
        self.of_open_block: Callable[[], int] | None = None

    def __call__(self, item: Any) -> object:
        return self.each(item)

    def add(self, items: int) -> None:
        """Count many items."""
        self._many += items

    def total(self) -> int:
        """Return the number, once."""
        return next(self._ones) + self._many + (self.of_open_block() if self.of_open_block else 0)


def one_by_one(ops: Sequence[Op]) -> Sequence[Op]:
    """Return the steps for a loop over items: what counts is called for each of them."""
    if all(op.action != "count" for op in ops):
        return ops
    return [replace(op, action="peek", fn=op.fn.each) if isinstance(op.fn, ItemCount) else op for op in ops]
