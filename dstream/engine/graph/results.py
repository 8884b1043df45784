"""The ends of a graph: the last job and what the caller's process makes of its rows; or inputs that are pulled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dstream.engine.graph.vertices import Items, Pending, Vertex
from dstream.plan.core import Limit
from dstream.spi import Collector

__all__ = [
    "Assembled",
    "Combined",
    "Each",
    "Ending",
    "Finish",
    "Framed",
    "Last",
    "Listed",
    "Nothing",
    "Pulled",
    "Separated",
]


@dataclass(frozen=True, eq=False)
class Listed:
    """The caller gets a list of the items, in encounter order."""


@dataclass(frozen=True, eq=False)
class Nothing:
    """The caller gets None; what counts is what the tasks do."""


@dataclass(frozen=True, eq=False)
class Combined:
    """The caller combines the containers of the tasks in encounter order, and finishes the result."""

    collector: Collector[Any, Any, Any]


@dataclass(frozen=True, eq=False)
class Assembled:
    """The caller puts finished groups together.

    Attributes:
        is_ordered: in the order in which the keys were first seen.
    """

    collector: Collector[Any, Any, Any]
    is_ordered: bool


@dataclass(frozen=True, eq=False)
class Framed:
    """The caller gets a table.

    Attributes:
        is_frame: one of the engine's own kind, whose rows stay where they are; otherwise one of Arrow.
    """

    is_frame: bool


@dataclass(frozen=True, eq=False)
class Separated:
    """The caller gets a list for each of several sinks, of what it gives, in encounter order."""

    sinks: int


Finish = Listed | Nothing | Combined | Assembled | Framed | Separated


@dataclass(frozen=True, eq=False)
class Last:
    """The plan ends in one job over all partitions.

    Attributes:
        vertex: what its tasks do.
        finish: what the caller's process makes of the rows that come to it.
    """

    vertex: Vertex
    finish: Finish


@dataclass(frozen=True, eq=False)
class Pulled:
    """The caller pulls one item after another, and no more partitions run than it takes.

    Attributes:
        limit: the first so many items of `inputs` are wanted.
        skipped: how many of these are left out again.
        ends: whether the items end.
    """

    inputs: Items
    limit: Limit | None
    skipped: int
    ends: bool


@dataclass(frozen=True, eq=False)
class Each:
    """The caller pulls the items of each partition apart from those of the others."""

    inputs: Items


Ending = Last | Pulled | Each | Pending
"""A `Pending` stands for the `Last` that a decision will give."""
