"""Collectors that gather items into lists, sets and strings, or fold them into one."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, TypeVar, overload

from dstream.arguments import checked_function
from dstream.base.functions import checked_result, refuse_awaitable
from dstream.collectors.arguments import OfItems, checked_text, named, shown
from dstream.collectors.batches import batches, kinds
from dstream.errors import NullElementError
from dstream.failures.attribution import each, failed_on
from dstream.keys import are_canonical
from dstream.keys.canonical import canonical_or_itself
from dstream.spi import Characteristics, Collector, InColumns
from dstream.values import Optional

__all__ = [
    "concatenating",
    "joining",
    "pick_any",
    "reducing",
    "to_collection",
    "to_list",
    "to_set",
    "to_unmodifiable_list",
    "to_unmodifiable_set",
]


T = TypeVar("T")
C = TypeVar("C")

_IDENTITY_FINISH = frozenset({Characteristics.IDENTITY_FINISH})
_UNORDERED = frozenset({Characteristics.UNORDERED})


@named
def to_list() -> Collector[T, OfItems, list[T]]:
    """Gather the items in a list, in encounter order, None among them.

    Example:
        >>> to_list().collect("abc")
        ['a', 'b', 'c']
    """
    collector: Collector[Any, Any, Any] = Collector(
        list,
        list.append,
        list.extend,
        characteristics=_IDENTITY_FINISH,
        accumulate_all=_extend,
        in_columns=InColumns("list", take_all=_extend, same_as=_extend),
    )
    return collector


def _extend(container: list[Any], items: Iterable[Any]) -> list[Any]:
    container.extend(items)
    return container


@named
def to_set() -> Collector[T, OfItems, set[T]]:
    """Gather the distinct items in a set; every NaN is the same item.

    Raises:
        TypeError: an item has no hash.

    Example:
        >>> sorted(to_set().collect("abracadabra"))
        ['a', 'b', 'c', 'd', 'r']
    """
    collector: Collector[Any, Any, Any] = Collector(
        set,
        _put,
        _put_all,
        _with_one_nan,
        characteristics=_UNORDERED,
        accumulate_all=_put_all,
        in_columns=InColumns("set", take_all=_put_all, same_as=_put_all),
    )
    return collector


def _put(container: set[Any], item: Any) -> None:
    container.add(canonical_or_itself(item))


def _put_all(container: set[Any], items: Iterable[Any]) -> set[Any]:
    for batch in batches(items):
        try:
            container.update(batch if are_canonical(batch) else map(canonical_or_itself, batch))
        except TypeError as error:
            _keep_one_without_a_hash(error, batch)
            raise
    return container


def _keep_one_without_a_hash(error: TypeError, items: Sequence[Any]) -> None:
    """Attribute an error to the first item without a hash."""
    for item in items:
        try:
            hash(item)
        except TypeError:
            failed_on(error, item)
            return


def _with_one_nan(container: set[Any]) -> set[Any]:
    """Return the items with one NaN; a pickled NaN is another object, which is another item of a set."""
    return container if are_canonical(list(container)) else set(map(canonical_or_itself, container))


@named
def to_collection(factory: Callable[[], C]) -> Collector[Any, object, C]:
    """Gather the items in the collection that `factory` makes, in encounter order.

    Args:
        factory: makes an empty collection with `add` or `append`, such as `collections.deque`.

    Raises:
        TypeError: the collection has neither.

    Example:
        >>> from collections import deque
        >>> to_collection(deque).collect("abc")
        deque(['a', 'b', 'c'])
    """
    return Collector(
        checked_function(factory, "factory"),
        _insert,
        _insert_all_of,
        characteristics=_IDENTITY_FINISH,
        accumulate_all=_insert_all,
    )


def _insert(container: Any, item: Any) -> None:
    _inserter(container)(item)


def _inserter(container: Any) -> Callable[[Any], Any]:
    # `add` first: a SortedList has an `append` that only raises.
    insert: Callable[[Any], Any] | None = getattr(container, "add", None) or getattr(container, "append", None)
    if insert is None:
        refuse_awaitable(container)
        raise TypeError(
            f"to_collection() needs a factory of collections with add() or append(), not {shown(container)}"
        )
    return insert


def _insert_all(container: C, items: Iterable[Any]) -> C:
    insert = _inserter(container)
    for item in items:
        insert(item)
    return container


def _insert_all_of(left: C, right: Any) -> C:
    return _insert_all(left, right)


@named
def to_unmodifiable_list() -> Collector[T, OfItems, tuple[T, ...]]:
    """Gather the items in a tuple, in encounter order.

    Raises:
        NullElementError: an item is None.

    Example:
        >>> to_unmodifiable_list().collect("abc")
        ('a', 'b', 'c')
    """
    collector: Collector[Any, Any, Any] = Collector(
        list, _append_value, list.extend, tuple, accumulate_all=_append_values
    )
    return collector


def _append_value(container: list[Any], item: Any) -> None:
    container.extend(_values("to_unmodifiable_list", [item]))


def _append_values(container: list[Any], items: Iterable[Any]) -> list[Any]:
    for batch in batches(items):
        container.extend(_values("to_unmodifiable_list", batch))
    return container


@named
def to_unmodifiable_set() -> Collector[T, OfItems, frozenset[T]]:
    """Gather the distinct items in a frozenset; every NaN is the same item.

    Raises:
        NullElementError: an item is None.
        TypeError: an item has no hash.

    Example:
        >>> to_unmodifiable_set().collect("aa")
        frozenset({'a'})
    """
    collector: Collector[Any, Any, Any] = Collector(set, _put_value, _put_all, _frozen, _UNORDERED, _put_values)
    return collector


def _frozen(container: set[Any]) -> frozenset[Any]:
    return frozenset(_with_one_nan(container))


def _put_value(container: set[Any], item: Any) -> None:
    _put_all(container, _values("to_unmodifiable_set", [item]))


def _put_values(container: set[Any], items: Iterable[Any]) -> set[Any]:
    for batch in batches(items):
        _put_all(container, _values("to_unmodifiable_set", batch))
    return container


def _values(factory: str, batch: list[Any]) -> list[Any]:
    if type(None) in kinds(batch):
        # Not `index(None)`, which compares each item with None: a NumPy array returns an array.
        place = next(place for place, item in enumerate(batch) if item is None)
        raise NullElementError(f"{factory}() refuses None items, but item {place} of this batch is None")
    return batch


@named
def joining(delimiter: str = "", prefix: str = "", suffix: str = "") -> Collector[str, object, str]:
    """Join strings, also empty ones, in encounter order; `prefix + suffix` without items.

    Raises:
        TypeError: an item is not a string, None too; the message names the item.

    Example:
        >>> joining(", ", "[", "]").collect(["a", "", "b"])
        '[a, , b]'
    """
    return _joining("joining", delimiter, prefix, suffix, keep=None)


@named
def concatenating(delimiter: str = "", prefix: str = "", suffix: str = "") -> Collector[str, object, str]:
    """Join strings that are not empty; as `joining`, but without a delimiter around an empty string.

    Example:
        >>> concatenating(", ", "[", "]").collect(["a", "", "b"])
        '[a, b]'
    """
    return _joining("concatenating", delimiter, prefix, suffix, keep=bool)


def _joining(
    factory: str, delimiter: str, prefix: str, suffix: str, keep: Callable[[str], bool] | None
) -> Collector[str, Any, str]:
    checked_text(delimiter, "delimiter")
    checked_text(prefix, "prefix")
    checked_text(suffix, "suffix")
    return Collector(
        list,
        partial(_add_piece, factory, keep),
        list.extend,
        partial(_joined, delimiter, prefix, suffix),
        accumulate_all=partial(_add_pieces, factory, keep, delimiter),
    )


def _add_piece(factory: str, keep: Callable[[str], bool] | None, pieces: list[str], item: str) -> None:
    pieces.extend(_filtered(factory, keep, [item]))


def _add_pieces(
    factory: str, keep: Callable[[str], bool] | None, delimiter: str, pieces: list[str], items: Iterable[str]
) -> list[str]:
    """Add one piece for each batch, so that few objects are sent."""
    kept = (_filtered(factory, keep, batch) for batch in batches(items))
    # A batch without strings must not add a delimiter.
    pieces.extend(delimiter.join(piece) for piece in kept if piece)
    return pieces


def _filtered(factory: str, keep: Callable[[str], bool] | None, batch: list[str]) -> list[str]:
    if not kinds(batch) <= {str}:
        for item in batch:
            if not isinstance(item, str):
                raise TypeError(f"{factory}() takes strings, not {type(item).__name__}: {shown(item)}")
    return batch if keep is None else list(filter(keep, batch))


def _joined(delimiter: str, prefix: str, suffix: str, pieces: list[str]) -> str:
    return prefix + delimiter.join(pieces) + suffix


U = TypeVar("U")
A = TypeVar("A")
R = TypeVar("R")

Box = list[Any]
"""No item, or the result of all so far; an item may be None, so a box distinguishes the two."""


@overload
def reducing(op: Callable[[T, T], T], /) -> Collector[T, object, Optional[T]]: ...
@overload
def reducing(identity: T, op: Callable[[T, T], T], /) -> Collector[T, object, T]: ...
@overload
def reducing(identity: U, fn: Callable[[T], U], op: Callable[[U, U], U], /) -> Collector[T, object, U]: ...
@named
def reducing(*arguments: Any) -> Collector[Any, Any, Any]:
    """Fold the items with an associative operator, in encounter order.

    Three forms: `reducing(op)` returns an `Optional`, empty without items and if the fold is None;
    `reducing(identity, op)` returns `identity` without items; `reducing(identity, fn, op)` applies `fn` to
    each item first. The identity is folded in once, at the front, for any split of the items.

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
    # In place, since a returned value would replace the box.
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
    """Pick an item that is not None; an empty `Optional` if there is none.

    It is the first such item of an ordered stream, and no item after it is read.

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
        # `next` reads no item after the picked one.
        box.extend(next(([item] for item in items if item is not None), ()))
    return box
