"""How items are divided: cuts that the same seed makes again."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dstream.testing.parts import Parts

__all__ = ["Partitioning", "partitionings"]

_MOST_SINGLE = 16


@dataclass(frozen=True)
class Partitioning:
    """One way to divide items.

    Attributes:
        count: how many partitions it has.
        order: the positions of the items in the order in which they stand; shuffled if they have none.
        cuts: before which of these the cuts are.
    """

    count: int
    order: Sequence[int]
    cuts: Sequence[int]

    def of(self, items: Sequence[Any], like: Parts[Any]) -> Parts[Any]:
        """Return a source of the items, divided so; in all else it is like another one."""
        cut = Parts.cut([items[position] for position in self.order], *self.cuts)
        return Parts(
            *cut.parts, ordered=like.ordered, in_caller=like.in_caller, raising=like.raising, pausing=like.pausing
        )


def partitionings(size: int, ordered: bool, counts: Iterable[int], seed: object) -> Iterator[Partitioning]:
    """Give the ways to divide `size` items: those with `counts` partitions, and one item in each.

    The one with most partitions has empty ones at the front, in the middle and at the end.
    """
    wanted = list(counts)
    for count in wanted:
        chance = random.Random(f"{seed}/{count}")
        order = list(range(size))
        if not ordered:
            chance.shuffle(order)
        yield Partitioning(count, order, _cuts(size, count, chance, with_empty=count == max(wanted)))
    if 0 < size <= _MOST_SINGLE and size not in wanted:
        yield Partitioning(size, range(size), range(1, size))


def _cuts(size: int, count: int, chance: random.Random, with_empty: bool) -> list[int]:
    """Choose where to cut; a cut that comes twice makes an empty partition."""
    needed = count - 1
    fixed: list[int] = []
    if with_empty and needed >= 4:
        middle = chance.randint(0, size)
        fixed = [0, middle, middle, size]
    return sorted([*fixed, *(chance.randint(0, size) for _ in range(needed - len(fixed)))])
