"""The node of a step that asks a service for some items at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from dstream.plan.core import node
from dstream.plan.nodes import Node
from dstream.plan.steps import shown_function
from dstream.spi.service import OpenedLater, Service

__all__ = ["UsingBatches"]


@node
class UsingBatches(Node):
    """What a function makes of some items at a time with the help of a service: results in the order of the items.

    The first time it gets one item, then twice as many each time, up to `size`.

    Attributes:
        service: what gives it; or what does, once a context is there.
        fn: takes (service, items); gives their results.
        size: how many items it takes at most.
        given: what the user gave to the method, in short.
    """

    upstream: Node
    service: Service[Any] | OpenedLater
    fn: Callable[[Any, list[Any]], Iterable[Any]]
    size: int = 256
    name: str = "map_using_batches"
    given: str | None = None

    def label(self) -> str:
        shown = f"{self.service!r}, {shown_function(self.fn)}" if self.given is None else self.given
        return f".{self.name}({shown})"
