"""The core operations of plans with several ends."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Self, cast

from dstream.plan.core import Cache, Core, Write, node

__all__ = ["Fork", "Several"]


@node
class Fork(Cache):
    """The same items for several operations of one plan: computed once in a run, and of no use to another one."""


@node
class Several(Core):
    """Several writes in one run.

    Attributes:
        ends: in the order in which their receipts are given.
        is_epoch: the run is an epoch of a job over unbounded data.
        is_small: one task is expected to take all items in less time than it takes to divide the work.
    """

    ends: tuple[Write, ...]
    is_epoch: bool = False
    is_small: bool = False

    def inputs(self) -> tuple[Core, ...]:
        return self.ends

    def with_inputs(self, inputs: Sequence[Core]) -> Self:
        return dataclasses.replace(self, ends=tuple(cast(Sequence[Write], inputs)))
