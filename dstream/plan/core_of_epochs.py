"""The core operations of unbounded plans: items get timestamps, and meet a state that outlives the epoch.

The loop of a job fills in what is of one epoch before an engine is given the plan.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Self

from dstream.plan.core import Core, Unary, node

if TYPE_CHECKING:  # Every plan is asked for these operations, and few have them.
    from dstream.spi.epochs import PartitionReceipt, PartitionTime, StepReceipt, StepState, Tick, WatermarkPolicy
    from dstream.spi.state_operator import StateOperator

__all__ = ["OverEpochs", "Stamped"]


@node
class Stamped(Unary):
    """Items `(None, item)` become `(timestamp, item)`. What is before it reads one range of one partition of a source.

    When its items have ended, the task tells every task behind the next shuffle the watermark of the partition.

    Attributes:
        timestamp: gives the milliseconds of an item; None: those of the clock of the epoch.
        stage: the name of the stage.
        time: of the partition; None before the loop has filled it in.
        take: is called in the driver with what became of the time, once.
        policy: makes that of a partition which the job has not seen before.
        idle_timeout: after so many seconds without an item, a partition holds time back no longer; may be infinite.
        drop_before: items of before this timestamp go no further; None: all do.
        are_beside: items are `(None, (timestamp, item))`: their source knows the time of each, and they do not.
    """

    timestamp: Callable[[Any], Any] | None
    stage: str
    time: PartitionTime | None = None
    take: Callable[[PartitionReceipt], object] | None = None
    policy: Callable[[], WatermarkPolicy] | None = None
    idle_timeout: float = 60.0
    drop_before: int | None = None
    are_beside: bool = False


@node
class OverEpochs(Core):
    """What an operator makes of the items of its inputs, which are pairs, and of its state.

    Items of a key come in the order of (input, partition of the source, offset). It gives pairs `(timestamp, item)`, in
    no order across keys, and `(timestamp, Late(item))` for late items that are wanted elsewhere.

    Attributes:
        stage: the name of the stage, by which its state is found again.
        state: that of the last epoch; None before the loop has filled it in.
        tick: what time it is; None before.
        take: is called in the driver with the receipt of each task, once.
    """

    upstreams: tuple[Core, ...]
    operator: StateOperator
    stage: str
    state: StepState | None = None
    tick: Tick | None = None
    take: Callable[[StepReceipt], object] | None = None

    def inputs(self) -> tuple[Core, ...]:
        return self.upstreams

    def with_inputs(self, inputs: Sequence[Core]) -> Self:
        return dataclasses.replace(self, upstreams=tuple(inputs))
