"""Sinks that send items to the partition of their key."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from dstream.engine.batches import Batcher, dumps_columns
from dstream.engine.joining import Side, item_key, results
from dstream.engine.spark.rows import ITEMS, Row
from dstream.engine.spark.sinks import Router
from dstream.engine.spark.stage import StageTask
from dstream.engine.spilling import first_ones
from dstream.failures import naming
from dstream.keys import canonical_all, check_hash_seed, stable_hash, stable_hashes
from dstream.plan.steps import Step

__all__ = ["RouteFirstOnes", "RouteItems", "RouteSide"]


@dataclass(frozen=True)
class RouteItems:
    """Send each item to the target of its key."""

    key: Callable[[Any], Any] | None
    targets: int
    step: Step

    def __call__(self, items: Iterator[Any], task: StageTask) -> Iterator[Row]:
        check_hash_seed()
        with naming(self.step):
            yield from Router(self.targets, task).rows(self._placed(items))

    def _placed(self, items: Iterator[Any]) -> Iterator[tuple[int, Any]]:
        for item in items:
            yield stable_hash(item_key(self.key, item)) % self.targets, item


@dataclass(frozen=True)
class RouteSide:
    """Send the items of one side of a join to the targets of their keys, as (keys, items)."""

    side: Side
    targets: int

    def __call__(self, items: Iterator[Any], task: StageTask) -> Iterator[Row]:
        check_hash_seed()
        with naming(self.side.step):
            router = _ColumnRouter(self.targets, task)
            while chunk := list(islice(items, router.count)):
                yield from router.rows(*self.side.columns(chunk))
            yield from router.rest()


@dataclass(frozen=True)
class RouteFirstOnes:
    """Send one item of each key to the target of the key, as (keys, items); no items if they are their own keys."""

    key: Callable[[Any], Any] | None
    targets: int
    step: Step

    def __call__(self, items: Iterator[Any], task: StageTask) -> Iterator[Row]:
        check_hash_seed()
        with naming(self.step):
            router, seen = _ColumnRouter(self.targets, task, keys_only=self.key is None), set[Any]()
            while chunk := list(islice(items, router.count)):
                keys = canonical_all(chunk if self.key is None else results(self.key, chunk))
                found = first_ones(keys, chunk, seen)
                yield from router.rows(list(found), list(found.values()))
                if task.bound.exceeded():
                    seen.clear()
                    task.bound.spilled()
            yield from router.rest()


class _ColumnRouter:
    """Holds the keys and items for each target until they make a batch."""

    def __init__(self, targets: int, task: StageTask, *, keys_only: bool = False) -> None:
        self._task = task
        self._keys_only = keys_only
        self._held: list[tuple[list[Any], list[Any]]] = [([], []) for _ in range(targets)]
        self._batcher = Batcher()
        self._sequence = 0

    @property
    def count(self) -> int:
        """How many items make a batch."""
        return self._batcher.count

    def rows(self, keys: list[Any], items: list[Any]) -> Iterator[Row]:
        """Take keys and their items; give the batches that are full."""
        held, targets = self._held, len(self._held)
        for number, key, item in zip(stable_hashes(keys), keys, items, strict=True):
            target_keys, target_items = held[number % targets]
            target_keys.append(key)
            target_items.append(item)
        for target, (target_keys, _) in enumerate(held):
            if len(target_keys) >= self.count:
                yield self._row(target)

    def rest(self) -> Iterator[Row]:
        """Give the batches that are not full."""
        yield from (self._row(target) for target, (keys, _) in enumerate(self._held) if keys)

    def _row(self, target: int) -> Row:
        keys, items = self._held[target]
        self._held[target] = [], []
        data = dumps_columns(items, []) if self._keys_only else dumps_columns(keys, items)
        self._batcher.learn(len(keys), len(data))
        self._sequence += 1
        return Row(target, self._task.partition, self._sequence, ITEMS, len(keys), data)
