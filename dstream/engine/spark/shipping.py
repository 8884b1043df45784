"""Shipping: pickling what goes to the workers, and naming what cannot go."""

from __future__ import annotations

import copyreg
import functools
import gc
import sys
from collections.abc import Iterator
from typing import Any

import cloudpickle

from dstream.engine.batches import dumps_items
from dstream.engine.spark.stage import Piece, Stage
from dstream.errors import SerializationError
from dstream.pickling import dumps
from dstream.plan.obstacles import look

__all__ = ["packed", "packed_split"]


# A key of `cmp_to_key` holds its comparator and its value, and PySpark's workers need both. It cannot say
# which is which; its referents come in the order of its fields (Python 3.11 to 3.13).
copyreg.pickle(
    type(functools.cmp_to_key(lambda left, right: 0)),
    lambda key: (functools.cmp_to_key, tuple(part for part in gc.get_referents(key) if part is not type(key))),
)


def packed(stage: Stage | Piece) -> bytes:
    """Pickle a stage, or a piece of a source with its operations.

    What its functions capture was checked when the run began (`dstream.plan.captures`).

    Raises:
        SerializationError: something else in it cannot travel.
    """
    try:
        return bytes(cloudpickle.dumps(stage, protocol=5))
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
