"""Collectors that fold items into one: by an operator, by an aggregate operation, or by taking any."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, TypeVar, overload

from collectors.arguments import checked_function
from collectors.batches import batches
from collectors.naming import named
from collectors.shapes import OfItems
from dstream.spi import Characteristics, Collector
from dstream.values import Optional
from dstream.values.blaming import each
from dstream.values.flattened import checked_result

__all__ = ["pick_any", "reducing"]

T = TypeVar("T")
U = TypeVar("U")
A = TypeVar("A")
R = TypeVar("R")

Box = list[Any]
"""No item, or the one that stands for all so far; an item may be None, so a box tells the two apart."""


@overload
def reducing(op: Callable[[T, T], T], /) -> Collector[T, object, Optional[T]]: ...
@overload
def reducing(identity: T, op: Callable[[T, T], T], /) -> Collector[T, object, T]: ...
@overload
def reducing(identity: U, fn: Callable[[T], U], op: Callable[[U, U], U], /) -> Collector[T, object, U]: ...
@named
def reducing(*arguments: Any) -> Collector[Any, Any, Any]:
    """Fold the items with an associative operator, in encounter order.

    Three forms: `reducing(op)` gives an `Optional`, empty of nothing and where the fold gives None;
    `reducing(identity, op)` gives `identity` of nothing; `reducing(identity, fn, op)` applies `fn` to
    each item first. The identity is folded in once, at the front, however the items were split.

    Raises:
        TypeError: not one of the three forms.

    Example:
        >>> import operator
        >>> reducing(operator.mul).collect([2, 3, 4])
        Optional[24]
        >>> reducing("", str.upper, operator.add).collect("ab")
        'AB'
    """
    if not 1 <= len(arguments) <= 3:
        raise TypeError(
            f"reducing() takes op, or identity and op, or identity, fn and op; not {len(arguments)} arguments"
        )
    *first, op = arguments
    checked_function(op, "op")
    fn = checked_function(first[1], "fn") if len(first) == 2 else None
    return Collector(
        list,
        partial(_fold_one, op, fn),
        partial(_fold_boxes, op),
        partial(_from_identity, first[0], op) if first else _optional,
        accumulate_all=partial(_fold_all, op, fn),
    )


def _fold_one(op: Callable[[Any, Any], Any], fn: Callable[[Any], Any] | None, box: Box, item: Any) -> None:
    value = item if fn is None else fn(item)
    box[:] = [op(box[0], value) if box else value]


def _fold_all(op: Callable[[Any, Any], Any], fn: Callable[[Any], Any] | None, box: Box, items: Iterable[Any]) -> Box:
    for batch in batches(items):
        values = batch if fn is None else each(fn, batch)
        box[:] = [functools.reduce(op, values, *box)]
    return box


def _fold_boxes(op: Callable[[Any, Any], Any], left: Box, right: Box) -> None:
    left[:] = [op(left[0], right[0])] if left and right else left or right


def _from_identity(identity: Any, op: Callable[[Any, Any], Any], box: Box) -> Any:
    return checked_result(op(identity, box[0])) if box else identity


def _optional(box: Box) -> Optional[Any]:
    return Optional.of_nullable(checked_result(box[0])) if box else Optional.empty()


@named
def pick_any() -> Collector[T, OfItems, Optional[T]]:
    """Pick one of the items that are not None; an empty `Optional` if there is none.

    It is the first of them wherever order is kept, and no item after it is looked at.

    Example:
        >>> pick_any().collect([None, "a", "b"])
        Optional['a']
    """
    collector: Collector[Any, Any, Any] = Collector(
        list, _pick_one, _pick_all, _optional, frozenset({Characteristics.UNORDERED}), accumulate_all=_pick_all
    )
    return collector


def _pick_one(box: Box, item: Any) -> None:
    if not box and item is not None:
        box.append(item)


def _pick_all(box: Box, items: Iterable[Any]) -> Box:
    if not box:
        box.extend(next(([item] for item in items if item is not None), ()))
    return box
