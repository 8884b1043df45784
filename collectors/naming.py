"""`named`: a collector knows the factory that made it, so that a message can say `grouping_by(...)`."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

from dstream.spi import Collector

__all__ = ["named"]

F = TypeVar("F", bound=Callable[..., Collector[Any, Any, Any]])


def named(factory: F) -> F:
    """Let the collectors that `factory` makes carry its name."""

    @functools.wraps(factory)
    def make(*args: Any, **kwargs: Any) -> Collector[Any, Any, Any]:
        inside = "..." if args or kwargs else ""
        return dataclasses.replace(factory(*args, **kwargs), name=f"{factory.__name__}({inside})")

    return cast(F, make)
