"""Which item a function failed on: kept with the exception where the function is called, whatever the function is.

Collectors call functions for whole batches, at the speed of C, and see only afterwards that one failed. So
what is kept here costs nothing while all goes well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

__all__ = ["MISSING_ITEM", "each", "failed_on", "item_failed_on", "traced"]

_ATTRIBUTE = "__dstream_item__"
MISSING_ITEM: Any = object()


def failed_on(error: BaseException, item: Any) -> None:
    """Keep with `error` that it arose on `item`, in place of one that an inner function was given."""
    setattr(error, _ATTRIBUTE, item)


def item_failed_on(error: BaseException) -> Any:
    """Return the item that is kept with `error`, or `MISSING_ITEM`."""
    return getattr(error, _ATTRIBUTE, MISSING_ITEM)


def each(fn: Callable[..., Any], *columns: Sequence[Any]) -> list[Any]:
    """Return what `fn` gives for each item, in a list.

    Args:
        fn: takes an item, or one value of each column.
        columns: of the same length; the last one holds the items.

    Raises:
        RuntimeError: `fn` raised StopIteration, which would pass for the end of the items.
    """
    results: list[Any] = []
    items = columns[-1]
    try:
        results.extend(map(fn, *columns))
    except Exception as error:
        failed_on(error, items[len(results)])
        raise
    if len(results) < len(items):
        name = getattr(fn, "__qualname__", type(fn).__qualname__)
        stopped = RuntimeError(f"{name} raised StopIteration")
        failed_on(stopped, items[len(results)])
        raise stopped
    return results


def traced(error: BaseException, derived: Sequence[Any], items: Sequence[Any]) -> None:
    """Where `error` arose on one of `derived`, let it have arisen on the item that this was made from."""
    failed = item_failed_on(error)
    for value, item in zip(derived, items, strict=False):
        if value is failed:
            failed_on(error, item)
            return
