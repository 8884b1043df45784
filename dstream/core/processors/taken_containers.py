"""Operations whose items are containers that another processor has filled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dstream.spi import AggregateOperation, identity

__all__ = ["of_containers", "to_containers"]

Operation = AggregateOperation[Any, Any, Any]


def to_containers(operation: Operation, name: str) -> Operation:
    """Return what fills the containers of an operation, and gives them as they are.

    Raises:
        TypeError: they could not be combined afterwards; the message names the function of the library.
    """
    _check(operation, name)
    return operation.with_finish(identity).called(repr(operation))


def of_containers(operation: Operation, container_of: Callable[[Any], Any], name: str) -> Operation:
    """Return what combines the containers of an operation, and finishes them.

    Args:
        operation: has filled the containers.
        container_of: gives the container that is in an item.
        name: of the function of the library, for messages.

    Raises:
        TypeError: they cannot be combined.
    """
    takes = _Taking(_check(operation, name), container_of)
    made: Operation = AggregateOperation(
        operation.create, takes, operation.combine, operation.deduct, finish=operation.finish
    )
    return made.called(repr(operation))


def _check(operation: Operation, name: str) -> Callable[[Any, Any], Any]:
    if operation.combine is None:
        raise TypeError(f"{name}: {operation!r} has no combine, so two stages cannot share its work")
    return operation.combine


@dataclass(frozen=True, slots=True)
class _Taking:
    """Takes the container in an item into another one."""

    combine: Callable[[Any, Any], Any]
    container_of: Callable[[Any], Any]

    def __call__(self, container: Any, item: Any) -> Any:
        return self.combine(container, self.container_of(item))
