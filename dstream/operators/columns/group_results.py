"""Finished results of the tables of groups that a task receives."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any

import numpy as np

from dstream.failures import naming
from dstream.operators.columns.arithmetic import quotient_of_ints
from dstream.operators.columns.collectors import Groups, added_groups
from dstream.operators.columns.entries import Entries
from dstream.operators.columns.float_sums import FloatSums
from dstream.operators.columns.groups import GroupTable, StringGroupTable, merged_groups
from dstream.operators.columns.values import Column, Floats, Ints, NotColumnar, Objects, Tuples, tight
from dstream.operators.rows.blocks import Block, given
from dstream.operators.rows.group_tables import Table, finished_lines, results_of_groups, table_as_lists
from dstream.plan.steps import Step
from dstream.spi import Collector, InColumns, identity

__all__ = ["finished_entries", "finished_tables", "groups_in_task"]


_MOST_GROUPS = 131_072
"""The number of groups that are emitted at a time, or fewer with long keys."""


def finished_tables(downstream: Collector[Any, Any, Any], tables: Sequence[Table]) -> Iterator[Block] | None:
    """Return (first rank, key, finished value) of each group of the tables; None if sums need more than 64 bits."""
    try:
        table = merged_groups(tables)
    except NotColumnar:
        return None
    return (_finished_part(downstream, part) for part in table.parts(_MOST_GROUPS))


def _finished_part(downstream: Collector[Any, Any, Any], table: Table) -> Block:
    try:
        values = _finished(downstream, table)
    except NotColumnar:
        return _lines(downstream, table)
    keys = table.keys if isinstance(table, StringGroupTable) else _ints(table.keys)
    return Tuples((_ints(table.ranks), keys, values), len(table))


def groups_in_task(
    collector: Collector[Any, Any, Any], found: Iterator[Groups | Iterable[Any]]
) -> tuple[Iterable[Block], Any]:
    """Return (rank, key, finished value) of all groups as blocks, if they are tables; otherwise their container."""
    known = collector.on_columns()
    assert known is not None, "columns made the groups"
    assert collector.keyed is not None, "it makes groups"
    tables: list[Any] = []
    for each in found:
        if not isinstance(each, GroupTable | StringGroupTable):
            return (), added_groups(collector, known, collector.supplier(), chain(tables, (each,), found))
        tables.append(each)
    finished = finished_tables(collector.keyed.downstream, list(_ranked(tables))) if tables else ()
    if finished is None:
        return (), added_groups(collector, known, collector.supplier(), tables)
    return finished, {}


def _ranked(tables: Iterable[Table]) -> Iterator[Table]:
    """Yield tables with ranks in the order in which they come."""
    first = 0
    for each in tables:
        yield each.ranked(first)
        first += len(each)


def finished_entries(
    downstream: Collector[Any, Any, Any],
    to: Callable[[Any, Any], Any] | None,
    step: Step,
    tables: Sequence[Table],
) -> Iterator[Block] | None:
    """Return the entry of the key and the finished value of each group, or the results of `to` for the two.

    None if sums need more than 64 bits.
    """
    found = finished_tables(downstream, tables)
    return None if found is None else (_entries(to, step, block) for block in found)


def _entries(to: Callable[[Any, Any], Any] | None, step: Step, found: Block) -> Block:
    if isinstance(found, Tuples) and to is None:
        _, keys, values = found.members
        return Entries((keys, values))
    return _each(step, to, given(found))


def _each(step: Step, to: Callable[[Any, Any], Any] | None, groups: Iterable[tuple[Any, ...]]) -> Iterator[Any]:
    with naming(step):
        yield from results_of_groups(identity, to, map(itemgetter(1, 2), groups))


def _finished(downstream: Collector[Any, Any, Any], table: Table) -> Column:
    known = downstream.on_columns()
    if known is None:
        raise NotColumnar("a collector that columns do not know")
    return _finished_by(downstream.finisher, known, table.counts, iter(table.sums))


def _finished_by(finisher: Callable[[Any], Any], known: InColumns, counts: Any, sums: Iterator[Any]) -> Column:
    # A finisher of the user's, as of `with_finish`, runs in Python: only known ones are replaced by columns.
    if known.parts:
        if finisher != known.total or known.whole is not tuple:
            raise NotColumnar("a finisher that Python runs")
        pairs = zip(known.finishers, known.parts, strict=True)
        return Tuples(tuple(_finished_by(*each, counts, sums) for each in pairs), len(counts))
    if known.is_filtered:
        counts = next(sums)
    if known.finds == "count" and finisher is identity:
        return _ints(counts)
    total = next(sums) if known.finds == "sum" else None
    if total is not None and finisher == known.total:
        return _total(known, counts, total)
    if total is not None and finisher == known.average:
        # Of no items the average is 0.0: so is 0 / 1.
        return _average(total, np.maximum(counts, 1))
    raise NotColumnar("a finisher that Python runs")


def _total(known: InColumns, counts: Any, total: Any) -> Column:
    if not isinstance(total, FloatSums):
        if known.kind is float:
            raise NotColumnar("sums of floats, of which there are none")
        return _ints(total)
    rounded = total.rounded()
    if known.kind is float or np.all(counts):
        return Floats(rounded)
    # Of no items the sum is the int 0, unless all become floats.
    return Objects([each if count else 0 for each, count in zip(rounded.tolist(), counts.tolist(), strict=True)])


def _average(total: Any, counts: Any) -> Floats:
    if isinstance(total, FloatSums):
        return Floats(total.rounded() / counts)
    found: Floats = quotient_of_ints(_ints(total), _ints(counts))
    return found


def _ints(values: Any) -> Ints:
    # `tight` replaces the bounds, which are not known here.
    return tight(Ints(values, 0, 0))


def _lines(downstream: Collector[Any, Any, Any], table: Table) -> Iterator[Any]:
    keys, ranks, containers = table_as_lists(downstream, table)
    yield from finished_lines(downstream, zip(ranks, keys, containers, strict=True))
