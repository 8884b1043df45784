"""Batches: how items travel, a few hundred kilobytes of pickled items at a time."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import cloudpickle

from dstream.errors import SerializationError
from dstream.failures import shown

__all__ = ["Batch", "Batcher", "dumps", "dumps_items", "loads"]

TARGET_BYTES = 256 * 1024
_FIRST_COUNT = 64
_LARGEST_COUNT = 16_384
_GROWTH = 4

loads = pickle.loads


def dumps(value: Any) -> bytes:
    """Pickle `value`, by value where it holds a class or function that only this process knows."""
    try:
        data = pickle.dumps(value, protocol=5)
    except (pickle.PicklingError, AttributeError, TypeError):
        data = cloudpickle.dumps(value, protocol=5)
    else:
        if b"__main__" in data:
            data = cloudpickle.dumps(value, protocol=5)
    return bytes(data)


def dumps_items(items: list[Any]) -> bytes:
    """Pickle a list of items.

    Raises:
        SerializationError: one of them cannot be pickled; the message names it.
    """
    try:
        return dumps(items)
    except Exception as error:
        for item in items:
            _check(item)
        raise SerializationError(f"these items cannot be pickled together: {error}") from error


def _check(item: Any) -> None:
    try:
        dumps(item)
    except Exception as error:
        raise SerializationError(
            f"an item cannot travel between processes: {type(item).__name__} {shown(item)} cannot be pickled: {error}"
        ) from error


@dataclass(frozen=True)
class Batch:
    """A pickled batch as a split of its own."""

    data: bytes

    def read(self) -> Iterator[Any]:
        """Give the items."""
        return iter(loads(self.data))


class Batcher:
    """Cuts items into pickled batches of about 256 KB, learning how large the items are."""

    def __init__(self) -> None:
        self.count = _FIRST_COUNT

    def batches(self, items: Iterable[Any]) -> Iterator[tuple[int, bytes]]:
        """Give (number of items, pickled list) for `items`, reading no further than the batch at hand."""
        items = iter(items)
        while batch := list(islice(items, self.count)):
            data = dumps_items(batch)
            self.learn(len(batch), len(data))
            yield len(batch), data

    def learn(self, count: int, size: int) -> None:
        """Aim the next batch at the target size."""
        fitting = max(1, count * TARGET_BYTES // max(size, 1))
        self.count = min(fitting, self.count * _GROWTH, _LARGEST_COUNT)
