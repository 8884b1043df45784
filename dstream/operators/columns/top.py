"""The first items in the order of their keys, of items in columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dstream.expressions import Expression
from dstream.failures.attribution import each
from dstream.operators.columns.chain_evaluation import compare_results
from dstream.operators.columns.evaluation import evaluated
from dstream.operators.columns.ranks import ranks_of_column, ranks_of_items
from dstream.operators.columns.strings import Strings, array_of_ints, numbers_of_array
from dstream.operators.columns.values import (
    Column,
    NotColumnar,
    column_at_hand,
    items_of,
    rows_at,
    size_of_column,
)
from dstream.operators.rows.blocks import Block, given
from dstream.operators.rows.spill import taken_first
from dstream.plan.steps import KeyInColumns
from dstream.schema.types import ColumnTypeError, scalar_of
from dstream.spi import Collector, InColumns

__all__ = ["first_of_blocks", "items_needed", "top_of_blocks"]


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
        found = _candidates(block, held, count, key, reverse, columns)
        if found is None:
            found = given(block)
        elif columns.is_verified:
            expected = taken_first([*held], given(block), count, key, reverse)
            compare_results(step, taken_first([*held], found, count, key, reverse), expected, lambda: "a block")
        held = taken_first(held, found, count, key, reverse)
    return held


def _candidates(
    block: Block,
    held: list[Any],
    count: int,
    key: Callable[[Any], Any] | None,
    reverse: bool,
    columns: KeyInColumns,
) -> Iterable[Any] | None:
    """Return the rows that may be among the first; None if their keys have no order in columns beside those held."""
    try:
        column = column_at_hand(block)
        keys = _keys_of(columns.expression, column)
        # With fewer than `count` items so far, any row may be among the first.
        last = held[-1:] if len(held) == count else []
        places = _first_places(keys, count, reverse, last if key is None else each(key, last))
    except NotColumnar:
        return None
    return items_of(rows_at(column, places))


def _keys_of(expression: Expression | None, column: Column) -> Column:
    if expression is None:
        raise NotColumnar("a key function that Python runs")
    return evaluated(expression, (column,))


def _first_places(keys: Column, count: int, reverse: bool, before: Sequence[Any]) -> NDArray[np.intp]:
    """Return the rows of the first keys, of equal ones the earlier.

    Args:
        keys: of all rows.
        count: how many rows, at most.
        reverse: the greatest key comes first.
        before: one key, if only those matter that precede it.

    Raises:
        NotColumnar: the keys are no numbers and no texts, or not of the type of that one.
    """
    if isinstance(keys, Strings):
        return _first_texts(keys.values, count, reverse, before)
    ranks = ranks_of_column(keys, reverse)
    values, places = ranks.values, np.arange(0)
    if before:
        limit = ranks_of_items([*before], None, reverse)
        if limit is None or limit.kind != ranks.kind:
            raise NotColumnar("keys of several types")
        # Less, not equal: of equal keys the item that was found earlier stays.
        places = np.flatnonzero(values < limit.values[0])
        values = values.take(places)
    # `argmin` returns the first of equal ranks, as a stable sort does.
    first = np.array([np.argmin(values)]) if count == 1 and len(values) else _least(values, count)
    return places.take(first) if before else first


def _least(ranks: NDArray[np.int64], count: int) -> NDArray[np.intp]:
    return np.argsort(ranks, kind="stable")[:count]


def _first_texts(texts: Any, count: int, reverse: bool, before: Sequence[Any]) -> NDArray[np.intp]:
    """Return the rows of the first of some texts, which have the order of their bytes in UTF-8."""
    from pyarrow.compute import SelectKOptions, call_function

    comes_before = "greater" if reverse else "less"
    places: NDArray[np.intp] = np.arange(len(texts))
    if before:
        places = _rows_where(comes_before, texts, _text_of_arrow(before[0]))
        texts = texts.take(array_of_ints(places))
    if len(texts) <= count:
        return places
    # `select_k_unstable` keeps no order among equal strings, so only the last of its keys is used.
    options = SelectKOptions(count, [("", "descending" if reverse else "ascending")])
    last: Any = texts[call_function("select_k_unstable", [texts], options)[-1].as_py()]
    chosen = _rows_where(comes_before, texts, last)
    equal = _rows_where("equal", texts, last)
    return places.take(np.sort(np.concatenate((chosen, equal[: count - len(chosen)]))))


def _text_of_arrow(key: Any) -> Any:
    import pyarrow as pa

    if type(key) is not str:
        raise NotColumnar("keys of several types")
    try:
        return scalar_of(key, pa.string())
    except ColumnTypeError as error:
        raise NotColumnar("a text with a surrogate") from error


def _rows_where(relation: str, texts: Any, other: Any) -> NDArray[np.intp]:
    from pyarrow.compute import call_function

    found: Any = call_function(relation, [texts, other])
    return np.flatnonzero(numbers_of_array(found))


def first_of_blocks(collector: Collector[Any, Any, Any], known: InColumns, blocks: Iterator[Block]) -> Iterator[Any]:
    """Return the items that a collector of first ones needs, in order: of blocks with keys in columns no others.

    Raises:
        EngineError: what is verified is not what Python gives.
    """
    return items_needed(collector, known, blocks, column_at_hand, _places)


def _places(known: InColumns, column: Column) -> NDArray[np.intp]:
    # In the order of the rows: of equal keys a collector keeps the one that it meets first.
    return np.sort(_first_places(_keys_of(known.expression, column), known.first, known.reverse, ()))


def items_needed(
    collector: Collector[Any, Any, Any],
    known: InColumns,
    blocks: Iterator[Block],
    column_of_block: Callable[[Block], Column],
    places: Callable[[InColumns, Column], NDArray[np.intp]],
) -> Iterator[Any]:
    """Return the items of blocks that a collector needs, in order, and all of those that are not columnar.

    Args:
        collector: what the items are for.
        known: its column form.
        blocks: have the items.
        column_of_block: makes the column of a block; it and `places` raise NotColumnar.
        places: gives the rows that matter.

    Raises:
        EngineError: what is verified is not what Python gives.
    """
    return chain.from_iterable(_needed(collector, known, block, column_of_block, places) for block in blocks)


def _needed(
    collector: Collector[Any, Any, Any],
    known: InColumns,
    block: Block,
    column_of_block: Callable[[Block], Column],
    places: Callable[[InColumns, Column], NDArray[np.intp]],
) -> Iterable[Any]:
    try:
        column = column_of_block(block)
        chosen = places(known, column)
    except NotColumnar:
        return given(block)
    found = items_of(rows_at(column, chosen))
    if known.is_verified:
        one, other = (_finished(collector, each) for each in (found, given(block)))
        compare_results(repr(collector), one, other, lambda: f"a block of {size_of_column(column):,} items")
    return found


def _finished(collector: Collector[Any, Any, Any], items: Iterable[Any]) -> list[Any]:
    container = collector.accumulated(collector.supplier(), items)
    if collector.keyed is None:
        return [collector.finisher(container)]
    return list(collector.keyed.downstream.finished(container.items()))
