"""Windows in columns: of numbers that slide, as views of one memory, and of event time, as groups of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from dstream.keys import canonical_all
from dstream.operators.columns.chain_evaluation import as_column, compare_results
from dstream.operators.columns.collectors import keys_and_values
from dstream.operators.columns.evaluation import evaluated
from dstream.operators.columns.group_by import GroupedRows, found_in_groups
from dstream.operators.columns.group_numbers import Found, taken
from dstream.operators.columns.values import (
    GREATEST,
    LEAST,
    Bools,
    Column,
    Floats,
    Ints,
    NotColumnar,
    Tuples,
    items_of,
    numbers,
    of_same_type,
    rows_at,
    shape_of,
    size_of_column,
    spread,
    stacked,
    tight,
)
from dstream.operators.rows.blocks import Block, given
from dstream.plan.steps import KeyInColumns
from dstream.spi import ByPlace, Collector, InColumns
from dstream.values.time import MOST_INSTANT, NO_WATERMARK
from dstream.windows import FrameWindow

__all__ = ["BlockFrames", "ends_of_column", "sliding_windows", "stamped_block"]


Frames: TypeAlias = dict[int, dict[Any, Any]]
"""Containers by the end of their frame, and by key."""


def sliding_windows(
    kind: ByPlace[Any, Any], blocks: Iterator[Block], behind: Iterable[Any], is_first: Callable[[], bool]
) -> Iterator[Block]:
    """Yield the windows that begin in a partition.

    Args:
        kind: a gatherer with a `window`.
        blocks: the items of the partition.
        behind: all items behind it, read as far as needed.
        is_first: returns whether no item is before the partition.
    """
    size, first = kind.window, is_first
    assert size is not None, "whoever has none slides over items"
    assert kind.gather_ahead is not None, "windows know how to read ahead"
    tail: Column | None = None
    for block in blocks:
        column = _behind(tail, block)
        if column is None:
            rest = chain(() if tail is None else items_of(tail), given(block), chain.from_iterable(map(given, blocks)))
            yield kind.gather_ahead(rest, behind, first)
            return
        rows = len(column.values)
        if rows < size:
            tail = column
            continue
        yield _windows(column, size)
        # The last rows, one fewer than a window has, begin windows that end in the next block.
        tail, first = rows_at(column, np.arange(rows - size + 1, rows)), _is_not_first
    if tail is not None:
        yield kind.gather_ahead(items_of(tail), behind, first)


def _is_not_first() -> bool:
    """Return that there was a window before, so that no short one follows."""
    return False


def _behind(tail: Column | None, block: Block) -> Ints | Floats | Bools | None:
    """Return the rows of a block behind those of `tail`; None if they are no numbers of one type."""
    if isinstance(block, Sequence | Iterator):
        return None
    try:
        return numbers(spread(stacked([block] if tail is None else [tail, block])))
    except NotColumnar:
        return None


def _windows(column: Ints | Floats | Bools, size: int) -> Tuples:
    rows = len(column.values) - size + 1
    members = (of_same_type(column, column.values[place : place + rows]) for place in range(size))
    return Tuples(tuple(members), rows, column)


def ends_of_column(column: Column, count: int) -> tuple[int, list[Any], list[Any]]:
    """Return how many rows there are, and the items of the first and of the last `count` of them."""
    rows = size_of_column(column)
    first, last = np.arange(min(count, rows)), np.arange(max(rows - count, 0), rows)
    return rows, items_of(rows_at(column, first)), items_of(rows_at(column, last))


def stamped_block(
    block: Block, known: KeyInColumns, timestamp: Callable[[Any], int], step: str
) -> tuple[Tuples, int, int] | None:
    """Return items with their timestamps, the greatest of these, and how many there are; None if they are no columns.

    Args:
        block: of pairs of None and an item.
        known: the expression of the timestamps.
        timestamp: gives that of an item.
        step: for messages.

    Raises:
        ColumnsDifferError: what is verified is not what Python gives.
    """
    try:
        pairs = _pairs(block)
        if not pairs.size:
            return Tuples((Ints(np.empty(0, np.int64), 0, 0), pairs.members[1]), 0), NO_WATERMARK, 0
        assert known.expression is not None, "the function is read"
        times = tight(_ints(evaluated(known.expression, (pairs.members[1],))))
    except NotColumnar:
        return None
    if known.is_verified:
        items = items_of(pairs.members[1])
        compare_results(step, items_of(times), list(map(timestamp, items)), lambda: f"a block of {pairs.size:,} items")
    return Tuples((times, pairs.members[1]), pairs.size), times.greatest, pairs.size


def _pairs(block: Block) -> Tuples:
    column = as_column(block)
    if not size_of_column(column):
        return Tuples((column, column), 0)
    if not isinstance(column, Tuples) or len(column.members) != 2:
        raise NotColumnar("items that are no pairs")
    return column


def _ints(times: Column) -> Ints:
    found = numbers(spread(times))
    if not isinstance(found, Ints):
        raise NotColumnar("timestamps that are no ints")
    return found


@dataclass(frozen=True)
class BlockFrames:
    """The frames of a window that take blocks of timestamped items.

    Attributes:
        known: groups by the key of an item, with the containers of the items of a key.
        window: has the frames.
        least: an item with a timestamp below is late, and so all items of its block are looked at one by one.
        collector: makes the containers.
        is_keyed: items have keys; otherwise None is that of every item.
        by_items: gives the frames of pairs of a timestamp and an item, for blocks that are verified.
    """

    known: InColumns
    window: FrameWindow
    least: int
    collector: Collector[Any, Any, Any]
    is_keyed: bool
    by_items: Callable[[Iterable[Any]], Frames]

    def take(self, block: Block, frames: Frames) -> int | None:
        """Take a block into frames, and return how many items it has; None if they have to be looked at one by one.

        The order of frames, and of the keys in one, is that in which their first items come.

        Raises:
            ColumnsDifferError: what is verified is not what Python gives.
        """
        try:
            pairs = _pairs(block)
            found = self._found(pairs) if pairs.size else None
        except NotColumnar:
            return None
        if found is not None:
            if self.known.is_verified:
                self._verify(found, pairs)
            self._put(found, frames)
        return pairs.size

    def _found(self, pairs: Tuples) -> _FoundInFrames:
        assert self.known.downstream is not None, "groups have one"
        times = tight(_ints(pairs.members[0]))
        if times.least < max(self.least, 1 - MOST_INSTANT) or times.greatest >= MOST_INSTANT:
            raise NotColumnar("items that are late")
        keys, values = keys_and_values(self.known, pairs.members[1])
        shape_of(keys)
        ends = times.values - (times.values - self.window.offset) % self.window.by + self.window.by
        rows = GroupedRows.of(Tuples((Ints(ends, LEAST, GREATEST), keys), pairs.size))
        found = found_in_groups(self.known.downstream, iter(values), rows)
        of_keys = canonical_all(items_of(rows_at(keys, rows.firsts))) if self.is_keyed else repeat(None)
        return _FoundInFrames(ends.take(rows.firsts).tolist(), of_keys, found)

    def _put(self, found: _FoundInFrames, frames: Frames) -> None:
        assert self.known.downstream is not None, "groups have one"
        create = self.collector.create
        places = [(frames.setdefault(end, {}), key) for end, key in zip(found.ends, found.keys, strict=False)]
        before = [groups[key] if key in groups else create() for groups, key in places]
        for (groups, key), container in zip(places, taken(self.known.downstream, before, found.found), strict=True):
            groups[key] = container

    def _verify(self, found: _FoundInFrames, pairs: Tuples) -> None:
        frames: Frames = {}
        self._put(found, frames)
        one, other = map(self._results, (frames, self.by_items(items_of(pairs))))
        compare_results(repr(self.collector), one, other, lambda: f"a block of {pairs.size:,} items")

    def _results(self, frames: Frames) -> list[Any]:
        finish = self.collector.finisher
        return [(end, key, finish(each)) for end, groups in frames.items() for key, each in groups.items()]


class _FoundInFrames(NamedTuple):
    """The end and the key of each group of rows, and what its collector takes."""

    ends: list[int]
    keys: Iterable[Any]
    found: Found
