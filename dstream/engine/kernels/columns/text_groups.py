"""Groups of rows by keys that are texts: counts and exact sums, in the order in which the keys were first seen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dstream.engine.kernels.columns import column_groups
from dstream.engine.kernels.columns.column_groups import GroupTable, Int64s, stretches_of, sums_of_groups
from dstream.engine.kernels.columns.column_texts import Texts
from dstream.engine.kernels.columns.column_values import GREATEST, LEAST, Ints, Same, Withheld, tight
from dstream.keys import stable_hashes

__all__ = ["TextGroupTable", "groups_of_texts", "merged_text_tables", "parts_by_target", "with_texts_together"]

T = TypeVar("T")

_MOST_BYTES = 4 * 2**20
"""So many bytes of keys travel at a time, about."""


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
        """Give the groups in parts of so many, in order."""
        return (self.rows(each) for each in stretches_of(len(self), most))


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

    encoded = pa.concat_arrays([table.keys.values for table in tables]).dictionary_encode()
    distinct, numbered = encoded.dictionary, encoded.indices.to_numpy()
    first = np.full(len(distinct), len(numbered), np.intp)
    first[numbered[::-1]] = np.arange(len(numbered) - 1, -1, -1)  # Of several rows the one that is written last stays.
    ranks = np.concatenate([table.ranks for table in tables])[first]
    counts = _added(numbered, len(distinct), [table.counts for table in tables])
    sums = [table.sums for table in tables if table.sums is not None]
    keys = Texts(distinct, is_ascii=all(table.keys.is_ascii for table in tables))
    return TextGroupTable(keys, counts, _added(numbered, len(distinct), sums) if sums else None, ranks)


def _added(numbered: NDArray[Any], groups: int, columns: Sequence[Int64s]) -> Int64s:
    return sums_of_groups(numbered, groups, tight(Ints(np.concatenate(columns), LEAST, GREATEST)))


def with_texts_together(tables: Iterator[T | TextGroupTable]) -> Iterator[T | TextGroupTable]:
    """Give the same in order, with neighbouring groups by texts put together as long as they take few megabytes."""
    held: list[TextGroupTable] = []
    for each in tables:
        if not isinstance(each, TextGroupTable):
            yield from _together(held)
            held = []
            yield each
            continue
        if not len(each):
            continue
        held.append(each)
        if sum(map(len, held)) > _MOST_GROUPS or sum(table.keys.nbytes() for table in held) > _MOST_HELD_BYTES:
            yield from _together(held)
            held = []
    yield from _together(held)


_MOST_GROUPS = 2**20
_MOST_HELD_BYTES = 64 * 2**20


def _together(tables: Sequence[TextGroupTable]) -> Iterator[TextGroupTable]:
    try:
        yield from (merged_text_tables(tables),) if tables else ()
    except Withheld:
        yield from tables


def parts_by_target(
    table: GroupTable | TextGroupTable, targets: int
) -> Iterator[tuple[int, GroupTable | TextGroupTable]]:
    """Give each target that equal keys meet at, with its groups."""
    if isinstance(table, GroupTable):
        return column_groups.parts_by_target(table, targets)
    return _parts_by_target(table, targets)


def _parts_by_target(table: TextGroupTable, targets: int) -> Iterator[tuple[int, TextGroupTable]]:
    places = np.array(stable_hashes(table.keys.tolist()), np.int64) % targets
    rows = max(1, _MOST_BYTES * len(table) // max(table.keys.nbytes(), 1))
    for target in range(targets):
        chosen = np.flatnonzero(places == target)
        for start in range(0, len(chosen), rows):
            yield target, table.rows(chosen[start : start + rows])
