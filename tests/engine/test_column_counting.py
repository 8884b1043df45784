"""Steps that count stand among steps in columns: what is counted is what a loop over items counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import pytest

from collectors import summing
from dstream.engine.compiler.evaluation import collector_read, read_op
from dstream.engine.tasks.runtime import StageTask
from dstream.operators.columns.values import Ints, column_of
from dstream.operators.rows import blocks as column_items
from dstream.operators.rows.batches import loads_items
from dstream.operators.rows.blocks import ColumnItems
from dstream.operators.rows.group_tables import collected
from dstream.operators.rows.operations import operation
from dstream.plan.operations.elementwise import Chain
from dstream.plan.operations.sort_limit import Limit
from dstream.plan.steps import Op, Step, unchanged
from dstream.values.bad_records import EncodedLines

_STEP = Step(".map(fn)", None, 1, 1)


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(column_items, "_FEWEST", 4)
    monkeypatch.setattr(column_items, "_ROWS", 4)


def _op(action: str, fn: Callable[[Any], Any]) -> Op:
    op = read_op(Op(action, fn, None, _STEP)).op
    assert op.evaluation.expression is not None, "these tests are about functions that are read"
    return op


def _count(channel: int) -> Op:
    return read_op(Op("count", unchanged, None, Step("", None, channel, 1))).op


class _Running:
    """A chain in a task."""

    def __init__(self, items: Any, *ops: Op) -> None:
        chain = Chain(Limit(None, 0, step=_STEP), ops, step=_STEP)  # type: ignore[arg-type]  # Nobody asks it.
        self._task = StageTask(0, 2**40)
        self.items = operation(chain)(items if isinstance(items, ColumnItems) else iter(items), self._task)

    def counted(self) -> dict[int, int]:
        """End the task, and return what it tells the driver."""
        return {row.channel: loads_items(row.payload)[0] for row in self._task.last_side_rows()}


class _InColumns:
    """Numbers whose items, and whose blocks, are read by themselves."""

    def __init__(self, *blocks: list[int]) -> None:
        self.read: list[str] = []
        self._blocks = blocks

    def __iter__(self) -> Iterator[int]:
        return ColumnItems(self._as_columns(), self._as_items())

    def _as_columns(self) -> Iterator[Any]:
        for block in self._blocks:
            self.read.append("block")
            yield column_of(block)

    def _as_items(self) -> Iterator[int]:
        for block in self._blocks:
            self.read.append("items")
            yield from block


def _is_even(number: int) -> bool:
    return number % 2 == 0


def test_a_chain_that_begins_with_a_count_stands_in_columns() -> None:
    """As those of jobs do, which count what they read; each place has a number of its own."""
    running = _Running(range(10), _count(7), _op("map", lambda x: x * 3), _op("filter", _is_even), _count(8))
    assert isinstance(running.items, ColumnItems)

    assert [type(block) for block in running.items.blocks()] == [Ints, Ints, Ints]
    assert running.counted() == {7: 10, 8: 5}


@pytest.mark.parametrize(("taken", "counted"), [(1, {7: 3}), (2, {7: 6, 8: 2}), (3, {7: 9, 8: 4}), (4, {7: 12, 8: 5})])
def test_whoever_stops_has_counted_what_a_loop_had_to_read(taken: int, counted: dict[int, int]) -> None:
    """Up to the row that the last result came from, also where the block has more of them, or has been used up."""
    third, small = _op("filter", lambda x: x % 3 == 2), _op("filter", lambda x: x not in (2, 8))
    running = _Running(range(12), _count(7), third, _count(8))
    assert isinstance(running.items, ColumnItems)

    assert len(list(islice(running.items, taken))) == taken

    assert running.counted() == {7: 3 * taken, 8: taken}
    running = _Running(range(100), _count(7), third, _count(8), small)
    assert list(islice(running.items, 1)) == [5]
    assert running.counted() == {7: 6, 8: 2}


@pytest.mark.parametrize(
    ("taken", "counted"), [(2, {7: 1, 8: 2, 9: 2}), (3, {7: 3, 8: 3, 9: 3}), (4, {7: 3, 8: 5, 9: 4})]
)
def test_members_of_lists_are_counted_one_by_one(taken: int, counted: dict[int, int]) -> None:
    """A list is taken apart when its first member is asked for; the others may never be."""
    lines = EncodedLines(b"the sea\n\nwhite a whale\nat last\n", is_ascii=True)
    ops = _count(7), _op("flat_map", str.split), _count(8), _op("filter", lambda word: len(word) > 1), _count(9)
    running = _Running(ColumnItems(iter([lines])), *ops)

    assert isinstance(running.items, ColumnItems)
    assert list(islice(running.items, taken)) == ["the", "sea", "white", "whale"][:taken]

    assert running.counted() == counted


def test_a_failure_counts_what_came_before_it() -> None:
    """The block falls back, and its items are counted in the loop."""
    running = _Running(range(10), _count(7), _op("map", lambda x: 10 // (6 - x)), _count(8))

    with pytest.raises(ZeroDivisionError):
        list(running.items)

    assert running.counted() == {7: 7, 8: 6}


def test_behind_a_step_that_leaves_nothing_nobody_counts() -> None:
    """Neither where blocks are used up, nor where the last one is still open."""
    running = _Running(range(6), _count(7), _op("filter", lambda x: x > 9), _count(8))
    assert isinstance(running.items, ColumnItems)
    blocks = running.items.blocks()
    next(blocks)
    next(blocks)

    assert running.counted() == {7: 6}


def test_items_that_are_counted_alone_stay_in_columns() -> None:
    """A collector behind them takes their blocks."""
    source = _InColumns([1, 2], [3, 2**62])
    running = _Running(source, _count(7))
    collector = collector_read(summing(lambda x: x * 2), is_verified=False)[0]

    container = collected(collector, running.items)

    assert collector.finisher(container) == 12 + 2**63
    assert source.read == ["block", "block"]
    assert running.counted() == {7: 4}


def test_whoever_asks_for_items_that_are_counted_alone_gets_those_of_the_source() -> None:
    """No column is made; whoever stops has counted those that he took."""
    source = _InColumns([1, 2], [3, 4])
    running = _Running(source, _count(7), _count(8))

    assert list(islice(running.items, 3)) == [1, 2, 3]

    assert source.read == ["items", "items"]
    assert running.counted() == {7: 3, 8: 3}


def test_blocks_that_are_no_columns_are_counted_alone_too() -> None:
    """Lines are counted as lines, and what comes item by item in a loop."""
    lines = EncodedLines(b"a\nb\nc\n", is_ascii=True)
    running = _Running(ColumnItems(iter([lines, iter("xy")])), _count(7))
    assert isinstance(running.items, ColumnItems)

    assert [list(block) for block in running.items.blocks()] == [["a", "b", "c"], ["x", "y"]]  # type: ignore[arg-type]
    assert running.counted() == {7: 5}


def test_what_columns_leave_to_python_is_counted_in_the_loop() -> None:
    """A function that is called comes behind the columns, and a count behind it."""
    running = _Running(range(10), _count(7), _op("filter", _is_even), Op("map", str, None, _STEP), _count(8))

    assert list(islice(running.items, 2)) == ["0", "2"]

    assert running.counted() == {7: 3, 8: 2}
