"""`named`: a collector knows the factory that made it, so that a message can say `grouping_by(...)`, and functions."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator
from typing import Any, TypeVar, cast

from dstream.spi import Collector

__all__ = ["named"]

F = TypeVar("F", bound=Callable[..., Collector[Any, Any, Any]])


def named(factory: F) -> F:
    """Let the collectors that `factory` makes carry its name."""

    @functools.wraps(factory)
    def make(*args: Any, **kwargs: Any) -> Collector[Any, Any, Any]:
        inside = "..." if args or kwargs else ""
        made, functions = factory(*args, **kwargs), tuple(_functions(factory, args, kwargs))
        return dataclasses.replace(made, name=f"{factory.__name__}({inside})", functions=functions)

    return cast(F, make)


def _functions(
    factory: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Give the functions that take items: those before another collector, and what that one says of its own."""
    code = cast(Any, factory).__code__
    names = (*code.co_varnames[: code.co_argcount], *[""] * len(args))
    is_behind = False  # What stands behind a collector takes its result.
    for name, value in (*zip(names, args, strict=False), *kwargs.items()):
        if isinstance(value, Collector):
            is_behind = True
            yield from value.functions
        elif callable(value) and not is_behind and name not in _MAKING:
            yield f"{factory.__name__}({name})" if name else factory.__name__, value


_MAKING = frozenset({"factory", "finish", "map_factory"})
"""Arguments that make containers or results."""
