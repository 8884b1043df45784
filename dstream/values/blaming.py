"""Which item a function failed on: kept with the exception where the function is called, whatever the function is.

Collectors call functions for whole batches, at the speed of C, and see only afterwards that one failed. So
what is kept here costs nothing while all goes well. It is kept only as long as the exception is on its way to the
step that is to blame: the same exception may be raised again later, on another item.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

__all__ = ["MISSING_ITEM", "chosen", "each", "failed_on", "forgotten", "item_failed_on", "traced"]

_ATTRIBUTE = "__dstream_item__"
MISSING_ITEM: Any = object()


def failed_on(error: BaseException, item: Any) -> None:
    """Keep with `error` that it arose on `item`, in place of one that an inner function was given."""
    error.__dict__[_ATTRIBUTE] = item  # An exception may refuse attributes: one that is a frozen dataclass does.


def item_failed_on(error: BaseException) -> Any:
    """Return the item that is kept with `error`, or `MISSING_ITEM`."""
    return error.__dict__.get(_ATTRIBUTE, MISSING_ITEM)


def forgotten(error: BaseException) -> None:
    """Keep no item with `error` any more."""
    error.__dict__.pop(_ATTRIBUTE, None)


def each(fn: Callable[..., Any], items: Sequence[Any], values: Sequence[Any] | None = None) -> list[Any]:
    """Return what `fn` gives for each item, in a list.

    Args:
        fn: takes an item; where there are values, it takes one of them and the item that it was made from.
        items: not an iterator: one of them is named when `fn` fails.
        values: one for each item.

    Raises:
        RuntimeError: `fn` raised StopIteration, which would pass for the end of the items.
    """
    left = iter(items)
    try:
        if values is None:
            return [fn(item) for item in left]
        return [fn(value, item) for item, value in zip(left, values, strict=False)]
    except StopIteration as error:
        stopped = _stopped(fn)
        failed_on(stopped, _before(left, items))
        raise stopped from error
    except Exception as error:
        failed_on(error, _before(left, items))
        raise


def chosen(predicate: Callable[[Any], object], items: Sequence[Any]) -> list[Any]:
    """Return the items that satisfy `predicate`; otherwise as `each`."""
    left = iter(items)
    try:
        return [item for item in left if predicate(item)]
    except StopIteration as error:
        stopped = _stopped(predicate)
        failed_on(stopped, _before(left, items))
        raise stopped from error
    except Exception as error:
        failed_on(error, _before(left, items))
        raise


def _before(left: Iterator[Any], items: Sequence[Any]) -> Any:
    """Return the item before those that are left."""
    return items[len(items) - sum(1 for _ in left) - 1]


def _stopped(fn: Callable[..., Any]) -> RuntimeError:
    return RuntimeError(f"{getattr(fn, '__qualname__', type(fn).__qualname__)} raised StopIteration")


def traced(error: BaseException, derived: Sequence[Any], items: Sequence[Any]) -> None:
    """Where `error` arose on one of `derived`, let it have arisen on the item that this was made from."""
    failed = item_failed_on(error)
    for value, item in zip(derived, items, strict=False):
        if value is failed:
            failed_on(error, item)
            return
