"""Operations on the order of one stream, and on how much of it is taken: the first items, a prefix, a sort."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from dstream.plan.operations.streams import OrderPreserving, always, node
from dstream.plan.steps import EarlyCheck, KeyInColumns
from dstream.values.user_functions import shown_function

__all__ = ["DropWhile", "Limit", "Skip", "Sorted", "TakeWhile", "Top"]


@node
class Limit(OrderPreserving):
    """The first `count` items."""

    has_end = always

    count: int

    def item_count(self, counts: Sequence[int]) -> int | None:
        return min(counts[0], self.count)

    def _arguments(self) -> Iterable[str]:
        return (str(self.count),)


@node
class Skip(OrderPreserving):
    """The items after the first `count`."""

    count: int

    def item_count(self, counts: Sequence[int]) -> int | None:
        return max(counts[0] - self.count, 0)

    def _arguments(self) -> Iterable[str]:
        return (str(self.count),)


@node
class _Prefix(OrderPreserving):
    """One that looks for the longest prefix whose items satisfy a predicate."""

    predicate: Callable[[Any], object]

    def _function(self) -> Callable[..., Any] | None:
        return self.predicate

    def _arguments(self) -> Iterable[str]:
        return (shown_function(self.predicate),)


@node
class TakeWhile(_Prefix):
    """The longest prefix whose items satisfy a predicate, which is trusted to end it."""

    has_end = always


@node
class DropWhile(_Prefix):
    """The items after the longest prefix whose items satisfy a predicate."""


@node
class Sorted(OrderPreserving):
    """The items in the order of their keys; equal keys keep their order.

    Attributes:
        looks: checks of the first item of each task, in the name of a later step that would refuse it; set by
            `rewrite`.
    """

    needs_all = "sorted"
    has_order = always

    key: Callable[[Any], Any] | None = None
    reverse: bool = False
    looks: tuple[EarlyCheck, ...] = ()

    def item_count(self, counts: Sequence[int]) -> int | None:
        return counts[0] if self.key is None else None

    def _function(self) -> Callable[..., Any] | None:
        return self.key

    def _arguments(self) -> Iterable[str]:
        if self.key is not None:
            yield f"key={shown_function(self.key)}"
        if self.reverse:
            yield "reverse=True"


@node
class Top(OrderPreserving):
    """The first `count` items in the order of their keys: `sorted().limit(count)`.

    Attributes:
        is_one_call: its step is one call of the user; otherwise it is that of the sort.
        columns: how keys may be stored in columns; None: not at all.
    """

    needs_all = "sorted"
    has_order, has_end = always, always

    count: int
    key: Callable[[Any], Any] | None
    reverse: bool
    is_one_call: bool
    columns: KeyInColumns | None = None

    def label(self) -> str:
        return self.step.label if self.is_one_call else f"{self.step.label}.limit({self.count})"
