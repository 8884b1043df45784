"""`InColumns`: a collector as data for columns of numbers; `SourceTraits`: the attributes of sources for engines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from dstream.failures.attribution import is_our_name

if TYPE_CHECKING:
    from dstream.expressions import Expression

__all__ = ["Before", "Found", "InColumns", "SourceTraits", "added_ints"]


Found = Literal["count", "sum", "statistics", "list", "set", "groups", "first", "several"]
Before: TypeAlias = tuple[Literal["map", "filter"], Callable[[Any], Any]]


@dataclass(frozen=True)
class InColumns:
    """Column functions of a collector, for many items at once; the containers equal those of its `accumulator`.

    Attributes:
        finds: `"count"`: the number of items; `"sum"`: the count and the sum of their numbers; `"statistics"`: also the
            minimum and the maximum; `"list"`, `"set"`: their values, in order, those of a set with a hash; `"groups"`:
            the result of `downstream` for each key; `"first"`: only the `first` items of a block by their keys matter,
            which it takes as items; `"several"`: each of `parts` adds the items to its own container, in a list of all
            containers.
        take: takes (container, count, sum, minimum, maximum) of ints, as far as `finds` names them; returns the
            container. Groups have none: their container is a dictionary.
        take_all: takes (container, numbers), where the numbers are floats, or a small number of ints, or (container,
            values) of a `"list"` or `"set"`; returns the container.
        take_floats: takes (container, count, exact sum) of floats whose order does not matter; returns the container.
            None: `take_all` is used.
        of: returns the number, or the key, of an item; None if the item itself is the number or key.
        kind: `int` or `float` if the numbers are converted to that type; otherwise bools become ints, and other types
            are unchanged.
        downstream: the column functions for the items of a key.
        same_as: the equivalent `accumulate_all` on items: a collector with another one computes something else.
        total: the `finisher` whose result is the sum; of several parts, the one that passes their results to `whole`.
        average: the `finisher` whose result is `sum / count`.
        supplier: creates the initial container of `take`; None: the collector's supplier is used.
        only: the one type that all numbers have; None: ints, floats or bools.
        is_fold: an operator of Python makes the containers of groups, so that the order of the items is visible if not
            all are ints; the container of all groups changes its type as soon as one of them is not an int.
        expression: the result of `of` after `before`, if the compiler could read it.
        first: the number of first items.
        reverse: the greatest key is first; items with equal keys retain their order.
        before: maps and filters that an item passes first, in order.
        condition: the filters of `before` as one expression, if there are any.
        parts: for `"several"`, the column functions of each part.
        finishers: for `"several"`, the finisher of each part.
        whole: for `"several"`, makes the result of the tuple of the results of the parts.
        is_verified: the result of the columns is compared with the result of the collector for the same items.
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
        """True if maps or filters may drop items."""
        return any(action == "filter" for action, _ in self.before)

    @property
    def gathers(self) -> bool:
        """True if its containers have the values of all items."""
        return self.finds in ("list", "set")

    @property
    def gathers_items(self) -> bool:
        """True if a container has the items themselves, and no results of a function."""
        if self.gathers:
            return not any(action == "map" for action, _ in self.before)
        inner = self.parts if self.downstream is None else (*self.parts, self.downstream)
        return any(each.gathers_items for each in inner)

    @property
    def makes_containers(self) -> bool:
        """True if its containers are made of values of the items, so that it can be a part of others."""
        if self.downstream is not None:
            return not self.is_fold and self.downstream.makes_containers
        return self.finds != "first"

    def behind(self, *before: Before) -> InColumns:
        """Return a copy downstream of maps and filters, which an item passes first."""
        parts = tuple(part.behind(*before) for part in self.parts)
        downstream = None if self.downstream is None else self.downstream.behind(*before)
        return replace(self, before=(*before, *self.before), parts=parts, downstream=downstream)


def added_ints(of: Callable[[Any], Any], total: Callable[[Any], Any] | None = None) -> InColumns:
    """Return column functions that add up ints as `operator.add` does; a lone bool would remain a bool.

    Args:
        of: returns the value of an item.
        total: the `finisher` that returns the sum unchanged.
    """
    return InColumns("sum", _added, _added_all, of=of, only=int, supplier=int, total=total)


def _added(value: int, count: int, total: int) -> int:
    return value + total


def _added_all(value: int, values: Iterable[int]) -> int:
    return value + sum(values)


class SourceTraits:
    """Attributes of a source of dstream's besides its protocol, by which engines estimate and route its items.

    They are read only in this class. A source omits attributes whose default applies; a source of a user's has none.
    Each is read when it is needed, since it may have to inspect the source.

    Args:
        source: any source.
    """

    __slots__ = ("_source",)

    def __init__(self, source: object) -> None:
        # A source of the user's may have attributes of the same names, such as paths, that mean something else.
        self._source = source if is_our_name(type(source).__module__) else None

    @property
    def has_columns(self) -> bool:
        """True if its splits are `InArrow`; False by default."""
        return bool(getattr(self._source, "has_columns", False))

    @property
    def gives_texts(self) -> bool:
        """True if blocks of its lines may become columns of strings; False by default."""
        return bool(getattr(self._source, "gives_texts", False))

    @property
    def columns_if(self) -> str:
        """Condition on the data for either of these, as a phrase that follows "if"; empty if there is none."""
        return str(getattr(self._source, "columns_if", ""))

    @property
    def item_class(self) -> type | None:
        """The class of all items; None: it is not known."""
        kind = getattr(self._source, "item_class", None)
        return kind if isinstance(kind, type) else None

    @property
    def is_free_to_read(self) -> bool:
        """True if a second read is free and runs no code of the user's, as for a range of numbers; False by default."""
        return bool(getattr(self._source, "is_free_to_read", False))

    @property
    def is_of_functions(self) -> bool:
        """True if a function of the user's returns the items, in any sequence; False by default."""
        return bool(getattr(self._source, "is_of_functions", False))

    @property
    def iterable(self) -> Any:
        """Iterable of the caller's that has the items; None: they are elsewhere."""
        return getattr(self._source, "iterable", None)

    @property
    def maker(self) -> str:
        """Name of the function that made it, by which its cost is looked up; empty if unknown."""
        return cast(str, getattr(self._source, "maker", ""))

    @property
    def paths(self) -> Sequence[str]:
        """Paths of the files that it reads; none."""
        return cast("Sequence[str]", getattr(self._source, "paths", ()))

    @property
    def has_whole_files(self) -> bool:
        """True if each item is made of a whole file, as its attribute `glob` shows."""
        return hasattr(self._source, "glob")
