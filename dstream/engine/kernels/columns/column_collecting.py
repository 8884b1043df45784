"""Collectors over columns: what a block adds to a container at once, or item by item where that is not the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from dstream.engine.kernels.columns.column_groups import GroupTable, grouped, sum_of_ints
from dstream.engine.kernels.columns.column_items import Block, given
from dstream.engine.kernels.columns.column_steps import as_column
from dstream.engine.kernels.columns.column_texts import Texts
from dstream.engine.kernels.columns.column_values import (
    GREATEST,
    Column,
    Floats,
    Ints,
    Withheld,
    items_of,
    numbers,
    size_of_column,
    spread,
    tight,
    typed,
    whole,
)
from dstream.engine.kernels.columns.evaluating import evaluated
from dstream.engine.kernels.columns.text_groups import TextGroupTable, groups_of_texts, with_texts_together
from dstream.engine.kernels.columns.verifying_columns import compare_results
from dstream.spi import Collector, InColumns

__all__ = ["accumulated_blocks", "added_table", "group_tables", "take_of_groups"]

_MOST_ROWS = 2**22
"""So many rows are grouped at once: keys and numbers of them take 64 MB."""


def accumulated_blocks(
    collector: Collector[Any, Any, Any], known: InColumns, container: Any, blocks: Iterator[Block]
) -> Any:
    """Return the container that holds what it held and then the items of the blocks."""
    if known.finds == "groups":
        for each in group_tables(collector, known, blocks):
            if isinstance(each, GroupTable | TextGroupTable):
                container = added_table(collector, known, container, each)
            else:
                container = collector.accumulated(container, each)
        return container
    for block in blocks:
        try:
            found = _found(known, as_column(block))
        except Withheld:
            container = collector.accumulated(container, given(block))
            continue
        if known.is_verified:
            _verify(collector, known, found, block)
        container = _taken(known, container, found)
    return container


def _found(known: InColumns, items: Column) -> Column | tuple[int, ...]:
    """Return what a container takes of ints, or the floats that it takes."""
    if known.finds == "count":
        return (size_of_column(items),)
    values = _numbers(known, items)
    if isinstance(values, Floats):
        return values
    return _found_of_ints(known, values)


def _found_of_ints(known: InColumns, values: Ints) -> tuple[int, ...]:
    found = len(values.values), sum_of_ints(values)
    if known.finds == "sum" or not found[0]:
        return found
    extremes = tight(values)
    return *found, extremes.least, extremes.greatest


def _numbers(known: InColumns, items: Column) -> Ints | Floats:
    """Return what a collector takes of each item, as it takes it."""
    assert known.expression is not None, "only such collectors are taken"
    found = numbers(spread(typed(evaluated(known.expression, (items,)), known.kind)))
    return found if isinstance(found, Floats) else whole(found)


def _taken(known: InColumns, container: Any, found: Column | tuple[int, ...]) -> Any:
    assert known.take is not None, "only groups have none"
    if isinstance(found, tuple):
        return known.take(container, *found) if found[0] else container
    assert known.take_all is not None, "what takes numbers takes floats"
    return known.take_all(container, items_of(found))


def _verify(collector: Collector[Any, Any, Any], known: InColumns, found: Any, block: Block) -> None:
    expected = collector.accumulated(collector.supplier(), given(block))
    one, other = map(collector.finisher, (_taken(known, collector.supplier(), found), expected))
    compare_results(repr(collector), [one], [other], lambda: f"a block of {len(list(given(block))):,} items")


def group_tables(
    collector: Collector[Any, Any, Any], known: InColumns, blocks: Iterator[Block]
) -> Iterator[GroupTable | TextGroupTable | Iterable[Any]]:
    """Give the groups of many blocks at a time, or the items of a block that cannot be grouped, in order."""
    return with_texts_together(_group_tables(collector, known, blocks))


def _group_tables(
    collector: Collector[Any, Any, Any], known: InColumns, blocks: Iterator[Block]
) -> Iterator[GroupTable | TextGroupTable | Iterable[Any]]:
    held: list[tuple[Ints, Ints | None]] = []
    rows = most = 0
    for block in blocks:
        try:
            keys, values = _keys_and_values(known, as_column(block))
        except Withheld:
            yield from _tables(known, held)
            held, rows, most = [], 0, 0
            yield given(block)
            continue
        if known.is_verified:
            _verify_groups(collector, known, (keys, values), block)
        if isinstance(keys, Texts):
            yield from _tables(known, held)
            held, rows, most = [], 0, 0
            yield groups_of_texts(keys, values)
            continue
        largest = 0 if values is None else max(-values.least, values.greatest)
        if rows + len(keys.values) > _MOST_ROWS or max(most, largest) * (rows + len(keys.values)) > GREATEST:
            yield from _tables(known, held)
            held, rows, most = [], 0, 0
        held.append((keys, values))
        rows, most = rows + len(keys.values), max(most, largest)
    yield from _tables(known, held)


def _keys_and_values(known: InColumns, items: Column) -> tuple[Ints | Texts, Ints | None]:
    assert known.expression is not None, "only such collectors are taken"
    assert known.downstream is not None, "groups have one"
    keys = spread(evaluated(known.expression, (items,)))
    if not isinstance(keys, Ints | Texts):
        raise Withheld("keys that are no ints, nor texts")
    if known.downstream.finds == "count":
        return keys, None
    values = _numbers(known.downstream, items)
    if known.downstream.finds != "sum" or not isinstance(values, Ints):
        raise Withheld("groups of floats, or of statistics")
    if max(-values.least, values.greatest) * len(values.values) > GREATEST:
        raise Withheld("sums that may need more than 64 bits")
    return keys, values


def _tables(known: InColumns, held: list[tuple[Ints, Ints | None]]) -> Iterator[GroupTable]:
    keys = _joined([keys for keys, _ in held])
    if not held or not len(keys.values):
        return
    values = [values for _, values in held if values is not None]
    yield grouped(keys, _joined(values) if values else None)


def _joined(columns: list[Ints]) -> Ints:
    if not columns:
        return Ints(np.empty(0, np.int64), 0, 0)
    values = np.concatenate([each.values for each in columns])
    return Ints(values, min(each.least for each in columns), max(each.greatest for each in columns))


def _verify_groups(
    collector: Collector[Any, Any, Any], known: InColumns, pair: tuple[Ints | Texts, Ints | None], block: Block
) -> None:
    assert collector.keyed is not None, "it makes groups"
    found, (keys, values) = collector.supplier(), pair
    for table in [groups_of_texts(keys, values)] if isinstance(keys, Texts) else _tables(known, [(keys, values)]):
        added_table(collector, known, found, table)
    expected = collector.accumulated(collector.supplier(), given(block))
    one, other = (list(collector.keyed.downstream.finished(groups.items())) for groups in (found, expected))
    compare_results(repr(collector), one, other, lambda: f"a block of {len(list(given(block))):,} items")


def take_of_groups(known: InColumns) -> Callable[..., Any]:
    """Return what takes (container, count) or (container, count, sum) of the items of a key."""
    assert known.downstream is not None, "groups have one"
    assert known.downstream.take is not None, "it makes no groups of its own"
    return known.downstream.take


def added_table(
    collector: Collector[Any, Any, Any], known: InColumns, groups: dict[Any, Any], table: GroupTable | TextGroupTable
) -> dict[Any, Any]:
    """Take groups into the container of a collector of groups; return it."""
    assert collector.keyed is not None, "it makes groups"
    assert known.downstream is not None, "groups have one"
    supplier, take = known.downstream.supplier or collector.keyed.downstream.supplier, take_of_groups(known)
    for key, *found in table.lines():
        groups[key] = take(groups[key] if key in groups else supplier(), *found)
    return groups
