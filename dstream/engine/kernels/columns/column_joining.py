"""Joins by keys that are ints: rows of both sides are matched by number, and only then become entries."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dstream.engine.kernels.columns.column_groups import stable_hashes_of_ints
from dstream.engine.kernels.columns.column_values import (
    Column,
    Ints,
    Tuples,
    Withheld,
    column_of,
    items_of,
    rows_at,
)
from dstream.engine.kernels.item_batches import dumps_items, loads_items
from dstream.pickling import dumps
from dstream.values import Entry

if TYPE_CHECKING:
    from dstream.engine.kernels.hash_join import Matching

__all__ = ["HeldSide", "JoinBatch", "JoinRows", "rows_of_block", "rows_of_items", "sent_to_targets"]

Int64s = NDArray[np.int64]

_MOST_ENTRIES = 131_072
"""So many entries are made at a time, as long as no row alone has more."""
_FEWEST_LOOKED_UP = 65_536
"""So many rows, or as many as there are keys, are looked up at a time: each time a hash table is made of the keys."""

_entry = functools.partial(tuple.__new__, Entry)


@dataclass(frozen=True, slots=True)
class JoinBatch:
    """Some rows of one side.

    Attributes:
        keys: of the rows.
        data: their values, pickled: a list or a column.
    """

    keys: Int64s
    data: bytes

    def __len__(self) -> int:
        return len(self.keys)

    def values(self) -> list[Any]:
        """Return the values."""
        found = loads_items(self.data)
        return found if isinstance(found, list) else items_of(found)

    def lists(self) -> tuple[list[Any], list[Any]]:
        """Return the keys and the values."""
        return self.keys.tolist(), self.values()


JoinRows: TypeAlias = tuple[Int64s, "list[Any] | Column | JoinBatch"]
"""The keys of some rows, and their values."""


def _listed(values: list[Any] | Column | JoinBatch) -> list[Any]:
    if isinstance(values, JoinBatch):
        return values.values()
    return values if isinstance(values, list) else items_of(values)


def rows_of_items(keys: list[Any], values: list[Any]) -> JoinRows | None:
    """Return rows; None if their keys are not all exact ints of 64 bits."""
    if not keys or type(keys[0]) is not int:
        return None
    try:
        column = column_of(keys)
    except Withheld:
        return None
    return (column.values, values) if isinstance(column, Ints) else None


def rows_of_block(block: Any) -> JoinRows | None:
    """Return the rows of a block that is a column of pairs; None if it is none, or if their keys are no ints."""
    if not isinstance(block, Tuples) or len(block.members) != 2 or not isinstance(block.members[0], Ints):
        return None
    return block.members[0].values, block.members[1]


def sent_to_targets(rows: JoinRows, targets: int) -> Iterator[tuple[int, int, bytes]]:
    """Give (target, number of rows, pickled `JoinBatch`) of the rows that go to each target, in order."""
    keys, values = rows
    places = stable_hashes_of_ints(keys) % targets
    for target in range(targets):
        chosen = np.flatnonzero(places == target)
        if not len(chosen):
            continue
        assert not isinstance(values, JoinBatch), "it is sent already"
        if isinstance(values, list):
            data = dumps_items(list(map(values.__getitem__, chosen.tolist())))
        else:
            data = dumps(rows_at(values, chosen))
        yield target, len(chosen), dumps(JoinBatch(keys.take(chosen), data))


class HeldSide:
    """The side that is held: its rows by their keys.

    Args:
        batches: of the side, in order.
        matching: what becomes of the rows of both sides.
    """

    def __init__(self, batches: Iterable[JoinBatch], matching: Matching) -> None:
        import pyarrow as pa

        held = list(batches)
        keys = np.concatenate([np.empty(0, np.int64), *(each.keys for each in held)])
        self._values: list[Any] = []
        for each in held:
            self._values += each.values()
        self._values.append(None)  # The row -1, which those have that match nothing.
        self._matching = matching
        encoded = pa.array(keys).dictionary_encode()
        self._keys = encoded.dictionary
        numbers = encoded.indices.to_numpy()
        self._counts = np.bincount(numbers, minlength=len(self._keys))
        self._starts = np.cumsum(self._counts) - self._counts
        self._rows = np.argsort(numbers, kind="stable")
        self._is_matched = np.zeros(len(self._keys), np.bool_)

    def entries(self, passing: Iterable[JoinBatch | JoinRows], *, are_collected: bool) -> Iterator[Any]:
        """Give the entries of rows that pass by, in order; if these are collected, many are looked up at a time."""
        least = max(_FEWEST_LOOKED_UP, len(self._keys)) if are_collected else 0
        held: list[JoinRows] = []
        waiting = 0
        for each in passing:
            rows = each if isinstance(each, tuple) else (each.keys, each)
            held.append(rows)
            waiting += len(rows[0])
            if waiting >= least:
                yield from self._looked_up(held)
                held, waiting = [], 0
        if held:
            yield from self._looked_up(held)

    def _looked_up(self, passing: Sequence[JoinRows]) -> Iterator[Any]:
        numbers = self._numbers(np.concatenate([keys for keys, _ in passing]))
        start = 0
        for keys, values in passing:
            yield from self._entries_of(keys, _listed(values), numbers[start : start + len(keys)])
            start += len(keys)

    def _numbers(self, keys: Int64s) -> Int64s:
        """Return the number of each key among those held; -1 if it is none of them."""
        import pyarrow as pa
        import pyarrow.compute as pc

        options = pc.SetLookupOptions(value_set=self._keys)
        found: Any = pc.call_function("index_in", [pa.array(keys)], options).fill_null(-1)
        numbers: Int64s = found.to_numpy(zero_copy_only=False).astype(np.int64)
        return numbers

    def _entries_of(self, keys: Int64s, values: list[Any], numbers: Int64s) -> Iterator[Any]:
        """Give the entries of rows whose keys have these numbers."""
        is_found = numbers >= 0
        if self._matching.keeps_held:
            self._is_matched[numbers[is_found]] = True
        alone = 1 if self._matching.keeps_passing else 0
        counts = np.where(is_found, self._counts[numbers] if len(self._keys) else 0, alone)
        ends = np.cumsum(counts)
        start = 0
        while start < len(keys):
            before = ends[start] - counts[start]
            end = max(start + 1, int(np.searchsorted(ends, before + _MOST_ENTRIES, side="right")))
            yield from self._made(keys[start:end], values[start:end], numbers[start:end], counts[start:end])
            start = end

    def _made(self, keys: Int64s, values: list[Any], numbers: Int64s, counts: Int64s) -> Iterator[Any]:
        passing = np.repeat(np.arange(len(keys)), counts)
        number = numbers.take(passing)
        inside = np.arange(len(passing)) - np.repeat(np.cumsum(counts) - counts, counts)
        held = np.full(len(passing), -1, np.int64)
        is_found = number >= 0
        held[is_found] = self._rows[self._starts[number[is_found]] + inside[is_found]]
        others = map(self._values.__getitem__, held.tolist())
        own = map(values.__getitem__, passing.tolist())
        pairs = zip(others, own, strict=True) if self._matching.holds_left else zip(own, others, strict=True)
        return map(_entry, zip(keys.take(passing).tolist(), pairs, strict=True))

    def matched_keys(self) -> set[int]:
        """Return the keys that rows have matched by now, if those of the others are kept."""
        return set(self._keys.to_numpy()[self._is_matched].tolist())

    def unmatched(self) -> Iterator[Any]:
        """Give the entries of rows that matched nothing, if they are kept: key by key, as these were first seen."""
        if not self._matching.keeps_held:
            return
        numbers = np.flatnonzero(~self._is_matched)
        counts = self._counts[numbers]
        inside = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
        rows = self._rows[np.repeat(self._starts[numbers], counts) + inside]
        keys = np.repeat(self._keys.to_numpy()[numbers], counts).tolist()
        for key, row in zip(keys, rows.tolist(), strict=True):
            item = self._values[row]
            yield _entry((key, (item, None) if self._matching.holds_left else (None, item)))
