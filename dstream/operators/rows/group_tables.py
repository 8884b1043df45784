"""Tables of groups in columns, from collectors and from disk. Loads NumPy for the first table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard, Union

from dstream.base.memory import Bound
from dstream.failures.attribution import in_group
from dstream.operators.rows.blocks import ColumnItems
from dstream.operators.rows.spill import DEEPEST, FAN_OUT, Run
from dstream.spi import Collector, InColumns
from dstream.values.entries import as_entry

if TYPE_CHECKING:
    from dstream.operators.columns.collectors import Groups
    from dstream.operators.columns.groups import GroupTable, StringGroupTable

__all__ = [
    "Table",
    "collected",
    "finished_lines",
    "groups_of_table",
    "is_table",
    "results_of_groups",
    "table_as_lists",
    "tables_by_key",
    "tables_of_groups",
]


_MOST_GROUPS = 65_536
"""The number of groups that become objects of Python at a time."""


def collected(collector: Collector[Any, Any, Any], items: Iterable[Any]) -> Any:
    """Return the container of the items."""
    known = _on_columns(collector, items)
    if known is None or not isinstance(items, ColumnItems):
        return collector.accumulated(collector.supplier(), items)
    if known.finds == "first":
        from dstream.operators.columns.top import first_of_blocks  # loads NumPy, which made the columns

        return collector.accumulated(collector.supplier(), first_of_blocks(collector, known, items.blocks()))
    from dstream.operators.columns.collectors import accumulated_blocks

    return accumulated_blocks(collector, known, collector.supplier(), items.blocks())


def tables_of_groups(
    collector: Collector[Any, Any, Any], items: Iterator[Any], bound: Bound
) -> Iterator[Groups | Iterable[Any]] | None:
    """Return tables of groups, and in order the items without a table; None if the items are not in columns.

    Groups of many blocks are combined as far as the memory bound allows.
    """
    known = _on_columns(collector, items)
    if known is None or known.finds != "groups" or not isinstance(items, ColumnItems):
        return None
    from dstream.operators.columns.collectors import group_tables

    return group_tables(collector, known, items.blocks(), bound)


def is_table(groups: Groups) -> TypeGuard[GroupTable | StringGroupTable]:
    """Return whether groups are stored in columns, as which they can be sent."""
    from dstream.operators.columns.groups import GroupTable, StringGroupTable  # loads NumPy, which made the groups

    return isinstance(groups, GroupTable | StringGroupTable)


def groups_of_table(collector: Collector[Any, Any, Any], table: Groups) -> Iterator[dict[Any, Any]]:
    """Yield containers that each have a part of the groups of a table, in order."""
    from dstream.operators.columns.collectors import added_table

    known = collector.on_columns()
    assert known is not None, "the table was made by it"
    for part in table.parts(_MOST_GROUPS) if is_table(table) else (table,):
        yield added_table(collector, known, collector.supplier(), part)


def table_as_lists(downstream: Collector[Any, Any, Any], table: GroupTable | StringGroupTable) -> list[list[Any]]:
    """Return groups as the keys, ranks and containers that they are where no columns are."""
    from dstream.operators.columns.collectors import containers_of_table  # loads NumPy, which made the table

    known = downstream.on_columns()
    assert known is not None, "the table was made by it"
    containers = containers_of_table(known, known.supplier or downstream.supplier, table)
    return [table.keys.tolist(), table.ranks.tolist(), containers]


def finished_lines(
    downstream: Collector[Any, Any, Any], lines: Iterable[tuple[int, Any, Any]]
) -> Iterator[tuple[int, Any, Any]]:
    """Yield (rank, key, finished value) of each (rank, key, container); a failure names the key."""
    finisher = downstream.finisher
    for rank, key, container in lines:
        try:
            value = finisher(container)
        except Exception as error:
            in_group(error, key)
            raise
        yield rank, key, value


def results_of_groups(
    finish: Callable[[Any], Any], to: Callable[[Any, Any], Any] | None, groups: Iterable[tuple[Any, ...]]
) -> Iterator[Any]:
    """Yield the results of (key, container, ...), by default entries; a failure names its key."""
    for key, container, *_ in groups:
        try:
            value = finish(container)
            result = as_entry((key, value)) if to is None else to(key, value)
        except Exception as error:
            in_group(error, key)
            raise
        yield result


def _on_columns(collector: Collector[Any, Any, Any], items: Iterable[Any]) -> InColumns | None:
    if type(items) is not ColumnItems:
        return None
    known = collector.on_columns()
    if known is None or known.expression is None:
        return None
    # A list of the items themselves needs them as they are.
    return None if known.gathers and not known.before else known


Table: TypeAlias = Union["GroupTable", "StringGroupTable"]
"""Groups in columns."""

_MOST_BYTES = 2**30
"""Maximum bytes of the keys of one array, whose offsets have 32 bits."""


def tables_by_key(
    batches: Iterator[Any], bound: Bound, level: int = 0
) -> tuple[Iterator[Sequence[Table]], Iterator[Any]]:
    """Return tables of groups, in sequences with disjoint keys, if all batches are tables.

    Otherwise return no tables, and all batches; equal keys are in the order in which they arrived.
    """
    held: list[Table] = []
    buckets: list[Run] = []
    costs = size = 0
    for batch in batches:
        if isinstance(batch, Sequence):
            # The batches on disk precede the tables in memory, and those precede this batch.
            return iter(()), chain(chain.from_iterable(buckets), held, (batch,), batches)
        held.append(batch)
        costs, size = costs + batch.cost(), size + batch.key_bytes()
        # Without a deepest level, groups that share a hash would be divided without end.
        if level < DEEPEST and (size > _MOST_BYTES or bound.exceeded(costs)):
            buckets = buckets or [Run() for _ in range(FAN_OUT)]
            _to_disk(held, buckets, level)
            costs = size = 0
            bound.spilled()
    if not buckets:
        return iter((held,) if held else ()), iter(())
    _to_disk(held, buckets, level)
    return chain.from_iterable(tables_by_key(iter(bucket), bound, level + 1)[0] for bucket in buckets), iter(())


def _to_disk(held: list[Table], buckets: Sequence[Run], level: int) -> None:
    """Write tables to disk, each group to the bucket of its key, and clear the list."""
    from dstream.operators.columns.groups import parts_by_bucket  # loads NumPy, which made the tables

    for table in held:
        for bucket, part in parts_by_bucket(table, len(buckets), level):
            buckets[bucket].extend((part,))
    held.clear()
