"""Groups of rows by integers or strings: exact counts and sums as tables that merge."""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, Self, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from dstream.base.memory import Bound
from dstream.base.records import record
from dstream.keys import stable_hashes
from dstream.keys.hashing import SPREADERS
from dstream.operators.columns.float_sums import FloatSums, float_sums_of_groups, merged_float_sums
from dstream.operators.columns.strings import Strings, array_of_ints, numbers_of_array
from dstream.operators.columns.values import GREATEST, LEAST, ConstantColumn, Floats, Ints, NotColumnar, tight

__all__ = [
    "GroupTable",
    "Places",
    "StringGroupTable",
    "counted_texts",
    "grouped",
    "groups_of_texts",
    "merged_groups",
    "merged_tables",
    "merged_text_tables",
    "numbered",
    "parts_by_bucket",
    "parts_by_target",
    "places_of",
    "stable_hashes_of_ints",
    "stretches_of",
    "sum_of_ints",
    "sums_of_groups",
    "with_texts_together",
]


Int64s = NDArray[np.int64]
Sums: TypeAlias = Int64s | FloatSums
"""A sum for each group: of ints, or of floats, which are not rounded."""

_FEW_KEYS = 65_536
_EXACT = 2**53
_MOST_GROUPS = 131_072
"""The number of groups, of 32 bytes each, that are sent at a time."""
_COST = 160
"""Bytes that a row takes while tables are merged: places in a table of hashes, and columns side by side."""
_COST_OF_SUM = 32
"""Bytes that a row takes for each further sum."""
_HASH_MODULUS = sys.hash_info.modulus
_FIRST, _SECOND, _FIFTH = map(np.uint64, (11400714785074694791, 14029467366897019727, 2870177450012600261))
"""The primes by which CPython mixes the hashes of the parts of a tuple, as xxHash does (3.8 to 3.14)."""
_ROUNDS = [np.uint64(number * int(_SECOND) % 2**64) for number in SPREADERS]
# CPython ends the hash of a tuple by adding its length, mixed with these numbers.
_TUPLE_OF_3 = np.uint64(3 ^ int(_FIFTH) ^ 3527539)
_INSTEAD_OF_MINUS_ONE = 1546275796


@record
class _Groups:
    """Groups, in the order in which their keys were first seen.

    Attributes:
        keys: each of them once.
        counts: how many items they have.
        sums: of the numbers of their items, an array for each number that is added up; none where they only count.
        ranks: the order in which the keys of several tables were first seen.
    """

    keys: Any
    counts: Int64s
    sums: tuple[Sums, ...]
    ranks: Int64s

    def __len__(self) -> int:
        return len(self.counts)

    def lines(self) -> Iterator[tuple[Any, ...]]:
        """Return (key, count, *sums) of each group."""
        columns: tuple[Any, ...] = (self.keys, self.counts, *self.sums)
        return zip(*(column.tolist() for column in columns), strict=True)

    def ranked(self, first: int) -> Self:
        """Return the groups with these ranks: `first` and those that follow."""
        return replace(self, ranks=np.arange(first, first + len(self), dtype=np.int64))

    def rows(self, chosen: NDArray[Any]) -> Self:
        """Return some of the groups."""
        sums = tuple(each[chosen] for each in self.sums)
        return type(self)(self._keys_at(chosen), self.counts[chosen], sums, self.ranks[chosen])

    def parts(self, most: int) -> Iterator[Self]:
        """Return the groups in parts of `most`, or fewer with long keys, in order."""
        most = min(most, self.rows_of_part())
        return iter((self,)) if len(self) <= most else (self.rows(each) for each in stretches_of(len(self), most))

    def _cost_of_sums(self) -> int:
        """Return how many bytes the sums of a group take behind the first one."""
        arrays = sum(len(each.digits) if isinstance(each, FloatSums) else 1 for each in self.sums)
        return _COST_OF_SUM * max(arrays - 1, 0)

    @abstractmethod
    def rows_of_part(self) -> int:
        """Return how many groups have few megabytes."""

    @abstractmethod
    def _keys_at(self, places: NDArray[Any]) -> Any:
        """Return some of the keys."""


class GroupTable(_Groups):
    """Groups by integers."""

    __slots__ = ()
    keys: Int64s

    def key_bytes(self) -> int:
        """Return how many bytes the keys have."""
        return int(self.keys.nbytes)

    def cost(self) -> int:
        """Return how many bytes it takes to put the groups together with others, beside those that they have."""
        return (_COST + self._cost_of_sums()) * len(self)

    def rows_of_part(self) -> int:
        return _MOST_GROUPS

    def hashes(self) -> Int64s:
        """Return the `stable_hash` of each key."""
        return stable_hashes_of_ints(self.keys)

    def _keys_at(self, places: NDArray[Any]) -> Any:
        return self.keys[places]


