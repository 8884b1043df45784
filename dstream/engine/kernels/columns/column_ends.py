"""Where collectors meet items: in columns if both know how, otherwise item by item. Loads NumPy for columns only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeGuard

from dstream.engine.kernels.columns.column_items import ColumnItems
from dstream.engine.memory_bound import Bound
from dstream.spi import Collector, InColumns

if TYPE_CHECKING:
    from dstream.engine.kernels.columns.column_collecting import Groups
    from dstream.engine.kernels.columns.column_groups import GroupTable
    from dstream.engine.kernels.columns.text_groups import TextGroupTable

__all__ = ["collected", "groups_of_table", "is_table", "table_as_lists", "tables_of_groups"]

_MOST_GROUPS = 65_536
"""So many groups become objects of Python at a time."""


def collected(collector: Collector[Any, Any, Any], items: Iterable[Any]) -> Any:
    """Return the container of the items."""
    known = _on_columns(collector, items)
    if known is None or not isinstance(items, ColumnItems):
        return collector.accumulated(collector.supplier(), items)
    if known.finds == "first":
        from dstream.engine.kernels.columns.column_top import first_of_blocks  # loads NumPy, which made the columns

        return collector.accumulated(collector.supplier(), first_of_blocks(collector, known, items.blocks()))
    from dstream.engine.kernels.columns.column_collecting import accumulated_blocks

    return accumulated_blocks(collector, known, collector.supplier(), items.blocks())


def tables_of_groups(
    collector: Collector[Any, Any, Any], items: Iterator[Any], bound: Bound
) -> Iterator[Groups | Iterable[Any]] | None:
    """Give the groups of items in columns, and in their places the items that make none; None if no items do.

    Groups of many blocks are put together as far as the memory bound allows it.
    """
    known = _on_columns(collector, items)
    if known is None or known.finds != "groups" or not isinstance(items, ColumnItems):
        return None
    from dstream.engine.kernels.columns.column_collecting import group_tables

    return group_tables(collector, known, items.blocks(), bound)


def is_table(groups: Groups) -> TypeGuard[GroupTable | TextGroupTable]:
    """Say whether groups stand in columns, as which they can travel."""
    from dstream.engine.kernels.columns.column_groups import GroupTable  # loads NumPy, which made the groups
    from dstream.engine.kernels.columns.text_groups import TextGroupTable

    return isinstance(groups, GroupTable | TextGroupTable)


def groups_of_table(collector: Collector[Any, Any, Any], table: Groups) -> Iterator[dict[Any, Any]]:
    """Give containers that hold the groups of a table, each of them some of the groups, in order."""
    from dstream.engine.kernels.columns.column_collecting import added_table

    known = collector.on_columns()
    assert known is not None, "the table was made by it"
    for part in table.parts(_MOST_GROUPS) if is_table(table) else (table,):
        yield added_table(collector, known, collector.supplier(), part)


def table_as_lists(downstream: Collector[Any, Any, Any], table: GroupTable | TextGroupTable) -> list[list[Any]]:
    """Return groups as the keys, ranks and containers that they are where no columns are."""
    known = downstream.on_columns()
    assert known is not None, "the table was made by it"
    take = known.take
    assert take is not None, "it takes numbers"
    supplier = known.supplier or downstream.supplier
    containers = [take(supplier(), *found) for _, *found in table.lines()]
    return [table.keys.tolist(), table.ranks.tolist(), containers]


def _on_columns(collector: Collector[Any, Any, Any], items: Iterable[Any]) -> InColumns | None:
    if type(items) is not ColumnItems:
        return None
    known = collector.on_columns()
    return None if known is None or known.expression is None else known
