"""`InColumns`: a collector as data for columns of numbers; `SourceTraits`: the attributes of sources for engines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

if TYPE_CHECKING:
    from dstream.expressions import Expression

__all__ = ["Before", "Found", "InColumns", "SourceTraits", "added_ints"]


Found = Literal["count", "sum", "statistics", "groups", "first", "several"]
Before: TypeAlias = tuple[Literal["map", "filter"], Callable[[Any], Any]]


@dataclass(frozen=True)
class InColumns:
    """Column functions of a collector, for many items at once; the containers equal those of its `accumulator`.

    Attributes:
        finds: `"count"`: how many items there are; `"sum"`: that and the sum of their numbers; `"statistics"`: also the
            least and the greatest one; `"groups"`: that of `downstream` for each key;
            `"first"`: of the items of a block only the `first` ones by their keys matter, which it takes as items;
            `"several"`: each of `parts` takes the items into a container of its own, in a list of all of them.
        take: takes (container, count, sum, least, greatest), as far as `finds` names them, of ints; returns the
            container. Of groups there is none: their container is a dictionary.
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
        first: the number of first items.
        reverse: the greatest key is first; equal ones keep their order.
        before: maps and filters that an item passes before all else, one after another.
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
        """Return a copy behind maps and filters, which an item passes first."""
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


class SourceTraits:
    """Attributes of a source of dstream's besides its protocol, by which engines estimate and route its items.

    They are read here alone. A source leaves out those whose default holds, and one of a user's has none. Each is asked
    for when it is needed, since the answer may take a look at the source.

    Args:
        source: any source.
    """

    __slots__ = ("_source",)

    def __init__(self, source: object) -> None:
        self._source = source

    @property
    def has_columns(self) -> bool:
        """Whether its splits are `InArrow`; False."""
        return bool(getattr(self._source, "has_columns", False))

    @property
    def gives_texts(self) -> bool:
        """Whether blocks of its lines may become columns of strings; False."""
        return bool(getattr(self._source, "gives_texts", False))

    @property
    def columns_if(self) -> str:
        """Condition on the data for either of these, in words that follow "if"; the empty string: there is none."""
        return str(getattr(self._source, "columns_if", ""))

    @property
    def item_class(self) -> type | None:
        """The class of all items; None: it is not known."""
        kind = getattr(self._source, "item_class", None)
        return kind if isinstance(kind, type) else None

    @property
    def is_free_to_read(self) -> bool:
        """Whether a second read costs nothing and runs no code of the user's, as of a range of numbers; False."""
        return bool(getattr(self._source, "is_free_to_read", False))

    @property
    def is_of_functions(self) -> bool:
        """Whether a function of the user's gives the items, in any sequence; False."""
        return bool(getattr(self._source, "is_of_functions", False))

    @property
    def iterable(self) -> Any:
        """Iterable of the caller's that has the items; None: they are elsewhere."""
        return getattr(self._source, "iterable", None)

    @property
    def maker(self) -> str:
        """The name of the function that made it, which has a cost of its own; the empty string: none is known."""
        return cast(str, getattr(self._source, "maker", ""))

    @property
    def paths(self) -> Sequence[str]:
        """Paths of the files that it reads; none."""
        return cast("Sequence[str]", getattr(self._source, "paths", ()))

    @property
    def has_whole_files(self) -> bool:
        """Whether each item is made of a file, as its attribute `glob` shows."""
        return hasattr(self._source, "glob")
