"""The ends of plans as users write them: the terminal operations."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from dstream.plan.core import node
from dstream.plan.nodes import Node
from dstream.plan.steps import shown_function
from dstream.spi.collector import Collector
from dstream.spi.sink import MapWriter, Writer

__all__ = [
    "Collect",
    "Columns",
    "End",
    "ForEach",
    "ForEachPartition",
    "Loop",
    "Partitions",
    "Several",
    "ToList",
    "Write",
]


@node
class End(Node):
    """What becomes of the items of `upstream`."""

    upstream: Node


@node
class Handed(End):
    """An end that hands the items to the caller, and is no call of the chain by which a failure could be named."""

    def label(self) -> str:
        return ""


@node
class ToList(Handed):
    """All items as a list, in encounter order; every partition runs at once."""


@node
class Loop(Handed):
    """The items one after another, in encounter order, lazily: no more partitions run than are asked for."""


@node
class Partitions(Handed):
    """The items of each partition, lazily, partitions in encounter order."""


@node
class Collect(End):
    """The end of a plan: the items reduced by a collector.

    Attributes:
        name: the method that the user called.
        given: what the user gave to it, in short.
    """

    collector: Collector[Any, Any, Any]
    name: str = "collect"
    given: str = ""

    def label(self) -> str:
        return f".{self.name}({self.given})"


@node
class ForEach(End):
    """The end of a plan: `action` runs on each item in the caller's process. No engine sees it: it names a failure."""

    action: Callable[[Any], object]
    name: str = "for_each"

    def label(self) -> str:
        return f".{self.name}({shown_function(self.action)})"


@node
class ForEachPartition(End):
    """The end of a plan: `action` runs on the items of each partition, where the partition is."""

    action: Callable[[Any], object]

    def _arguments(self) -> Iterable[str]:
        return (shown_function(self.action),)


@node
class Write(End):
    """The end of a plan: a writer takes the items where they are.

    Attributes:
        writer: takes the items of each partition; with a collector, the entries of each bucket. None in a plan that is
            only explained.
        collector: a keyed one whose groups are the entries, or None.
        name: the call as the user wrote it.
        functions: what those of the user's are called that the writer calls for each item.
    """

    writer: Writer | MapWriter | None
    collector: Collector[Any, Any, Any] | None
    name: str
    functions: tuple[str, ...] = ()

    def label(self) -> str:
        return f".{self.name}"


@node
class Columns(End):
    """The end of a plan: the items as a table with columns.

    Attributes:
        name: the method that the user called.
        is_frame: a table of the engine's own kind, whose rows stay where they are; otherwise one of Arrow.
    """

    name: str
    is_frame: bool = False

    def label(self) -> str:
        return f".{self.name}()"


@node
class Several(Node):
    """Several ends of one plan, which run together and are no call of the user's.

    Attributes:
        ends: in the order in which their receipts are given.
    """

    ends: tuple[Write, ...]

    def inputs(self) -> tuple[Node, ...]:
        return self.ends

    def label(self) -> str:
        return ""
