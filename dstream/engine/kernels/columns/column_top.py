"""The first items in the order of their keys, of items that stand in columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np

from dstream.engine.kernels.columns.column_items import Block, given
from dstream.engine.kernels.columns.column_sorting import Ranks, ranks_of_items, ranks_of_rows
from dstream.engine.kernels.columns.column_values import Column, Withheld, items_of, rows_at
from dstream.engine.kernels.columns.verifying_columns import compare_results
from dstream.engine.kernels.first_items import taken_first
from dstream.plan.steps import KeyInColumns
from dstream.spi import Collector, InColumns

__all__ = ["first_of_blocks", "top_of_blocks"]


def top_of_blocks(
    blocks: Iterator[Block],
    count: int,
    key: Callable[[Any], Any] | None,
    reverse: bool,
    columns: KeyInColumns,
    step: str,
) -> list[Any]:
    """Return the first `count` items in the order of their keys, stable.

    Args:
        blocks: of all items.
        count: one or more.
        key: gives the key of an item; None if the item is it.
        reverse: the greatest key comes first.
        columns: what is known of the key function.
        step: the call of the user's, for messages.

    Raises:
        EngineError: what is verified is not what Python gives.
    """
    held: list[Any] = []
    for block in blocks:
        if isinstance(block, Sequence | Iterator):
            held = taken_first(held, block, count, key, reverse)
            continue
        found = _candidates(block, held, count, key, reverse, columns)
        if found is None:
            found = items_of(block)
        elif columns.is_verified:
            expected = taken_first([*held], items_of(block), count, key, reverse)
            compare_results(step, taken_first([*held], found, count, key, reverse), expected, lambda: "a block")
        held = taken_first(held, found, count, key, reverse)
    return held


def _candidates(
    block: Column,
    held: list[Any],
    count: int,
    key: Callable[[Any], Any] | None,
    reverse: bool,
    columns: KeyInColumns,
) -> list[Any] | None:
    """Return the rows that may be among the first, in order; None if their keys have no ranks beside those held."""
    try:
        ranks = ranks_of_rows(columns.expression, block, reverse)
    except Withheld:
        return None
    limit = ranks_of_items(held[-1:], key, reverse) if len(held) == count else None
    if len(held) == count and (limit is None or limit.kind != ranks.kind):
        return None
    return _first_rows(block, ranks, count, limit)


def _first_rows(column: Column, ranks: Ranks, count: int, before: Ranks | None) -> list[Any]:
    values, places = ranks.values, None
    if before is not None:
        places = np.flatnonzero(values < before.values[0])
        values = values.take(places)
    first = np.argsort(values, kind="stable")[:count]
    return items_of(rows_at(column, first if places is None else places.take(first)))


def first_of_blocks(collector: Collector[Any, Any, Any], known: InColumns, blocks: Iterator[Block]) -> Iterator[Any]:
    """Give the items that a collector of first ones needs, in order: of blocks that have ranks no others.

    Raises:
        EngineError: what is verified is not what Python gives.
    """
    return chain.from_iterable(_needed(collector, known, block) for block in blocks)


def _needed(collector: Collector[Any, Any, Any], known: InColumns, block: Block) -> Iterable[Any]:
    if isinstance(block, Sequence | Iterator):
        return given(block)
    try:
        ranks = ranks_of_rows(known.expression, block, known.reverse).values
    except Withheld:
        return given(block)
    if known.first == 1 and len(ranks):
        places = np.array([np.argmin(ranks)])
    else:
        places = np.sort(np.argsort(ranks, kind="stable")[: known.first])
    found = items_of(rows_at(block, places))
    if known.is_verified:
        one, other = (
            collector.finisher(collector.accumulated(collector.supplier(), each)) for each in (found, given(block))
        )
        compare_results(repr(collector), [one], [other], lambda: f"a block of {len(ranks):,} items")
    return found
