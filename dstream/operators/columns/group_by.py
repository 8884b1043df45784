"""Groups of rows by any columns, and the reduction of their values by an operator of Python.

Rows of one group are made neighbours first, in order. Of ints their container gets counts, sums and ends, of floats
that are added up an exact sum, and of others the floats as they are.

Ints give the same in any order, floats that an operator of Python adds do not: `0.1 + 1 + 2` has other digits than
`0.1 + 3`. So each key has one container for tables and items that come by turns, as it would without columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, pairwise
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from dstream.base.memory import Bound, pieces
from dstream.base.records import record
from dstream.keys import canonical_all
from dstream.operators.columns.encoded import Encoded
from dstream.operators.columns.float_sums import are_added_exactly, float_sums_of_groups
from dstream.operators.columns.group_numbers import (
    Found,
    FoundFloats,
    FoundLists,
    FoundNumbers,
    FoundOfParts,
    FoundWithin,
    taken,
)
from dstream.operators.columns.groups import (
    GroupTable,
    StringGroupTable,
    counted_texts,
    merged_groups,
    places_of,
    sums_of_groups,
)
from dstream.operators.columns.strings import Strings, array_of_ints, numbers_of_array
from dstream.operators.columns.values import (
    GREATEST,
    LEAST,
    Bools,
    Column,
    ConstantColumn,
    Floats,
    Ints,
    NotColumnar,
    Tuples,
    bytes_of_texts,
    has_objects,
    items_of,
    rows_at,
    shape_of,
    size_of_column,
    stacked,
    tight,
)
from dstream.operators.rows.blocks import Block, given
from dstream.spi import Collector, InColumns

__all__ = [
    "FoldedGroups",
    "GroupedRows",
    "RowBuffer",
    "RowGroups",
    "Table",
    "TextBuffer",
    "Values",
    "folded",
    "found_in_groups",
    "greatest_of",
    "groups_of_rows",
]


Int64s = NDArray[np.int64]
Values: TypeAlias = tuple[Column, ...]
"""Columns of which collectors make containers, one after another, as `found_in_groups` takes them."""

_MOST_WEIGHT = 2**18
"""The number of rows that are grouped at once, or fewer of long strings."""
_WEIGHT_OF_OBJECTS = 8
"""Objects of Python take several times as much memory as a number or a short string."""
_FEWEST_ROWS = 3
"""With fewer rows for each group, on average, it costs less to take one item after another."""
_COST = 160
"""Bytes that a group takes in a dictionary, about."""

_MANY_ROWS = 16
"""With fewer rows for each group, on average, a list of their numbers costs less than what adds them up."""


@record
class RowGroups:
    """Groups, in the order in which their keys were first seen.

    Attributes:
        keys: each of them once, as a dictionary has them.
        found: what the collector of a key takes.
        rows: how many there are in all groups.
    """

    keys: list[Any]
    found: Found
    rows: int

    def __len__(self) -> int:
        return len(self.keys)

    def cost(self) -> int:
        """Return how many bytes it takes to put the groups into a dictionary, about."""
        return _COST * len(self)

    @property
    def are_many(self) -> bool:
        """Return whether the groups are so numerous that their items cost less one by one."""
        return len(self.keys) * _FEWEST_ROWS > self.rows

    def taken(self, known: InColumns, supplier: Callable[[], Any], groups: dict[Any, Any]) -> dict[Any, Any]:
        """Take the groups into those that are there; return these."""
        containers = [groups[key] if key in groups else supplier() for key in self.keys]
        # `Counter.update` would add up the counts.
        dict.update(groups, zip(self.keys, taken(known, containers, self.found), strict=True))
        return groups


class RowBuffer:
    """Keys and numbers of rows, until they are grouped together.

    Args:
        known: what becomes of the numbers of a key.
    """

    def __init__(self, known: InColumns) -> None:
        self._known = known
        self._held: list[tuple[Column, Values]] = []
        self._shape: Any = None
        self._weight = self._most = 0

    def take(self, keys: Column, values: Values, shape: Any) -> Iterator[RowGroups]:
        """Take the rows of a block; give the groups of those before them, if they cannot be grouped together."""
        shape = (shape, *(shape_of(each, are_keys=False) for each in values))
        rows, are_large = size_of_column(keys), any(map(has_objects, values))
        weight = rows * (_WEIGHT_OF_OBJECTS if are_large else 1) + sum(map(bytes_of_texts, (keys, *values))) // 64
        most = greatest_of(values)
        total = self._weight + weight
        if shape != self._shape or total > _MOST_WEIGHT or max(self._most, most) * total > GREATEST:
            yield from self.rest()
        self._shape, self._weight, self._most = shape, self._weight + weight, max(self._most, most)
        if size_of_column(keys):
            self._held.append((keys, values))

    def rest(self) -> Iterator[RowGroups]:
        """Yield the groups of the rows that are held."""
        held, self._held, self._weight, self._most = self._held, [], 0, 0
        if held:
            keys, *values = (
                _merged_columns(list(each)) for each in zip(*((keys, *values) for keys, values in held), strict=True)
            )
            yield groups_of_rows(self._known, keys, tuple(values))


class TextBuffer:
    """Texts of which only the rows are counted, until they are counted together, as far as a bound on memory allows.

    Where most texts of a block differ, one count of many blocks costs half of a count of each and one of all counts.
    """

    def __init__(self, bound: Bound) -> None:
        self._bound = bound
        self._held: list[Strings] = []
        self._rows = self._bytes = 0

    def take(self, keys: Strings) -> Iterator[StringGroupTable]:
        """Take the texts of a block; give its groups if texts repeat in it, or those of all that are many."""
        if not self._held:
            found = counted_texts([keys])
            if 2 * len(found) <= len(keys):
                yield found
                return
        self._held.append(keys)
        self._rows, self._bytes = self._rows + len(keys), self._bytes + keys.nbytes()
        is_full = self._rows > _MOST_TEXTS or self._bytes > _MOST_TEXT_BYTES
        if is_full or self._bound.exceeded(2 * self._bytes):
            yield from self.rest()

    def rest(self) -> Iterator[StringGroupTable]:
        """Yield the groups of the texts that are held."""
        held, self._held, self._rows, self._bytes = self._held, [], 0, 0
        if held:
            yield counted_texts(held)


_MOST_TEXTS, _MOST_TEXT_BYTES = 2**20, 2**26


def greatest_of(values: Values) -> int:
    """Return the greatest absolute value of ints that are added up."""
    return max((max(-each.least, each.greatest) for each in values if isinstance(each, Ints)), default=0)


def _merged_columns(columns: list[Any]) -> Column:
    """Return columns of one shape as one."""
    first = columns[0]
    if isinstance(first, ConstantColumn):
        return ConstantColumn(first.value, sum(each.size for each in columns))
    if isinstance(first, Tuples):
        members = zip(*(each.members for each in columns), strict=True)
        return Tuples(tuple(_merged_columns(list(each)) for each in members), sum(each.size for each in columns))
    if isinstance(first, Strings) and len(columns) > 1:
        import pyarrow as pa

        array = pa.concat_arrays([each.values for each in columns])
        return Strings(array, is_ascii=all(each.is_ascii for each in columns))
    return stacked(columns)


def groups_of_rows(known: InColumns, keys: Column, values: Values) -> RowGroups:
    """Group rows.

    Args:
        known: what becomes of the items of a key.
        keys: of the rows, of which there is one or more; they have a shape.
        values: what the collector of a key takes, whose sums need no more than 64 bits.
    """
    rows = GroupedRows.of(keys)
    found = canonical_all(items_of(rows_at(keys, rows.firsts)))
    return RowGroups(found, found_in_groups(known, iter(values), rows), len(rows.numbers))


def found_in_groups(known: InColumns, values: Iterator[Column], rows: GroupedRows) -> Found:
    """Return what a collector takes of each group.

    Args:
        known: the collector.
        values: of each part of it: whether a row passes, if there is a condition; the keys of groups within groups; the
            numbers, if it does more than count.
        rows: those of each group.
    """
    if known.parts:
        return FoundOfParts(tuple(found_in_groups(part, values, rows) for part in known.parts))
    if known.downstream is not None:
        keys = next(values)
        within = rows.within(keys)
        inner_keys = canonical_all(items_of(rows_at(keys, within.firsts)))
        found = found_in_groups(known.downstream, values, within)
        return FoundWithin(inner_keys, rows.numbers[within.firsts].tolist(), found)
    passing = cast(Bools, next(values)).values if known.is_filtered else None
    if known.gathers:
        return FoundLists(rows.lists(next(values), passing))
    counts = rows.counts if passing is None else _counted(rows, passing)
    return (
        FoundNumbers((counts,))
        if known.finds == "count"
        else _found_of_numbers(known, next(values), rows, passing, counts)
    )


def _counted(rows: GroupedRows, passing: NDArray[np.bool_]) -> Int64s:
    found = np.bincount(rows.numbers[passing], minlength=len(rows.counts))
    return found.astype(np.int64, copy=False)


def _found_of_numbers(
    known: InColumns, values: Column, rows: GroupedRows, passing: NDArray[np.bool_] | None, counts: Int64s
) -> Found:
    are_many = len(rows.counts) * _MANY_ROWS <= len(rows.numbers)
    if isinstance(values, Floats) and known.finds == "sum" and are_many and are_added_exactly(values):
        return FoundFloats(counts, float_sums_of_groups(rows.numbers, len(rows.counts), values))
    # Few numbers cost less as a list than as sums or statistics; of floats the first -0.0 or 0.0 is the least one.
    is_listed = known.finds == "statistics" and (passing is not None or not are_many)
    if isinstance(values, Floats) or is_listed:
        return FoundLists(rows.lists(values, passing))
    assert isinstance(values, Ints), "what is no float is one of these"
    columns: tuple[Int64s, ...] = (counts, sums_of_groups(rows.numbers, len(rows.counts), values))
    if known.finds == "statistics":
        side_by_side = values.values.take(rows.order)
        columns = (*columns, *(each.reduceat(side_by_side, rows.starts) for each in (np.minimum, np.maximum)))
    return FoundNumbers(columns)


@record
class GroupedRows:
    """The group of each row, and the rows of each group.

    Attributes:
        numbers: of the group of each row: the first one that is seen has 0.
        firsts: the first row of each group.
        order: the rows of the first group, then those of the next, each in order.
        counts: how many rows each group has.
    """

    numbers: NDArray[Any]
    firsts: NDArray[np.intp]
    order: NDArray[np.intp]
    counts: Int64s

    @classmethod
    def of(cls, keys: Column) -> GroupedRows:
        """Return the groups of rows, of which there is one or more, by keys that have a shape."""
        places = places_of(tight(Ints(_codes(keys), LEAST, GREATEST)))
        groups = len(places.firsts)
        # NumPy sorts ints of 16 bits several times as fast as longer ones.
        number_of_code = np.zeros(places.width, np.uint16 if groups <= _OF_16_BITS else np.int64)
        number_of_code[places.order] = np.arange(groups)
        numbers = number_of_code[places.numbers]
        return cls(numbers, places.firsts, np.argsort(numbers, kind="stable"), places.counts())

    @property
    def starts(self) -> Int64s:
        """The places in `order` at which the rows of each group start."""
        return np.cumsum(self.counts) - self.counts

    @classmethod
    def as_one(cls, size: int) -> GroupedRows:
        """Return rows, of which there is one or more, as one group."""
        return cls(np.zeros(size, np.int64), np.zeros(1, np.int64), np.arange(size), np.array([size], np.int64))

    def within(self, keys: Column) -> GroupedRows:
        """Return the groups by other keys within each of these groups."""
        numbers = Ints(self.numbers.astype(np.int64, copy=False), 0, len(self.counts))
        return GroupedRows.of(Tuples((numbers, keys), len(self.numbers)))

    def lists(self, values: Column, passing: NDArray[np.bool_] | None = None) -> list[list[Any]]:
        """Return the values of each group, or of its rows that pass, in order."""
        order, counts = self.order, self.counts
        if passing is not None:
            order, counts = order[passing.take(order)], _counted(self, passing)
        side_by_side = items_of(rows_at(values, order))
        return [side_by_side[start:end] for start, end in pairwise((0, *np.cumsum(counts).tolist()))]


_OF_16_BITS = 2**16


def _codes(keys: Column) -> Int64s:
    """Return an int for each key, the same for keys that are one in a dictionary: 0.0 and -0.0, and all NaN."""
    if isinstance(keys, Ints):
        return keys.values
    if isinstance(keys, Bools):
        return keys.values.astype(np.int64)
    if isinstance(keys, Floats):
        with np.errstate(invalid="ignore"):
            # -0.0 + 0.0 is 0.0, and every NaN gets the bits of one.
            return np.where(keys.values == keys.values, keys.values + 0.0, np.nan).view(np.int64)
    if isinstance(keys, Encoded):
        return keys.equal_codes()
    if isinstance(keys, Strings):
        return _numbered(keys.values)[0]
    codes, width = np.zeros(size_of_column(keys), np.int64), 1
    for member in keys.members if isinstance(keys, Tuples) else ():
        numbers, different = _numbered(_codes(member))
        if width * different > GREATEST:
            # Numbered anew, there are no more codes than rows, so that the product of both counts fits into 64 bits.
            codes, width = _numbered(codes)
        codes, width = codes * different + numbers, width * different
    return codes


def _numbered(values: Any) -> tuple[Int64s, int]:
    """Return a number for each value of an array, and how many different ones there are."""
    encoded = (array_of_ints(values) if isinstance(values, np.ndarray) else values).dictionary_encode()
    return numbers_of_array(encoded.indices).astype(np.int64), len(encoded.dictionary)


Table: TypeAlias = GroupTable | StringGroupTable | RowGroups
Taking: TypeAlias = Callable[[Any, Table], Any]
"""Takes a table into the container of all groups; returns this."""

_PIECE = 512
_MOST_BYTES = 2**30
"""Keys of one array need places of 32 bits."""


@record
class FoldedGroups:
    """Groups, as their collector holds them.

    Attributes:
        groups: the container of all of them.
    """

    groups: Any


def folded(
    collector: Collector[Any, Any, Any],
    take: Taking,
    found: Iterator[Table | Iterable[Any]],
    blocks: Iterator[Block],
    bound: Bound,
) -> Iterator[Table | FoldedGroups]:
    """Yield the groups of tables of ints, and of the items between them; past the memory bound in several rounds.

    A collector of such groups begins with a container for ints, and makes one of another type from the first value on
    that is none. From there on no block is looked at in columns.

    Args:
        collector: makes the groups.
        take: takes a table into its container.
        found: tables, and in their places the items of blocks that make none, in order.
        blocks: what `found` reads; where it gives items, it has read no block behind them.
        bound: asks for rounds.
    """
    fold = _Fold(collector, take, bound)
    for each in found:
        if isinstance(each, Table):
            yield from fold.with_table(each)
            continue
        yield from fold.with_items(each)
        if not fold.is_of_ints:
            yield from fold.with_items(chain.from_iterable(map(given, blocks)))
    yield from fold.rest()


class _Fold:
    """The groups of one round, of which those of the last tables are not in the container yet."""

    def __init__(self, collector: Collector[Any, Any, Any], take: Taking, bound: Bound) -> None:
        self._collector = collector
        self._take = take
        self._bound = bound
        self._begin()

    def _begin(self) -> None:
        self._groups = self._collector.supplier()
        self._of_ints = type(self._groups)
        self._tables: list[Table] = []
        self._costs = 0

    @property
    def is_of_ints(self) -> bool:
        """Return whether no other values are among the groups."""
        return type(self._groups) is self._of_ints

    def with_table(self, table: Table) -> Iterator[Table | FoldedGroups]:
        """Take a table; give the groups if they are too many."""
        self._tables.append(table)
        self._costs += table.cost()
        return self._round() if self._bound.exceeded(self._costs) else iter(())

    def with_items(self, items: Iterable[Any]) -> Iterator[Table | FoldedGroups]:
        """Take items; give the groups whenever they are too many."""
        self._take_tables()
        for piece in pieces(items, _PIECE):
            self._groups = self._collector.accumulated(self._groups, piece)
            # The variable would keep these items in memory while the groups of a round are sent.
            del piece
            if self._bound.exceeded():
                yield from self._round()

    def _round(self) -> Iterator[Table | FoldedGroups]:
        yield from self.rest()
        self._begin()
        self._bound.spilled()

    def _take_tables(self) -> None:
        for table in self._tables:
            self._groups = self._take(self._groups, table)
        self._tables, self._costs = [], 0

    def rest(self) -> Iterator[Table | FoldedGroups]:
        """Yield the groups: as a table if they are tables alone."""
        # Where items have come, too, the tables follow them into the container, in their order.
        table = None if self._groups or not self._tables else _merged_tables(self._tables)
        if table is not None:
            yield table
            return
        self._take_tables()
        if self._groups:
            yield FoldedGroups(self._groups)


def _merged_tables(tables: list[Table]) -> Table | None:
    """Return tables as one that has each key once; None if that is none."""
    if len(tables) == 1:
        return tables[0]
    known = [each for each in tables if not isinstance(each, RowGroups)]
    bytes_of_keys = sum(each.key_bytes() for each in known if isinstance(each, StringGroupTable))
    if len(known) < len(tables) or bytes_of_keys > _MOST_BYTES:
        return None
    try:
        return merged_groups(known)
    except NotColumnar:  # Sums of more than 64 bits are ints of Python.
        return None
