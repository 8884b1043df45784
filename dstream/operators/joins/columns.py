"""Joins by integers or strings in columns: rows match by number and become items last. Loads NumPy."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, compress
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from dstream.base.pickling import dumps
from dstream.keys import stable_hashes
from dstream.operators.columns.arrow_rows import ReferredRows, referred_rows
from dstream.operators.columns.built_rows import PackedRows, RowsWithParts, packed_rows
from dstream.operators.columns.chain_evaluation import compare_results
from dstream.operators.columns.entries import Entries, JoinedRows, PassingRows, RowValues
from dstream.operators.columns.evaluation import evaluated
from dstream.operators.columns.groups import stable_hashes_of_ints
from dstream.operators.columns.strings import Strings
from dstream.operators.columns.values import (
    Column,
    Ints,
    NotColumnar,
    Tuples,
    column_of,
    items_of,
    rows_at,
)
from dstream.operators.joins.key_index import Int64s, KeyIndex, Keys, keys_at
from dstream.operators.rows.batches import Reopened, dumps_items, loads_items
from dstream.operators.rows.blocks import Block
from dstream.plan.steps import KeyInColumns, unchanged
from dstream.values.entries import as_entry, key_of
from dstream.values.user_functions import results

if TYPE_CHECKING:
    from dstream.operators.joins.hash import Index, Matching, Membership, Pair

__all__ = [
    "MOST_BYTES",
    "JoinBatch",
    "JoinRows",
    "JoinTable",
    "KeyTable",
    "SideTable",
    "are_of_one_type",
    "bytes_of",
    "each_key_once",
    "each_once",
    "hashes_of",
    "keys_in",
    "rows_of_block",
    "rows_of_items",
    "sent_to_targets",
    "together",
]


MOST_BYTES = 2**30
"""Maximum bytes of the keys of concatenated batches: an Arrow array of strings has offsets of 32 bits."""


def keys_in(column: Any) -> Keys | None:
    """Return the values of a column as keys; None if they are not ints or strings."""
    if isinstance(column, Ints):
        return column.values
    return column if isinstance(column, Strings) else None


def each_once(keys: Keys) -> Keys:
    """Return each key once, in any order."""
    return Strings(keys.values.unique(), is_ascii=keys.is_ascii) if isinstance(keys, Strings) else np.unique(keys)


def bytes_of(keys: Keys) -> int:
    """Return how many bytes the keys have, about."""
    return keys.nbytes() if isinstance(keys, Strings) else int(keys.nbytes)


def hashes_of(keys: Keys) -> Int64s:
    """Return the `stable_hash` of each key."""
    if isinstance(keys, Strings):
        return np.array(stable_hashes(keys.tolist()), np.int64)
    return stable_hashes_of_ints(keys)


def together(keys: Sequence[Keys]) -> Keys:
    """Concatenate batches of keys of one type; there is at least one batch."""
    if len(keys) == 1:
        return keys[0]
    texts = [each for each in keys if isinstance(each, Strings)]
    if not texts:
        return np.concatenate([each for each in keys if not isinstance(each, Strings)])
    import pyarrow as pa

    return Strings(pa.concat_arrays([each.values for each in texts]), is_ascii=all(each.is_ascii for each in texts))


_MOST_ENTRIES = 131_072
"""The number of pairs of rows that are found at a time, as long as no row alone has more."""
_FEWEST_LOOKED_UP = 65_536
"""Minimum rows of a lookup if all rows have arrived: the last probes of a lookup are for a few rows each."""


@dataclass(frozen=True, slots=True)
class JoinBatch:
    """A batch of rows of one side.

    Attributes:
        keys: the keys of the rows.
        data: their values, pickled: a list or a column.
    """

    keys: Keys
    data: bytes

    def __len__(self) -> int:
        return len(self.keys)

    def unpacked(self, reopened: Reopened | None = None) -> list[Any] | Column:
        """Return the unpickled values; rows that were sent as references are read again from their source."""
        found: list[Any] | Column | PackedRows | ReferredRows = loads_items(self.data)
        if isinstance(found, ReferredRows):
            return found.unpacked(reopened or Reopened())
        return found.unpacked() if isinstance(found, PackedRows) else found

    def values(self, reopened: Reopened | None = None) -> list[Any]:
        """Return the values."""
        values = self.unpacked(reopened)
        return values if isinstance(values, list) else items_of(values)

    def lists(self, reopened: Reopened | None = None) -> tuple[list[Any], list[Any]]:
        """Return the keys and the values."""
        return self.keys.tolist(), self.values(reopened)


Values: TypeAlias = "list[Any] | Column | JoinBatch"
JoinRows: TypeAlias = "tuple[Keys, Values]"
"""The keys and the values of rows."""


def rows_of_items(keys: list[Any], values: list[Any]) -> JoinRows | None:
    """Return rows; None if their keys are not all exact ints of 64 bits."""
    if not keys or type(keys[0]) is not int:
        return None
    try:
        column = column_of(keys)
    except NotColumnar:
        return None
    return (column.values, values) if isinstance(column, Ints) else None


def rows_of_block(block: Any, key: Callable[[Any], Any] | None, columns: KeyInColumns | None = None) -> JoinRows | None:
    """Return the rows of a block without creating its items; None if their keys are not ints or strings.

    Args:
        block: a column, or another object, which has no rows.
        key: None: the items are pairs of a key and a value; `key_of`: the values are the pairs; `unchanged`: the items
            are keys and values.
        columns: the expression of the key, whose values are the items; None for the keys above.
    """
    if columns is not None:
        keys = _evaluated_keys(block, key, columns)
        return None if keys is None else (keys, block)
    if key is unchanged:
        keys = keys_in(block)
        return None if keys is None else (keys, block)
    # A subclass has another source of its items.
    if type(block) is not Entries and not (isinstance(block, Tuples) and len(block.members) == 2):
        return None
    keys = keys_in(block.members[0])
    return None if keys is None else (keys, block if key is key_of else block.members[1])


def _evaluated_keys(block: Any, key: Any, columns: KeyInColumns) -> Keys | None:
    """Return the results of a key function that is read; None if they are no column of keys."""
    assert columns.expression is not None, "only such functions are evaluated"
    try:
        found = evaluated(columns.expression, (block,))
    except NotColumnar:
        return None
    keys = keys_in(found)
    if keys is not None and columns.is_verified:
        items = items_of(block)
        compare_results("key", items_of(found), results(key, items), lambda: f"a block of {len(items):,} items")
    return keys


def each_key_once(rows: JoinRows) -> JoinRows:
    """Return the distinct keys of rows without their values."""
    keys = each_once(rows[0])
    return keys, [None] * len(keys)


def are_of_one_type(batches: Sequence[JoinBatch]) -> bool:
    """Return whether the keys of these batches can be put together."""
    are_texts = [isinstance(batch.keys, Strings) for batch in batches]
    return not any(are_texts) or (all(are_texts) and sum(bytes_of(batch.keys) for batch in batches) <= MOST_BYTES)


def sent_to_targets(
    rows: JoinRows, targets: int, wanted: frozenset[str] | None = None
) -> Iterator[tuple[int, int, bytes]]:
    """Yield (target, number of rows, pickled `JoinBatch`) of the rows for each target, in order.

    Args:
        rows: the keys and the values.
        targets: the number of partitions of both sides.
        wanted: the fields of records that downstream steps use, if they use no whole items; None: all.
    """
    keys, values = rows
    # Rows for one target are copied as well: a slice would be pickled with all bytes of its array (pyarrow 26).
    places = hashes_of(keys) % targets if targets > 1 else np.zeros(len(keys), np.int64)
    for target in range(targets):
        chosen = np.flatnonzero(places == target)
        if not len(chosen):
            continue
        assert not isinstance(values, JoinBatch), "it is sent already"
        if isinstance(values, list):
            data = dumps_items(list(map(values.__getitem__, chosen.tolist())))
        else:
            data = dumps(_that_travels(rows_at(values, chosen), wanted))
        yield target, len(chosen), dumps(JoinBatch(keys_at(keys, chosen), data))


def _that_travels(values: Column, wanted: frozenset[str] | None) -> Column | PackedRows | ReferredRows:
    """Return values in the format in which they are pickled: records as columns, if they have columns."""
    if not isinstance(values, RowsWithParts) or values.is_shared:
        return values
    return (None if wanted is None else referred_rows(values, wanted)) or packed_rows(values) or values


class JoinTable(ABC):
    """The keys of the build side. Rows of the probe side are looked up in them, and become items."""

    _index: KeyIndex

    def __init__(self) -> None:
        self._reopened = Reopened()

    def takes(self, rows: JoinBatch | JoinRows) -> bool:
        """Return whether the keys of these rows have the type of the keys of the table."""
        keys = rows[0] if isinstance(rows, tuple) else rows.keys
        return isinstance(keys, Strings) == isinstance(self._index.keys, Strings)

    def blocks(self, passing: Iterable[JoinBatch | JoinRows], *, are_collected: bool) -> Iterator[Block]:
        """Yield blocks of items of the probe side, in order; collected rows are looked up many at a time."""
        # Batches of a shuffle have all arrived; blocks of a stream are emitted at once, so that nothing is read ahead.
        least = _FEWEST_LOOKED_UP if are_collected else 0
        held: list[JoinRows] = []
        waiting = size = 0
        for each in passing:
            rows = each if isinstance(each, tuple) else (each.keys, each)
            # Keys that are looked up together become one Arrow array, whose offsets have 32 bits.
            if size + bytes_of(rows[0]) > MOST_BYTES and held:
                yield from self._looked_up(held)
                held, waiting, size = [], 0, 0
            held.append(rows)
            waiting, size = waiting + len(rows[0]), size + bytes_of(rows[0])
            if waiting >= least:
                yield from self._looked_up(held)
                held, waiting, size = [], 0, 0
        if held:
            yield from self._looked_up(held)

    def _looked_up(self, passing: Sequence[JoinRows]) -> Iterator[Block]:
        numbers = self._index.find(together([keys for keys, _ in passing]))
        start = 0
        for keys, values in passing:
            unpacked = values.unpacked(self._reopened) if isinstance(values, JoinBatch) else values
            yield from self._blocks_of(keys, unpacked, numbers[start : start + len(keys)])
            start += len(keys)

    @abstractmethod
    def _blocks_of(self, keys: Keys, values: list[Any] | Column, numbers: Int64s) -> Iterator[Block]:
        """Return the items of rows whose keys have these numbers."""

    @abstractmethod
    def pairs(self) -> Iterator[Pair]:
        """Yield (key, item) of the rows of the build side; the items are the objects of earlier blocks."""

    @abstractmethod
    def ending(self) -> Iterator[Any]:
        """Yield the rows that follow all passing rows."""

    @abstractmethod
    def going_on(self, index: Index, passing: Iterable[Pair]) -> Iterator[Any]:
        """Do the rest by items, the first of which has a key of another type, or an int of more than 64 bits.

        Args:
            index: the pairs of the build side, by their keys.
            passing: the remaining pairs of the probe side.
        """


class KeyTable(JoinTable):
    """The build side of a semi-join, of which only the keys matter.

    Args:
        batches: the batches of the side, at least one, with keys of one type.
        membership: which items of the probe side are emitted.
    """

    def __init__(self, batches: Iterable[JoinBatch], membership: Membership) -> None:
        super().__init__()
        self._membership = membership
        self._index = KeyIndex(together([each.keys for each in batches]))

    def _blocks_of(self, keys: Keys, values: list[Any] | Column, numbers: Int64s) -> Iterator[Block]:
        is_held = numbers >= 0
        is_given = is_held if self._membership.is_wanted else ~is_held
        if isinstance(values, list):
            yield compress(values, is_given.tolist())
        else:
            yield rows_at(values, np.flatnonzero(is_given))

    def pairs(self) -> Iterator[Pair]:
        return ((key, None) for key in self._index.keys.tolist())

    def ending(self) -> Iterator[Any]:
        return iter(())

    def going_on(self, index: Index, passing: Iterable[Pair]) -> Iterator[Any]:
        return self._membership.entries(index, passing)


class SideTable(JoinTable):
    """The build side of a join: its rows by their keys.

    Args:
        batches: the batches of the side, in order, at least one, with keys of one type.
        matching: the output for the rows of both sides.
    """

    def __init__(self, batches: Iterable[JoinBatch], matching: Matching) -> None:
        super().__init__()
        held = list(batches)
        # Rows without a match have the partner -1, which is None.
        self._values = RowValues([each.unpacked(self._reopened) for each in held], behind=[None])
        self._matching = matching
        self._keys_of_rows = [each.keys for each in held]
        self._index = KeyIndex(together(self._keys_of_rows))
        numbers = self._index.numbers
        self._counts = np.bincount(numbers, minlength=len(self._index.keys))
        self._starts = np.cumsum(self._counts) - self._counts
        # Stable, so that the partners of a key remain in order.
        self._rows = numbers if self._index.is_unique else np.argsort(numbers, kind="stable")
        self._is_matched = np.zeros(len(self._index.keys), np.bool_)

    def _blocks_of(self, keys: Keys, values: list[Any] | Column, numbers: Int64s) -> Iterator[Block]:
        is_found = numbers >= 0
        if self._matching.keeps_held:
            self._is_matched[numbers[is_found]] = True
        alone = 1 if self._matching.keeps_passing else 0
        # A row that is not found has the number -1, the index of the last count, which `where` drops.
        counts = np.where(is_found, self._counts[numbers] if len(self._counts) else 0, alone)
        ends = np.cumsum(counts)
        passing = PassingRows(keys, values)
        start = 0
        while start < len(keys):
            before = ends[start] - counts[start]
            # A single row may have more partners than a block: it is a block of its own, so that the loop advances.
            end = max(start + 1, int(np.searchsorted(ends, before + _MOST_ENTRIES, side="right")))
            rows = np.repeat(np.arange(start, end), counts[start:end])
            held = self._held_rows(numbers.take(rows), counts[start:end])
            yield JoinedRows(passing, rows, self._values, held, self._matching.holds_left)
            start = end

    def _held_rows(self, numbers: Int64s, counts: Int64s) -> Int64s:
        """Return the row of the build side, or -1, for each pair of rows.

        Args:
            numbers: the number of the key of each pair.
            counts: the number of adjacent pairs of each row of the probe side.
        """
        if self._index.is_unique:
            return numbers
        inside = np.arange(len(numbers)) - np.repeat(np.cumsum(counts) - counts, counts)
        held = np.full(len(numbers), -1, np.int64)
        is_found = numbers >= 0
        held[is_found] = self._rows[self._starts[numbers[is_found]] + inside[is_found]]
        return held

    def pairs(self) -> Iterator[Pair]:
        # The values end with None, which `zip` drops.
        return zip(
            chain.from_iterable(each.tolist() for each in self._keys_of_rows), self._values.items(), strict=False
        )

    def going_on(self, index: Index, passing: Iterable[Pair]) -> Iterator[Any]:
        return self._matching.entries(index, passing, set(self._held_at(np.flatnonzero(self._is_matched))))

    def ending(self) -> Iterator[Any]:
        """Yield the entries of rows without a match, if they are emitted: by keys, in the order of their first rows."""
        if not self._matching.keeps_held:
            return
        numbers = np.flatnonzero(~self._is_matched)
        counts = self._counts[numbers]
        inside = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
        rows = self._rows[np.repeat(self._starts[numbers], counts) + inside]
        keys = self._held_at(np.repeat(numbers, counts))
        for key, row in zip(keys, rows.tolist(), strict=True):
            item = self._values.items()[row]
            yield as_entry((key, (item, None) if self._matching.holds_left else (None, item)))

    def _held_at(self, numbers: Int64s) -> list[Any]:
        return keys_at(self._index.keys, numbers).tolist()
