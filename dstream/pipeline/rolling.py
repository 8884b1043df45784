"""Rolling aggregates: the state of one is a container, and what it gives never changes later."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

from dstream.spi import AggregateOperation, identity
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

    def __call__(self, state: list[Any], item: Any) -> Any:
        """Return the result of all items until and with `item`."""
        return _so_far(self.operation, state, item)


@dataclass(frozen=True, slots=True)
class ResultSoFarOfKey:
    """The same of the items of one key, as an entry."""

    operation: AggregateOperation[Any, Any, Any]

    def __call__(self, state: list[Any], key: Any, item: Any) -> Entry[Any, Any]:
        """Return the key with the result of its items until and with `item`."""
        return Entry(key, _so_far(self.operation, state, item))


def _so_far(operation: AggregateOperation[Any, Any, Any], state: list[Any], item: Any) -> Any:
    following = operation.accumulates[0](state[0], item)
    if following is not None:
        state[0] = following
    return _apart(operation.finish(state[0]), operation)


def _apart(result: Any, operation: AggregateOperation[Any, Any, Any]) -> Any:
    """Return a result that shares nothing with the container, which goes on to change.

    A finisher may hand out the container, or parts of it, such as the list in the tuple that `all_of(to_list(), ...)`
    makes. What a list or a set only gathers are items, which nobody changes.
    """
    if operation.finish is identity and operation.accumulates[0] in (list.append, set.add):
        return copy.copy(result)
    return copy.deepcopy(result)
