"""Core operations on two streams: by key, by position, or by the nearest match."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, Literal, Self

from dstream.plan.operations.streams import Core, node

__all__ = ["AsOf", "CoGroup", "Direction", "HashJoin", "Join", "Pairing", "SemiJoin", "TwoStreams", "Zip", "ZipMode"]


ZipMode = Literal["shortest", "strict", "longest", "interleaved"]
"""Up to which end two streams go on: the first one; that of both, at one place; the last one; the last one, in turn."""

Direction = Literal["backward", "forward", "nearest"]
"""Where the match of an item may stand: at or before it, at or behind it, or on either side."""


@node
class TwoStreams(Core):
    """An operation on the items of two streams."""

    left: Core
    right: Core

    def inputs(self) -> tuple[Core, ...]:
        return self.left, self.right

    def with_inputs(self, inputs: Sequence[Core]) -> Self:
        left, right = inputs
        return dataclasses.replace(self, left=left, right=right)


@node
class Pairing(TwoStreams):
    """Two streams whose items meet by their keys.

    Attributes:
        left_key: gives the key of an item of `left`; None: the items are entries, and their values are meant.
        right_key: the same for `right`.
    """

    left_key: Callable[[Any], Any] | None
    right_key: Callable[[Any], Any] | None


@node
class Join(Pairing):
    """Each pair of a left and a right item with equal keys.

    Attributes:
        how: `inner`, `left`, `right` or `full`: of which side the items that match nothing are kept.
    """

    how: str

    def streams(self, ends: Sequence[bool]) -> bool:
        """Say whether one side can be held while the other one, which may be endless, passes by."""
        left_ends, right_ends = ends
        left_may_pass, right_may_pass = self.how in ("inner", "left"), self.how in ("inner", "right")
        return (left_ends or right_ends) and (left_ends or left_may_pass) and (right_ends or right_may_pass)


@node
class HashJoin(Pairing):
    """Each item of `left` with each of `right` that has its key, as pairs; the right side goes to every task.

    Items of `left` keep their order, and their end if they have one. Both keys are functions.

    Attributes:
        projecting: what of a right item is in the pair; None: all of it.
        is_inner: items that match nothing are left out; otherwise they come once, with None.
        broadcast_limit: how many bytes the right side may have; None: what the context says.
        refresh_every: a job without an end reads the right side again after so many seconds; None: never.
    """

    projecting: Callable[[Any], Any] | None
    is_inner: bool
    broadcast_limit: int | None
    refresh_every: float | None = None


@node
class CoGroup(Pairing):
    """Each key with the items of both sides that have it."""


@node
class Zip(TwoStreams):
    """The items of two streams at equal places.

    Attributes:
        how: up to which end; `interleaved` gives them one by one instead of in pairs.
        fill: stands for what the shorter one lacks, if the last end counts.
    """

    how: ZipMode
    fill: Any

    def ends(self, ends: Sequence[bool]) -> bool:
        """Say whether it ends, if its inputs do so or not."""
        return any(ends) if self.how in ("shortest", "strict") else all(ends)


@node
class SemiJoin(Pairing):
    """The left items whose keys the right side has, each once.

    Attributes:
        is_anti: those whose keys it does not have.
    """

    is_anti: bool


@node
class AsOf(Pairing):
    """Each left item with the nearest right one of its key in a direction, or None.

    Attributes:
        left_on: gives the place of an item of `left`.
        right_on: the same for `right`.
        tolerance: how far from each other the two may be; None: as far as they like.
    """

    left_on: Callable[[Any], Any]
    right_on: Callable[[Any], Any]
    direction: Direction
    tolerance: Any
