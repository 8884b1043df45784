"""Hash join, cogroup and semi-join of two sides, as pairs of canonical key and item.

A join builds a dict from the items of one side by key, and probes it with the items of the other side. Past the bound
both are written to files by the hash of their keys, and each pair of files is joined on its own. The items of one hot
key, which no hash divides, are read in blocks, and the probe side is read once for each block.

A semi-join builds a set of the keys of the right side, and probes it with the left side; past the bound as above.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from dataclasses import replace
from itertools import chain
from typing import Any

from dstream.base.memory import Bound, pieces
from dstream.base.records import record
from dstream.keys import canonical
from dstream.operators.rows.spill import DEEPEST, FAN_OUT, Run, distribute, merged, mixed
from dstream.values import Entry
from dstream.values.entries import as_entry

__all__ = ["Index", "Matching", "Membership", "Pair", "cogrouped", "in_files", "index_of", "matched", "pairs_again"]


_CHUNK = 512

Pair = tuple[Any, Any]
Index = dict[Any, list[Pair]]


@record(slots=False)
class Matching:
    """The output of both sides of a join.

    Attributes:
        holds_left: whether the left side is the build side.
        keeps_held: whether items of the build side without a match are emitted.
        keeps_passing: whether items of the probe side without a match are emitted.
    """

    holds_left: bool
    keeps_held: bool
    keeps_passing: bool

    @staticmethod
    def of(how: str, holds_left: bool) -> Matching:
        """Return the output of `how` if the left, or the right side is the build side."""
        keeps_left, keeps_right = how in ("left", "full"), how in ("right", "full")
        return Matching(holds_left, *((keeps_left, keeps_right) if holds_left else (keeps_right, keeps_left)))

    def entries(
        self, index: Index, passing: Iterable[Pair], matched_before: Iterable[Any] = ()
    ) -> Iterator[Entry[Any, Any]]:
        """Return the entries of all probe items, then the entries of the build items in `index` without a match."""
        matches = self._with_held_left if self.holds_left else self._with_held_right
        if not self.keeps_held:
            return matches(index, passing)
        found = set(matched_before)
        # `chain` requests the unmatched items last, after all probe items: only then `found` is complete.
        return chain(matches(index, _noted(passing, index, found)), self._unmatched(index, found))

    def joined(self, held: Iterable[Pair], passing: Iterable[Pair], bound: Bound) -> Iterator[Entry[Any, Any]]:
        """Return the entries of two sides, which may spill to files; `passing` is read after all of `held`."""
        return matched(held, passing, self, bound)

    def _with_held_right(self, index: Index, passing: Iterable[Pair]) -> Iterator[Any]:
        find, others = index.get, _NO_PARTNER if self.keeps_passing else ()
        for key, left in passing:
            for _, right in find(key, others):
                yield as_entry((key, (left, right)))

    def _with_held_left(self, index: Index, passing: Iterable[Pair]) -> Iterator[Any]:
        find, keeps_passing = index.get, self.keeps_passing
        for key, right in passing:
            lefts = find(key)
            if lefts is not None:
                # The entry has the key of the left item: 1, 1.0 and True are equal keys of different types.
                for own_key, left in lefts:
                    yield as_entry((own_key, (left, right)))
            elif keeps_passing:
                yield as_entry((key, (None, right)))

    def _unmatched(self, index: Index, found: set[Any]) -> Iterator[Any]:
        for key, pairs in index.items():
            if key not in found:
                for own_key, item in pairs:
                    yield as_entry((own_key, (item, None) if self.holds_left else (None, item)))


_NO_PARTNER = ((None, None),)


def _noted(passing: Iterable[Pair], index: Index, found: set[Any]) -> Iterator[Pair]:
    """Yield the pairs, and add each key that is in `index` to `found`."""
    for pair in passing:
        if pair[0] in index:
            found.add(pair[0])
        yield pair


def index_of(held: Iterable[Pair]) -> Index:
    """Return the pairs of each key, in order."""
    index: Index = {}
    _add(held, index)
    return index


def _add(pairs: Iterable[Pair], index: Index) -> None:
    for pair in pairs:
        key = pair[0]
        if key in index:
            index[key].append(pair)
        else:
            index[key] = [pair]


def matched(
    held: Iterable[Pair], passing: Iterable[Pair], matching: Matching, bound: Bound, level: int = 0
) -> Iterator[Entry[Any, Any]]:
    """Join two sides; `passing` is read after all of `held`."""
    index = Index()
    chunks = pieces(held, _CHUNK)
    for chunk in chunks:
        _add(chunk, index)
        if bound.exceeded():
            # Neither a single key nor keys that share a hash at the deepest level can be divided.
            join = _in_blocks if level == DEEPEST or len(index) == 1 else _in_parts
            yield from join(index, chunks, passing, matching, bound, level)
            return
    yield from matching.entries(index, passing)


def _in_parts(
    index: Index, held: Iterator[list[Pair]], passing: Iterable[Pair], matching: Matching, bound: Bound, level: int
) -> Iterator[Entry[Any, Any]]:
    """Write both sides to files by the hash of the key, and join each pair of files."""
    held_parts = in_files(chain(_drained(index), chain.from_iterable(held)), level)
    bound.spilled()
    for part, other in zip(held_parts, in_files(passing, level), strict=True):
        yield from matched(pairs_again(part), pairs_again(other), matching, bound, level + 1)


def in_files(pairs: Iterable[Pair], level: int) -> list[Run]:
    """Put pairs into files by the hash of their keys; each level takes other bits of it."""
    parts = [Run() for _ in range(FAN_OUT)]
    distribute(pairs, lambda pair: mixed(hash(pair[0]), level), parts)
    return parts


def pairs_again(read: Iterable[Pair]) -> Iterator[Pair]:
    """Yield pairs that were read from a file, with keys that are canonical in this process."""
    for key, item in read:
        yield canonical(key), item


def _drained(index: Index) -> Iterator[Pair]:
    """Yield the pairs and free each key after its pairs: their consumer needs memory, too."""
    for key in list(index):
        yield from index.pop(key)
    index.clear()


def _in_blocks(
    index: Index, held: Iterator[list[Pair]], passing: Iterable[Pair], matching: Matching, bound: Bound, level: int
) -> Iterator[Entry[Any, Any]]:
    """Read the probe side once for each block of the build side, and once more for rows without a match."""
    kept, keys = Run(passing), set[Any]()
    in_block = replace(matching, keeps_passing=False)
    while index:
        keys.update(index)
        yield from in_block.entries(index, pairs_again(kept.kept()))
        index.clear()
        bound.spilled()
        while not bound.exceeded() and (chunk := next(held, None)):
            _add(chunk, index)
        # At least one chunk, also where no memory was freed: otherwise the loop would not advance.
        if not index:
            _add(next(held, ()), index)
    if matching.keeps_passing:
        rest = (pair for pair in pairs_again(kept) if pair[0] not in keys)
        yield from replace(matching, keeps_held=False).entries({}, rest)


def cogrouped(lefts: Iterable[Pair], rights: Iterable[Pair], bound: Bound) -> Iterator[Entry[Any, Any]]:
    """Yield each key with the lists of its items on both sides, in order."""
    batches = chain(_grouped(lefts, is_left=True), _grouped(rights, is_left=False))
    yield from map(as_entry, merged(batches, _extended, bound))


def _grouped(pairs: Iterable[Pair], is_left: bool) -> Iterator[tuple[list[Any], list[Any]]]:
    """Yield (keys, containers) of chunks of pairs, with each key once a chunk."""
    for chunk in pieces(pairs, _CHUNK):
        groups: dict[Any, list[Any]] = {}
        for key, item in chunk:
            if key in groups:
                groups[key].append(item)
            else:
                groups[key] = [item]
        yield list(groups), [(items, []) if is_left else ([], items) for items in groups.values()]


def _extended(left: Any, right: Any) -> Any:
    left[0].extend(right[0])
    left[1].extend(right[1])
    return left


@record(slots=False)
class Membership:
    """The output of a semi-join or an anti-join for the items of the probe side.

    Attributes:
        is_wanted: whether items with a match are emitted; otherwise items without a match are.
    """

    is_wanted: bool

    def entries(self, held: Container[Any], passing: Iterable[Pair]) -> Iterator[Any]:
        """Return the emitted items of (key, item), reading nothing ahead."""
        is_wanted = self.is_wanted
        return (item for key, item in passing if (key in held) is is_wanted)

    def joined(self, held: Iterable[Pair], passing: Iterable[Pair], bound: Bound, level: int = 0) -> Iterator[Any]:
        """Yield the emitted items, with keys that may spill to files; `passing` is read after all of `held`."""
        keys: set[Any] = set()
        chunks = pieces(held, _CHUNK)
        for chunk in chunks:
            keys.update(key for key, _ in chunk)
            # As in `matched`, the deepest level ignores the bound.
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
    """Yield the keys in memory, freeing each, then the others."""
    while keys:
        yield keys.pop(), None
    for chunk in chunks:
        yield from chunk
