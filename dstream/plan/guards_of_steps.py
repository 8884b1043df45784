"""Recovering: what happens to items that a step fails on, as nodes; and what engines make of it, as `Guard`s.

`Recover` stands behind the step that it applies to, maybe behind other `Recover`s. `rewrite` puts
them together: the step with its guards becomes one core node or one `Op`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

from dstream.plan.nodes import Filter, FlatMap, Gather, Map, MapMulti, Node, node, unchanged
from dstream.plan.steps import Step, shown_function
from dstream.spi.in_parallel import Calling

__all__ = [
    "Called",
    "Delivery",
    "Guard",
    "Recover",
    "calls_for_each_item",
    "guarded",
    "guards",
    "read_by",
    "recovers_of",
]

Treatment = Literal["ignored", "resolved", "sent"]


class Delivery(Protocol):
    """Takes dead letters to where they go, in the caller's process."""

    @property
    def label(self) -> str:
        """Where they go, as the user wrote it."""
        ...

    def __call__(self, letters: Iterable[Any]) -> None:
        """Commit `letters`, all of them or none."""
        ...


@node
class Recover(Node):
    """The same items; those that the step before fails on are left out, replaced, or sent away.

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


def calls_for_each_item(step: Node) -> bool:
    """Say whether a step runs a function of the user's on each item, so that `Recover` may follow it."""
    match step:
        case Map(fn=fn):
            return fn is not unchanged
        case Filter() | FlatMap() | MapMulti() | Recover():
            return True
        case Gather(gatherer=gatherer):
            return isinstance(gatherer.parallel, Calling)
    return False


def guarded(each: Node) -> Node:
    """Return the step that `each` is, or whose failures it looks after."""
    while isinstance(each, Recover):
        each = each.upstream
    return each


def recovers_of(each: Node) -> list[Recover]:
    """Return what looks after the failures of `guarded(each)`, in the order of the calls."""
    found = []
    while isinstance(each, Recover):
        found.append(each)
        each = each.upstream
    return found[::-1]


def read_by(each: Node) -> Sequence[Node]:
    """Return the nodes that `each` reads from, once steps and what looks after them are one."""
    return guarded(each).inputs()


@dataclass(frozen=True, slots=True)
class Guard:
    """What an engine does with items that a step fails on; attributes as those of `Recover`.

    Attributes:
        step: how the user's call names itself.
        of: the step that it looks after.
    """

    kinds: tuple[type[Exception], ...]
    treatment: Treatment
    fn: Callable[[Any, Exception], Any] | None
    kind: type | None
    delivery: Delivery | None
    step: Step
    of: Step

    @property
    def channel(self) -> int:
        """The number under which it tells the driver what happened."""
        return self.step.position

    def on_a_worker(self) -> Guard:
        """Return it without what stays in the driver."""
        return replace(self, delivery=None)


def guards(recovers: Iterable[Recover], steps: dict[int, Step], of: Step) -> tuple[Guard, ...]:
    """Return the guards of a step; `steps` has that of each node by its `id`."""
    return tuple(
        Guard(each.kinds, each.treatment, each.fn, each.kind, each.delivery, steps[id(each)], of) for each in recovers
    )


@node
class Called(Node):
    """A core node: what the calls of a gatherer give.

    Attributes:
        slots: how many tasks share its rate.
    """

    upstream: Node
    calling: Calling
    guards: tuple[Guard, ...]
    call: str
    slots: int = 1

    def label(self) -> str:
        return self.call
