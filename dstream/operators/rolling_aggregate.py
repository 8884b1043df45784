"""`RollingAggregate`: each item becomes the result of all items of its key until and with it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dstream import pickling as pickling  # Read-only mappings can be copied once it is loaded.
from dstream.operators.items_by_key import ItemsByKey, partials_by_key, rows
from dstream.operators.key_states import KeyStates
from dstream.spi import AggregateOperation, identity
from dstream.spi.state_operator import Applied, Moment, Partials, ShardState
from dstream.values import Entry
from dstream.values.event_time import Timed

__all__ = ["RollingAggregate", "RunningResult"]


@dataclass(frozen=True, slots=True)
class RollingAggregate:
    """Gives the result so far for each item, with the timestamp of the item.

    Items pass in the order of (epoch, partition of the source, offset), and so do results within each key. What was
    given never changes later: a result that shares anything with the container is copied. Timestamps may be None;
    none is late.

    Attributes:
        key: gives the key of an item; None: one result for all items, in one shard.
        operation: of one input.
        to: makes of (key, result) what is given; None: an entry of both, and without a key the result alone.
    """

    kind = "rolling_aggregate"
    inputs = 1

    key: Callable[[Any], Any] | None
    operation: AggregateOperation[Any, Any, Any]
    to: Callable[[Any, Any], Any] | None = None

    @property
    def signature(self) -> tuple[Any, ...]:
        """Whether there are keys, and the name of the operation: functions that it was given may change."""
        return self.key is not None, repr(self.operation).partition("(")[0]

    def partial(self, number: int, items: Iterator[Timed], moment: Moment, shards: int) -> Partials:
        """Send the items, in order, to the shards of their keys."""
        return partials_by_key(self.key, items, shards)

    def new(self) -> ShardState:
        """Return the state of a shard without a container."""
        return _Containers(self)


class _Containers(KeyStates[list[Any]]):
    """The state of a key is a list with its container, since an operation may put another one in its place."""

    def __init__(self, operator: RollingAggregate) -> None:
        super().__init__()
        self._create, self._result = operator.operation.create, RunningResult(operator.operation)
        self._to = operator.to or (Entry if operator.key is not None else _result_alone)

    def apply(self, partials: Sequence[tuple[int, Any]], moment: Moment) -> Applied:
        return Applied(self._outputs([partial for _, partial in partials]))

    def _outputs(self, partials: list[ItemsByKey]) -> Iterator[Timed]:
        self._begin(partials)
        for partial in partials:
            for key, timestamp, item in rows(partial):  # A failure finds the item by this name, next to the call.
                if key not in self._states:
                    self._put(key, [self._create()])
                self._touched[key] = None
                yield timestamp, self._to(key, self._result.after(self._states[key], item))

    def entries(self) -> Iterator[tuple[Any, Any]]:
        """Give the keys with their results so far."""
        return ((key, self._result.of(held)) for key, held in self._states.items())


def _result_alone(key: Any, result: Any) -> Any:
    return result


class RunningResult:
    """Takes items into a container of an operation, and gives results that share nothing with it.

    A finisher may hand out the container, or parts of it, such as the list in the tuple that `all_of(to_list(), ...)`
    makes. What a list or a set only gathers are items, which nobody changes.

    Args:
        operation: of one input.
    """

    def __init__(self, operation: AggregateOperation[Any, Any, Any]) -> None:
        self._accumulate, self._finish = operation.accumulates[0], operation.finish
        only_gathers = self._finish is identity and self._accumulate in (list.append, set.add)
        self._copied: Callable[[Any], Any] = copy.copy if only_gathers else copy.deepcopy

    def after(self, held: list[Any], item: Any) -> Any:
        """Take an item into the container in a list, which may get another one; return the result of all until now."""
        following = self._accumulate(held[0], item)
        if following is not None:
            held[0] = following
        result = self._finish(held[0])
        return result if type(result) in _NEVER_CHANGE else self._copied(result)

    def of(self, held: list[Any]) -> Any:
        """Return the result of the container in a list."""
        return self._copied(self._finish(held[0]))


_NEVER_CHANGE = frozenset({int, float, str, bytes, bool, type(None)})
