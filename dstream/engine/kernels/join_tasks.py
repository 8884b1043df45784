"""Two sides of a join in one task: one travelled there, or both met there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, TypeVar

from dstream.engine.kernels.core_operations import Task
from dstream.engine.kernels.hash_join import Matching, cogrouped, index_of
from dstream.engine.kernels.item_batches import loads
from dstream.engine.kernels.membership import Membership
from dstream.failures import naming
from dstream.keys import canonical_all
from dstream.plan.steps import Step

__all__ = ["cogroup_batches", "join_batches", "join_with", "pairs_of_batches", "two_sides"]

P = TypeVar("P")

Batches = Iterator[tuple[int, tuple[list[Any], list[Any]]]]
"""(target, (keys, items)); those of the side that comes second have the targets behind those of the first."""


def join_with(
    payloads: Sequence[bytes],
    matching: Matching | Membership,
    step: Step,
    pairs_of: Callable[[Iterator[Any]], Iterator[Any]],
    items: Iterator[Any],
    task: Task,
) -> Iterator[Any]:
    """Join the items of one side, as they pass, with the whole of the other one."""
    with naming(step):
        held = index_of(pairs_of_batches((0, loads(payload)) for payload in payloads))
        yield from matching.entries(held, pairs_of(items))


def join_batches(
    matching: Matching | Membership, step: Step, targets: int, batches: Batches, task: Task
) -> Iterator[Any]:
    """Join the two sides that met in one partition, the one that is held first."""
    with naming(step):
        held, passing = two_sides(targets, batches)
        yield from matching.joined(pairs_of_batches(held), pairs_of_batches(passing), task.bound)


def cogroup_batches(step: Step, targets: int, batches: Batches, task: Task) -> Iterator[Any]:
    """Group the two sides that met in one partition, the left one first."""
    with naming(step):
        lefts, rights = two_sides(targets, batches)
        yield from cogrouped(pairs_of_batches(lefts), pairs_of_batches(rights), task.bound)


def two_sides(
    targets: int, batches: Iterator[tuple[int, P]]
) -> tuple[Iterator[tuple[int, P]], Iterator[tuple[int, P]]]:
    """Return the batches of the side that comes first, and those of the other one, asked for afterwards.

    `more_itertools.before_and_after` (11.2) does the same with `tee`, which keeps all of the second side in memory as
    long as somebody has the first iterator.
    """
    behind: list[tuple[int, P]] = []

    def first() -> Iterator[tuple[int, P]]:
        for batch in batches:
            if batch[0] >= targets:
                behind.append(batch)
                return
            yield batch

    def second() -> Iterator[tuple[int, P]]:
        while behind:
            yield behind.pop()
        yield from batches

    return first(), second()


def pairs_of_batches(batches: Iterable[tuple[int, tuple[list[Any], list[Any]]]]) -> Iterator[tuple[Any, Any]]:
    """Give (key, item), with keys that are canonical in this process."""
    return chain.from_iterable(zip(canonical_all(keys), items, strict=True) for _, (keys, items) in batches)
