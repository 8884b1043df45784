"""Counting the items that pass the steps of a chain, block by block, as the loop over items counts them.

A loop takes an item when somebody asks for its next result. So a block that is used up counts as a whole; of the last
one count the rows up to the one that the last result came from, since whoever asks may stop there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, compress, count
from typing import TYPE_CHECKING, Any, TypeAlias

from dstream.engine.kernels.columns.column_items import Block, ColumnItems, given
from dstream.engine.kernels.fused_steps import run_chain
from dstream.engine.kernels.item_count import ItemCount, one_by_one
from dstream.plan.steps import Op

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dstream.engine.kernels.columns.column_texts import Lists
    from dstream.engine.kernels.columns.column_values import Column

__all__ = ["OpenBlock", "Passed", "counted_items"]

Passed: TypeAlias = "int | NDArray[np.bool_] | Lists"
"""What a step did to a block: how many rows it counted, which a filter let pass, or the lists that it took apart."""


class OpenBlock:
    """The block that is being used, and what counts of it.

    Args:
        ops: the steps; those that count have an `ItemCount`.
    """

    def __init__(self, ops: Sequence[Op]) -> None:
        self._counts: list[ItemCount] = [op.fn for op in ops if isinstance(op.fn, ItemCount)]
        self._passed: Sequence[Passed] = ()
        self._taken: Iterator[int] | None = None
        for place, each in enumerate(self._counts):
            each.of_open_block = partial(self._counted, place)

    def begin(self, passed: Sequence[Passed]) -> None:
        """Take what the steps did to a block, before it is given on."""
        self._passed = passed

    def end(self) -> None:
        """Count all of it: whoever uses it wants the next one."""
        for each, rows in zip(self._counts, _whole(self._passed), strict=False):
            each.add(rows)
        self._passed = ()

    def items(self, block: Block) -> Iterable[Any]:
        """Return the items of the block, and count how many are taken, in C code."""
        self._taken = taken = count(1)
        return compress(given(block), taken)

    def _counted(self, place: int) -> int:
        """Return how many items one of those who count has counted, by its place."""
        if self._taken is not None:  # Otherwise somebody has all of the block.
            self._passed, self._taken = _up_to(self._passed, next(self._taken) - 1), None
        rows = _whole(self._passed)
        return rows[place] if place < len(rows) else 0


def _whole(passed: Sequence[Passed]) -> list[int]:
    """Return how many rows of all were counted, step by step; behind one that leaves none nobody counted."""
    return [each for each in passed if isinstance(each, int)]


def _up_to(passed: Sequence[Passed], taken: int) -> list[int]:
    """Return how many rows were counted at each step when so many results had been taken."""
    import numpy as np

    last = taken - 1
    rows = []
    for each in reversed(passed):
        if isinstance(each, int):
            rows.append(last + 1)
        elif taken and isinstance(each, np.ndarray):
            last = int(np.flatnonzero(each)[last])
        elif taken:
            last = int(np.searchsorted(each.ends(), last, side="right"))  # type: ignore[union-attr]
    return rows[::-1]


def counted_items(ops: Sequence[Op], items: ColumnItems) -> ColumnItems:
    """Return items to which steps do nothing but count them."""
    open_block = OpenBlock(ops)
    blocks = _counted_blocks(ops, items.blocks(), open_block)
    if not items.is_read:
        return ColumnItems(blocks, taking=open_block.items)
    # The items are asked for when the first one is: until then the blocks may be.
    return ColumnItems(blocks, chain.from_iterable(run_chain(one_by_one(ops), each) for each in (items,)))


def _counted_blocks(ops: Sequence[Op], blocks: Iterator[Block], open_block: OpenBlock) -> Iterator[Block]:
    for block in blocks:
        if isinstance(block, Iterator):
            yield run_chain(one_by_one(ops), block)
            continue
        open_block.begin([size_of_block(block)] * len(ops))
        yield block
        open_block.end()


def size_of_block(block: Column | Sequence[Any]) -> int:
    """Return how many items a block has."""
    if isinstance(block, Sequence):
        return len(block)
    from dstream.engine.kernels.columns.column_values import size_of_column  # NumPy made the column

    return size_of_column(block)
