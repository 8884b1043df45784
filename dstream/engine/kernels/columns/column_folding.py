"""Values of a key that an operator of Python puts together, such as `+`: each container made in the order of its items.

Ints give the same in any order, floats do not: `0.1 + 1 + 2` has other digits than `0.1 + 3`. Of tables and items that
come by turns, one container is made of all for each key, as it would be without columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeAlias

from dstream.engine.kernels.columns.column_groups import GroupTable, merged_tables
from dstream.engine.kernels.columns.column_items import Block, given
from dstream.engine.kernels.columns.column_row_groups import RowGroups
from dstream.engine.kernels.columns.column_values import Withheld
from dstream.engine.kernels.columns.text_groups import TextGroupTable, merged_text_tables
from dstream.engine.memory_bound import Bound
from dstream.memory import pieces
from dstream.spi import Collector

__all__ = ["FoldedGroups", "Table", "folded"]

Table: TypeAlias = GroupTable | TextGroupTable | RowGroups
Taking: TypeAlias = Callable[[Any, Table], Any]
"""Takes a table into the container of all groups; returns this."""

_PIECE = 512
_MOST_BYTES = 2**30
"""Keys of one array need places of 32 bits."""


@dataclass(frozen=True, slots=True)
class FoldedGroups:
    """Groups, as their collector holds them.

    Attributes:
        groups: the container of all of them.
    """

    groups: Any


def folded(
    collector: Collector[Any, Any, Any],
    take: Taking,
    found: Iterator[Table | Iterable[Any]],
    blocks: Iterator[Block],
    bound: Bound,
) -> Iterator[Table | FoldedGroups]:
    """Give the groups of tables of ints, and of the items between them; past the memory bound in several rounds.

    A collector of such groups begins with a container for ints, and makes one of another type from the first value on
    that is none. From there on no block is looked at in columns.

    Args:
        collector: makes the groups.
        take: takes a table into its container.
        found: tables, and in their places the items of blocks that make none, in order.
        blocks: what `found` reads; where it gives items, it has read no block behind them.
        bound: asks for rounds.
    """
    fold = _Fold(collector, take, bound)
    for each in found:
        if isinstance(each, Table):
            yield from fold.with_table(each)
            continue
        yield from fold.with_items(each)
        if not fold.is_of_ints:
            yield from fold.with_items(chain.from_iterable(map(given, blocks)))
    yield from fold.rest()


class _Fold:
    """The groups of one round, of which those of the last tables are not in the container yet."""

    def __init__(self, collector: Collector[Any, Any, Any], take: Taking, bound: Bound) -> None:
        self._collector = collector
        self._take = take
        self._bound = bound
        self._begin()

    def _begin(self) -> None:
        self._groups = self._collector.supplier()
        self._of_ints = type(self._groups)
        self._tables: list[Table] = []
        self._costs = 0

    @property
    def is_of_ints(self) -> bool:
        """Whether no other values are among the groups."""
        return type(self._groups) is self._of_ints

    def with_table(self, table: Table) -> Iterator[Table | FoldedGroups]:
        """Take a table; give the groups if they are too many."""
        self._tables.append(table)
        self._costs += table.cost()
        return self._round() if self._bound.exceeded(self._costs) else iter(())

    def with_items(self, items: Iterable[Any]) -> Iterator[Table | FoldedGroups]:
        """Take items; give the groups whenever they are too many."""
        self._take_tables()
        for piece in pieces(items, _PIECE):
            self._groups = self._collector.accumulated(self._groups, piece)
            del piece
            if self._bound.exceeded():
                yield from self._round()

    def _round(self) -> Iterator[Table | FoldedGroups]:
        yield from self.rest()
        self._begin()
        self._bound.spilled()

    def _take_tables(self) -> None:
        for table in self._tables:
            self._groups = self._take(self._groups, table)
        self._tables, self._costs = [], 0

    def rest(self) -> Iterator[Table | FoldedGroups]:
        """Give the groups: as a table if they are tables alone."""
        table = None if self._groups or not self._tables else _together(self._tables)
        if table is not None:
            yield table
            return
        self._take_tables()
        if self._groups:
            yield FoldedGroups(self._groups)


def _together(tables: list[Table]) -> Table | None:
    """Return tables as one that has each key once; None if that is none."""
    if len(tables) == 1:
        return tables[0]
    ints = [each for each in tables if isinstance(each, GroupTable)]
    texts = [each for each in tables if isinstance(each, TextGroupTable)]
    try:
        if len(ints) == len(tables):
            return merged_tables(ints)
        if len(texts) == len(tables) and sum(each.key_bytes() for each in texts) <= _MOST_BYTES:
            return merged_text_tables(texts)
    except Withheld:  # Sums of more than 64 bits are ints of Python.
        pass
    return None
