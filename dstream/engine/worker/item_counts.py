"""Counting items on workers, for those who watch how far a job is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dstream.engine.kernels.core_operations import Task, in_chain
from dstream.engine.kernels.item_count import ItemCount
from dstream.plan.steps import Op, Step

__all__ = ["CountItems"]


@dataclass(frozen=True)
class CountItems:
    """Hands items on and adds their number to what the driver sees when the task has ended."""

    accumulator: Any
    key: str

    def __call__(self, items: Iterator[Any], task: Task) -> Iterator[Any]:
        number = ItemCount()
        task.at_end(lambda: self.accumulator.add({self.key: number.total()}))
        return in_chain([Op("count", number, None, _NOBODYS)], items)


_NOBODYS = Step("", None, 0, 0)
