"""User functions: their text in a call, and the refusal of functions that a call would not run."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import FunctionType
from typing import Any

from dstream.values.predicates import Predicate

__all__ = ["is_async", "refuse_async", "refuse_one_that_would_not_run", "results", "shown_function"]


def shown_function(fn: Any) -> str:
    """Write a function as short as its user would: `parse`, `lambda`, `partial(parse)`, `where('age') > 40`."""
    if isinstance(fn, functools.partial):
        return f"partial({shown_function(fn.func)})"
    if isinstance(fn, Predicate):
        return _cut(repr(fn))
    name = getattr(fn, "__qualname__", None) or type(fn).__qualname__
    return "lambda" if name.endswith("<lambda>") else name.rpartition("<locals>.")[2]


def _cut(text: str) -> str:
    return text if len(text) <= _MOST else f"{text[: _MOST - 4]} ..."


_MOST = 80
"""The number of characters of a condition that are shown."""


def is_async(fn: Any) -> bool:
    """Return whether `fn` is an async function, or an object that is called like one."""
    fn = _innermost(fn)
    return inspect.iscoroutinefunction(fn) or inspect.iscoroutinefunction(type(fn).__call__)


def refuse_async(fn: Any, name: str) -> None:
    """Refuse a function whose call returns an awaitable.

    Raises:
        TypeError: `fn` is an async function, an async generator, or an object that is called like one.
    """
    if type(fn) is FunctionType and not fn.__code__.co_flags & _ASYNC and not fn.__dict__:
        return
    if is_async(fn):
        raise TypeError(
            f"{name} must give a result, and an async function gives a coroutine, which is never awaited here: "
            "gather(map_concurrent(n, fn)) calls an async function for each item and awaits the results, from which "
            "the next step takes them; anywhere else asyncio.run() awaits one inside a plain function"
        )
    plain = _innermost(fn)
    if inspect.isasyncgenfunction(plain) or inspect.isasyncgenfunction(type(plain).__call__):
        raise TypeError(
            f"{name} must give a result, and an async generator gives its items only to code that awaits them: gather "
            "them in a list in an async function, and use gather(map_concurrent(n, fn)).flatten()"
        )


def refuse_one_that_would_not_run(fn: Any, name: str) -> None:
    """Refuse a predicate or an action whose call runs none of its lines: its result is always true.

    Raises:
        TypeError: `fn` is an async function, or one that yields.
    """
    if type(fn) is FunctionType and not fn.__code__.co_flags & _RUNS_LATER and not fn.__dict__:
        return
    refuse_async(fn, name)
    if inspect.isgeneratorfunction(_innermost(fn)):
        raise TypeError(
            f"{name} must give a result, and a function that yields gives a generator, which is never run: "
            "return what it yields, or use flat_map(), which takes the items that a function yields"
        )


_ASYNC = inspect.CO_COROUTINE | inspect.CO_ITERABLE_COROUTINE | inspect.CO_ASYNC_GENERATOR
_RUNS_LATER = _ASYNC | inspect.CO_GENERATOR
"""Flags of code whose call runs none of its lines; a function may be marked so by an attribute (Python 3.12)."""


def _innermost(fn: Any) -> Any:
    """Return the function called in the end: the function inside of a partial, or of a cache of results."""
    while isinstance(fn, functools.partial | _CACHED):
        fn = fn.func if isinstance(fn, functools.partial) else fn.__wrapped__
    return fn


_CACHED = type(functools.cache(abs))


def results(fn: Callable[[Any], Any], items: list[Any]) -> list[Any]:
    """Return the results of `fn` for each item; an error can be attributed to the item.

    Example:
        >>> results(str.upper, ["a", "b"])
        ['A', 'B']
    """
    found = []
    for item in items:  # A failure finds the item by this name.
        found.append(fn(item))  # noqa: PERF401 - inside a comprehension Python 3.12 would forget the name
    return found
