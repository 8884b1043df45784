"""What partitions tell of their items, and what readers make of it: plain functions, no Spark."""

from __future__ import annotations

import functools
import operator
from typing import Any

import pytest

from dstream.engine.compiler.gatherers import _values_before
from dstream.engine.tasks.gatherers import (
    ReadAhead,
    ReadByPlace,
    ReadRunning,
    WriteIntegrated,
    WriteWithHead,
    WriteWithTotal,
    _gather_ahead,
    _pass_on,
)
from dstream.engine.tasks.rows import ITEMS, SUMMARY, Row
from dstream.engine.tasks.runtime import CountItems, StageTask
from dstream.engine.tasks.stage import Piece
from dstream.gatherers import Gatherer, fold, scan, window_fixed, window_sliding
from dstream.gatherers.neighbours import pairs
from dstream.operators.rows.batches import dumps_items, loads
from dstream.operators.rows.gatherers import finish, state_of_part
from dstream.spi import RunningValue

PARTS = [[], [1, 2], [], [3], [4, 5, 6], []]
ROOM = 2**20


def written(sink: Any, part: int, items: list[Any]) -> tuple[list[Row], Row]:
    """Run a sink over a partition; give the rows of its items, and what it told."""
    *rows, told = sink(iter(items), StageTask(part, 2**60))
    assert {row.channel for row in rows} <= {ITEMS}
    assert (told.channel, told.source) == (SUMMARY, part)
    return rows, told


def gathered_by_place(gatherer: Gatherer[Any, Any, Any], parts: list[list[Any]]) -> list[list[Any]]:
    """Run the gatherer in each partition as Spark would."""
    kind: Any = gatherer.parallel
    outcomes = [written(WriteWithHead(kind.following, ROOM), part, items) for part, items in enumerate(parts)]
    told = [told for _, told in outcomes]
    reader = ReadByPlace(kind, [row.sequence for row in told], [row.payload for row in told])
    return [list(reader(iter(rows))) for rows, _ in outcomes]


@pytest.mark.parametrize(
    ("gatherer", "expected"),
    [
        (window_fixed(4), [[], [(1, 2, 3, 4)], [], [], [(5, 6)], []]),
        (window_fixed(2), [[], [(1, 2)], [], [(3, 4)], [(5, 6)], []]),
        (window_sliding(4), [[], [(1, 2, 3, 4), (2, 3, 4, 5)], [], [(3, 4, 5, 6)], [], []]),
        (window_sliding(7), [[], [(1, 2, 3, 4, 5, 6)], [], [], [], []]),
        (pairs(), [[], [(1, 2), (2, 3)], [], [(3, 4)], [(4, 5), (5, 6)], []]),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_each_window_is_made_where_it_begins(gatherer, expected):
    """By the partition of its first item, with the items that it needs of those behind."""
    assert gathered_by_place(gatherer, PARTS) == expected


@pytest.mark.parametrize("gatherer", [window_sliding(4), window_sliding(7), pairs()], ids=lambda g: g.name)
def test_reading_ahead_gives_the_same(gatherer):
    """A partition that reads the pieces behind it itself makes the same windows."""
    pieces = tuple(Piece(dumps_items(_Split(part)), (), (), None) for part in PARTS)
    task = StageTask(0, 2**60)
    ahead = [list(_gather_ahead(gatherer.parallel, pieces, n, iter(part), task)) for n, part in enumerate(PARTS)]

    assert ahead == gathered_by_place(gatherer, PARTS)


class _Split(list[Any]):
    """A list that can be read as a split."""

    def read(self) -> Any:
        return iter(self)


def test_a_head_holds_the_first_items_only():
    """As many as are asked for, over the borders of batches, and all of a short partition."""
    _, told = written(WriteWithHead(100, ROOM), 2, list(range(5000)))
    assert (loads(told.payload), told.size, told.sequence) == (list(range(100)), 100, 5000)

    _, told = written(WriteWithHead(100, ROOM), 2, [1, 2])
    assert (loads(told.payload), told.size, told.sequence) == ([1, 2], 2, 2)


@pytest.mark.parametrize("count", [3, 70, 10**9])
def test_a_head_that_is_too_large_is_left_out(count):
    """It says so instead; the items are all there, and no more of them are held than the bound allows."""
    items = [bytes([n]) * 1000 for n in range(200)]
    rows, told = written(WriteWithHead(count, 2000), 0, items)

    assert (told.size, told.payload, told.sequence) == (-1, b"", 200)
    assert [item for row in rows for item in loads(row.payload)] == items


def test_running_values_start_from_those_before():
    """The last partition makes no total; an empty one has none that counts."""
    kind = scan(int, operator.add, operator.add).parallel
    assert isinstance(kind, RunningValue)
    step: Any = None
    outcomes = [written(WriteWithTotal(kind, step, 5), part, items) for part, items in enumerate(PARTS)]
    before = _values_before(kind, [told for _, told in outcomes if told.size])

    assert [loads(told.payload) for _, told in outcomes] == [[0], [3], [0], [3], [15], []]
    assert {source: loads(value) for source, value in before.items()} == {3: [3], 4: [6]}
    reader = ReadRunning(kind, step, before)
    assert [list(reader(iter(rows))) for rows, _ in outcomes] == [[], [1, 3], [], [6], [10, 15, 21], []]


def test_an_integrator_tells_its_state_and_whether_it_stopped(step):
    """What it pushed before stays; items behind are not looked at."""

    def take(state: list[int], item: int, downstream: Any) -> bool:
        state.append(item)
        return downstream.push(-item) and item < 2

    gatherer = Gatherer.of(list, integrator=take)
    rows, told = written(WriteIntegrated(gatherer, step), 0, [1, 2, 3])

    assert [loads(row.payload) for row in rows] == [[-1, -2]]
    assert (loads(told.payload), told.size) == ([[1, 2]], 1)
    assert written(WriteIntegrated(gatherer, step), 0, [1])[1].size == 0


def test_states_are_combined_in_order(step, task):
    """Each partition with items gives a state; none at all gives the start."""
    gatherer = fold(str, lambda text, n: f"{text}{n}", operator.add)
    states = [list(state_of_part(gatherer.parallel, step, iter(part), task)) for part in PARTS]

    assert states == [[], [["12"]], [], [["3"]], [["456"]], []]
    assert list(finish(gatherer, step, iter(state for part in states for state in part), task)) == ["123456"]
    assert list(finish(gatherer, step, iter([]), task)) == [""]


def test_what_is_read_ahead_is_not_counted():
    """Items that a neighbour reads too stand in the progress once."""
    counting, passing = CountItems(None, "key"), functools.partial(int)
    pieces = (Piece(b"", (), (counting, passing), None),) * 2
    read_on: Any = ReadAhead(window_sliding(2).parallel)(pieces)(0)

    assert [piece.operations for piece in read_on.args[1]] == [(_pass_on, passing)] * 2
