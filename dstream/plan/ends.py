"""Terminal operations as nodes; `explained`: the boundary where a failure gets its message.

Workers and operators attach data to an exception (`dstream.failures.account`); `explained` turns it into a message,
and the traceback keeps the user's own lines. Without a failure nothing happens here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any

from dstream.failures import is_full, shorten
from dstream.plan.nodes import Node
from dstream.plan.operations.streams import node
from dstream.plan.steps import SourceLocation, call_site
from dstream.spi.collector import Collector
from dstream.spi.sink import MapWriter, Writer
from dstream.values.functions import shown_function

__all__ = [
    "Collect",
    "Columns",
    "End",
    "ForEach",
    "ForEachPartition",
    "Loop",
    "Partitions",
    "SeveralEnds",
    "ToList",
    "Write",
    "explained",
]


@node
class End(Node):
    """What becomes of the items of `upstream`."""

    upstream: Node


@node
class CallerEnd(End):
    """An end that hands the items to the caller, and is no call of the chain by which a failure could be named."""

    def label(self) -> str:
        return ""


@node
class ToList(CallerEnd):
    """All items as a list, in encounter order; every partition runs at once."""


@node
class Loop(CallerEnd):
    """The items one after another, in encounter order, lazily: no more partitions run than are asked for."""


@node
class Partitions(CallerEnd):
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
class SeveralEnds(Node):
    """Several ends of one plan, which run together and are no call of the user's.

    Attributes:
        ends: in the order in which their receipts are given.
    """

    ends: tuple[Write, ...]

    def inputs(self) -> tuple[Node, ...]:
        return self.ends

    def label(self) -> str:
        return ""


class explained:
    """Let an exception that leaves this block say what happened, where in the plan of `root`, and what to do.

    Args:
        root: the last node of the plan that runs.
        call: the terminal operation as the user calls it.
        place: where; None: in what runs this thread.
    """

    __slots__ = ("_call", "_place", "_root")

    def __init__(self, root: Node, call: str, place: SourceLocation | None = None) -> None:
        self._root = root
        self._call = call
        self._place = place

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: TracebackType | None) -> None:
        if error is None or isinstance(error, GeneratorExit):
            return
        arrived = self._told(error) if isinstance(error, Exception) else error
        if not is_full():
            shorten(arrived)
        if arrived is not error:
            behind = arrived.__context__
            try:
                raise arrived
            finally:
                BaseException.__setattr__(arrived, "__context__", behind)  # Not the one that it is a copy of.

    def _told(self, error: Exception) -> Exception:
        try:
            from dstream.plan.failure_messages import tell  # here: while all goes well nothing is told

            return tell(error, self._root, self._call, self._place or call_site())
        except Exception as problem:
            # The user's exception matters more than what can be said about it.
            said = f"(dstream could not say more about it: {type(problem).__name__}: {problem})"
            error.__dict__.setdefault("__notes__", []).append(said)
            return error
