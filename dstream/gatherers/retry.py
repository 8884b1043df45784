"""`Retry`: how often a call that failed is made again, and when."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

__all__ = ["Retry", "checked_retry"]


@dataclass(frozen=True)
class Retry:
    """How often a call that failed is made again, and when: after `delay`, `delay * factor`, ... seconds.

    Attributes:
        times: how often at most, after the first call.
        delay: seconds before the first of them.
        factor: by how much longer the next one waits.
        on: an exception class or a tuple of them; a call that fails with another one is not repeated.

    Example:
        >>> from dstream.gatherers import Retry
        >>> list(Retry(3, delay=0.5).delays())
        [0.5, 1.0, 2.0]
    """

    times: int
    delay: float = 0.1
    factor: float = 2.0
    on: type[Exception] | tuple[type[Exception], ...] = Exception

    def __post_init__(self) -> None:
        _check_times(self.times, "times")
        _check_number(self.delay, "delay", 0)
        _check_number(self.factor, "factor", 1)
        kinds: tuple[Any, ...] = self.on if isinstance(self.on, tuple) else (self.on,)
        if not kinds or not all(isinstance(kind, type) and issubclass(kind, Exception) for kind in kinds):
            raise TypeError("on must be a class of exceptions below Exception, or a tuple of such")

    def delays(self) -> Iterator[float]:
        """Give the seconds to wait before each repetition."""
        delay = self.delay
        for _ in range(self.times):
            yield delay
            delay *= self.factor


def checked_retry(value: Any) -> Retry:
    """Return what `retry=` was given as a `Retry`.

    Raises:
        TypeError: it is neither an int nor a `Retry`.
        ValueError: it is negative.
    """
    return value if isinstance(value, Retry) else Retry(_check_times(value, "retry"))


def _check_times(value: Any, name: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name} must be an int{' or a Retry' if name == 'retry' else ''}, not {type(value).__name__}")
    if value < 0:
        raise ValueError(f"{name} must not be negative: {value}")
    return value


def _check_number(value: Any, name: str, least: int) -> None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise TypeError(f"{name} must be a number, not {type(value).__name__}")
    if not least <= value < math.inf:
        raise ValueError(f"{name} must be a number from {least}, not {value}")
