"""The nodes of stages with unbounded data: timestamps, operations whose state outlives an epoch, and what came late."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dstream.plan import core_of_epochs
from dstream.plan.core import Core, node
from dstream.plan.core_of_nodes import core_of
from dstream.plan.instants import InstantOf
from dstream.plan.lateness import is_in_time, late_ones
from dstream.plan.nodes import Filter, FlatMap, Node
from dstream.plan.steps import Step
from dstream.spi.epochs import WatermarkPolicy
from dstream.spi.state_operator import StateOperator

__all__ = ["AddTimestamps", "InTime", "LateOnes", "OverEpochs", "in_time", "late_ones_of"]


@node
class AddTimestamps(Node):
    """The same items, each with the time at which it happened.

    Attributes:
        timestamp: gives the milliseconds of an item, or a datetime with a time zone; None: those of the clock.
        policy: makes a policy for each partition of the source.
        idle_timeout: after so many seconds without an item, a partition holds time back no longer; may be infinite.
        name: the method that the user called.
        given: what the user gave to it, in short.
        known_as: the name of its stage, which the plan of a pipeline fills in: records of epochs speak of it so.
        drop_before: items of before this timestamp go no further; None: all do.
        are_beside: the source gives pairs of a timestamp and an item, and the item is what goes on.
    """

    upstream: Node
    timestamp: Callable[[Any], Any] | None
    policy: Callable[[], WatermarkPolicy]
    idle_timeout: float
    name: str = "add_timestamps"
    given: str = ""
    known_as: str = ""
    drop_before: int | None = None
    are_beside: bool = False

    def label(self) -> str:
        return f".{self.name}({self.given})"


@node
class OverEpochs(Node):
    """What an operator makes of the items of its inputs and of its state, such as the results of windows.

    Attributes:
        upstreams: one for each input of the operator.
        name: the method that the user called.
        given: what the user gave to it, in short.
        known_as: the name of its stage, by which its state is found again; the plan of a pipeline fills it in.
    """

    upstreams: tuple[Node, ...]
    operator: StateOperator
    name: str
    given: str = ""
    known_as: str = ""

    def inputs(self) -> tuple[Node, ...]:
        return self.upstreams

    def label(self) -> str:
        return f".{self.name}({self.given})"


@node
class InTime(Filter):
    """What an operation over epochs has made of its items, without those that came too late for it."""

    def label(self) -> str:
        return ""


@node
class LateOnes(FlatMap):
    """The items that came too late for an operation over epochs, as they came."""

    def label(self) -> str:
        return ""


def in_time(upstream: Node) -> InTime:
    """Return the results of an operation that lets late items go on."""
    return InTime(upstream, is_in_time)


def late_ones_of(upstream: Node) -> LateOnes:
    """Return the late items of such an operation."""
    return LateOnes(upstream, late_ones)


# Few programs have these nodes, so `rewrite` learns of them here.


@core_of.register
def _(node: AddTimestamps, inputs: Sequence[Core], step: Step) -> Core:
    timestamp = None if node.timestamp is None else InstantOf(node.timestamp)
    stage, policy, timeout = node.known_as or node.name, node.policy, node.idle_timeout
    return core_of_epochs.Stamped(
        inputs[0],
        timestamp,
        stage,
        policy=policy,
        idle_timeout=timeout,
        drop_before=node.drop_before,
        are_beside=node.are_beside,
        step=step,
    )


@core_of.register
def _(node: OverEpochs, inputs: Sequence[Core], step: Step) -> Core:
    return core_of_epochs.OverEpochs(tuple(inputs), node.operator, node.known_as or node.name, step=step)
