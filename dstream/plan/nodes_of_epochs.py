"""The nodes of stages with unbounded data: timestamps, and operations whose state outlives an epoch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dstream.plan.core import node
from dstream.plan.nodes import Node
from dstream.spi.epochs import WatermarkPolicy
from dstream.spi.state_operator import StateOperator

__all__ = ["AddTimestamps", "OverEpochs"]


@node
class AddTimestamps(Node):
    """The same items, each with the time at which it happened.

    Attributes:
        timestamp: gives the milliseconds of an item, or a datetime with a time zone; None: those of the clock.
        policy: makes a policy for each partition of the source.
        idle_timeout: after so many seconds without an item, a partition holds time back no longer.
        name: the method that the user called.
        given: what the user gave to it, in short.
    """

    upstream: Node
    timestamp: Callable[[Any], Any] | None
    policy: Callable[[], WatermarkPolicy]
    idle_timeout: float
    name: str = "add_timestamps"
    given: str = ""

    def label(self) -> str:
        return f".{self.name}({self.given})"


@node
class OverEpochs(Node):
    """What an operator makes of the items of its inputs and of its state, such as the results of windows.

    Attributes:
        upstreams: one for each input of the operator.
        name: the method that the user called.
        given: what the user gave to it, in short.
    """

    upstreams: tuple[Node, ...]
    operator: StateOperator
    name: str
    given: str = ""

    def inputs(self) -> tuple[Node, ...]:
        return self.upstreams

    def label(self) -> str:
        return f".{self.name}({self.given})"
