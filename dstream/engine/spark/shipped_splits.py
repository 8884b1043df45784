"""Shipping: pickling what goes to the workers, and naming what cannot go."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from dstream.by_value import dumps_by_value
from dstream.engine.kernels.item_batches import dumps_items
from dstream.engine.worker.stage import Piece, Stage
from dstream.errors import SerializationError
from dstream.pickling import dumps
from dstream.plan.obstacles import look

__all__ = ["packed", "packed_split"]


def packed(stage: Stage | Piece) -> bytes:
    """Pickle a stage, or a piece of a source with its operations.

    What its functions capture was checked when the run began (`dstream.plan.capture_checks`).

    Raises:
        SerializationError: something else in it cannot travel.
    """
    try:
        return dumps_by_value(stage)
    except Exception as error:
        raise SerializationError(f"this pipeline cannot be sent to the workers: {error}") from error


def packed_split(split: Any, step: Any) -> bytes:
    """Pickle a split of a source.

    Raises:
        SerializationError: it holds what cannot travel; the message names the item or the variable.
    """
    try:
        return dumps(split)
    except Exception as error:
        for part in _parts(split):
            if isinstance(part, list | tuple):
                dumps_items(list(part))
            for found in look(part, {}, sys.maxsize) if callable(part) else ():
                raise SerializationError(f"{step} cannot be sent to the workers: {found}") from error
        raise SerializationError(f"{step} cannot be sent to the workers: {error}") from error


def _parts(split: Any) -> Iterator[Any]:
    """Give the attributes of a split."""
    yield from getattr(split, "__dict__", {}).values()
    yield from (getattr(split, name, None) for name in getattr(type(split), "__slots__", ()))
