"""Checks of arguments at the call, with a hint at the intended argument."""

from __future__ import annotations

import functools
import operator
import re
import sys
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

from dstream.spi.collector import Collector
from dstream.spi.gatherer import Gatherer
from dstream.values.functions import refuse_async, refuse_one_that_would_not_run
from dstream.values.predicates import Field

__all__ = [
    "checked_function",
    "hint_of_a_collector",
    "hint_of_a_field",
    "hint_of_a_gatherer",
    "hinting",
    "kind_of",
    "optional_function",
    "running_function",
    "window_size",
]


F = TypeVar("F")
C = TypeVar("C", bound=Callable[..., Any])

_CLOSE = 0.82
"""The least similarity of a typing error and the intended name."""


def checked_function(value: F, name: str, *, awaits: bool = False) -> F:
    """Return `value` if it can be called, and its call gives a result.

    Args:
        value: the argument.
        name: what the message calls it.
        awaits: whether the caller awaits the results of an async function.

    Raises:
        TypeError: it cannot be called, or it is async; the message names the argument.
    """
    if not callable(value):
        raise TypeError(f"{name} must be a function, not {kind_of(value)}{hint_of_a_field(value)}")
    if not awaits:
        refuse_async(value, name)
    return value


def running_function(value: F, name: str) -> F:
    """Return `value` if it can be called, and the call runs its lines.

    Args:
        value: the argument: a predicate, an action, or a function whose result is one value.
        name: what the message calls it.

    Raises:
        TypeError: it cannot be called, is async, or yields; the message names the argument.
    """
    refuse_one_that_would_not_run(checked_function(value, name), name)
    return value


def hinting(**meant: str) -> Callable[[C], C]:
    """Add the intended arguments to the message of a call whose arguments do not fit.

    Costs one more call. What the function itself raises is left as it is.

    Args:
        meant: what to write in place of arguments that other libraries have, by their names.
    """

    def around(fn: C) -> C:
        @functools.wraps(fn)
        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                return fn(*args, **kwargs)
            except TypeError as error:
                # A second frame means that the function was entered: the error is not about its arguments.
                if error.__traceback__ is None or error.__traceback__.tb_next is not None:
                    raise
                # Python names the class before the method, as in `BaseStream.limit()`.
                words = re.sub(r"^[\w.<>]*\.(?=\w+\(\))", "", str(error))
            # Raised outside of `except`, so that Python's own message is not shown above it.
            raise TypeError(f"{words}{_hint(fn, args, kwargs, meant)}")

        return cast(C, call)

    return around


def _hint(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any], meant: Mapping[str, str]) -> str:
    import difflib  # here: only a mistake needs them
    import inspect

    names = list(inspect.signature(fn).parameters)
    for name in (each for each in kwargs if each not in names):
        if name in meant:
            return f"; write {meant[name]}"
        close = difflib.get_close_matches(name, names, n=1, cutoff=_CLOSE)
        return f"; write {close[0]}=" if close else f"; it takes {', '.join(each for each in names if each != 'self')}"
    if "args" in meant and len(args) > 1:
        return f"; write {meant['args']}"
    return ""


def kind_of(value: object) -> str:
    """Return the name of the type of `value` for a message."""
    return "None" if value is None else type(value).__name__


def hint_of_a_field(value: object) -> str:
    """Return how a function is made of the name of a field; nothing for anything else."""
    if isinstance(value, Collector):
        return "; a collector stands behind it, as in grouping_by(classifier, counting())"
    if isinstance(value, Field):
        return f"; a condition compares the field, as in {value!r} == True"
    if not isinstance(value, str):
        return ""
    return f"; operator.itemgetter({value!r}) takes that field of a dict, operator.attrgetter({value!r}) of an object"


def hint_of_a_collector(value: object) -> str:
    """Return which collector is meant by a class, or by a function of Python; nothing for anything else."""
    if isinstance(value, Gatherer):
        return "; use gather(...) for a gatherer"
    if not callable(value):
        return ""
    module = getattr(value, "__module__", None) or ""
    if module.startswith("dstream.gatherers"):
        return f"; {_name(value)} makes a gatherer, so use stream.gather({_name(value)}(...))"
    if module.startswith("dstream.collectors."):
        return f"; {_name(value)} is a function that makes one, so call it: {_name(value)}(...)"
    meant = _MEANT.get(_name(value)) if module in _OF_PYTHON else None
    return f"; the collector for {_name(value)} is {meant}" if meant else _hint_of_a_function(value)


def hint_of_a_gatherer(value: object) -> str:
    """Return a hint for a collector, or for a factory of gatherers; an empty string for anything else."""
    if isinstance(value, Collector) or (getattr(value, "__module__", None) or "").startswith("dstream.collectors."):
        return "; use collect(...) for a collector"
    if (getattr(value, "__module__", None) or "").startswith("dstream.gatherers"):
        return f"; {_name(value)} is a function that makes one, so call it: {_name(value)}(...)"
    return ""


def _hint_of_a_function(value: object) -> str:
    if isinstance(value, type) and (hasattr(value, "append") or hasattr(value, "add")):
        return f"; to_collection({_name(value)}) gathers the items in one"
    return f"; collecting_and_then(to_list(), {_name(value)}) gives a function the list of all items"


def _name(value: object) -> str:
    name: str = getattr(value, "__qualname__", type(value).__qualname__)
    return "fn" if name.endswith("<lambda>") else name.rpartition("<locals>.")[2]


_OF_PYTHON = frozenset({"builtins", "collections"})
_MEANT = {
    "Counter": "frequencies()",
    "dict": "to_map(key, value)",
    "frozenset": "to_unmodifiable_set()",
    "len": "counting()",
    "list": "to_list()",
    "max": "max_by(key)",
    "min": "min_by(key)",
    "set": "to_set()",
    "sorted": "sorting(key)",
    "str": "joining(delimiter)",
    "sum": "summing()",
    "tuple": "to_unmodifiable_list()",
}
"""What is meant by a class or function of Python where a collector is wanted."""


def optional_function(value: F, name: str) -> F:
    """Return `value` if it is None or can be called."""
    return value if value is None else checked_function(value, name)


def window_size(value: Any) -> int:
    """Return the number of items of a window; no stream has more than `sys.maxsize`.

    Raises:
        TypeError: it is no int.
        ValueError: it is less than 1.
    """
    if isinstance(value, bool) or not hasattr(type(value), "__index__"):
        raise TypeError(f"n must be an int, not {kind_of(value)}")
    number = operator.index(value)
    if number < 1:
        raise ValueError(f"n must be at least 1: {number}")
    return min(number, sys.maxsize)
