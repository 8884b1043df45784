"""Collectors around another collector: functions on the items before it, and on the result after it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import compress, islice, pairwise
from typing import Any, TypeVar, overload

from dstream.arguments import checked_function
from dstream.base.functions import checked_result, closed_at_end, refuse_awaitable
from dstream.collectors.arguments import OfItems, checked_collector, checked_predicate, named, shown
from dstream.collectors.batches import Prepared, batches, prepared
from dstream.failures.attribution import each, failed_on, satisfied, stopped, traced
from dstream.spi import Characteristics, Collector, InColumns, Keyed
from dstream.spi.columns import Before
from dstream.values import Optional

__all__ = ["collecting_and_then", "filtering", "flat_mapping", "mapping"]

T = TypeVar("T")
U = TypeVar("U")
R = TypeVar("R")


# pyright needs one overload only. mypy 2.4 infers the result of `downstream` before it has looked into `fn`: the result
# of `to_list()` is then `list[Never]`, so the first overloads declare the results. Where that does not help, as for the
# keys of `mapping(fn, grouping_by(lambda item: ...))`, the last overload lets it infer Any.
@overload
def mapping(fn: Callable[[T], U], downstream: Collector[U, OfItems, list[U]]) -> Collector[T, object, list[U]]: ...
@overload
def mapping(fn: Callable[[T], U], downstream: Collector[U, OfItems, set[U]]) -> Collector[T, object, set[U]]: ...
@overload
def mapping(
    fn: Callable[[T], U], downstream: Collector[U, OfItems, tuple[U, ...]]
) -> Collector[T, object, tuple[U, ...]]: ...
@overload
def mapping(
    fn: Callable[[T], U], downstream: Collector[U, OfItems, frozenset[U]]
) -> Collector[T, object, frozenset[U]]: ...
@overload
def mapping(
    fn: Callable[[T], U], downstream: Collector[U, OfItems, Optional[U]]
) -> Collector[T, object, Optional[U]]: ...
@overload
def mapping(
    fn: Callable[[T], U], downstream: Collector[U, OfItems, Counter[U]]
) -> Collector[T, object, Counter[U]]: ...
@overload
def mapping(fn: Callable[[T], U], downstream: Collector[U, Any, R]) -> Collector[T, object, R]: ...
@overload
def mapping(fn: Callable[[T], U], downstream: Collector[Any, Any, R]) -> Collector[T, object, R]: ...
@named
def mapping(fn: Callable[[Any], Any], downstream: Any) -> Collector[Any, Any, Any]:
    """Apply `fn` to each item, None among them, and collect the results.

    Example:
        >>> from collectors import to_list
        >>> mapping(str.upper, to_list()).collect("ab")
        ['A', 'B']
    """
    checked_function(fn, "fn")
    downstream = checked_collector(downstream)
    map_all = _mapped(fn, downstream)
    collector = _before(downstream, partial(_map_one, fn, downstream), map_all)
    return replace(collector, in_columns=_behind(downstream, ("map", fn), map_all))


def _behind(downstream: Collector[Any, Any, Any], before: Before, same_as: Callable[..., Any]) -> InColumns | None:
    """Return the columnar form of `downstream` after a map or a filter; None if there is none."""
    known = downstream.on_columns()
    if known is None or not _may_stand_behind(known, before):
        return None
    return replace(known.behind(before), same_as=same_as)


def _may_stand_behind(known: InColumns, before: Before) -> bool:
    if before[0] == "map":
        return known.finds != "groups" or known.makes_containers
    # Columns find the first items and the groups of all rows, not only of the rows that pass.
    is_known = known.finds not in ("groups", "first")
    return is_known and all(_may_stand_behind(part, before) for part in known.parts)


def _map_one(fn: Callable[[Any], Any], downstream: Collector[Any, Any, Any], container: Any, item: Any) -> Any:
    return downstream.accumulator(container, fn(item))


def _mapped(fn: Callable[[Any], Any], downstream: Collector[Any, Any, Any]) -> Prepared:
    inner = prepared(downstream)
    return _Traced(
        partial(_map_and_prepare, fn, inner.prepare),
        inner.add,
        inner.add_all,
        inner.add_each,
        inner.add_known,
        inner.changes,
    )


class _Traced(Prepared):
    """The two steps of `mapping` and `filtering`: a failure of the second names the item of its value."""

    def __call__(self, container: Any, items: Iterable[Any]) -> Any:
        for batch in batches(items):
            values = self.prepare(batch)
            try:
                container = self.add_all(container, values)
            except Exception as error:
                traced(error, values, batch)
                raise
        return container


def _map_and_prepare(
    fn: Callable[[Any], Any], prepare: Callable[[list[Any]], list[Any]], batch: list[Any]
) -> list[Any]:
    values = each(fn, batch)
    try:
        return prepare(values)
    except Exception as error:
        traced(error, values, batch)
        raise


@named
def filtering(predicate: Callable[[T], object], downstream: Collector[T, Any, R]) -> Collector[T, object, R]:
    """Collect the items that satisfy `predicate`.

    Downstream of a grouping, a key without passing items remains, with the result of an empty group; a
    filter before the grouping would lose the key.

    Example:
        >>> from collectors import counting, grouping_by
        >>> grouping_by(len, filtering(str.isupper, counting())).collect(["A", "b", "cc"])
        {1: 1, 2: 0}
    """
    checked_predicate(predicate)
    downstream = checked_collector(downstream)
    filter_all = _filtered(predicate, downstream)
    collector = _before(downstream, partial(_filter_one, predicate, downstream), filter_all)
    return replace(collector, in_columns=_behind(downstream, ("filter", predicate), filter_all))


def _filter_one(
    predicate: Callable[[Any], object], downstream: Collector[Any, Any, Any], container: Any, item: Any
) -> Any:
    return downstream.accumulator(container, item) if predicate(item) else container


def _filtered(predicate: Callable[[Any], object], downstream: Collector[Any, Any, Any]) -> Prepared:
    inner = prepared(downstream)
    return _Traced(
        partial(_filter_and_prepare, predicate, inner.prepare),
        partial(_add_unless_left_out, inner.add),
        partial(_add_those_that_pass, inner.add_all),
        changes=None if inner.changes is None else partial(_changes_of_those_that_pass, inner.changes),
    )


_LEFT_OUT: Any = object()
"""The value of an item that does not pass, which no container takes."""


def _filter_and_prepare(
    predicate: Callable[[Any], object], prepare: Callable[[list[Any]], list[Any]], batch: list[Any]
) -> list[Any]:
    passes = satisfied(predicate, batch)
    values = iter(prepare(list(compress(batch, passes))))
    return [next(values) if is_passing else _LEFT_OUT for is_passing in passes]


def _passing(values: Iterable[Any]) -> list[Any]:
    return [value for value in values if value is not _LEFT_OUT]


def _add_unless_left_out(add: Callable[[Any, Any], Any], container: Any, value: Any) -> Any:
    return container if value is _LEFT_OUT else add(container, value)


def _add_those_that_pass(add_all: Callable[[Any, list[Any]], Any], container: Any, values: list[Any]) -> Any:
    return add_all(container, _passing(values))


def _changes_of_those_that_pass(
    changes_of: Callable[[Sequence[Any]], Sequence[int] | None], values: Sequence[Any]
) -> Sequence[int] | None:
    changes = changes_of(_passing(values))
    if changes is None:
        return None
    rest = iter(changes)
    return [0 if value is _LEFT_OUT else next(rest) for value in values]


@overload
def flat_mapping(
    fn: Callable[[T], Iterable[U] | None], downstream: Collector[U, OfItems, list[U]]
) -> Collector[T, object, list[U]]: ...
@overload
def flat_mapping(
    fn: Callable[[T], Iterable[U] | None], downstream: Collector[U, OfItems, set[U]]
) -> Collector[T, object, set[U]]: ...
@overload
def flat_mapping(
    fn: Callable[[T], Iterable[U] | None], downstream: Collector[U, OfItems, tuple[U, ...]]
) -> Collector[T, object, tuple[U, ...]]: ...
@overload
def flat_mapping(
    fn: Callable[[T], Iterable[U] | None], downstream: Collector[U, OfItems, frozenset[U]]
) -> Collector[T, object, frozenset[U]]: ...
@overload
def flat_mapping(
    fn: Callable[[T], Iterable[U] | None], downstream: Collector[U, OfItems, Optional[U]]
) -> Collector[T, object, Optional[U]]: ...
@overload
def flat_mapping(
    fn: Callable[[T], Iterable[U] | None], downstream: Collector[U, OfItems, Counter[U]]
) -> Collector[T, object, Counter[U]]: ...
@overload
def flat_mapping(
    fn: Callable[[T], Iterable[U] | None], downstream: Collector[U, Any, R]
) -> Collector[T, object, R]: ...
@overload
def flat_mapping(
    fn: Callable[[T], Iterable[U] | None], downstream: Collector[Any, Any, R]
) -> Collector[T, object, R]: ...
@named
def flat_mapping(fn: Callable[[Any], Iterable[Any] | None], downstream: Any) -> Collector[Any, Any, Any]:
    """Collect all items of the results of `fn`: iterables, streams too, or None for nothing.

    A stream is closed after its last item.

    Raises:
        TypeError: `fn` returned another type; the message names the item.

    Example:
        >>> from collectors import to_list
        >>> flat_mapping(str.split, to_list()).collect(["a b", "", "c"])
        ['a', 'b', 'c']
    """
    checked_function(fn, "fn")
    downstream = checked_collector(downstream)
    return _before(downstream, partial(_flatten_one, fn, downstream), partial(_flatten_all, fn, downstream))


def _flatten_one(fn: Callable[[Any], Any], downstream: Collector[Any, Any, Any], container: Any, item: Any) -> Any:
    return downstream.accumulated(container, _opened(fn(item), item))


def _flatten_all(
    fn: Callable[[Any], Any], downstream: Collector[Any, Any, Any], container: Any, items: Iterable[Any]
) -> Any:
    for elements, ends, opened in _element_batches(fn, items):
        try:
            container = downstream.accumulated(container, elements)
        except Exception as error:
            traced(error, elements, _owners(ends, opened))
            raise
    return container


_ELEMENTS = 512
"""The number of elements of a `flat_mapping` that are collected together."""


def _element_batches(
    fn: Callable[[Any], Any], items: Iterable[Any]
) -> Iterator[tuple[list[Any], list[int], list[Any]]]:
    """Yield batches of a few hundred elements, the end position of the elements of each item, and the items."""
    elements: list[Any] = []
    ends: list[int] = []
    opened: list[Any] = []
    for item in items:
        try:
            inner = fn(item)
            if (type(inner) is list or type(inner) is tuple) and len(inner) < _ELEMENTS:
                elements += inner
            else:
                left = _opened(inner, item)
                while len(few := list(islice(left, _ELEMENTS - len(elements)))) == _ELEMENTS - len(elements):
                    elements += few
                    yield elements, [*ends, len(elements)], [*opened, item]
                    elements, ends, opened = [], [], []
                elements += few
        except StopIteration as error:
            # In a generator Python would make a RuntimeError of it, which names no item (PEP 479).
            failed = stopped(getattr(fn, "__qualname__", type(fn).__qualname__))
            failed_on(failed, item)
            raise failed from error
        except Exception as error:
            failed_on(error, item)
            raise
        ends.append(len(elements))
        opened.append(item)
        if len(elements) >= _ELEMENTS:
            yield elements, ends, opened
            elements, ends, opened = [], [], []
    if elements:
        yield elements, ends, opened


def _owners(ends: list[int], opened: list[Any]) -> list[Any]:
    """Return the item of each element."""
    lengths = (end - start for start, end in pairwise([0, *ends]))
    return [item for item, length in zip(opened, lengths, strict=True) for _ in range(length)]


def _opened(inner: Any, item: Any) -> Iterator[Any]:
    if inner is None:
        return iter(())
    inner = closed_at_end(inner)
    if not isinstance(inner, Iterable) and not hasattr(inner, "__getitem__"):
        refuse_awaitable(inner)
        raise TypeError(
            f"flat_mapping() needs a function that gives an iterable or None, "
            f"but for {shown(item)} it gave {type(inner).__name__}"
        )
    return iter(inner)


def _before(
    downstream: Collector[Any, Any, Any],
    accumulator: Callable[[Any, Any], Any],
    accumulate_all: Callable[[Any, Any], Any],
) -> Collector[Any, Any, Any]:
    """Return `downstream` with other items; it is not keyed, since its classifier received the old items."""
    # `in_columns` may remain: `on_columns` detects that the function that it describes was replaced.
    return replace(downstream, accumulator=accumulator, accumulate_all=accumulate_all, keyed=None)


@named
def collecting_and_then(downstream: Collector[T, Any, R], fn: Callable[[R], U]) -> Collector[T, object, U]:
    """Apply `fn`, which may return None, to the result of `downstream`; it runs once, at the end.

    Example:
        >>> from collectors import to_list
        >>> collecting_and_then(to_list(), len).collect("abc")
        3
    """
    downstream = checked_collector(downstream)
    checked_function(fn, "fn")
    keyed = downstream.keyed
    assemble: Any = keyed and partial(_then, keyed.assemble, fn)
    return Collector(
        downstream.supplier,
        downstream.accumulator,
        downstream.combiner,
        partial(_then, downstream.finisher, fn),
        downstream.characteristics - {Characteristics.IDENTITY_FINISH},
        downstream.accumulate_all,
        keyed and Keyed(keyed.classifier, keyed.downstream, assemble),
        parts=downstream.parts,
        deducting=downstream.deducting,
        in_columns=downstream.on_columns(),
    )


def _then(first: Callable[[Any], Any], second: Callable[[Any], Any], value: Any) -> Any:
    return checked_result(second(first(value)))
