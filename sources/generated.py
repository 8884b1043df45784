"""Items that a function makes, as many as are asked for.

Nothing here imports `dstream`, so that `dstream` can import this module while it loads.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from sources.memory import NamesOfStreams

__all__ = ["Generate", "GenerateSplit", "Iterate", "IterateSplit"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Iterate(NamesOfStreams, Generic[T]):
    """`seed`, `next(seed)`, `next(next(seed))`, ... while `has_next` holds.

    `next` is never called for an item that nobody asked for. With `has_next` the source counts as
    bounded; as in Java it is still infinite if `has_next` never fails.

    **Parallelism**: one split, since each item needs the one before it.
    **Guarantee**: ordered; every item once.
    **On re-run**: made again from `seed`, so `next` must not change its argument.

    Raises:
        TypeError: `next` or `has_next` is not callable.

    Example:
        >>> [split] = Iterate(1, lambda n: n * 2, lambda n: n < 20).splits(8)
        >>> list(split.read())
        [1, 2, 4, 8, 16]
    """

    seed: T
    next: Callable[[T], T]
    has_next: Callable[[T], bool] | None = None

    ordered = True
    in_caller = False

    def __post_init__(self) -> None:
        _require_callable(self.next, "next")
        if self.has_next is not None:
            _require_callable(self.has_next, "has_next")

    @property
    def bounded(self) -> bool:
        """Whether something can end the items."""
        return self.has_next is not None

    def count_splits(self, parallelism: int) -> int:
        """Say that there is one split."""
        return 1

    def splits(self, parallelism: int) -> list[IterateSplit[T]]:
        """Give the one split that makes all items."""
        return [IterateSplit(self.seed, self.next, self.has_next)]

    def count_items(self) -> float:
        """Say that nobody knows."""
        return math.inf

    def replay(self, item: T) -> T | None:
        """Run the functions on one item, as the split does; None if it is the last one."""
        return self.next(item) if self.has_next is None or self.has_next(item) else None

    def __repr__(self) -> str:
        functions = (self.has_next, self.next) if self.has_next else (self.next,)
        from dstream.spi.functions import shown_function  # here: see the docstring of this module

        return f"Iterate({reprlib.repr(self.seed)}, {', '.join(map(shown_function, functions))})"


@dataclass(frozen=True, slots=True, eq=False)
class IterateSplit(Generic[T]):
    """The one split of `Iterate`."""

    seed: T
    next: Callable[[T], T]
    has_next: Callable[[T], bool] | None

    def read(self) -> Iterator[T]:
        """Make the items, each when it is asked for."""
        from dstream.values.flattened import refuse_awaitable  # here: see the docstring of this module

        item = self.seed
        is_first = True
        while self.has_next is None or self.has_next(item):
            yield item
            item = self.next(item)
            if is_first:
                refuse_awaitable(item)
                is_first = False


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Generate(NamesOfStreams, Generic[T]):
    """What `supplier()` returns, again and again, without end and without order.

    **Parallelism**: as many splits as keep every core busy; each calls `supplier` on its own.
    **Guarantee**: none about which call lands where.
    **On re-run**: `supplier` is called again, so the items may differ.

    Raises:
        TypeError: `supplier` is not callable.

    Example:
        >>> first, second = Generate(lambda: "tick").splits(2)
        >>> next(first.read())
        'tick'
    """

    supplier: Callable[[], T]

    ordered = False
    bounded = False
    in_caller = False

    def __post_init__(self) -> None:
        _require_callable(self.supplier, "supplier")

    def count_splits(self, parallelism: int) -> int:
        """Say that there is a split for each task."""
        return max(1, parallelism)

    def count_items(self) -> float:
        """Say that there is no end."""
        return math.inf

    def splits(self, parallelism: int) -> list[GenerateSplit[T]]:
        """Give one endless split for each task."""
        return [GenerateSplit(self.supplier)] * max(1, parallelism)

    def __repr__(self) -> str:
        from dstream.spi.functions import shown_function

        return f"Generate({shown_function(self.supplier)})"


@dataclass(frozen=True, slots=True, eq=False)
class GenerateSplit(Generic[T]):
    """One of the equal splits of `Generate`."""

    supplier: Callable[[], T]

    def read(self) -> Iterator[T]:
        """Call the supplier once for each item that is asked for."""
        from dstream.values.flattened import refuse_awaitable  # here: see the docstring of this module

        refuse_awaitable(first := self.supplier())
        yield first
        while True:  # A C iterator would take a StopIteration of the supplier for the end.
            yield self.supplier()


def _require_callable(value: object, name: str) -> None:
    if not callable(value):
        raise TypeError(f"{name} must be a function, not {type(value).__name__}")
