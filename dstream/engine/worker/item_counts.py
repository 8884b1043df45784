"""Counting items on workers, for those who watch how far a job is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

__all__ = ["CountItems"]


@dataclass(frozen=True)
class CountItems:
    """Hands items on and adds their number to what the driver sees when the task has ended."""

    accumulator: Any
    key: str

    def __call__(self, items: Iterator[Any], task: Any) -> Iterator[Any]:
        number = 0
        try:
            # `item` is the name by which a failure finds the item of a loop, and this loop does not look at it.
            for each in items:
                number += 1
                yield each
        finally:
            self.accumulator.add({self.key: number})
