"""`InColumns`: a collector as data that engines run on columns of numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from dstream.expressions import Expression

__all__ = ["Before", "Found", "InColumns", "added_ints"]


Found = Literal["count", "sum", "statistics", "groups", "first", "several"]
Before: TypeAlias = tuple[Literal["map", "filter"], Callable[[Any], Any]]


@dataclass(frozen=True)
class InColumns:
    """Column functions of a collector, for many items at once; the containers equal those of its `accumulator`.

    Attributes:
        finds: `"count"`: how many items there are; `"sum"`: that and the sum of their numbers; `"statistics"`: also the
            least and the greatest one; `"groups"`: the same for each key, as `downstream` says;
            `"first"`: of the items of a block only the `first` ones by their keys matter, which it takes as items;
            `"several"`: each of `parts` takes the items into a container of its own, in a list of all of them.
        take: takes (container, count, sum, least, greatest), as far as `finds` says, of ints; returns the container.
            Of groups there is none: their container is a dictionary.
        take_all: takes (container, numbers), where these are floats, or few ints; returns the container.
        take_floats: takes (container, count, exact sum) of floats whose order does not matter; returns the container.
            None: it takes them with `take_all`.
        of: gives the number, or the key, of an item; None if the item is it.
        kind: `int` or `float` if the numbers become such ones; otherwise bools become ints, and all else stays.
        downstream: what becomes of the items of a key.
        same_as: the `accumulate_all` that does the same to items: a collector that has another one does something else.
        total: the `finisher` whose result is the sum; of several, the one that gives `whole` the results of the parts.
        average: the one whose result is `sum / count`.
        supplier: makes the container that `take` begins with; None: the collector's does.
        only: the one type that all numbers have; None: ints, floats or bools.
        is_fold: an operator of Python makes the containers of groups, so that the order of the items is visible where
            some are no ints; the container of all groups is of another type than at first as soon as one is none.
        expression: what `of` gives behind `before`, if the compiler could read it.
        first: how many items come first.
        reverse: the greatest key comes first; equal ones keep their order.
        before: maps and filters through which an item goes before all else, one after another.
        condition: the filters of `before` as one expression, if there are any.
        parts: of several, how each takes the items.
        finishers: of several, that of each part.
        whole: of several, makes the result of the tuple of the results of the parts.
        is_verified: what columns give is compared with what the collector makes of the same items.
    """

    finds: Found
    take: Callable[..., Any] | None = None
    take_all: Callable[[Any, Any], Any] | None = None
    of: Callable[[Any], Any] | None = None
    kind: type | None = None
    downstream: InColumns | None = None
    same_as: Callable[..., Any] | None = None
    total: Callable[[Any], Any] | None = None
    average: Callable[[Any], Any] | None = None
    supplier: Callable[[], Any] | None = None
    only: type | None = None
    expression: Expression | None = None
    is_verified: bool = False
    is_fold: bool = False
    first: int = 0
    reverse: bool = False
    before: tuple[Before, ...] = ()
    condition: Expression | None = None
    parts: tuple[InColumns, ...] = ()
    finishers: tuple[Callable[[Any], Any], ...] = ()
    whole: Callable[[tuple[Any, ...]], Any] | None = None
    take_floats: Callable[[Any, int, Any], Any] | None = None

    @property
    def is_filtered(self) -> bool:
        """Whether only some of the items are taken."""
        return any(action == "filter" for action, _ in self.before)

    @property
    def makes_containers(self) -> bool:
        """Whether numbers of the items make its containers, so that it can be a part of others; not first items."""
        if self.downstream is not None:
            return not self.is_fold and self.downstream.makes_containers
        return self.finds != "first"

    def behind(self, *before: Before) -> InColumns:
        """Return the same behind maps and filters, through which an item goes first."""
        parts = tuple(part.behind(*before) for part in self.parts)
        downstream = None if self.downstream is None else self.downstream.behind(*before)
        return replace(self, before=(*before, *self.before), parts=parts, downstream=downstream)


def added_ints(of: Callable[[Any], Any], total: Callable[[Any], Any] | None = None) -> InColumns:
    """Return how ints are added up where `operator.add` makes one value of two; a lone bool would stay a bool.

    Args:
        of: gives the value of an item.
        total: the `finisher` that leaves the sum as it is.
    """
    return InColumns("sum", _added, _added_all, of=of, only=int, supplier=int, total=total)


def _added(value: int, count: int, total: int) -> int:
    return value + total


def _added_all(value: int, values: Iterable[int]) -> int:
    return value + sum(values)
