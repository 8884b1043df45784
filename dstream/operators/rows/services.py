"""Services of a task: created at its first item, destroyed once, and the steps that call them."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

from dstream.base.memory import pieces
from dstream.failures import naming
from dstream.operators.rows.operations import Operation, Task, operation
from dstream.plan.operations.elementwise import ServiceFunction, UsingBatches
from dstream.plan.steps import Step

__all__ = ["TaskServices"]


class TaskServices:
    """The services of a plan in one task, or in one process: each is created once."""

    def __init__(self) -> None:
        self._made: dict[int, tuple[ServiceFunction, Step, Any]] = {}

    def get(self, served: ServiceFunction, step: Step) -> Any:
        """Return the service of a step, created on first use."""
        if served.number not in self._made:
            with naming(step):
                self._made[served.number] = served, step, served.opened().create()
        return self._made[served.number][2]

    def destroy(self) -> None:
        """Destroy all services in reverse order of creation; the first failure is raised at the end."""
        failures: list[Exception] = []
        while self._made:
            try:
                # A service is removed first, so that it is not destroyed again if its destruction fails.
                _destroy(*self._made.popitem()[1])
            except Exception as error:
                failures.append(error)
        if failures:
            raise failures[0]


def _destroy(served: ServiceFunction, step: Step, made: Any) -> None:
    destroy = served.opened().destroy
    if destroy is not None:
        with naming(step):
            destroy(made)


@operation.register
def _(node: UsingBatches) -> Operation:
    return functools.partial(_in_batches, node.served(), node.size, node.step)


def _in_batches(served: ServiceFunction, size: int, step: Step, items: Iterator[Any], task: Task) -> Iterator[Any]:
    for some in pieces(items, size):
        # Inside of the loop, since a task without items creates no service.
        results = served.bound(task.service(served, step))
        with naming(step):
            yield from results(some)
