"""Checks of the arguments of factories, and the names of collectors in messages."""

from __future__ import annotations

import dataclasses
import functools
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar, cast

from dstream.arguments import checked_function, hint_of_a_collector, running_function
from dstream.spi import AggregateOperation, Collector, Sink

__all__ = [
    "OfItems",
    "checked_choice",
    "checked_collector",
    "checked_count",
    "checked_function",
    "checked_map_factory",
    "checked_places",
    "checked_predicate",
    "checked_text",
    "made_by",
    "named",
    "shown",
]


F = TypeVar("F", bound=Callable[..., Any])

_SHOWN = 200


def checked_predicate(value: F) -> F:
    """Return `value` if it can be called and then runs.

    Raises:
        TypeError: it cannot be called, is async, or yields.
    """
    return running_function(value, "predicate")


def checked_collector(value: Any, name: str = "downstream") -> Any:
    """Return `value` if it is a `Collector`, or as one if it is an aggregate operation of one input.

    Raises:
        TypeError: it is not; a reducer, a factory that was not called, and several inputs are distinguished.
    """
    if isinstance(value, AggregateOperation):
        return value.as_collector()
    if isinstance(value, Sink):
        raise TypeError(
            f"{name}: a reducer is not a collector and cannot be downstream; "
            f"{type(value).__name__} ends a stream, use it in stream.collect(...)"
        )
    raise TypeError(f"{name} must be a Collector, not {type(value).__name__}{hint_of_a_collector(value)}")


def checked_map_factory(value: F) -> F:
    """Return `value` if it can be called and is no class of anything but mappings.

    Raises:
        TypeError: it cannot be called, or its result is no mapping.
    """
    kind: object = checked_function(value, "map_factory")
    if isinstance(kind, type) and not _takes_keys(kind):
        raise TypeError(f"map_factory must make an empty mapping, as dict does, not a {kind.__name__}")
    return value


def made_by(map_factory: Callable[[], Any]) -> Any:
    """Return the mapping that a `map_factory` makes.

    Raises:
        TypeError: it made something else.
    """
    made = map_factory()
    if not _takes_keys(type(made)):
        raise TypeError(f"map_factory must make an empty mapping, as dict does, but it gave {shown(made)}")
    return made


def _takes_keys(kind: type) -> bool:
    return hasattr(kind, "__setitem__") and not issubclass(kind, Sequence)


def checked_count(value: int, name: str) -> int:
    """Return `value` if it is an int of 0 or more.

    Raises:
        TypeError: it is not an int.
        ValueError: it is negative.
    """
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an int, not {type(value).__name__}") from None
    if isinstance(value, bool):
        raise TypeError(f"{name} must be an int, not bool")
    if number < 0:
        raise ValueError(f"{name} must not be negative, but is {number}")
    return number


def checked_choice(value: bool, name: str) -> bool:
    """Return `value` if it is True or False.

    Raises:
        TypeError: it is neither.
    """
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, not {type(value).__name__}")
    return value


def checked_places(values: Iterable[float], most: int, name: str) -> list[float]:
    """Return numbers from 0 to `most` as floats.

    Raises:
        TypeError: `values` is no iterable, or a value is no number.
        ValueError: a value is out of range.
    """
    if not isinstance(values, Iterable):
        raise TypeError(f"{name} must be an iterable of numbers, not {type(values).__name__}")
    return [_checked_place(value, most, name) for value in values]


def _checked_place(value: float, most: int, name: str) -> float:
    if isinstance(value, bool) or not hasattr(type(value), "__float__"):
        raise TypeError(f"{name} must hold numbers, not {shown(value)}")
    if not 0 <= value <= most:
        raise ValueError(f"{name} must lie between 0 and {most}, but one is {value!r}")
    return float(value)


def checked_text(value: str, name: str) -> str:
    """Return `value` if it is a string.

    Raises:
        TypeError: it is not; the message names the argument.
    """
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a str, not {type(value).__name__}")
    return value


def shown(item: object) -> str:
    """Return how `item` reads in a message, cut at 200 characters."""
    text = repr(item)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."


Factory = TypeVar("Factory", bound=Callable[..., Collector[Any, Any, Any]])


def named(factory: Factory) -> Factory:
    """Name the collectors that `factory` makes after it."""

    @functools.wraps(factory)
    def make(*args: Any, **kwargs: Any) -> Collector[Any, Any, Any]:
        inside = "..." if args or kwargs else ""
        made, functions = factory(*args, **kwargs), tuple(_functions(factory, args, kwargs))
        return dataclasses.replace(made, name=f"{factory.__name__}({inside})", functions=functions)

    return cast(Factory, make)


def _functions(
    factory: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield the functions of items: the arguments before another collector, and the functions that it reports."""
    code = cast(Any, factory).__code__
    # Arguments beyond the parameters belong to `*args`, which has one name for all.
    names = (*code.co_varnames[: code.co_argcount], *[""] * len(args))
    is_behind = False  # The argument after a collector receives its result.
    for name, value in (*zip(names, args, strict=False), *kwargs.items()):
        if isinstance(value, Collector):
            is_behind = True
            yield from value.functions
        elif callable(value) and not is_behind and name not in _MAKING:
            yield f"{factory.__name__}({name})" if name else factory.__name__, value


_MAKING = frozenset({"factory", "finish", "map_factory"})
"""Arguments that make containers or results."""


class OfItems:
    """Marker type for the containers of collectors of any items, for type checkers only.

    `to_list()` accepts any item. In `mapping(fn, ...)` mypy infers its item type before it has looked into `fn`, as
    `Collector[Never, OfItems, list[Never]]`. From that type `mapping` infers that the result is a list of the results
    of `fn`. `quantiles`, whose lists contain floats for any item, has another type.
    """
