"""`RollingAggregate`: each item becomes the result of all items of its key until and with it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from dstream.operators.items_by_key import ItemsByKey, partials_by_key, rows
from dstream.operators.key_states import KeyStates
from dstream.spi import AggregateOperation, identity
from dstream.spi.state_operator import Applied, Moment, Partials, ShardState
from dstream.values import Entry
from dstream.values.event_time import Timed

__all__ = ["RollingAggregate", "result_so_far", "unshared_result"]


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

    kind: ClassVar[str] = "rolling_aggregate"
    inputs: ClassVar[int] = 1

    key: Callable[[Any], Any] | None
    operation: AggregateOperation[Any, Any, Any]
    to: Callable[[Any, Any], Any] | None = None

    @property
    def signature(self) -> tuple[Any, ...]:
        """Whether there are keys: the container is the user's own."""
        return (self.key is not None,)

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
        self._operation = operator.operation
        self._to = operator.to or (Entry if operator.key is not None else _result_alone)

    def apply(self, partials: Sequence[tuple[int, Any]], moment: Moment) -> Applied:
        return Applied(self._outputs([partial for _, partial in partials]))

    def _outputs(self, partials: list[ItemsByKey]) -> Iterator[Timed]:
        for partial in partials:
            for key, timestamp, item in rows(partial):  # A failure finds the item by this name.
                yield timestamp, self._to(key, result_so_far(self._operation, self._container(key), item))

    def _container(self, key: Any) -> list[Any]:
        if key not in self._states:
            self._states[key] = [self._operation.create()]
        self._touched[key] = None
        return self._states[key]

    def entries(self) -> Iterator[tuple[Any, Any]]:
        """Give the keys with their results so far."""
        return ((key, unshared_result(self._operation, held[0])) for key, held in self._states.items())


def _result_alone(key: Any, result: Any) -> Any:
    return result


def result_so_far(operation: AggregateOperation[Any, Any, Any], held: list[Any], item: Any) -> Any:
    """Take an item into a container, and return the result of all items until now.

    Args:
        operation: of one input.
        held: a list with the container, which the operation may replace.
        item: the next one.
    """
    following = operation.accumulates[0](held[0], item)
    if following is not None:
        held[0] = following
    return unshared_result(operation, held[0])


def unshared_result(operation: AggregateOperation[Any, Any, Any], container: Any) -> Any:
    """Return a result that shares nothing with its container, which goes on to change.

    A finisher may hand out the container, or parts of it, such as the list in the tuple that `all_of(to_list(), ...)`
    makes. What a list or a set only gathers are items, which nobody changes.
    """
    result = operation.finish(container)
    if operation.finish is identity and operation.accumulates[0] in (list.append, set.add):
        return copy.copy(result)
    return copy.deepcopy(result)
