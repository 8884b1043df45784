"""Containers of groups whose numbers were found in columns, and finished results of the tables that a task receives."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dstream.failures import naming
from dstream.operators.columns.arithmetic import quotient_of_ints
from dstream.operators.columns.entries import Entries
from dstream.operators.columns.groups import StringGroupTable, merged_groups
from dstream.operators.columns.values import Column, Floats, Ints, NotColumnar, Tuples, tight
from dstream.operators.rows.blocks import Block, given
from dstream.operators.rows.group_tables import Table, finished_lines, results_of_groups, table_as_lists
from dstream.plan.steps import Step
from dstream.spi import Collector, InColumns, identity

__all__ = [
    "Found",
    "FoundLists",
    "FoundNumbers",
    "FoundOfParts",
    "FoundWithin",
    "finished_entries",
    "finished_tables",
    "taken",
]


Int64s = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class FoundNumbers:
    """Ints of each group: their count, and the sum, the least and the greatest one, as far as they are needed."""

    columns: tuple[Int64s, ...]


@dataclass(frozen=True, slots=True)
class FoundLists:
    """The numbers of each group in order: floats, or few ints."""

    lists: list[list[Any]]


@dataclass(frozen=True, slots=True)
class FoundOfParts:
    """What several collectors take of each group."""

    parts: tuple[Found, ...]


@dataclass(frozen=True, slots=True)
class FoundWithin:
    """Groups within groups, in the order in which their keys were first seen.

    Attributes:
        keys: of the inner groups.
        numbers: of the outer group in which each inner one is.
        found: of the inner groups.
    """

    keys: list[Any]
    numbers: list[int]
    found: Found


Found: TypeAlias = FoundNumbers | FoundLists | FoundOfParts | FoundWithin
"""What a collector takes of each group."""


def taken(known: InColumns, containers: list[Any], found: Found) -> list[Any]:
    """Return the containers of groups, one after another, behind what is found of each group."""
    if not containers:  # Of no groups nothing tells how many parts there are.
        return containers
    match found:
        case FoundOfParts(parts):
            columns = list(zip(*containers, strict=True))
            columns = [taken(*each) for each in zip(known.parts, map(list, columns), parts, strict=True)]  # type: ignore[misc]
            for container, *following in zip(containers, *columns, strict=True):
                container[:] = following
            return containers
        case FoundWithin(keys, numbers, inner):
            _take_within(known, containers, keys, numbers, inner)
            return containers
        case FoundLists(lists):
            assert known.take_all is not None, "what takes numbers takes lists of them"
            return list(map(known.take_all, containers, lists))
        case FoundNumbers(columns):
            assert known.take is not None, "what counts takes counts"
            return list(map(known.take, containers, *(each.tolist() for each in columns)))


def _take_within(known: InColumns, containers: list[Any], keys: list[Any], numbers: list[int], found: Found) -> None:
    assert known.downstream is not None, "groups have one"
    assert known.downstream.supplier is not None, "of groups within groups it is known"
    supplier = known.downstream.supplier
    outer = [containers[number] for number in numbers]
    inner = [groups[key] if key in groups else supplier() for groups, key in zip(outer, keys, strict=True)]
    for groups, key, container in zip(outer, keys, taken(known.downstream, inner, found), strict=True):
        groups[key] = container


_MOST_GROUPS = 131_072
"""So many groups go on at a time, or fewer with long keys."""


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
        return _ints(total)
    if total is not None and finisher == known.average:
        # Of no items the average is 0.0: so is 0 / 1.
        found: Floats = quotient_of_ints(_ints(total), _ints(np.maximum(counts, 1)))
        return found
    raise NotColumnar("a finisher that Python runs")


def _ints(values: Any) -> Ints:
    # `tight` replaces the bounds, which are not known here.
    return tight(Ints(values, 0, 0))


def _lines(downstream: Collector[Any, Any, Any], table: Table) -> Iterator[Any]:
    keys, ranks, containers = table_as_lists(downstream, table)
    yield from finished_lines(downstream, zip(ranks, keys, containers, strict=True))
