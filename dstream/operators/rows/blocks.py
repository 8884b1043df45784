"""Blocks: items in columns or as lazy rows, and `ColumnItems`, their iterator. Loads no NumPy."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, TypeAlias

from dstream.base.memory import BatchIterator

if TYPE_CHECKING:
    from dstream.operators.columns.values import Column

__all__ = [
    "SEQUENCES",
    "Block",
    "ColumnItems",
    "LazyRows",
    "blocks_behind",
    "blocks_of_range",
    "fewest_items",
    "given",
    "has_column_type",
    "is_worth_columns",
    "lists_of_few",
    "one_after_another",
    "stretches",
]


class LazyRows(ABC):
    """Rows whose items are created lazily.

    Attributes:
        size: the number of rows.
        is_evaluated: expressions are evaluated over the rows; otherwise functions are called with the items.
    """

    size: int
    is_evaluated = True

    @abstractmethod
    def portions(self) -> Iterator[Iterable[Any]]:
        """Return the items in portions that each fit into memory."""

    @abstractmethod
    def at(self, places: Any) -> LazyRows:
        """Return the rows at these positions, an array of ints, in the order of the array."""


Block: TypeAlias = "Column | Sequence[Any] | Iterator[Any]"
"""A column; a range or list that may become a column; or an iterator over items, which are created lazily."""

_FEWEST = 4096
_ROWS = 32_768
"""The number of rows whose column of numbers fits the cache of a core: 65,536 took half as long again (NumPy 2.4)."""


class ColumnItems(Iterator[Any]):
    """Iterator over items that are partly stored in columns.

    Attributes:
        is_read: no step has been applied to them: a consumer of objects reads the items instead of the blocks.

    Args:
        blocks: the blocks of the items, in order; each is used up before the next one is requested.
        items: an iterator over the same items, if it is faster than reading the blocks.
        taking: returns the items of a block; None: `given` does.
    """

    def __init__(
        self,
        blocks: Iterator[Block],
        items: Iterator[Any] | None = None,
        taking: Callable[[Block], Iterable[Any]] | None = None,
    ) -> None:
        # Blocks and items read one iterator: `_is_begun` is set when the items have begun, and the blocks may not.
        self._blocks = blocks
        self._items = chain.from_iterable(map(taking or given, blocks)) if items is None else items
        self._is_begun = False
        self.is_read = items is not None

    def __iter__(self) -> Iterator[Any]:
        # The chain itself, so that loops take items from C code.
        self._is_begun = True
        return self._items

    def __next__(self) -> Any:
        self._is_begun = True
        return next(self._items)

    def blocks(self) -> Iterator[Block]:
        """Return the blocks instead of the items."""
        return iter((self._items,)) if self._is_begun else self._blocks


def given(block: Block) -> Iterable[Any]:
    """Return the items of a block."""
    if isinstance(block, Sequence | Iterator):
        return block
    if isinstance(block, LazyRows):
        return chain.from_iterable(block.portions())
    from dstream.operators.columns.values import Tuples, items_of, windows_of  # NumPy made the column

    # Windows are made one by one, so that each can be freed before many others are made.
    return windows_of(block) if isinstance(block, Tuples) and block.whole is not None else items_of(block)


def blocks_behind(blocks: Iterator[Block], count: int) -> Iterator[Block]:
    """Yield the blocks without the first `count` items of the stream."""
    for block in blocks:
        if isinstance(block, Iterator):
            # Its length is unknown, so the later blocks are chained to it.
            yield islice(chain(block, chain.from_iterable(map(given, blocks))), min(count, sys.maxsize), None)
            return
        if isinstance(block, Sequence):
            rest: Block = block[count:] if count else block
            size = len(block)
        else:
            from dstream.operators.columns.values import rows_behind, size_of_column  # NumPy made the column

            size = size_of_column(block)
            rest = rows_behind(block, min(count, size)) if count else block
        if size > count:
            yield rest
        count = max(count - size, 0)


def one_after_another(parts: Iterator[Iterator[Any]]) -> Iterator[Any]:
    """Return the items of several parts, each opened when its predecessor is used up: in columns if the first is.

    Numbers in lists remain items: whether columns are faster for them depends on the steps, which are unknown.
    """
    first = next(parts, iter(()))
    parts = chain((first,), parts)
    if type(first) is not ColumnItems and type(first) is not _OF_RANGE:
        return chain.from_iterable(parts)
    is_read = type(first) is not ColumnItems or first.is_read
    return ColumnItems(chain.from_iterable(map(_blocks_of, parts)), chain.from_iterable(parts) if is_read else None)


def _blocks_of(part: Iterator[Any]) -> Iterator[Block]:
    if type(part) is ColumnItems:
        return part.blocks()
    return blocks_of_range(part) or iter((part,))


def lists_of_few(blocks: Iterator[Block]) -> Iterator[Block]:
    """Yield the blocks; items that are few beside columns are put into a list, which may become a column.

    The first rows of a file are such items. Other items are unchanged. Items before a failure are yielded before it.
    """
    few: list[Any] = []
    is_beside = False
    try:
        for block in blocks:
            if isinstance(block, Iterator):
                yield from _one_block(few, is_beside)
                taking = BatchIterator(block)
                few = taking.take(_FEWEST)
                if not taking.has_more():
                    continue
                few, block = [], chain(few, chain.from_iterable(iter(partial(taking.take, _ROWS), [])))
            is_beside = is_beside or not isinstance(block, Sequence | Iterator)
            yield from _one_block(few, is_beside)
            few = []
            yield block
    except Exception:
        yield from _one_block(few, False)
        raise
    yield from _one_block(few, is_beside)


def _one_block(items: list[Any], is_list: bool) -> Iterator[Block]:
    if items:
        yield items if is_list else iter(items)


def blocks_of_range(items: Iterator[Any]) -> Iterator[Block] | None:
    """Return the rest of a range as columns; None if the items are not a range, or if it is short."""
    parts = stretches(items, 0) if type(items) is _OF_RANGE else None
    return None if parts is None else _columns_of(parts)


def _columns_of(parts: Iterator[Sequence[Any]]) -> Iterator[Block]:
    from dstream.operators.columns.values import NotColumnar, column_of  # loads NumPy

    for part in parts:
        try:
            yield column_of(part)
        except NotColumnar:
            yield part


_OF_RANGE = type(iter(range(0)))


def stretches(items: Iterator[Any], work: int) -> Iterator[Sequence[Any]] | None:
    """Return the rest of a range or a list as slices, a short one first; None if columns would not be faster.

    Args:
        items: an iterator over a range or a list, which is not advanced.
        work: the number of operators that the steps apply to each item.
    """
    if type(items) not in SEQUENCES or items.__length_hint__() < _FEWEST:  # type: ignore[attr-defined]
        return None
    # Only `__reduce__` returns the list or range of an iterator. CPython 3.12 returns the rest of a range, no position.
    parts: Any = items.__reduce__()
    (sequence,), start = parts[1], parts[2] if len(parts) > 2 else 0
    return _stretches(sequence, start or 0) if is_worth_columns(sequence, work) else None


def is_worth_columns(items: Any, work: int) -> bool:
    """Return whether `work` operators on each item take longer than to make columns of a range or a list."""
    if type(items) is list:
        return work >= _WORTH_A_LIST and bool(items) and has_column_type(items[0])
    return type(items) is range


def has_column_type(item: Any) -> bool:
    """Return whether a list of items of this type may become a column."""
    return type(item) in _NUMBERS


def fewest_items() -> int:
    """Return how many items a range or a list needs to become columns."""
    return _FEWEST


_WORTH_A_LIST = 6
"""The number of operators that cost as much in a loop as a column of a list's numbers, 40 ns each (CPython 3.11)."""
_NUMBERS = frozenset({int, float, bool})
"""Types of the items of lists that become columns. Columns of tuples cost 400 ns a tuple, ten times a step."""
SEQUENCES = frozenset({type(iter(range(0))), type(iter([]))})
"""The iterators over ranges and lists."""


def _stretches(sequence: Sequence[Any], start: int) -> Iterator[Sequence[Any]]:
    rows = _FEWEST
    while stretch := sequence[start : start + rows]:
        yield stretch
        start, rows = start + rows, _ROWS
