"""Collectors on columns: blocks into containers and tables of groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain
from typing import Any, TypeAlias, TypeGuard, cast

import numpy as np
from numpy.typing import NDArray

from dstream.base.memory import Bound
from dstream.expressions import Expression
from dstream.operators.columns.arithmetic import truth
from dstream.operators.columns.chain_evaluation import as_column, compare_results
from dstream.operators.columns.evaluation import evaluated
from dstream.operators.columns.float_sums import FloatSums, are_added_exactly
from dstream.operators.columns.group_by import (
    FoldedGroups,
    GroupedRows,
    RowBuffer,
    RowGroups,
    Table,
    TextBuffer,
    Values,
    folded,
    found_in_groups,
    greatest_of,
)
from dstream.operators.columns.group_numbers import (
    Found,
    FoundFloats,
    FoundLists,
    FoundNumbers,
    FoundOfParts,
    gathered,
    listed_at,
    taken,
)
from dstream.operators.columns.groups import (
    GroupTable,
    StringGroupTable,
    grouped,
    groups_of_texts,
    sum_of_ints,
    with_texts_together,
)
from dstream.operators.columns.ranks import ranks_of_rows
from dstream.operators.columns.strings import Strings
from dstream.operators.columns.top import items_needed
from dstream.operators.columns.values import (
    GREATEST,
    Bools,
    Column,
    ConstantColumn,
    Floats,
    Ints,
    NotColumnar,
    items_of,
    numbers,
    rows_at,
    shape_of,
    size_of_column,
    spread,
    stacked,
    tight,
    typed,
    whole,
)
from dstream.operators.rows.blocks import Block, given, lists_of_few
from dstream.spi import Collector, InColumns

__all__ = [
    "accumulated_blocks",
    "added_groups",
    "added_table",
    "containers_of_table",
    "first_of_groups",
    "group_tables",
    "keys_and_values",
]


def first_of_groups(collector: Collector[Any, Any, Any], known: InColumns, blocks: Iterator[Block]) -> Iterator[Any]:
    """Return the items that a collector of the first ones of each key needs, in order: of columns with ranks no others.

    Raises:
        EngineError: what is verified is not what Python gives.
    """
    return items_needed(collector, known, blocks, as_column, _places)


def _places(known: InColumns, column: Column) -> NDArray[np.intp]:
    """Return the rows that matter: the first ones of each group, and its first row, whose key stays.

    Raises:
        NotColumnar: the keys have no shape, or there are no ranks.
    """
    if not size_of_column(column):
        return np.arange(0)
    downstream = known.downstream
    assert known.expression is not None, "only such collectors are taken"
    assert downstream is not None, "groups have one"
    keys = evaluated(known.expression, (column,))
    shape_of(keys)
    ranks = ranks_of_rows(downstream.expression, column, downstream.reverse).values
    rows = GroupedRows.of(keys)
    chosen = _least(rows, ranks) if downstream.first == 1 else _leading(rows, ranks, downstream.first)
    return np.union1d(chosen, rows.firsts)


def _least(rows: GroupedRows, ranks: NDArray[np.int64]) -> NDArray[np.intp]:
    """Return of each group the first row that has its least rank."""
    side_by_side = ranks.take(rows.order)
    least = np.minimum.reduceat(side_by_side, rows.starts)
    found = np.flatnonzero(side_by_side == np.repeat(least, rows.counts))
    groups = rows.numbers.take(rows.order.take(found))
    # Rows of a group are side by side in their order, so the first with the least rank is the earliest.
    is_first = np.concatenate(([True], groups[1:] != groups[:-1]))
    return rows.order.take(found[is_first])


def _leading(rows: GroupedRows, ranks: NDArray[np.int64], count: int) -> NDArray[np.intp]:
    """Return of each group the first rows in the order of their ranks, of equal ones the earlier."""
    order = np.lexsort((ranks, rows.numbers))
    place_in_group = np.arange(len(order)) - np.repeat(rows.starts, rows.counts)
    return order[place_in_group < count]


_MOST_NUMBERS = 2**23
"""The most keys and numbers of rows that are grouped at once: they take 64 MB."""

Groups: TypeAlias = "GroupTable | StringGroupTable | RowGroups | FoldedGroups"
FoundInBlock: TypeAlias = "Column | tuple[int, ...] | Found"


def accumulated_blocks(
    collector: Collector[Any, Any, Any], known: InColumns, container: Any, blocks: Iterator[Block]
) -> Any:
    """Return the container after the items of the blocks."""
    if known.finds == "groups" and collector.keyed is not None:
        tables = group_tables(collector, known, blocks, Bound())  # The container holds all groups anyway.
        return added_groups(collector, known, container, tables)
    for block in blocks:
        try:
            found = _found(known, as_column(block))
        except NotColumnar:
            container = collector.accumulated(container, given(block))
            continue
        if known.is_verified:
            _verify(collector, known, found, block)
        container = _taken(known, container, found)
    return container


def added_groups(
    collector: Collector[Any, Any, Any], known: InColumns, container: Any, found: Iterable[Groups | Iterable[Any]]
) -> Any:
    """Return the container of a collector of groups after some groups, and items that make none."""
    for each in found:
        if isinstance(each, GroupTable | StringGroupTable | RowGroups | FoldedGroups):
            container = added_table(collector, known, container, each)
        else:
            container = collector.accumulated(container, each)
    return container


def _found(known: InColumns, items: Column) -> FoundInBlock:
    """Return the ints or floats that a container accumulates, or what several of them do."""
    if known.parts or known.is_filtered or known.downstream is not None:
        size = size_of_column(items)
        values = tuple(_values_of(known, items)) if size else ()
        return found_in_groups(known, iter(values), GroupedRows.as_one(size)) if size else ()
    if known.finds == "count":
        _check_counted(known, items)
        return (size_of_column(items),)
    if known.gathers:
        return FoundLists([items_of(gathered(_taken_of(known, items), known, is_alone=True))])
    numbers_found = _numbers(known, items)
    if isinstance(numbers_found, Floats):
        return numbers_found
    return _found_of_ints(known, numbers_found)


def _check_counted(known: InColumns, items: Column) -> None:
    """Evaluate the input of a count: its value is not used, but it may fail.

    Raises:
        NotColumnar: it may.
    """
    if any(action == "map" for action, _ in known.before):
        assert known.expression is not None, "only such collectors are taken"
        evaluated(known.expression, (items,))


def _found_of_ints(known: InColumns, values: Ints) -> tuple[int, ...]:
    found = len(values.values), sum_of_ints(values)
    if known.finds == "sum" or not found[0]:
        return found
    extremes = tight(values)
    return *found, extremes.least, extremes.greatest


def _numbers(known: InColumns, items: Column) -> Ints | Floats:
    """Return the numbers that a collector accumulates, with their type."""
    return _as_numbers(_taken_of(known, items))


def _taken_of(known: InColumns, items: Column) -> Column:
    """Return the values that a collector accumulates, of a type that it accepts."""
    assert known.expression is not None, "only such collectors are taken"
    found = typed(evaluated(known.expression, (items,)), known.kind)
    if known.only is int and not (isinstance(found, Ints) or _is_one_int(found)):
        raise NotColumnar("numbers that are no ints")
    return found


def _as_numbers(column: Column) -> Ints | Floats:
    found = numbers(spread(column))
    return found if isinstance(found, Floats) else whole(found)


def _taken(known: InColumns, container: Any, found: FoundInBlock) -> Any:
    if isinstance(found, Found):
        return taken(known, [container], found)[0]
    if isinstance(found, tuple):
        assert known.take is not None or not found, "only groups have none"
        return known.take(container, *found) if found and found[0] else container  # type: ignore[misc]
    assert known.take_all is not None, "what takes numbers takes floats"
    return known.take_all(container, items_of(found))


def _verify(collector: Collector[Any, Any, Any], known: InColumns, found: Any, block: Block) -> None:
    expected = collector.accumulated(collector.supplier(), given(block))
    one, other = map(collector.finisher, (_taken(known, collector.supplier(), found), expected))
    compare_results(repr(collector), [one], [other], lambda: f"a block of {len(list(given(block))):,} items")


def group_tables(
    collector: Collector[Any, Any, Any], known: InColumns, blocks: Iterator[Block], bound: Bound
) -> Iterator[Groups | Iterable[Any]]:
    """Return the groups of many blocks at a time, or the items of a block that cannot be grouped, in order."""
    assert known.downstream is not None, "groups have one"
    if known.downstream.finds == "first":
        return iter((first_of_groups(collector, known, blocks),))
    blocks = lists_of_few(blocks)
    found: Iterator[Table | Iterable[Any]] = with_texts_together(_group_tables(collector, known, blocks, bound), bound)
    return folded(collector, partial(added_table, collector, known), found, blocks, bound) if known.is_fold else found


def _group_tables(
    collector: Collector[Any, Any, Any], known: InColumns, blocks: Iterator[Block], bound: Bound
) -> Iterator[Table | Iterable[Any]]:
    assert known.downstream is not None, "groups have one"
    held, held_texts, held_rows = _HeldInts(), TextBuffer(bound), RowBuffer(known.downstream)
    for block in blocks:
        try:
            keys, values = keys_and_values(known, as_column(block))
            shape = None if _makes_table(known, keys, values) else shape_of(keys)
        except NotColumnar:
            # The buffered rows precede this block: the first key of a group stays, and floats are added in order.
            yield from chain(held.rest(), held_texts.rest(), held_rows.rest())
            yield given(block)
            continue
        if known.is_verified:
            _verify_groups(collector, known, (keys, values), block)
        if shape is not None:
            yield from chain(held.rest(), held_texts.rest())
            are_many = False
            for each in held_rows.take(keys, values, shape):
                yield each
                are_many = each.are_many
            # With so few rows for each group the rest costs less by items: no further block is looked at.
            if are_many:
                yield from held_rows.rest()
                yield chain.from_iterable(map(given, blocks))
                return
            continue
        yield from held_rows.rest()
        if isinstance(keys, Strings) and not values:
            yield from chain(held.rest(), held_texts.take(keys))
        elif isinstance(keys, Strings):
            yield from chain(held.rest(), held_texts.rest(), (groups_of_texts(keys, *_as_ints(values)),))
        elif isinstance(keys, Ints):
            yield from chain(held_texts.rest(), held.take(keys, _as_ints(values)))
    yield from chain(held.rest(), held_texts.rest(), held_rows.rest())


class _HeldInts:
    """Keys that are ints, and numbers, until they are grouped together."""

    def __init__(self) -> None:
        self._held: list[tuple[Ints | Floats, ...]] = []
        self._rows = self._most = 0

    def take(self, keys: Ints, values: tuple[Ints | Floats, ...]) -> Iterator[GroupTable]:
        """Take the rows of a block; give the groups of those before them, if all together are too many."""
        rows = self._rows + len(keys.values)
        most = max(self._most, greatest_of(values))
        # The bound is that of all rows together: so the sum of any group of them has 64 bits.
        is_other = bool(self._held) and list(map(type, self._held[0][1:])) != list(map(type, values))
        if is_other or rows * (1 + len(values)) > _MOST_NUMBERS or most * rows > GREATEST:
            yield from self.rest()
        self._held.append((keys, *values))
        self._rows, self._most = self._rows + len(keys.values), max(self._most, greatest_of(values))

    def rest(self) -> Iterator[GroupTable]:
        """Yield the groups of the rows that are held."""
        held, self._held, self._rows, self._most = self._held, [], 0, 0
        yield from _tables(held)


def _makes_table(known: InColumns, keys: Column, values: Values) -> bool:
    """Return whether groups are stored in columns themselves: by ints or strings, with counts and exact sums."""
    assert known.downstream is not None, "groups have one"
    is_plain = isinstance(keys, Ints | Strings) and _are_added_up(known.downstream)
    return is_plain and all(are_added_exactly(each) for each in values if isinstance(each, Floats))


def _are_added_up(known: InColumns) -> bool:
    return all(map(_are_added_up, known.parts)) if known.parts else known.finds in ("count", "sum")


def _as_ints(values: Values) -> Any:
    return tuple(whole(each) if isinstance(each, Bools) else each for each in values)


def keys_and_values(known: InColumns, items: Column) -> tuple[Column, Values]:
    """Return the keys, and what is added up; an int that is the same in all rows stays one beside strings."""
    assert known.expression is not None, "only such collectors are taken"
    assert known.downstream is not None, "groups have one"
    keys = _keys_of(known.expression, items)
    downstream = known.downstream
    # One int in all rows stays as it is: its sums follow from counts alone.
    if downstream.finds == "sum" and not downstream.is_filtered and isinstance(keys, Strings):
        found = _taken_of(downstream, items)
        if _is_one_int(found):
            _check_sum(found)
            return keys, (found,)
        return keys, (_added_up(found),)
    return keys, tuple(_values_of(downstream, items))


def _keys_of(expression: Expression, items: Column) -> Column:
    keys = evaluated(expression, (items,))
    # `spread` makes arrays of numbers alone: one string for all rows stays, and `shape_of` takes it.
    return spread(keys) if isinstance(keys, ConstantColumn) and type(keys.value) is not str else keys


def _values_of(known: InColumns, items: Column, *, is_alone: bool = True) -> Iterator[Column]:
    """Yield the columns of which containers are made, as `found_in_groups` takes them.

    Args:
        known: the collector that makes them.
        items: what it collects.
        is_alone: no other collector gets the same items.
    """
    if known.parts:
        for part in known.parts:
            yield from _values_of(part, items, is_alone=is_alone and len(known.parts) == 1)
        return
    assert known.expression is not None, "only such collectors are taken"
    if known.downstream is not None:
        keys = _keys_of(known.expression, items)
        shape_of(keys)
        yield keys
        yield from _values_of(known.downstream, items, is_alone=is_alone)
        return
    if not known.is_filtered:
        yield from _values_if_needed(known, items, is_alone)
        return
    assert known.condition is not None, "its filters are read"
    passes = truth(evaluated(known.condition, (items,)))
    yield Bools(passes)
    places = np.flatnonzero(passes)
    # Python evaluates nothing for the others, which may fail.
    if len(places):
        found = _values_if_needed(known, rows_at(items, places), is_alone)
        put = listed_at if known.gathers else _in_their_places
        yield from (put(cast(Any, each), places, len(passes)) for each in found)
    elif known.finds != "count":
        yield Ints(np.zeros(len(passes), np.int64), 0, 0)


def _values_if_needed(known: InColumns, items: Column, is_alone: bool) -> Iterator[Column]:
    if known.finds == "count":
        _check_counted(known, items)
    elif known.gathers:
        yield gathered(_taken_of(known, items), known, is_alone=is_alone)
    else:
        yield _added_up(_taken_of(known, items))


def _added_up(found: Column) -> Ints | Floats:
    values = _as_numbers(found)
    if isinstance(values, Ints):
        _check_sum(values)
    return values


def _in_their_places(numbers: Ints | Floats, places: NDArray[np.intp], size: int) -> Ints | Floats:
    """Return numbers of some rows as a column of all of them, which is 0 elsewhere.

    Raises:
        NotColumnar: the sum of as many numbers as there are rows may have more than 64 bits.
    """
    values: Any = np.zeros(size, numbers.values.dtype)
    values[places] = numbers.values
    if isinstance(numbers, Floats):
        return Floats(values)
    column = Ints(values, min(numbers.least, 0), max(numbers.greatest, 0))
    _check_sum(column)
    return column


def _is_one_int(column: Column) -> TypeGuard[ConstantColumn]:
    return isinstance(column, ConstantColumn) and type(column.value) is int


def _check_sum(values: Ints | ConstantColumn) -> None:
    """Check that the sum of any of these has at most 64 bits.

    Raises:
        NotColumnar: it may have more.
    """
    most = abs(values.value) if isinstance(values, ConstantColumn) else max(-values.least, values.greatest)
    if most * size_of_column(values) > GREATEST:
        raise NotColumnar("sums that may need more than 64 bits")


def _tables(held: list[tuple[Ints | Floats, ...]]) -> Iterator[GroupTable]:
    if not any(len(keys.values) for keys, *_ in held):
        return
    keys, *values = (cast("Ints | Floats", stacked(each)) for each in zip(*held, strict=True))
    yield grouped(cast(Ints, keys), *values)


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
    if not _makes_table(known, keys, values):
        held = RowBuffer(known.downstream)
        yield from chain(held.take(keys, values, shape_of(keys)), held.rest())
    elif isinstance(keys, Strings):
        yield groups_of_texts(keys, *_as_ints(values))
    elif isinstance(keys, Ints):
        yield from _tables([(keys, *_as_ints(values))])


def added_table(
    collector: Collector[Any, Any, Any], known: InColumns, groups: dict[Any, Any], table: Groups
) -> dict[Any, Any]:
    """Take groups into the container of a collector of groups; return it."""
    assert collector.keyed is not None, "it makes groups"
    assert known.downstream is not None, "groups have one"
    supplier = known.downstream.supplier or collector.keyed.downstream.supplier
    if isinstance(table, FoldedGroups):
        return cast("dict[Any, Any]", collector.combined(groups, table.groups))
    if not isinstance(table, RowGroups):
        table = RowGroups(table.keys.tolist(), _found_of_table(known.downstream, table), 0)
    return table.taken(known.downstream, supplier, groups)


def containers_of_table(
    known: InColumns, supplier: Callable[[], Any], table: GroupTable | StringGroupTable
) -> list[Any]:
    """Return the container of each group of a table, which a supplier makes."""
    return taken(known, [supplier() for _ in range(len(table))], _found_of_table(known, table))


def _found_of_table(known: InColumns, table: GroupTable | StringGroupTable) -> Found:
    return _found_of_sums(known, table.counts, iter(table.sums))


def _found_of_sums(known: InColumns, counts: Any, sums: Iterator[Any]) -> Found:
    if known.parts:
        return FoundOfParts(tuple(_found_of_sums(part, counts, sums) for part in known.parts))
    if known.is_filtered:
        counts = next(sums)
    if known.finds == "count":
        return FoundNumbers((counts,))
    total = next(sums)
    return FoundFloats(counts, total) if isinstance(total, FloatSums) else FoundNumbers((counts, total))