def stretches_of(count: int, most: int) -> Iterator[NDArray[np.intp]]:
    """Return the places from 0 to `count`, `most` at a time."""
    return (np.arange(start, min(start + most, count)) for start in range(0, count, most))


def grouped(keys: Ints, *numbers: Ints | Floats) -> GroupTable:
    """Group rows; the ranks are those in this table.

    Args:
        keys: of the rows.
        numbers: columns of these, each added up for itself, of floats those that `are_added_exactly`; none if the rows
            are only counted.

    Raises:
        NotColumnar: a sum may need more than 64 bits.
    """
    places = places_of(tight(keys))
    sums = tuple(_sums(places.numbers, places.width, each)[places.order] for each in numbers)
    ranks = np.arange(len(places.firsts), dtype=np.int64)
    return GroupTable(keys.values[places.firsts], places.counts(), sums, ranks)


@record
class Places:
    """The group of each row.

    Attributes:
        numbers: a number for each row.
        width: all of them are below it.
        firsts: the first row of each group, in order.
        order: the number of each group.
    """

    numbers: NDArray[np.intp]
    width: int
    firsts: NDArray[np.intp]
    order: NDArray[np.intp]

    def counts(self) -> Int64s:
        """Return how many rows each group has."""
        return np.bincount(self.numbers, minlength=self.width)[self.order].astype(np.int64, copy=False)


def places_of(keys: Ints) -> Places:
    """Return the group of each row, one for each key."""
    numbers, first = numbered(keys)
    order = np.flatnonzero(first < len(numbers))
    order = order[np.argsort(first[order], kind="stable")]
    return Places(numbers, len(first), first[order], order)


def numbered(keys: Ints) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return a number for the key of each row, and the first row of each number, or the number of rows if it has none.

    The keys themselves are the numbers where they lie close together, otherwise a hash table makes them.
    """
    rows, width = len(keys.values), keys.greatest - keys.least + 1
    if width <= max(2 * rows, _FEW_KEYS):
        numbers: Any = keys.values - keys.least
    else:
        numbers = numbers_of_array(array_of_ints(keys.values).dictionary_encode().indices)
        width = int(numbers.max()) + 1
    first: NDArray[np.intp] = np.full(width, rows, np.intp)
    first[numbers[::-1]] = np.arange(rows - 1, -1, -1)  # Of several rows the one that is written last stays: the first.
    return numbers, first


def _sums(places: NDArray[Any], width: int, numbers: Ints | Floats) -> Sums:
    if isinstance(numbers, Floats):
        return float_sums_of_groups(places, width, numbers)
    return sums_of_groups(places, width, numbers)


def sums_of_groups(places: NDArray[Any], width: int, numbers: Ints) -> Int64s:
    """Add up in floats as long as each partial sum is one exactly, then in ints of 64 bits.

    Args:
        places: the number of the group of each row.
        width: all of them are below it.
        numbers: of the rows.

    Raises:
        NotColumnar: a sum may need more than 64 bits.
    """
    most = max(-numbers.least, numbers.greatest, 0) * len(numbers.values)
    if most <= _EXACT:
        return np.bincount(places, weights=numbers.values, minlength=width).astype(np.int64)
    if most > GREATEST:
        raise NotColumnar("sums that may need more than 64 bits")
    found = np.zeros(width, np.int64)
    np.add.at(found, places, numbers.values)
    return found


def merged_tables(tables: Sequence[GroupTable]) -> GroupTable:
    """Return the groups of several tables, in the order of their first ranks where the tables come in that order.

    Raises:
        NotColumnar: a sum may need more than 64 bits.
    """
    keys = np.concatenate([table.keys for table in tables])
    places = places_of(tight(Ints(keys, LEAST, GREATEST)))
    ranks = np.concatenate([table.ranks for table in tables])[places.firsts]
    counts, *sums = (each[places.order] for each in _merged_sums(tables, places.numbers, places.width))
    return GroupTable(keys[places.firsts], counts, tuple(sums), ranks)


def _merged_sums(
    tables: Sequence[GroupTable] | Sequence[StringGroupTable], places: NDArray[Any], width: int
) -> Iterator[Any]:
    """Yield the counts of the merged groups, then each of their sums.

    Raises:
        NotColumnar: a sum may need more than 64 bits, or ints and floats are added up.
    """
    for columns in zip(*((table.counts, *table.sums) for table in tables), strict=True):
        are_floats = [isinstance(each, FloatSums) for each in columns]
        if all(are_floats):
            yield merged_float_sums(cast("Sequence[FloatSums]", columns), places, width)
        elif any(are_floats):
            raise NotColumnar("sums of ints, and of floats")
        else:
            yield sums_of_groups(places, width, tight(Ints(np.concatenate(columns), LEAST, GREATEST)))


def sum_of_ints(column: Ints) -> int:
    """Return the sum of ints, of any size."""
    rows = len(column.values)
    if column.least * rows >= LEAST and column.greatest * rows <= GREATEST:
        return int(column.values.sum())
    # The sums of the upper and of the lower halves fit into 64 bits.
    return (int((column.values >> 32).sum()) << 32) + int((column.values & 0xFFFF_FFFF).sum())


def stable_hashes_of_ints(keys: Int64s) -> Int64s:
    """Return `dstream.keys.stable_hash` of each int."""
    total = _hashes_of_ints(keys).view(np.uint64)
    total *= _SECOND
    total += _FIFTH
    _end_round(total)
    for number in _ROUNDS:
        total += number
        _end_round(total)
    total += _TUPLE_OF_3
    found: Int64s = total.view(np.int64)
    # CPython keeps -1 for errors: a tuple whose hash would be -1 has this one.
    found[found == -1] = _INSTEAD_OF_MINUS_ONE
    return found


def _end_round(total: NDArray[np.uint64]) -> None:
    """Mix sums in place as CPython's hash of a tuple does after each part."""
    upper = total >> np.uint64(33)
    total <<= np.uint64(31)
    total |= upper
    total *= _FIRST


