"""Steps of a chain on columns: filtered blocks, counts, fallback, and `columns="verify"`.

A loop takes an item when its next result is requested. So a block that is used up counts as a whole; of the last
block count the rows up to that of the last result, since the consumer may stop there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, time
from decimal import Decimal
from functools import partial
from itertools import chain, compress, count, zip_longest
from typing import TYPE_CHECKING, Any, TypeAlias

from dstream.errors import ColumnsDifferError
from dstream.failures import shown
from dstream.operators.columns.arithmetic import truth
from dstream.operators.columns.entries import are_shared, check_unshared
from dstream.operators.columns.evaluation import evaluated
from dstream.operators.columns.strings import StringLists, Strings, lists_that_have
from dstream.operators.columns.values import (
    Bools,
    Column,
    ConstantColumn,
    NotColumnar,
    Objects,
    TooFewRows,
    Tuples,
    column_of,
    items_of,
    rows_of,
    size_of_column,
    typed,
)
from dstream.operators.rows.blocks import Block, ColumnItems, given
from dstream.operators.rows.loops import converted, run_chain
from dstream.operators.rows.operations import ItemCount, one_by_one
from dstream.plan.steps import Op, Step

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "OpenBlock",
    "Passed",
    "as_column",
    "column_chain",
    "compare_results",
    "compare_step",
    "counted_items",
    "is_same",
]


def compare_step(op: Op, before: Column, found: Column) -> None:
    """Call the function of a step for each row, and compare.

    Args:
        op: a `map` or a `filter`.
        before: the items of the step.
        found: what columns gave for each of them: a result, or whether it passes.

    Raises:
        ColumnsDifferError: one of them differs in value or type, or Python raises.
    """
    for item, value in zip(items_of(before), items_of(found), strict=True):
        try:
            result = op.fn(item)
            expected = converted(result, op.kind) if op.action == "map" else bool(result)
        except Exception as error:
            raise _different(op.step, value, f"raises {error!r}", item) from error
        if not is_same(value, expected):
            raise _different(op.step, value, f"gives {shown(expected)}", item)


def compare_results(step: str, found: Sequence[Any], expected: Sequence[Any], of: Callable[[], str]) -> None:
    """Compare the results of columns for a block with those of the functions, in order.

    Raises:
        ColumnsDifferError: a value, a type or the order differs.
    """
    for one, other in zip_longest(found, expected, fillvalue=_NOTHING):
        if not is_same(one, other):
            raise ColumnsDifferError(f"{step}: columns give {shown(one)} where Python gives {shown(other)} for {of()}")


_NOTHING = object()


def _different(step: Step, value: Any, other: str, item: Any) -> ColumnsDifferError:
    return ColumnsDifferError(f"{step}: columns give {shown(value)} where Python {other} for {shown(item)}")


def is_same(one: Any, other: Any) -> bool:
    """Return whether two values have one type and hold the same, down to the digits: -0.0 is not 0.0, and NaN is NaN.

    Objects are alike if what they keep is. They may have been made twice of one row, of a class that compares by
    identity; and `==` of another class takes a 1 for a 1.0, and no NaN for another one.
    """
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, tuple | list):
        return len(one) == len(other) and all(map(is_same, one, other))
    if isinstance(one, dict):
        return len(one) == len(other) and all(map(is_same, one.items(), other.items()))
    if isinstance(one, _COMPARED_BY_DIGITS):
        return repr(one) == repr(other)
    # Each object has a `__getstate__` since Python 3.11; None: it has no attributes.
    state = None if isinstance(one, str | bytes) else one.__getstate__()
    return is_same(state, other.__getstate__()) if state else bool(one == other)


_COMPARED_BY_DIGITS = (int, float, Decimal, date, time)
"""Types of which two equal values may be of different forms, as 1.0 and 1.00 or moments with different zones are."""


Passed: TypeAlias = "int | NDArray[np.bool_] | StringLists"
"""Effect of a step on a block: the number of rows counted, the rows that passed, or the lists that were flattened."""


class OpenBlock:
    """The current block, and the counts that belong to it.

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
        """Record the effect of the steps on a block, before it is passed on."""
        self._passed = passed

    def end(self) -> None:
        """Count all rows of the block: its consumer wants the next one."""
        for each, rows in zip(self._counts, _whole(self._passed), strict=False):
            each.add(rows)
        self._passed = ()

    def items(self, block: Block) -> Iterable[Any]:
        """Return the items of the block, and count how many are taken, in C code."""
        self._taken = taken = count(1)
        # `compress` asks the counter once for each item that is taken, and numbers from 1 on are true: each passes.
        return compress(given(block), taken)

    def _counted(self, place: int) -> int:
        """Return how many items one of those who count has counted, by its place."""
        if self._taken is not None:  # Otherwise all of the block was taken.
            self._passed, self._taken = _up_to(self._passed, next(self._taken) - 1), None
        rows = _whole(self._passed)
        return rows[place] if place < len(rows) else 0


def _whole(passed: Sequence[Passed]) -> list[int]:
    """Return how many rows of all were counted, step by step; behind a step that leaves none, none were counted."""
    return [each for each in passed if isinstance(each, int)]


def _up_to(passed: Sequence[Passed], taken: int) -> list[int]:
    """Return how many rows were counted at each step when `taken` results had been taken."""
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
    # In a generator, which begins with the first item: until then the blocks may be read instead.
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
    from dstream.operators.columns.values import size_of_column  # NumPy made the column

    return size_of_column(block)


