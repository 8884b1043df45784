"""The lookup table of a hash join: its cost, its contents, and the lookup by the left side."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from dstream.base.memory import BatchIterator, pieces
from dstream.base.records import record
from dstream.errors import UnsupportedError
from dstream.failures import naming
from dstream.keys import canonical, canonical_all, canonical_keys
from dstream.operators.rows.batches import Batcher, dumps_columns, loads_items
from dstream.plan.operations.pairs import HashJoin
from dstream.plan.steps import Step, no_key
from dstream.values.user_functions import results

__all__ = ["LookupTable", "RightSide", "looked_up", "table_here", "table_of"]


LookupTable = dict[Any, list[Any]]
"""The parts of right items in the pairs, in order, by canonical key."""

Columns = tuple[list[Any], list[Any]]

_CHUNK = 512


@record(slots=False)
class RightSide:
    """The right side of a join, and its conversion to a table.

    Attributes:
        key: returns the key of an item.
        projecting: returns the part of an item that the pairs contain; None: the item.
        step: the join.
        limit: the maximum bytes of the pickled side.
    """

    key: Callable[[Any], Any]
    projecting: Callable[[Any], Any] | None
    step: Step
    limit: int

    @staticmethod
    def of(node: HashJoin, limit: int) -> RightSide:
        """Return the right side of a join, where `limit` is the bound of the context."""
        assert node.right_key is not None, "a hash join has two keys"
        own = node.broadcast_limit
        return RightSide(node.right_key, node.projecting, node.step, limit if own is None else own)

    def columns(self, items: list[Any]) -> Columns:
        """Return the canonical keys of items, and their parts in the pairs."""
        keys = canonical_keys(results(self.key, items), items)
        return keys, items if self.projecting is None else results(self.projecting, items)

    def batches(self, items: Iterable[Any]) -> Iterator[tuple[int, bytes]]:
        """Yield (number of items, pickled columns); stop as soon as they are too large.

        Raises:
            UnsupportedError: the items have more bytes than the limit.
        """
        batcher, taking, size = Batcher(), BatchIterator(items), 0
        with naming(self.step):
            while chunk := taking.take(batcher.count):
                data = dumps_columns(self.columns(chunk))
                size += len(data)
                # At each batch, so that a side that is too large is refused before all of it is read.
                self.check(size, at_least=True)
                batcher.learn(len(chunk), len(data))
                yield len(chunk), data

    def check(self, size: int, *, at_least: bool = False) -> None:
        """Refuse a right side that is too large to go to every task.

        Raises:
            UnsupportedError: it has more bytes than the limit.
        """
        if size > self.limit:
            more = "at least " if at_least else ""
            instead = "Use join(), which holds neither side in memory" if self.key is not no_key else "Swap the sides"
            raise UnsupportedError(
                f"the right side of {self.step.label} has {more}{size:,} bytes, and its broadcast_limit is "
                f"{self.limit:,}: every task would hold all of it. {instead}, or raise broadcast_limit"
            )


def table_of(payloads: Iterable[Any], step: Step) -> LookupTable:
    """Return the table of pickled columns, with keys that are canonical in this process."""
    table = LookupTable()
    with naming(step):
        for payload in payloads:
            # Keys were canonical in another process; a NaN is another object in this process.
            keys, values = loads_items(payload)
            _add(table, canonical_all(keys), values)
    return table


def table_here(side: RightSide, items: Iterable[Any]) -> LookupTable:
    """Return the table of items that are in this process, without pickling them.

    Their size is measured as for workers. Objects that cannot be pickled have no size.

    Raises:
        UnsupportedError: the items have more bytes than the limit.
    """
    table, size = LookupTable(), 0
    with naming(side.step):
        for chunk in pieces(items, _CHUNK):
            columns = side.columns(chunk)
            size += _size(columns)
            side.check(size, at_least=True)
            _add(table, *columns)
    return table


def _size(columns: Columns) -> int:
    try:
        return len(pickle.dumps(columns, protocol=5))
    # The items remain in this process, so that an object that cannot be pickled is no error.
    except Exception:
        return 0


def _add(table: LookupTable, keys: list[Any], values: list[Any]) -> None:
    for key, value in zip(keys, values, strict=True):
        if key in table:
            table[key].append(value)
        else:
            table[key] = [value]


def looked_up(
    table: Callable[[], LookupTable],
    key_of: Callable[[Any], Any],
    is_inner: bool,
    step: Step,
    items: Iterator[Any],
) -> Iterator[tuple[Any, Any]]:
    """Yield a pair for each match of each item, reading nothing ahead; the table is built before the first item.

    An item without a match is emitted once, with None, unless `is_inner`.
    """
    # Before the first item is read: the table may wait for its own job, or raise.
    find = table().get
    others: tuple[Any, ...] = () if is_inner else _NO_MATCH
    with naming(step):
        for item in items:
            for match in find(canonical(key_of(item)), others):
                yield item, match


_NO_MATCH = (None,)
