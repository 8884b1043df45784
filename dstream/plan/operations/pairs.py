"""Operations on two streams: by key, by position, or by the nearest match."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, Self

from dstream.plan.operations.streams import Node, as_inputs, never, node
from dstream.values.user_functions import shown_function

__all__ = [
    "AsOf",
    "CoGroup",
    "Direction",
    "HashJoin",
    "Join",
    "Pairing",
    "SemiJoin",
    "TwoStreams",
    "Zip",
    "ZipMode",
    "shown_keys",
]


ZipMode = Literal["shortest", "strict", "longest", "interleaved"]
"""The end of a zip: at the shorter stream; at both, equally long; at the longer one; at the longer one, in turn."""

Direction = Literal["backward", "forward", "nearest"]
"""The direction of the match of an item: at or before it, at or after it, or on either side."""


@node
class TwoStreams(Node):
    """An operation on the items of two streams. The call is shown with `...` for the second one."""

    left: Node
    right: Node

    def inputs(self) -> tuple[Node, ...]:
        return self.left, self.right

    def with_inputs(self, inputs: Sequence[Node], **changes: Any) -> Self:
        left, right = inputs
        return dataclasses.replace(self, left=left, right=right, **changes)


@node
class Pairing(TwoStreams):
    """Two streams whose items meet by their keys.

    Attributes:
        left_key: returns the key of an item of `left`; None: the items are entries, and their values are meant.
        right_key: the same for `right`.
    """

    has_order, has_end = never, as_inputs

    left_key: Callable[[Any], Any] | None = None
    right_key: Callable[[Any], Any] | None = None

    def _function(self) -> Callable[..., Any] | None:
        # Of two functions it is not known which one failed.
        return self.left_key if self.left_key is self.right_key else None

    def _call(self) -> str:
        return f".{type(self).__name__.lower()}({', '.join(self._arguments())})"

    def _arguments(self) -> Iterable[str]:
        yield "..."
        yield from shown_keys("on", self.left_key, self.right_key)


def shown_keys(name: str, left: Any, right: Any) -> list[str]:
    """Return the argument with the key functions of two streams, if there are any."""
    keys = [shown_function(key) for key in (left, right) if key is not None]
    if not keys:
        return []
    return [f"{name}={keys[0]}" if left is right else f"{name}=({', '.join(keys)})"]


@node
class Join(Pairing):
    """Each pair of a left and a right item with equal keys.

    Attributes:
        how: `inner`, `left`, `right` or `full`: the sides whose unmatched items are kept.
    """

    how: str = "inner"

    def refusal(self, ends: Sequence[bool]) -> str:
        # One side is buffered while the other one, which may be endless, is streamed.
        left_ends, right_ends = ends
        left_passes, right_passes = self.how in ("inner", "left"), self.how in ("inner", "right")
        streams = (left_ends or right_ends) and (left_ends or left_passes) and (right_ends or right_passes)
        return "" if streams else "this side of a join"

    def _arguments(self) -> Iterable[str]:
        yield from Pairing._arguments(self)
        if self.how != "inner":
            yield f"how={self.how!r}"


@node
class HashJoin(Pairing):
    """Each item of `left` with each of `right` that has its key, as pairs; the right side is sent to every task.

    The result has the order of `left`, and ends if `left` does; matches have the order of `right`. Both keys are
    functions.

    Attributes:
        projecting: what of a right item is in the pair; None: all of it.
        is_inner: items that match nothing are left out; otherwise they are emitted once, with None.
        broadcast_limit: how many bytes the right side may have; None: the limit of the context.
        refresh_every: a job without an end reads the right side again after this number of seconds; None: never.
    """

    projecting: Callable[[Any], Any] | None = None
    is_inner: bool = False
    broadcast_limit: int | None = None
    refresh_every: float | None = None

    def streamed_inputs(self) -> tuple[Node, ...]:
        return (self.left,)

    def broadcast_inputs(self) -> tuple[Node, ...]:
        return (self.right,)

    def has_order(self, inputs: Sequence[bool]) -> bool:
        return inputs[0]

    # The items are those of the left side: the rows of the right side have no timestamps.
    has_timestamps = has_order

    def refusal(self, ends: Sequence[bool]) -> str:
        return "" if ends[1] else "the right side of a hash join"

    def _call(self) -> str:
        return f".{'inner_hash_join' if self.is_inner else 'hash_join'}({', '.join(self._arguments())})"


@node
class CoGroup(Pairing):
    """Each key with the items of both sides that have it."""

    needs_all = "grouped"


@node
class Zip(TwoStreams):
    """The items of two streams at equal positions.

    Attributes:
        how: at which end it stops; `interleaved` emits single items instead of pairs.
        fill: replaces the items that the shorter stream lacks, for `longest`.
    """

    has_order = as_inputs

    how: ZipMode = "shortest"
    fill: Any = None

    def has_end(self, inputs: Sequence[bool]) -> bool:
        # An endless side is fine where the other one ends the pairs.
        return any(inputs) if self.how in ("shortest", "strict") else all(inputs)

    def _call(self) -> str:
        match self.how:
            case "strict":
                return ".zip(..., strict=True)"
            case "longest":
                return f".zip_longest(...{'' if self.fill is None else ', ' + repr(self.fill)})"
            case "interleaved":
                return ".interleave(...)"
        return ".zip(...)"


@node
class SemiJoin(Pairing):
    """The left items whose keys the right side has, each once.

    Attributes:
        is_anti: those whose keys it does not have.
    """

    is_anti: bool = False

    def refusal(self, ends: Sequence[bool]) -> str:
        return "" if ends[1] else "the other side here"

    def _call(self) -> str:
        return ".semi_join(...)"


@node
class AsOf(Pairing):
    """Each left item with the nearest right one of its key in a direction, or None.

    Both keys are the functions of `by`, if it is set.

    Attributes:
        left_on: returns the position of an item of `left`.
        right_on: the same for `right`.
        tolerance: how far from each other the two may be; None: as far as they like.
        has_by: the user gave `by`.
    """

    needs_all = "sorted"

    # Defaults only because the inherited fields of `Pairing` have defaults: every `AsOf` is made with both.
    left_on: Callable[[Any], Any] = abs
    right_on: Callable[[Any], Any] = abs
    direction: Direction = "backward"
    tolerance: Any = None
    has_by: bool = False

    def _function(self) -> Callable[..., Any] | None:
        return self.left_on if self.left_on is self.right_on and not self.has_by else None

    def _call(self) -> str:
        arguments = ["...", *shown_keys("on", self.left_on, self.right_on)]
        arguments += shown_keys("by", self.left_key, self.right_key) if self.has_by else []
        arguments += [f"direction={self.direction!r}"] if self.direction != "backward" else []
        arguments += [f"tolerance={self.tolerance!r}"] if self.tolerance is not None else []
        return f".asof_join({', '.join(arguments)})"