_MOST_FALLBACKS = 3
"""After this number of fallbacks in a row, columns are no longer tried."""


def column_chain(ops: Sequence[Op], first: Sequence[Op], blocks: Iterator[Block]) -> Iterator[Any]:
    """Return the results of steps, of which `first`, those at the beginning, take columns."""
    open_block = OpenBlock(first) if any(op.action == "count" for op in first) else None
    made = ColumnItems(_through(first, blocks, open_block), taking=None if open_block is None else open_block.items)
    if len(first) < len(ops):
        return run_chain(one_by_one(ops[len(first) :]), made)
    return made


def _through(ops: Sequence[Op], blocks: Iterator[Block], open_block: OpenBlock | None) -> Iterator[Block]:
    """Yield each block as a column, or its items; it is used up before the next one is made."""
    fallbacks = 0
    by_items = partial(run_chain, one_by_one(ops))
    for block in blocks:
        passing = _Passing(block)
        try:
            made: Block = _passed(ops, passing)
            fallbacks = 0
        except TooFewRows:
            # Too few rows are no sample of those behind: they do not count as fallbacks.
            made, passing = by_items(given(block)), _Passing(block)
        except NotColumnar:
            # Steps that count look at how many items of a block are taken, and so take it as a whole; items that
            # several rows share go through all steps, since a later step may change what an earlier one reads.
            first = 0 if open_block is not None or are_shared(block) else passing.steps
            if passing.timestamps is not None:
                first = 0  # From here on, a loop would not find them.
            made = run_chain(one_by_one(ops[first:]), given(passing.column if first else block))
            passing, fallbacks = _Passing(block), 0 if first else fallbacks + 1
        if open_block is not None:
            open_block.begin(passing.effects)
        yield made
        if open_block is not None:
            open_block.end()
        if fallbacks == _MOST_FALLBACKS:
            # This uses up `blocks`, and so ends the loop.
            yield by_items(chain.from_iterable(map(given, blocks)))


@dataclass
class _Passing:
    """A block on its way through steps.

    Attributes:
        column: the items behind the steps that it has passed.
        steps: how many these are.
        effects: those of the steps that change the number of rows, or count.
        timestamps: those of the items, between the steps that take pairs apart and put them together again.
    """

    column: Block
    steps: int = 0
    effects: list[Passed] = field(default_factory=list)
    timestamps: Column | None = None


def _passed(ops: Sequence[Op], passing: _Passing) -> Column:
    """Return the results of steps for a block."""
    passing.column = column = as_column(passing.column)
    for op in ops:
        if (size := size_of_column(column)) == 0:  # Python never reaches the step, nor what it does for any item.
            break
        if op.action == "count":
            passing.effects.append(size)
        elif op.action in ("pair", "unpair"):
            passing.column = column = _paired(passing, column) if op.action == "pair" else _apart(passing, column)
        else:
            passing.column = column = _behind(op, column, passing.effects)
            _keep_timestamps(op, passing)
        passing.steps += 1
    check_unshared(column)
    return column


def _apart(passing: _Passing, pairs: Column) -> Column:
    """Return the items of pairs, whose timestamps are kept until they are put together."""
    if not isinstance(pairs, Tuples) or len(pairs.members) != 2:
        raise NotColumnar("items that are no pairs")
    passing.timestamps, items = pairs.members
    return items


def _paired(passing: _Passing, items: Column) -> Column:
    """Return items in pairs with their timestamps, or with None where they have none."""
    size, timestamps = size_of_column(items), passing.timestamps
    passing.timestamps = None
    return Tuples((ConstantColumn(None, size) if timestamps is None else timestamps, items), size)


def _keep_timestamps(op: Op, passing: _Passing) -> None:
    """Choose the timestamps of the rows that have passed a step."""
    if passing.timestamps is None or op.action == "map":
        return
    if op.action != "filter":
        raise NotColumnar("several items in the place of one, which all have its timestamp")
    passing.timestamps = rows_of(passing.timestamps, passing.effects[-1])  # type: ignore[arg-type]


def _behind(op: Op, column: Column, effects: list[Passed]) -> Column:
    """Return the results of one step."""
    expression = op.evaluation.expression
    found = column if expression is None else evaluated(expression, (column,))  # Without one, `fn` is `unchanged`.
    if op.action == "flat_map":
        effects.append(lists := _lists(op, column, found))
        return lists.members
    found = typed(found, op.kind) if op.action == "map" else Bools(truth(found))
    if op.evaluation.is_verified:
        compare_step(op, column, found)
    if op.action == "map":
        return Objects(found.tolist(), is_plain=True) if isinstance(found, StringLists) else found
    effects.append(rows := truth(found))
    return rows_of(column, rows)


def _lists(op: Op, column: Column, found: Column) -> StringLists:
    """Return the lists that a `flat_map` takes apart."""
    if op.evaluation.is_verified:
        compare_step(replace(op, action="map"), column, found)
    if isinstance(found, Objects) and set(map(type, found.values)) <= {list, tuple}:
        members = column_of(list(chain.from_iterable(found.values)))
        if isinstance(members, Strings):
            return lists_that_have(members, found.values)
    if not isinstance(found, StringLists):
        raise NotColumnar("items that are no lists")
    return found


def as_column(block: Block) -> Column:
    """Return a block as a column.

    Raises:
        NotColumnar: it is none, and its items make none.
    """
    if isinstance(block, Iterator):
        raise NotColumnar("the items before were not in columns")
    return column_of(block) if isinstance(block, Sequence) else block
