"""The nodes of operations on two streams whose items meet by their keys."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, Self

from dstream.plan.nodes import Node, node
from dstream.plan.steps import Step, shown_function

__all__ = ["CoGroup", "Join", "Pairing"]


@node
class Pairing(Node):
    """Two streams.

    Attributes:
        left_key: gives the key of an item of `left`; None: the items are entries, and their values are meant.
        right_key: the same for `right`.
    """

    left: Node
    right: Node
    left_key: Callable[[Any], Any] | None = None
    right_key: Callable[[Any], Any] | None = None

    def inputs(self) -> tuple[Node, ...]:
        return self.left, self.right

    def with_inputs(self, inputs: Sequence[Node], step: Step | None) -> Self:
        left, right = inputs
        changes: dict[str, Any] = {"left": left, "right": right}
        return dataclasses.replace(self, step=step, **changes)

    def label(self) -> str:
        return self.call("...")

    def call(self, other: str) -> str:
        """Return the call as the user wrote it, with `other` for the other stream."""
        name = type(self).__name__.lower()
        return f".{name}({', '.join([other, *self._on(), *self._more()])})"

    def _on(self) -> list[str]:
        keys = [shown_function(key) for key in (self.left_key, self.right_key) if key is not None]
        if not keys:
            return []
        return [f"on={keys[0]}" if self.left_key is self.right_key else f"on=({', '.join(keys)})"]

    def _more(self) -> list[str]:
        return []


@node
class Join(Pairing):
    """Each pair of a left and a right item with equal keys.

    Attributes:
        how: `inner`, `left`, `right` or `full`: of which side the items that match nothing are kept.
    """

    how: str = "inner"

    def _more(self) -> list[str]:
        return [] if self.how == "inner" else [f"how={self.how!r}"]

    def streams(self, ends: Sequence[bool]) -> bool:
        """Say whether one side can be held while the other one, which may be endless, passes by."""
        left_ends, right_ends = ends
        left_may_pass, right_may_pass = self.how in ("inner", "left"), self.how in ("inner", "right")
        return (left_ends or right_ends) and (left_ends or left_may_pass) and (right_ends or right_may_pass)


@node
class CoGroup(Pairing):
    """Each key with the items of both sides that have it."""
