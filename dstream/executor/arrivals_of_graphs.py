"""What comes into a run of a graph, and what goes on from one part of a graph to the next."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

from dstream.spi.processor import Watermark

__all__ = ["GraphArrival", "Mark", "Marked", "is_mark"]


class GraphArrival(NamedTuple):
    """Items that come by an inlet.

    Attributes:
        inlet: its number.
        sender: the number of the task, or of the processor, that they come from.
        target: the number of the processor that they are for; None: the run decides.
        items: one after another; `Marked` ones among them.
    """

    inlet: int
    sender: int
    target: int | None
    items: list[Any]


class Mark(Enum):
    """What a processor tells all that read from it, besides watermarks: it has ended, or nothing comes for a while."""

    ENDED = "ended"
    IDLE = "idle"


@dataclass(frozen=True, slots=True)
class Marked:
    """A mark, or a watermark, on its way to another part of the graph, where every processor gets it.

    Attributes:
        sender: the number of the processor that it comes from.
        mark: what it says.
    """

    sender: int
    mark: Mark | Watermark


def is_mark(item: Any) -> bool:
    """Say whether an item of an outlet is none of the user's."""
    return type(item) is Marked
