"""Blocks of items with watermarks and ends, between parts of a graph of processors."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from enum import Enum
from typing import Any, NamedTuple

from dstream.spi.processor import Watermark

__all__ = [
    "MARKS",
    "GraphArrival",
    "GraphBlock",
    "Mark",
    "MarkedBlock",
    "block_of",
    "has_marks",
    "items_of_outlet",
    "users_items",
]


class Mark(Enum):
    """A message of a processor to all readers besides watermarks: it has ended, or is idle for a while."""

    ENDED = "ended"
    IDLE = "idle"


MARKS: frozenset[type] = frozenset((Watermark, Mark))
"""The types of control messages among items."""


class MarkedBlock(list[Any]):
    """A block with marks or watermarks among its items. Inside a run, a plain list has none, and is not searched."""

    __slots__ = ()


def has_marks(kinds: Collection[type]) -> bool:
    """Return whether marks or watermarks are among items of these types."""
    return not MARKS.isdisjoint(kinds)


def block_of(items: list[Any]) -> list[Any]:
    """Return items of any origin as a block whose class shows whether it contains marks."""
    return MarkedBlock(items) if has_marks(set(map(type, items))) else items


class GraphBlock(NamedTuple):
    """A block that a run emits by one of its outlets.

    Attributes:
        outlet: the number of the outlet.
        sender: the number of the processor that sent it.
        items: items in order, with watermarks and marks among them.
    """

    outlet: int
    sender: int
    items: list[Any]

    @property
    def items_of_block(self) -> list[Any]:
        """Return the items, for a message about an item that cannot be pickled."""
        return self.items


class GraphArrival(NamedTuple):
    """A block that arrives at a run by one of its inlets.

    Attributes:
        inlet: the number of the inlet.
        sender: the number of the task, or of the processor, that sent it.
        target: the number of the destination processor; None: the run decides.
        items: items in order, with watermarks and marks among them.
    """

    inlet: int
    sender: int
    target: int | None
    items: list[Any]

    @property
    def items_of_block(self) -> list[Any]:
        """Return the items, for a message about an item that cannot be pickled."""
        return self.items


def items_of_outlet(outlet: int, blocks: Iterable[GraphBlock]) -> Iterator[Any]:
    """Yield the user's items of one outlet, without watermarks and marks."""
    for block in blocks:
        if block.outlet == outlet:
            yield from users_items(block)


def users_items(block: GraphBlock) -> list[Any]:
    """Return the items of a block without watermarks and marks."""
    # The usual block costs no search for marks.
    if type(block.items) is not MarkedBlock:
        return block.items
    return [item for item in block.items if type(item) not in MARKS]
