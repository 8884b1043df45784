"""`Ports`: how what `peek` steps see and guards note on workers comes to the caller's process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from dstream.engine.kernels.guards import Action
from dstream.engine.kernels.item_batches import loads
from dstream.engine.worker.rows import Row
from dstream.failures import blame
from dstream.plan.steps import Step
from dstream.values.flattened import refuse_awaitable

__all__ = ["Ports"]

_NONE: Mapping[int, int] = MappingProxyType({})


class Ports:
    """What to call in this process for each channel beside the items."""

    def __init__(self, actions: Mapping[int, Action]) -> None:
        self._actions = dict(actions)

    def add(self, actions: Mapping[int, Action]) -> None:
        """Take further channels."""
        self._actions.update(actions)

    def __bool__(self) -> bool:
        """Say whether anything comes beside items."""
        return bool(self._actions)

    def deliver(
        self, beside: Iterable[Row], before: Mapping[int, int] = _NONE, counted: dict[int, int] | None = None
    ) -> None:
        """Run the actions on what came beside the items of a job.

        Args:
            beside: the rows of their channels, channel by channel, in encounter order.
            before: how many items the action of each channel has seen in an earlier run of the same job.
            counted: takes how many it has seen now.
        """
        seen = {} if counted is None else counted
        for row in beside:
            step, action = self._actions[row.channel]
            for item in loads(row.payload):
                number = seen.get(row.channel, 0)
                seen[row.channel] = number + 1
                if number >= before.get(row.channel, 0):
                    _act(step, action, item)


def _act(step: Step, action: Callable[[Any], object], item: Any) -> None:
    try:
        if (result := action(item)) is not None:
            refuse_awaitable(result)
    except Exception as error:
        blame(error, step, item)
        raise
