"""The node of what becomes of items that a step fails on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from dstream.plan.core import node
from dstream.plan.nodes import Node
from dstream.plan.steps import Delivery, Treatment, shown_function

__all__ = ["Recover"]


@node
class Recover(Node):
    """The same items; those that the step before fails on are left out, replaced, or sent away.

    It stands behind the step that it applies to, maybe behind others of its kind.

    Attributes:
        kinds: the exceptions that this is for.
        treatment: what happens to such an item.
        fn: gives the item that takes its place, of the item and the exception.
        kind: what that must be: None, `int` or `float`.
        delivery: takes the dead letters.
        name: the method that the user called; empty if the step before says it.
    """

    upstream: Node
    kinds: tuple[type[Exception], ...]
    treatment: Treatment
    fn: Callable[[Any, Exception], Any] | None = None
    kind: type | None = None
    delivery: Delivery | None = None
    name: str = ""

    def label(self) -> str:
        return f".{self.name}({', '.join(self._arguments())})" if self.name else ""

    def _arguments(self) -> Iterator[str]:
        names = ", ".join(kind.__name__ for kind in self.kinds)
        yield names if len(self.kinds) == 1 else f"({names})"
        if self.fn is not None:
            yield shown_function(self.fn)
        if self.delivery is not None:
            yield f"into={self.delivery.label}"
