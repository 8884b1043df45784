"""Reading the items of a split, with exceptions that name the source.

The generator that does so costs a tenth of what an item-wise step costs, so it stands only around sources
that run code for each item.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any, cast

from dstream.engine.kernels.columns.column_items import Block, ColumnItems, blocks_of_range
from dstream.failures import naming
from dstream.spi import ArrowRows, Misread, Split, SplitOfRecords

__all__ = ["items_of"]

_NEVER_FAIL = frozenset(map(type, map(iter, ([], (), range(0), range(2**70), ""))))


def items_of(
    split: Split[Any],
    step: Any,
    misread: Callable[[Misread], Iterable[Any]] | None = None,
    *,
    may_be_columns: bool = False,
) -> Iterator[Any]:
    """Open a split and give its items; an exception meanwhile names `step`.

    Args:
        split: of any source; one of records if there is a `misread`.
        step: how the source names itself.
        misread: says what takes the place of a bad record.
        may_be_columns: who asks takes `ColumnItems`, too.
    """
    if misread is not None:
        return _named(cast("SplitOfRecords[Any]", split).read_past(misread), step)
    with naming(step):
        read_blocks = getattr(split, "read_blocks", None)  # Asking for `InBlocks` takes as long as a small job.
        if read_blocks is not None:
            blocks = _named(read_blocks(), step)
            return ColumnItems(blocks) if getattr(split, "gives_texts", False) else chain.from_iterable(blocks)
        items = split.read()
        arrow_rows = getattr(split, "arrow_rows", None) if may_be_columns else None
        rows = None if arrow_rows is None else arrow_rows()
    items = items if type(items) in _NEVER_FAIL else _named(items, step)
    if rows is not None:
        return ColumnItems(_blocks(rows, step), items)
    of_range = blocks_of_range(items) if may_be_columns else None
    return items if of_range is None else ColumnItems(of_range, items)


def _blocks(rows: Iterator[ArrowRows | Iterator[Any]], step: Any) -> Iterator[Block]:
    from dstream.engine.kernels.columns.column_records import blocks_of_rows  # loads NumPy and pyarrow

    yield from blocks_of_rows(_named(rows, step), step)


def _named(items: Iterator[Any], step: Any) -> Iterator[Any]:
    with naming(step):
        yield from items
