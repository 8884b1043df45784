"""The core operations on two streams that match items by their places, by membership, or by what is nearest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

from dstream.plan.core import Pairing, TwoStreams, node

__all__ = ["AsOf", "Direction", "SemiJoin", "Together", "Zip"]

Together = Literal["shortest", "strict", "longest", "interleaved"]
"""Up to which end two streams go on: the first one; that of both, at one place; the last one; the last one, in turn."""

Direction = Literal["backward", "forward", "nearest"]
"""Where the match of an item may stand: at or before it, at or behind it, or on either side."""


@node
class Zip(TwoStreams):
    """The items of two streams at equal places.

    Attributes:
        how: up to which end; `interleaved` gives them one by one instead of in pairs.
        fill: stands for what the shorter one lacks, if the last end counts.
    """

    how: Together
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
