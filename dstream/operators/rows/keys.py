"""Keys and values of the items of a side, for operations by key."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from dstream.base.records import record
from dstream.failures import naming, shown
from dstream.keys import canonical, canonical_keys
from dstream.operators.rows.operations import Operation, Task, operation
from dstream.plan.operations.keyed import PartitionBy
from dstream.plan.operations.pairs import Pairing, SemiJoin
from dstream.plan.steps import KeyInColumns, Step, unchanged
from dstream.values import Entry
from dstream.values.entries import key_of
from dstream.values.user_functions import results

if TYPE_CHECKING:
    from dstream.operators.joins.columns import JoinRows

__all__ = ["Side", "item_key", "sides_of"]


@record(slots=False)
class Side:
    """One side of a join.

    Attributes:
        key: returns the key of an item; None: the items are entries.
        step: the join.
        in_columns: the key function as an expression over columns, if it is a function that is read.
        name: which of the two it is, for messages.
    """

    key: Callable[[Any], Any] | None
    step: Step
    in_columns: KeyInColumns | None = None
    name: str = "left"

    @property
    def has_keys_in_columns(self) -> bool:
        """Return whether items in columns have keys in columns: without a key function, or with a known one."""
        return self.in_columns is not None or self.key is None or self.key is key_of or self.key is unchanged

    def rows(self, block: Any) -> JoinRows | None:
        """Return the keys and the items or values of a block whose keys are a column of ints; None if they are not."""
        from dstream.operators.joins.columns import rows_of_block  # loads NumPy, which made the column

        return None if isinstance(block, Iterator | Sequence) else rows_of_block(block, self.key, self.in_columns)

    def pairs(self, items: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
        """Yield (canonical key, item or value of an entry) of each item, reading nothing ahead."""
        key_of = self.key
        with naming(self.step):
            for item in items:
                if key_of is None:
                    key, value = _parts(item, self.name)
                    yield canonical(key), value
                else:
                    yield canonical(key_of(item)), item

    def columns(self, items: list[Any]) -> tuple[list[Any], list[Any]]:
        """Return the canonical keys of items, and the items or values, as two lists."""
        if self.key is not None:
            return canonical_keys(results(self.key, items), items), items
        # Two passes in C accept most lists; only for other lists a loop finds the invalid item.
        if not _ENTRIES.issuperset(map(type, items)) or set(map(len, items)) != {2}:
            for item in items:
                _parts(item, self.name)
        # `zip(*items)` would make an iterator for each item, which wakes the garbage collector.
        return canonical_keys([key for key, _ in items], items), [value for _, value in items]


class KeysAlone(Side):
    """A side of which only the keys matter: each is sent once, as far as that costs nothing, without its item."""

    def rows(self, block: Any) -> JoinRows | None:
        from dstream.operators.joins.columns import each_key_once  # loads NumPy, which made the column

        rows = super().rows(block)
        return None if rows is None else each_key_once(rows)

    def pairs(self, items: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
        return ((key, None) for key, _ in super().pairs(items))

    def columns(self, items: list[Any]) -> tuple[list[Any], list[Any]]:
        keys, _ = super().columns(items)
        found = list(dict.fromkeys(keys))
        return found, [None] * len(found)


_ENTRIES = frozenset({Entry, tuple})


def _parts(item: Any, side: str) -> tuple[Any, Any]:
    if isinstance(item, tuple) and len(item) == 2:
        return item
    found = f"not {shown(item)}, an item of the {side} stream"
    raise TypeError(f"without `on` the items of both streams are entries, (key, value), {found}")


def sides_of(
    node: Pairing, columns: tuple[KeyInColumns | None, KeyInColumns | None] = (None, None)
) -> tuple[Side, Side]:
    """Return the left and the right side of a join; `columns` has the expressions of the two key functions."""
    right = KeysAlone if isinstance(node, SemiJoin) else Side
    return Side(node.left_key, node.step, columns[0]), right(node.right_key, node.step, columns[1], "right")


@operation.register
def _(node: PartitionBy) -> Operation:
    return functools.partial(_checked, node.key, node.step)


def _checked(key: Callable[[Any], Any] | None, step: Step, items: Iterator[Any], task: Task) -> Iterator[Any]:
    """Yield the items of the only partition; raise for a key that could not be routed."""
    with naming(step):
        for item in items:
            item_key(key, item)
            yield item


def item_key(key: Callable[[Any], Any] | None, item: Any) -> Any:
    """Return the canonical key of an item: the result of `key`, the key of an entry, or the item itself."""
    if key is not None:
        return canonical(key(item))
    return canonical(item.key if isinstance(item, Entry) else item)
