"""Collectors over columns: what a block adds to a container at once, or item by item where that is not the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain
from typing import Any, TypeAlias, TypeGuard, cast

import numpy as np

from dstream.engine.kernels.columns.column_first_of_groups import first_of_groups
from dstream.engine.kernels.columns.column_folding import FoldedGroups, Table, folded
from dstream.engine.kernels.columns.column_groups import GroupTable, grouped, sum_of_ints
from dstream.engine.kernels.columns.column_items import Block, given
from dstream.engine.kernels.columns.column_row_groups import HeldRows, RowGroups, shape_of
from dstream.engine.kernels.columns.column_steps import as_column
from dstream.engine.kernels.columns.column_texts import Texts
from dstream.engine.kernels.columns.column_values import (
    GREATEST,
    Column,
    Floats,
    Ints,
    Same,
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
from dstream.engine.memory_bound import Bound
from dstream.spi import Collector, InColumns

__all__ = ["accumulated_blocks", "added_table", "group_tables", "take_of_groups"]

_MOST_ROWS = 2**22
"""So many rows are grouped at once: keys and numbers of them take 64 MB."""

Groups: TypeAlias = "GroupTable | TextGroupTable | RowGroups | FoldedGroups"
Values: TypeAlias = Ints | Floats | Same | None


def accumulated_blocks(
    collector: Collector[Any, Any, Any], known: InColumns, container: Any, blocks: Iterator[Block]
) -> Any:
    """Return the container that holds what it held and then the items of the blocks."""
    if known.finds == "groups":
        for each in group_tables(collector, known, blocks, Bound()):  # The container holds all groups anyway.
            if isinstance(each, GroupTable | TextGroupTable | RowGroups | FoldedGroups):
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
        _check_counted(known, items)
        return (size_of_column(items),)
    values = _numbers(known, items)
    if isinstance(values, Floats):
        return values
    return _found_of_ints(known, values)


def _check_counted(known: InColumns, items: Column) -> None:
    """Evaluate what items go through before they are counted: nobody looks at what it gives, but it may fail.

    Raises:
        Withheld: it may.
    """
    if known.before:
        assert known.expression is not None, "only such collectors are taken"
        evaluated(known.expression, (items,))


def _found_of_ints(known: InColumns, values: Ints) -> tuple[int, ...]:
    found = len(values.values), sum_of_ints(values)
    if known.finds == "sum" or not found[0]:
        return found
    extremes = tight(values)
    return *found, extremes.least, extremes.greatest


def _numbers(known: InColumns, items: Column) -> Ints | Floats:
    """Return what a collector takes of each item, as it takes it."""
    return _as_numbers(_taken_of(known, items))


def _taken_of(known: InColumns, items: Column) -> Column:
    """Return what a collector takes of each item, of a type that it takes."""
    assert known.expression is not None, "only such collectors are taken"
    found = typed(evaluated(known.expression, (items,)), known.kind)
    if known.only is int and not (isinstance(found, Ints) or _is_one_int(found)):
        raise Withheld("numbers that are no ints")
    return found


def _as_numbers(column: Column) -> Ints | Floats:
    found = numbers(spread(column))
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
    collector: Collector[Any, Any, Any], known: InColumns, blocks: Iterator[Block], bound: Bound
) -> Iterator[Groups | Iterable[Any]]:
    """Give the groups of many blocks at a time, or the items of a block that cannot be grouped, in order."""
    assert known.downstream is not None, "groups have one"
    if known.downstream.finds == "first":
        return iter((first_of_groups(collector, known, blocks),))
    found: Iterator[Table | Iterable[Any]] = with_texts_together(_group_tables(collector, known, blocks), bound)
    return folded(collector, partial(added_table, collector, known), found, blocks, bound) if known.is_fold else found


def _group_tables(
    collector: Collector[Any, Any, Any], known: InColumns, blocks: Iterator[Block]
) -> Iterator[Table | Iterable[Any]]:
    assert known.downstream is not None, "groups have one"
    held, held_rows = _HeldInts(), HeldRows(known.downstream)
    for block in blocks:
        try:
            keys, values = _keys_and_values(known, as_column(block))
            shape = None if _makes_table(known, keys, values) else shape_of(keys)
        except Withheld:
            yield from chain(held.rest(), held_rows.rest())
            yield given(block)
            continue
        if known.is_verified:
            _verify_groups(collector, known, (keys, values), block)
        if shape is not None and not isinstance(values, Same):
            yield from held.rest()
            are_many = False
            for each in held_rows.take(keys, values, shape):
                yield each
                are_many = each.are_many
            if are_many:
                yield from held_rows.rest()
                yield chain.from_iterable(map(given, blocks))
                return
            continue
        yield from held_rows.rest()
        if isinstance(keys, Texts) and not isinstance(values, Floats):
            yield from held.rest()
            yield groups_of_texts(keys, values)
        elif isinstance(keys, Ints) and not isinstance(values, Floats | Same):
            yield from held.take(keys, values)
    yield from chain(held.rest(), held_rows.rest())


class _HeldInts:
    """Keys that are ints, and numbers, until they are grouped together."""

    def __init__(self) -> None:
        self._held: list[tuple[Ints, Ints | None]] = []
        self._rows = self._most = 0

    def take(self, keys: Ints, values: Ints | None) -> Iterator[GroupTable]:
        """Take the rows of a block; give the groups of those before them, if all together are too many."""
        rows = self._rows + len(keys.values)
        most = max(self._most, 0 if values is None else max(-values.least, values.greatest))
        if rows > _MOST_ROWS or most * rows > GREATEST:
            yield from self.rest()
        self._held.append((keys, values))
        self._rows, self._most = self._rows + len(keys.values), max(self._most, most)

    def rest(self) -> Iterator[GroupTable]:
        """Give the groups of the rows that are held."""
        held, self._held, self._rows, self._most = self._held, [], 0, 0
        yield from _tables(held)


def _makes_table(known: InColumns, keys: Column, values: Values) -> bool:
    """Say whether groups stand in columns themselves: by ints or texts, with counts and sums of ints."""
    assert known.downstream is not None, "groups have one"
    is_plain = isinstance(keys, Ints | Texts) and not isinstance(values, Floats)
    return is_plain and known.downstream.finds != "statistics"


def _keys_and_values(known: InColumns, items: Column) -> tuple[Column, Values]:
    """Return the keys, and what is added up; one int that stands in all rows stays so beside texts."""
    assert known.expression is not None, "only such collectors are taken"
    assert known.downstream is not None, "groups have one"
    keys = evaluated(known.expression, (items,))
    if isinstance(keys, Same) and type(keys.value) is not str:
        keys = spread(keys)
    if known.downstream.finds == "count":
        _check_counted(known.downstream, items)
        return keys, None
    taken = _taken_of(known.downstream, items)
    if _is_one_int(taken) and isinstance(keys, Texts) and known.downstream.finds == "sum":
        _check_sum(taken)
        return keys, taken
    values = _as_numbers(taken)
    if isinstance(values, Ints):
        _check_sum(values)
    return keys, values


def _is_one_int(column: Column) -> TypeGuard[Same]:
    return isinstance(column, Same) and type(column.value) is int


def _check_sum(values: Ints | Same) -> None:
    """Look whether the sum of any of these has 64 bits.

    Raises:
        Withheld: it may have more.
    """
    most = abs(values.value) if isinstance(values, Same) else max(-values.least, values.greatest)
    if most * size_of_column(values) > GREATEST:
        raise Withheld("sums that may need more than 64 bits")


def _tables(held: list[tuple[Ints, Ints | None]]) -> Iterator[GroupTable]:
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
    collector: Collector[Any, Any, Any], known: InColumns, pair: tuple[Column, Values], block: Block
) -> None:
    assert collector.keyed is not None, "it makes groups"
    found = collector.supplier()
    for groups in _groups_of_block(known, *pair):
        added_table(collector, known, found, groups)
    expected = collector.accumulated(collector.supplier(), given(block))
    one, other = (list(collector.keyed.downstream.finished(groups.items())) for groups in (found, expected))
    compare_results(repr(collector), one, other, lambda: f"a block of {len(list(given(block))):,} items")


def _groups_of_block(known: InColumns, keys: Column, values: Values) -> Iterator[Groups]:
    assert known.downstream is not None, "groups have one"
    if isinstance(keys, Texts) and _makes_table(known, keys, values) and not isinstance(values, Floats):
        yield groups_of_texts(keys, values)
        return
    assert not isinstance(values, Same), "these stand beside texts"
    if isinstance(values, Floats) or not _makes_table(known, keys, values):
        held = HeldRows(known.downstream)
        yield from chain(held.take(keys, values, shape_of(keys)), held.rest())
    elif isinstance(keys, Ints):
        yield from _tables([(keys, values)])


def take_of_groups(known: InColumns) -> Callable[..., Any]:
    """Return what takes (container, count) or (container, count, sum) of the items of a key."""
    assert known.downstream is not None, "groups have one"
    assert known.downstream.take is not None, "it makes no groups of its own"
    return known.downstream.take


def added_table(
    collector: Collector[Any, Any, Any], known: InColumns, groups: dict[Any, Any], table: Groups
) -> dict[Any, Any]:
    """Take groups into the container of a collector of groups; return it."""
    assert collector.keyed is not None, "it makes groups"
    assert known.downstream is not None, "groups have one"
    supplier = known.downstream.supplier or collector.keyed.downstream.supplier
    if isinstance(table, RowGroups):
        return table.taken(known.downstream, supplier, groups)
    if isinstance(table, FoldedGroups):
        return cast("dict[Any, Any]", collector.combined(groups, table.groups))
    take = take_of_groups(known)
    for key, *found in table.lines():
        groups[key] = take(groups[key] if key in groups else supplier(), *found)
    return groups
