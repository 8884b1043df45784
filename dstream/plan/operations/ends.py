"""Ends of plans. An engine receives one of them, with the plan before it."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self, cast

from dstream.plan.operations.keyed import collected
from dstream.plan.operations.streams import Node, OrderPreserving, as_inputs, node
from dstream.spi.collector import Collector
from dstream.spi.runtime import EngineOfEpoch
from dstream.spi.sink import MapWriter, Writer
from dstream.values.user_functions import shown_function

__all__ = [
    "Collect",
    "Columns",
    "End",
    "ForEachPartition",
    "Loop",
    "Partitions",
    "Several",
    "ToList",
    "Write",
]


@node
class End(OrderPreserving):
    """The end of a plan's items."""


@node
class _CallerEnd(End):
    """An end that hands the items to the caller, and is no call of the chain by which a failure could be named."""

    def _call(self) -> str:
        return ""


@node
class ToList(_CallerEnd):
    """All items as a list, in encounter order; every partition runs at once."""


@node
class Loop(_CallerEnd):
    """The items one after another, in encounter order, lazily: no more partitions run than are asked for."""


@node
class Partitions(_CallerEnd):
    """The items of each partition, lazily, partitions in encounter order."""


@node
class Collect(End):
    """The items reduced by a collector."""

    collector: Collector[Any, Any, Any]

    def replay(self) -> Callable[[Any], Any] | None:
        return functools.partial(collected, self.collector)


@node
class ForEachPartition(End):
    """The end that runs `action` on the items of each partition, where the partition is."""

    action: Callable[[Any], object]

    def _function(self) -> Callable[..., Any] | None:
        return self.action

    def replay(self) -> Callable[[Any], Any] | None:
        return None  # It takes a whole partition.

    def _arguments(self) -> Iterable[str]:
        return (shown_function(self.action),)


@node
class Write(End):
    """A writer takes the items where they are.

    Attributes:
        writer: takes the items of each partition; with a collector, the entries of each bucket. None in a plan that is
            only explained.
        collector: a keyed one whose groups are the entries, or None.
        functions: the names of the user's functions that the writer calls for each item.
    """

    writer: Writer | MapWriter | None
    collector: Collector[Any, Any, Any] | None
    functions: tuple[str, ...] = ()

    def replay(self) -> Callable[[Any], Any] | None:
        return None if self.collector is None else functools.partial(collected, self.collector)


@node
class Columns(End):
    """The items as a table with columns.

    Attributes:
        is_frame: a DataFrame of the engine, whose rows are not moved; otherwise an Arrow table.
    """

    is_frame: bool = False


@node
class Several(Node):
    """Several writes in one run, which are no call of the user's.

    Attributes:
        ends: in the order of their receipts.
        is_epoch: the run is an epoch of a job over unbounded data.
        is_small: one task is expected to take all items in less time than it takes to divide the work.
        engine: the engine of an epoch where a context has several: in this process, or on Spark; None: it chooses.
    """

    has_order, has_end = as_inputs, as_inputs

    ends: tuple[Write, ...]
    is_epoch: bool = False
    is_small: bool = False
    engine: EngineOfEpoch | None = None

    def inputs(self) -> tuple[Node, ...]:
        return self.ends

    def with_inputs(self, inputs: Sequence[Node], **changes: Any) -> Self:
        return dataclasses.replace(self, ends=tuple(cast(Sequence[Write], inputs)), **changes)

    def _call(self) -> str:
        return ""