def _hashes_of_ints(keys: Int64s) -> Int64s:
    """Return `hash` of each int."""
    # The absolute value of the least int wraps; as an unsigned one it is right.
    absolute = np.abs(keys).astype(np.uint64) % np.uint64(_HASH_MODULUS)
    hashes = np.where(keys < 0, -absolute.astype(np.int64), absolute.astype(np.int64))
    # For the same reason `hash(-1)` is -2.
    hashes[hashes == -1] = -2
    return hashes


T = TypeVar("T")

_MOST_BYTES = 4 * 2**20
"""About the number of bytes of keys that are sent, or become objects, at a time."""
_COST_OF_STRING = 128
"""Bytes that a row takes while tables are merged, beside twice those of its key: places in a table of hashes, most of
all (pyarrow 26)."""


class StringGroupTable(_Groups):
    """Groups by strings."""

    __slots__ = ()
    keys: Strings

    def key_bytes(self) -> int:
        """Return how many bytes the keys have, about."""
        return self.keys.nbytes()

    def cost(self) -> int:
        """Return how many bytes it takes to put the groups together with others, beside those that they have."""
        return 2 * self.keys.nbytes() + (_COST_OF_STRING + self._cost_of_sums()) * len(self)

    def rows_of_part(self) -> int:
        return max(1, _MOST_BYTES * len(self) // max(self.keys.nbytes(), 1))

    def hashes(self) -> Int64s:
        """Return the `stable_hash` of each key."""
        parts = (stable_hashes(part.keys.tolist()) for part in self.parts(len(self)))
        return np.fromiter(chain.from_iterable(parts), np.int64, len(self))

    def _keys_at(self, places: NDArray[Any]) -> Any:
        return self.keys.taken(places)


def groups_of_texts(keys: Strings, *numbers: Ints | Floats | ConstantColumn) -> StringGroupTable:
    """Group rows; the ranks are those in this table.

    Args:
        keys: of the rows.
        numbers: columns of these, each added up for itself, of floats those that `are_added_exactly`, or one number
            that all rows have; none if the rows are only counted.

    Raises:
        NotColumnar: a sum may need more than 64 bits.
    """
    # Counting needs no number for each row, as different sums do.
    if all(isinstance(each, ConstantColumn) for each in numbers):
        found = keys.values.value_counts()
        counts, distinct = numbers_of_array(found.field("counts")), found.field("values")
        places: Any = None
    else:
        encoded = keys.values.dictionary_encode()
        distinct, places = encoded.dictionary, numbers_of_array(encoded.indices)
        counts = np.bincount(places, minlength=len(distinct))
    sums = tuple(
        counts * np.int64(each.value) if isinstance(each, ConstantColumn) else _sums(places, len(distinct), each)
        for each in numbers
    )
    ranks = np.arange(len(distinct), dtype=np.int64)
    return StringGroupTable(Strings(distinct, is_ascii=keys.is_ascii), counts, sums, ranks)


def counted_texts(columns: Sequence[Strings]) -> StringGroupTable:
    """Count the rows of each text in several columns; the ranks are those in this table."""
    import pyarrow as pa

    found = pa.chunked_array([each.values for each in columns], pa.string()).value_counts()
    counts, distinct = numbers_of_array(found.field("counts")), found.field("values")
    keys = Strings(distinct, is_ascii=all(each.is_ascii for each in columns))
    return StringGroupTable(keys, counts, (), np.arange(len(distinct), dtype=np.int64))


def merged_text_tables(tables: Sequence[StringGroupTable]) -> StringGroupTable:
    """Return the groups of several tables, in the order of their first ranks where the tables come in that order.

    Raises:
        NotColumnar: a sum may need more than 64 bits.
    """
    if len(tables) == 1:
        return tables[0]
    import pyarrow as pa

    # In chunks, since all keys in one array would be there twice; each chunk has the keys of all (pyarrow 26).
    chunks = pa.chunked_array([table.keys.values for table in tables], pa.string()).dictionary_encode().chunks
    distinct = chunks[0].dictionary
    numbered = np.concatenate([numbers_of_array(chunk.indices) for chunk in chunks])
    first = np.full(len(distinct), len(numbered), np.intp)
    first[numbered[::-1]] = np.arange(len(numbered) - 1, -1, -1)  # Of several rows the one that is written last stays.
    ranks = np.concatenate([table.ranks for table in tables])[first]
    counts, *sums = _merged_sums(tables, numbered, len(distinct))
    keys = Strings(distinct, is_ascii=all(table.keys.is_ascii for table in tables))
    return StringGroupTable(keys, counts, tuple(sums), ranks)


def merged_groups(tables: Sequence[GroupTable | StringGroupTable]) -> GroupTable | StringGroupTable:
    """Return the groups of several tables, of which all have ints as keys, or all have strings.

    Raises:
        NotColumnar: a sum may need more than 64 bits, or the keys are of several types.
    """
    ints = [table for table in tables if isinstance(table, GroupTable)]
    texts = [table for table in tables if isinstance(table, StringGroupTable)]
    if len(ints) == len(tables):
        return merged_tables(ints)
    if len(texts) < len(tables):
        raise NotColumnar("keys of several types")
    return merged_text_tables(texts)


def with_texts_together(tables: Iterator[T | StringGroupTable], bound: Bound) -> Iterator[T | StringGroupTable]:
    """Yield the tables in order, with neighbouring groups by strings merged as long as they take few megabytes.

    And as long as the process has room for that.
    """
    held: list[StringGroupTable] = []
    groups = size = costs = 0
    for each in tables:
        if not isinstance(each, StringGroupTable):
            yield from _merged_strings(held)
            groups = size = costs = 0
            yield each
            continue
        if not len(each):
            continue
        held.append(each)
        groups, size, costs = groups + len(each), size + each.key_bytes(), costs + each.cost()
        is_exceeded = bound.exceeded(costs)
        if is_exceeded or groups > _MOST_STRING_GROUPS or size > _MOST_HELD_BYTES:
            # The variable would hold the last table beside the merged one.
            del each
            yield from _merged_strings(held)
            groups = size = costs = 0
            if is_exceeded:
                bound.spilled()
    yield from _merged_strings(held)


_MOST_STRING_GROUPS = 2**20
_MOST_HELD_BYTES = 64 * 2**20


def _merged_strings(held: list[StringGroupTable]) -> Iterator[StringGroupTable]:
    """Put together all tables of a list, and leave none of them."""
    try:
        found = [merged_text_tables(held)] if held else []
    except NotColumnar:
        found = list(held)
    held.clear()
    return iter(found)


def parts_by_target(
    table: GroupTable | StringGroupTable, targets: int
) -> Iterator[tuple[int, GroupTable | StringGroupTable]]:
    """Return each target that equal keys meet at, with its groups."""
    return _parts_at(table, table.hashes() % targets, targets)


def parts_by_bucket(
    table: GroupTable | StringGroupTable, buckets: int, level: int
) -> Iterator[tuple[int, GroupTable | StringGroupTable]]:
    """Return each bucket of at most 16, with its groups: by other bits of the hashes at each level."""
    # The upper bits of a product depend on all bits of a hash, those of one target agree in their remainder.
    mixed = table.hashes().view(np.uint64) * _MIXER >> np.uint64(60 - 4 * level)
    return _parts_at(table, mixed % np.uint64(buckets), buckets)


_MIXER = np.uint64(0x9E3779B97F4A7C15)


def _parts_at(
    table: GroupTable | StringGroupTable, places: NDArray[Any], count: int
) -> Iterator[tuple[int, GroupTable | StringGroupTable]]:
    rows = table.rows_of_part()
    for place in range(count):
        chosen = np.flatnonzero(places == place)
        for start in range(0, len(chosen), rows):
            yield place, table.rows(chosen[start : start + rows])
