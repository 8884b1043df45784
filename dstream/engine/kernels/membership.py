"""Which items of one side have a key that the other side has: a join that gives items alone, each once.

The keys of the right side are held in a set, the left one passes by. Past the bound both go to files by the hash of
their keys, and each pair of files is looked at on its own.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from dstream.engine.kernels.hash_join import Pair, in_files, pairs_again
from dstream.engine.kernels.spilling import DEEPEST
from dstream.engine.memory_bound import Bound
from dstream.memory import pieces

__all__ = ["Membership"]

_CHUNK = 512


@dataclass(frozen=True)
class Membership:
    """What becomes of the items that pass by.

    Attributes:
        is_wanted: those go on whose keys are held; otherwise those whose keys are not.
    """

    is_wanted: bool

    def entries(self, held: Container[Any], passing: Iterable[Pair]) -> Iterator[Any]:
        """Give the items that go on, of (key, item), reading nothing ahead."""
        is_wanted = self.is_wanted
        return (item for key, item in passing if (key in held) is is_wanted)

    def joined(self, held: Iterable[Pair], passing: Iterable[Pair], bound: Bound, level: int = 0) -> Iterator[Any]:
        """Do the same with a side that may have to go to files; `passing` is first asked when all of it is there."""
        keys: set[Any] = set()
        chunks = pieces(held, _CHUNK)
        for chunk in chunks:
            keys.update(key for key, _ in chunk)
            if level < DEEPEST and bound.exceeded():
                yield from self._in_files(keys, chunks, passing, bound, level)
                return
        yield from self.entries(keys, passing)

    def _in_files(
        self, keys: set[Any], chunks: Iterator[list[Pair]], passing: Iterable[Pair], bound: Bound, level: int
    ) -> Iterator[Any]:
        held_parts = in_files(_all_pairs(keys, chunks), level)
        bound.spilled()
        for part, other in zip(held_parts, in_files(passing, level), strict=True):
            yield from self.joined(pairs_again(part), pairs_again(other), bound, level + 1)


def _all_pairs(keys: set[Any], chunks: Iterator[list[Pair]]) -> Iterator[Pair]:
    """Give the keys that are held, letting go of each, then the others."""
    while keys:
        yield keys.pop(), None
    for chunk in chunks:
        yield from chunk
