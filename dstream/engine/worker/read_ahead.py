"""Reading ahead: the task of a piece goes on to the first items of the pieces behind it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from dstream.engine.kernels.core_operations import Operation, Task
from dstream.engine.kernels.gathering_ahead import gathered_ahead
from dstream.engine.worker.item_counts import CountItems
from dstream.engine.worker.stage import Piece
from dstream.spi import ByPlace

__all__ = ["ReadAhead"]


@dataclass(frozen=True)
class ReadAhead:
    """Gathers what begins in a piece; what follows it is read from the pieces behind, and not counted again."""

    kind: ByPlace[Any, Any]

    def __call__(self, pieces: tuple[Piece, ...]) -> Callable[[int], Operation]:
        quiet = tuple(replace(piece, operations=tuple(map(_uncounted, piece.operations))) for piece in pieces)
        return lambda number: functools.partial(_gather_ahead, self.kind, quiet, number)


def _uncounted(operation: Operation) -> Operation:
    return _pass_on if isinstance(operation, CountItems) else operation


def _pass_on(items: Iterator[Any], task: Task) -> Iterator[Any]:
    return items


def _gather_ahead(
    kind: ByPlace[Any, Any], pieces: tuple[Piece, ...], number: int, items: Iterator[Any], task: Task
) -> Iterator[Any]:
    def is_first() -> bool:
        return not any(True for piece in pieces[:number] for _ in piece.open(task))

    return gathered_ahead(
        kind, items, chain.from_iterable(piece.open(task) for piece in pieces[number + 1 :]), is_first
    )
