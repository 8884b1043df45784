"""Which item a function failed on: kept with the exception where the function is called, whatever the function is.

Collectors call functions for whole batches, at the speed of C, and see only afterwards that one failed. So
what is kept here costs nothing while all goes well. It is kept only as long as the exception is on its way to the
step that is to blame: the same exception may be raised again later, on another item. Several threads may even raise
one object at once, so each thread keeps what it knows for itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from threading import get_ident
from typing import Any

from dstream.values.flattened import refuse_awaitable
from dstream.values.plain_functions import Form, plain

__all__ = [
    "MISSING_ITEM",
    "behind",
    "chosen",
    "each",
    "failed_on",
    "forgotten",
    "given",
    "given_to",
    "in_group",
    "item_failed_on",
    "shown",
    "stopped",
    "traced",
]

_ITEM = "__dstream_item__"
_GIVEN = "__dstream_given__"
MISSING_ITEM: Any = object()


def failed_on(error: BaseException, item: Any) -> None:
    """Keep with `error` that it arose on `item`, in place of one that an inner function was given."""
    _keep(error, _ITEM, item)


def item_failed_on(error: BaseException) -> Any:
    """Return the item that is kept with `error`, or `MISSING_ITEM`."""
    return _kept(error, _ITEM, MISSING_ITEM)


def given(error: BaseException, words: str) -> None:
    """Keep with `error` in words what the function that raised it was given, where that is no single item."""
    _keep(error, _GIVEN, words)


def given_to(error: BaseException) -> str | None:
    """Return the words that are kept with `error`."""
    words: str | None = _kept(error, _GIVEN, None)
    return words


def in_group(error: BaseException, key: Any) -> None:
    """Keep with `error` that it arose where the result of the group of `key` was made, unless its item is known."""
    if item_failed_on(error) is MISSING_ITEM:
        inner = given_to(error)
        given(error, f"in the group of the key {shown(key)}" + (f", {inner}" if inner else ""))


def forgotten(error: BaseException) -> None:
    """Keep nothing with `error` any more."""
    for each in behind(error):
        for name in (_ITEM, _GIVEN):
            each.__dict__.pop(_of_this_thread(name), None)


def _keep(error: BaseException, name: str, value: Any) -> None:
    # An exception may refuse attributes: one that is a frozen dataclass does.
    error.__dict__[_of_this_thread(name)] = value


def _kept(error: BaseException, name: str, missing: Any) -> Any:
    name = _of_this_thread(name)
    return next((each.__dict__[name] for each in behind(error) if name in each.__dict__), missing)


def _of_this_thread(name: str) -> str:
    return f"{name}{get_ident()}"


def behind(error: BaseException) -> tuple[BaseException, ...]:
    """Return `error`, and the StopIteration that Python, or we, made this RuntimeError of."""
    cause = error.__cause__
    return (error, cause) if isinstance(error, RuntimeError) and isinstance(cause, StopIteration) else (error,)


def stopped(function: str) -> RuntimeError:
    """Return the error that takes the place of a StopIteration, which passes for the end of what is iterated over."""
    return RuntimeError(f"{function} raised StopIteration")


def shown(value: Any) -> str:
    """Return how a value reads, cut at 200 characters; `repr` may be the user's own, and fail."""
    try:
        text = repr(value)
    except Exception as error:
        text = f"<{type(value).__name__}, whose repr fails with {type(error).__name__}>"
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "..."


_LONGEST = 200


def each(fn: Callable[..., Any], items: Sequence[Any], values: Sequence[Any] | None = None) -> list[Any]:
    """Return what `fn` gives for each item, in a list.

    Args:
        fn: takes an item; where there are values, it takes one of them and the item that it was made from.
        items: not an iterator: one of them is named when `fn` fails.
        values: one for each item.

    Raises:
        RuntimeError: `fn` raised StopIteration, which would pass for the end of the items.
    """
    if values is None and (known := plain(fn)) is not None:
        return _given_without_calls(*known, items)
    left = iter(items)
    try:
        if values is None:
            results = [fn(item) for item in left]
        else:
            results = [fn(value, item) for item, value in zip(left, values, strict=False)]
    except StopIteration as error:
        raise _stopped_on(_before(left, items), fn) from error
    except Exception as error:
        failed_on(error, _before(left, items))
        raise
    if results:
        _refuse_awaitable(results[0], items[0])
    return results


def _refuse_awaitable(result: Any, item: Any) -> None:
    try:
        refuse_awaitable(result)
    except TypeError as error:
        failed_on(error, item)
        raise


def _given_without_calls(form: Form, constant: Any, items: Sequence[Any]) -> list[Any]:
    if form == "item":
        return list(items)
    return [constant] * len(items) if form == "constant" else [(item, constant) for item in items]


def chosen(predicate: Callable[[Any], object], items: Sequence[Any]) -> list[Any]:
    """Return the items that satisfy `predicate`; otherwise as `each`."""
    left = iter(items)
    try:
        for first in left:
            result = predicate(first)
            refuse_awaitable(result)
            return ([first] if result else []) + [item for item in left if predicate(item)]
        return []
    except StopIteration as error:
        raise _stopped_on(_before(left, items), predicate) from error
    except Exception as error:
        failed_on(error, _before(left, items))
        raise


def _before(left: Iterator[Any], items: Sequence[Any]) -> Any:
    """Return the item before those that are left."""
    return items[len(items) - sum(1 for _ in left) - 1]


def _stopped_on(item: Any, fn: Callable[..., Any]) -> RuntimeError:
    error = stopped(getattr(fn, "__qualname__", type(fn).__qualname__))
    failed_on(error, item)
    return error


def traced(error: BaseException, derived: Sequence[Any], items: Sequence[Any]) -> None:
    """Where `error` arose on one of `derived`, let it have arisen on the item that this was made from."""
    failed = item_failed_on(error)
    for value, item in zip(derived, items, strict=False):
        if value is failed:
            failed_on(error, item)
            return
