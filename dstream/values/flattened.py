"""Results of functions: several of a function given to `flat_map`, and none that has to be awaited."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from types import AsyncGeneratorType, CoroutineType
from typing import Any, NoReturn, TypeVar, cast

__all__ = ["checked_result", "many", "refuse_awaitable", "refuse_awaitables_in"]

T = TypeVar("T")


def many(result: Any) -> Iterable[Any]:
    """Return what a function given to `flat_map` made: None as nothing, a stream so that it is closed at its end."""
    if type(result) in _COMMON:
        return cast(Iterable[Any], result)
    if result is None:
        return ()
    traverse = getattr(type(result), "_traverse_and_close", None)
    if traverse is not None:
        return cast(Iterable[Any], traverse(result))
    refuse_awaitable(result)
    if not isinstance(result, Iterable) and not hasattr(type(result), "__getitem__"):
        raise TypeError(f"flat_map() needs a function that gives an iterable or None, not {type(result).__name__}")
    return cast(Iterable[Any], result)


_COMMON = frozenset({list, tuple, str, dict, set, range})


def refuse_awaitable(result: Any) -> None:
    """Refuse a result that has to be awaited, such as a coroutine that a plain function around an async one gives.

    Raises:
        TypeError: it is an awaitable or an async generator, or a tuple that holds one.
    """
    for part in result if isinstance(result, tuple) else (result,):
        if hasattr(type(part), "__await__") or type(part) is AsyncGeneratorType:
            _refuse(part)


def refuse_awaitables_in(result: Any, levels: int = 3) -> None:
    """Refuse a result that has to be awaited, also inside of lists, dicts, tuples and sets: among their first parts.

    It takes microseconds, so that only the first results of a function are looked at.

    Raises:
        TypeError: something in it has.
    """
    refuse_awaitable(result)
    if levels and isinstance(result, tuple):
        parts: Iterable[Any] = tuple.__iter__(result)
    elif levels and type(result) in _COMMON:
        parts = result.values() if type(result) is dict else () if type(result) in (str, range) else result
    else:
        return
    for part in islice(parts, _FIRST_PARTS):
        refuse_awaitables_in(part, levels - 1)


_FIRST_PARTS = 8


def checked_result(result: T) -> T:
    """Return a result of a function, unless it has to be awaited.

    Raises:
        TypeError: it has.
    """
    refuse_awaitable(result)
    return result


def _refuse(result: Any) -> NoReturn:
    kind = type(result)
    if kind is CoroutineType:
        result.close()  # Python would warn that it was never awaited.
    advice = (
        "gather its items in a list in an async function, and use gather(map_concurrent(n, fn)).flatten()"
        if kind is AsyncGeneratorType
        else "use gather(map_concurrent(n, fn)) with the async function itself, which awaits the results"
    )
    raise TypeError(f"the function gave a result that has to be awaited ({kind.__name__}): {advice}")
