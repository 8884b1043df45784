"""What windows of all kinds ask of their keys and their operation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dstream.spi import AggregateOperation

__all__ = ["check_keys", "signature_of"]

Keys = tuple[Callable[[Any], Any], ...]


def check_keys(keys: Keys | None, operation: AggregateOperation[Any, Any, Any]) -> None:
    """Make sure that each input of the operation has a key function, or none has.

    Raises:
        TypeError: there are more of them, or fewer.
    """
    if keys is not None and len(keys) != operation.arity:
        raise TypeError(f"{operation!r} has {operation.arity} inputs, and there are {len(keys)} key functions")


def signature_of(keys: Keys | None, operation: AggregateOperation[Any, Any, Any]) -> tuple[Any, ...]:
    """Return what of keys and operation decides what state looks like.

    Functions of the user's may change between two versions of a program, and state stays what it is. So of an operation
    only its name counts.
    """
    return keys is not None, operation.arity, repr(operation).partition("(")[0]
