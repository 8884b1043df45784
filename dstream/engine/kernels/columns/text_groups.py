"""Groups of rows by keys that are texts: counts and exact sums, in the order in which the keys were first seen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dstream.engine.kernels.columns.column_groups import GroupTable, Int64s, stretches_of, sums_of_groups
from dstream.engine.kernels.columns.column_texts import Texts
from dstream.engine.kernels.columns.column_values import GREATEST, LEAST, Ints, Same, Withheld, tight
from dstream.engine.memory_bound import Bound
from dstream.keys import stable_hashes

__all__ = [
    "TextGroupTable",
    "groups_of_texts",
    "merged_text_tables",
    "parts_by_bucket",
    "parts_by_target",
    "with_texts_together",
]

T = TypeVar("T")

_MOST_BYTES = 4 * 2**20
"""So many bytes of keys travel, or become objects, at a time, about."""
_COST = 128
"""What a row takes while tables are put together, beside twice the bytes of its key: places in a table of hashes, most
of all (pyarrow 26)."""


@dataclass(frozen=True, slots=True)
class TextGroupTable:
    """Groups, as in a `GroupTable`.

    Attributes:
        keys: each of them once.
        counts: how many items they have.
        sums: of the numbers of their items; None where these only count.
        ranks: which say in what order the keys of several tables were first seen.
    """

    keys: Texts
    counts: Int64s
    sums: Int64s | None
    ranks: Int64s

    def __len__(self) -> int:
        return len(self.counts)

    def key_bytes(self) -> int:
        """Return how many bytes the keys have, about."""
        return self.keys.nbytes()

    def cost(self) -> int:
        """Return how many bytes it takes to put the groups together with others, beside those that they have."""
        return 2 * self.keys.nbytes() + _COST * len(self)

    def lines(self) -> Iterator[tuple[Any, ...]]:
        """Give (key, count) or (key, count, sum) of each group."""
        columns = (self.counts,) if self.sums is None else (self.counts, self.sums)
        return zip(self.keys.tolist(), *(column.tolist() for column in columns), strict=True)

    def ranked(self, first: int) -> TextGroupTable:
        """Return the groups with these ranks: `first` and those that follow."""
        ranks = np.arange(first, first + len(self), dtype=np.int64)
        return TextGroupTable(self.keys, self.counts, self.sums, ranks)

    def rows(self, chosen: NDArray[Any]) -> TextGroupTable:
        """Return some of the groups."""
        sums = None if self.sums is None else self.sums[chosen]
        return TextGroupTable(self.keys.taken(chosen), self.counts[chosen], sums, self.ranks[chosen])

    def parts(self, most: int) -> Iterator[TextGroupTable]:
        """Give the groups in parts of so many, or fewer with long keys, in order."""
        most = min(most, self.rows_of_part())
        return iter((self,)) if len(self) <= most else (self.rows(each) for each in stretches_of(len(self), most))

    def rows_of_part(self) -> int:
        """Return how many groups have few megabytes of keys."""
        return max(1, _MOST_BYTES * len(self) // max(self.keys.nbytes(), 1))

    def hashes(self) -> Int64s:
        """Return the `stable_hash` of each key."""
        parts = (stable_hashes(part.keys.tolist()) for part in self.parts(len(self)))
        return np.fromiter(chain.from_iterable(parts), np.int64, len(self))


def groups_of_texts(keys: Texts, numbers: Ints | Same | None) -> TextGroupTable:
    """Group rows; the ranks are those in this table.

    Args:
        keys: of the rows.
        numbers: that are added up, or the one number that each row has; None if the rows are only counted.

    Raises:
        Withheld: a sum may need more than 64 bits.
    """
    if not isinstance(numbers, Ints):
        found = keys.values.value_counts()
        counts, distinct = found.field("counts").to_numpy(), found.field("values")
        sums = None if numbers is None else counts * np.int64(numbers.value)
    else:
        encoded = keys.values.dictionary_encode()
        distinct, numbered = encoded.dictionary, encoded.indices.to_numpy()
        counts = np.bincount(numbered, minlength=len(distinct))
        sums = sums_of_groups(numbered, len(distinct), numbers)
    ranks = np.arange(len(distinct), dtype=np.int64)
    return TextGroupTable(Texts(distinct, is_ascii=keys.is_ascii), counts, sums, ranks)


def merged_text_tables(tables: Sequence[TextGroupTable]) -> TextGroupTable:
    """Return the groups of several tables, in the order of their first ranks where the tables come in that order.

    Raises:
        Withheld: a sum may need more than 64 bits.
    """
    if len(tables) == 1:
        return tables[0]
    import pyarrow as pa

    # In chunks, since all keys in one array would be there twice; each chunk knows the keys of all (pyarrow 26).
    chunks = pa.chunked_array([table.keys.values for table in tables], pa.string()).dictionary_encode().chunks
    distinct = chunks[0].dictionary
    numbered = np.concatenate([chunk.indices.to_numpy() for chunk in chunks])
    first = np.full(len(distinct), len(numbered), np.intp)
    first[numbered[::-1]] = np.arange(len(numbered) - 1, -1, -1)  # Of several rows the one that is written last stays.
    ranks = np.concatenate([table.ranks for table in tables])[first]
    counts = _added(numbered, len(distinct), [table.counts for table in tables])
    sums = [table.sums for table in tables if table.sums is not None]
    keys = Texts(distinct, is_ascii=all(table.keys.is_ascii for table in tables))
    return TextGroupTable(keys, counts, _added(numbered, len(distinct), sums) if sums else None, ranks)


def _added(numbered: NDArray[Any], groups: int, columns: Sequence[Int64s]) -> Int64s:
    return sums_of_groups(numbered, groups, tight(Ints(np.concatenate(columns), LEAST, GREATEST)))


def with_texts_together(tables: Iterator[T | TextGroupTable], bound: Bound) -> Iterator[T | TextGroupTable]:
    """Give the same in order, with neighbouring groups by texts put together as long as they take few megabytes.

    And as long as the process has room for that.
    """
    held: list[TextGroupTable] = []
    groups = size = costs = 0
    for each in tables:
        if not isinstance(each, TextGroupTable):
            yield from _together(held)
            groups = size = costs = 0
            yield each
            continue
        if not len(each):
            continue
        held.append(each)
        groups, size, costs = groups + len(each), size + each.key_bytes(), costs + each.cost()
        is_exceeded = bound.exceeded(costs)
        if is_exceeded or groups > _MOST_GROUPS or size > _MOST_HELD_BYTES:
            del each
            yield from _together(held)
            groups = size = costs = 0
            if is_exceeded:
                bound.spilled()
    yield from _together(held)


_MOST_GROUPS = 2**20
_MOST_HELD_BYTES = 64 * 2**20


def _together(held: list[TextGroupTable]) -> Iterator[TextGroupTable]:
    """Put together all tables of a list, and leave none of them."""
    try:
        found = [merged_text_tables(held)] if held else []
    except Withheld:
        found = list(held)
    held.clear()
    return iter(found)


def parts_by_target(
    table: GroupTable | TextGroupTable, targets: int
) -> Iterator[tuple[int, GroupTable | TextGroupTable]]:
    """Give each target that equal keys meet at, with its groups."""
    return _parts_at(table, table.hashes() % targets, targets)


def parts_by_bucket(
    table: GroupTable | TextGroupTable, buckets: int, level: int
) -> Iterator[tuple[int, GroupTable | TextGroupTable]]:
    """Give each bucket of at most 16, with its groups: by other bits of the hashes at each level."""
    # The upper bits of a product depend on all bits of a hash, those of one target agree in their remainder.
    mixed = table.hashes().view(np.uint64) * _MIXER >> np.uint64(60 - 4 * level)
    return _parts_at(table, mixed % np.uint64(buckets), buckets)


_MIXER = np.uint64(0x9E3779B97F4A7C15)


def _parts_at(
    table: GroupTable | TextGroupTable, places: NDArray[Any], count: int
) -> Iterator[tuple[int, GroupTable | TextGroupTable]]:
    rows = table.rows_of_part()
    for place in range(count):
        chosen = np.flatnonzero(places == place)
        for start in range(0, len(chosen), rows):
            yield place, table.rows(chosen[start : start + rows])
