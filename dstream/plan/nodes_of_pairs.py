"""The nodes of operations on two streams that match items by their places, by membership, or by what is nearest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dstream.plan.core import node
from dstream.plan.core_of_pairs import Direction, Together
from dstream.plan.nodes_by_key import Pairing
from dstream.plan.nodes_of_stages import HashJoin
from dstream.plan.steps import shown_function

__all__ = ["AsOf", "Cross", "SemiJoin", "Zip"]


@node
class Zip(Pairing):
    """The items of two streams at equal places.

    Attributes:
        how: up to which end.
        fill: stands for what the shorter one lacks.
    """

    how: Together = "shortest"
    fill: Any = None

    def call(self, other: str) -> str:
        match self.how:
            case "strict":
                return f".zip({other}, strict=True)"
            case "longest":
                return f".zip_longest({other}{'' if self.fill is None else ', ' + repr(self.fill)})"
            case "interleaved":
                return f".interleave({other})"
        return f".zip({other})"


@node
class SemiJoin(Pairing):
    """The left items whose keys the right side has, or has not.

    Attributes:
        is_anti: those whose keys it does not have.
        name: the method that the user called.
        shows_keys: the user gave the key functions.
    """

    is_anti: bool = False
    name: str = "semi_join"
    shows_keys: bool = False

    def call(self, other: str) -> str:
        return f".{self.name}({', '.join([other, *(self._on() if self.shows_keys else ())])})"


@node
class Cross(HashJoin):
    """Each item of `left` with each one of `right`: a hash join by a key that all of them have."""

    def call(self, other: str) -> str:
        return f".cross({other})"


@node
class AsOf(Pairing):
    """Each left item with the nearest right one in a direction, or None; both keys are those of `by`, if there is one.

    Attributes:
        left_on: gives the place of an item of `left`.
        right_on: the same for `right`.
        has_by: the user gave `by`.
    """

    left_on: Callable[[Any], Any] = abs
    right_on: Callable[[Any], Any] = abs
    direction: Direction = "backward"
    tolerance: Any = None
    has_by: bool = False

    def call(self, other: str) -> str:
        given = [other, _shown("on", self.left_on, self.right_on)]
        given += [_shown("by", self.left_key, self.right_key)] if self.has_by else []
        given += [f"direction={self.direction!r}"] if self.direction != "backward" else []
        given += [f"tolerance={self.tolerance!r}"] if self.tolerance is not None else []
        return f".asof_join({', '.join(given)})"


def _shown(name: str, left: Any, right: Any) -> str:
    shown = shown_function(left)
    return f"{name}={shown}" if left is right else f"{name}=({shown}, {shown_function(right)})"
