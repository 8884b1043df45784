"""Readers: from the rows of an earlier stage back to items."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any

from dstream.base.records import record
from dstream.engine.tasks.rows import Row
from dstream.failures import naming
from dstream.operators.rows.batches import loads_items
from dstream.operators.rows.blocks import Block, ColumnItems
from dstream.operators.rows.group_tables import finished_lines, table_as_lists, tables_by_key
from dstream.operators.rows.operations import Task
from dstream.operators.rows.spill import distinct_items, distinct_of_batches, merged, sorted_items
from dstream.plan.steps import Step
from dstream.spi.collector import Collector

__all__ = [
    "KeepRange",
    "ReadPlaces",
    "combine_groups",
    "first_of_keys",
    "in_place_order",
    "one_of_each_key",
    "read_batches",
    "read_buckets",
    "read_columns_of_sources",
    "read_items",
    "read_places",
    "without_places",
]


def read_items(rows: Iterator[Row]) -> Iterator[Any]:
    """Yield the items of each row."""
    for row in rows:
        yield from loads_items(row.payload)


def read_batches(rows: Iterator[Row]) -> Iterator[Any]:
    """Yield the list of items, or the columns, of each row."""
    for row in rows:
        yield loads_items(row.payload)


def read_buckets(rows: Iterator[Row]) -> Iterator[tuple[int, tuple[list[Any], list[Any]]]]:
    """Yield (bucket, (keys, containers)) of each row."""
    for row in rows:
        yield row.target, loads_items(row.payload)


def read_places(rows: Iterator[Row]) -> Iterator[tuple[tuple[int, int], Any]]:
    """Yield ((source, position), item)."""
    for row in rows:
        for position, item in loads_items(row.payload):
            yield (row.source, position), item


@record(slots=False)
class KeepRange:
    """A reader of the items whose number in their partition is in the partition's range; None is no end."""

    ranges: Mapping[int, tuple[int, int | None]]

    def __call__(self, rows: Iterator[Row]) -> Iterator[Any]:
        for row in rows:
            # A partition without a range has no items.
            start, stop = self.ranges.get(row.source, (0, 0))
            first = max(start - row.sequence, 0)
            last = row.size if stop is None else min(stop - row.sequence, row.size)
            if first < last:
                yield from loads_items(row.payload)[first:last]


@record(slots=False)
class ReadPlaces:
    """A reader of (position, item), with the position among the items of all partitions of a side.

    Attributes:
        first: the number of the first partition of the side.
        before: the number of items before each of its partitions.
        most: items at this position and later ones are left out.
    """

    first: int
    before: Sequence[int]
    most: int

    def __call__(self, rows: Iterator[Row]) -> Iterator[tuple[int, Any]]:
        for row in rows:
            start = self.before[row.source - self.first] + row.sequence
            if start < self.most:
                yield from enumerate(loads_items(row.payload)[: self.most - start], start)


def read_columns_of_sources(rows: Iterator[Row]) -> Iterator[tuple[int, Any]]:
    """Yield (source, columns) of each row."""
    for row in rows:
        yield row.source, loads_items(row.payload)


def one_of_each_key(step: Step, batches: Iterator[Any], task: Task) -> Iterator[Any]:
    """Yield one item of each key of (keys, items), or of (items,)."""
    with naming(step):
        yield from distinct_of_batches(batches, task.bound)


def first_of_keys(key: Any, step: Step, pairs: Iterator[tuple[Any, Any]], task: Task) -> Iterator[Any]:
    """Yield the first pair (position, item) of each key of the item."""
    with naming(step):
        yield from distinct_items(pairs, _KeyOfPair(key), task.bound)


@record(slots=False)
class _KeyOfPair:
    key: Any

    def __call__(self, pair: tuple[Any, Any]) -> Any:
        return pair[1] if self.key is None else self.key(pair[1])


def in_place_order(pairs: Iterator[tuple[Any, Any]], task: Task) -> Iterator[Any]:
    """Yield the items of (position, item) pairs in the order of their positions."""
    for _, item in sorted_items(pairs, _place, False, task.bound):
        yield item


def without_places(pairs: Iterator[tuple[Any, Any]], task: Task) -> Iterator[Any]:
    """Yield the items of (position, item) pairs."""
    return map(itemgetter(1), pairs)


def _place(pair: tuple[Any, Any]) -> Any:
    return pair[0]


def combine_groups(
    downstream: Collector[Any, Any, Any], step: Step, batches: Iterator[Any], task: Task
) -> Iterator[tuple[int, Any, Any]]:
    """Combine (keys, ranks, containers), or tables of groups; yield (first rank, key, finished value) of each group."""
    return ColumnItems(_combined(downstream, step, batches, task))


def _combined(downstream: Collector[Any, Any, Any], step: Step, batches: Iterator[Any], task: Task) -> Iterator[Block]:
    parts, rest = tables_by_key(batches, task.bound)
    for tables in parts:
        from dstream.operators.columns.group_results import finished_tables  # loads NumPy, as the tables did

        finished = finished_tables(downstream, tables)
        if finished is None:
            yield _combined_lists(downstream, step, iter(tables), task)
        else:
            yield from (_named(block, step) if isinstance(block, Iterator) else block for block in finished)
    yield _combined_lists(downstream, step, rest, task)


def _named(items: Iterator[Any], step: Step) -> Iterator[Any]:
    with naming(step):
        yield from items


def _combined_lists(
    downstream: Collector[Any, Any, Any], step: Step, batches: Iterator[Any], task: Task
) -> Iterator[tuple[int, Any, Any]]:
    with naming(step):
        lists = (batch if isinstance(batch, Sequence) else table_as_lists(downstream, batch) for batch in batches)
        columns = ((keys, containers, ranks) for keys, ranks, containers in lists)
        groups = merged(columns, downstream.combined, task.bound)
        yield from finished_lines(downstream, map(itemgetter(2, 0, 1), groups))
