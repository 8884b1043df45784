"""Rolling aggregates: the state of one is a container, and what it gives never changes later."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from dstream.operators.rolling_aggregate import RunningResult
from dstream.spi import AggregateOperation
from dstream.values import Entry

__all__ = ["EmptyContainer", "ResultSoFar", "ResultSoFarOfKey"]


@dataclass(frozen=True, slots=True)
class EmptyContainer:
    """Makes the state: a list with one container, since an operation may put another one in its place."""

    operation: AggregateOperation[Any, Any, Any]

    def __call__(self) -> list[Any]:
        """Return the state before the first item."""
        return [self.operation.create()]


@dataclass(frozen=True, slots=True)
class ResultSoFar:
    """Takes an item into the container, and gives the result of all items until now."""

    operation: AggregateOperation[Any, Any, Any]
    running: RunningResult = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "running", RunningResult(self.operation))

    def __call__(self, state: list[Any], item: Any) -> Any:
        """Return the result of all items until and with `item`."""
        return self.running.after(state, item)


@dataclass(frozen=True, slots=True)
class ResultSoFarOfKey:
    """The same of the items of one key, as an entry."""

    operation: AggregateOperation[Any, Any, Any]
    running: RunningResult = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "running", RunningResult(self.operation))

    def __call__(self, state: list[Any], key: Any, item: Any) -> Entry[Any, Any]:
        """Return the key with the result of its items until and with `item`."""
        return Entry(key, self.running.after(state, item))
