"""How partials come to the tasks where their shards are: plain functions, no Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from dstream.engine.kernels.over_epochs import Arrival, Gathered
from dstream.engine.worker.behind_items import LAST
from dstream.engine.worker.rows import Row
from dstream.engine.worker.shard_routing import ReadShards, RouteToShards
from dstream.engine.worker.stage_task import StageTask
from dstream.errors import EngineError
from dstream.spi.state_operator import Partials
from tests.engine.epochs import step

TARGETS, SHARDS = 2, 6
STEP = step(".window(...)", 5)


def sent(source: int, *arrivals: Arrival, watermark: int = 5) -> list[Row]:
    """Return the rows that a task sends."""
    task = StageTask(source, 2**60)
    task.watermarks.take({("clock", ("events", str(source))): watermark})
    return list(RouteToShards(TARGETS, SHARDS, STEP)(iter(arrivals), task))


def gathered(rows: Iterable[Row], target: int, sources: int = 2) -> Gathered:
    """Return what a target makes of the rows that are for it, in the order in which a shuffle brings them."""
    own = sorted((row for row in rows if row.target == target), key=lambda row: (row.source, row.sequence))
    (found,) = ReadShards(TARGETS, sources, STEP)(iter(own))
    return found


@pytest.fixture
def rows() -> list[Row]:
    """What two tasks of two inputs send."""
    first = Arrival(0, Partials({0: "a", 1: "b", 4: "c"}, 10, 2))
    return [*sent(1, Arrival(1, Partials({0: "d"}, 5, 0)), watermark=3), *sent(0, first)]


def test_partials_of_a_shard_come_in_order(rows: list[Row]) -> None:
    """By input, partition and offset; each target has shards that follow each other."""
    low, high = gathered(rows, 0), gathered(rows, 1)

    assert (low.target, low.of_shards) == (0, {0: [(0, "a"), (1, "d")], 1: [(0, "b")]})
    assert (high.target, high.of_shards) == (1, {4: [(0, "c")]})


def test_items_are_counted_at_one_target(rows: list[Row]) -> None:
    """Of each task, what it saw is told once."""
    found = [gathered(rows, target) for target in range(TARGETS)]

    assert [(each.items, each.late) for each in found] == [(10, 2), (5, 0)]


def test_watermarks_come_to_every_target(rows: list[Row]) -> None:
    """Also to one that no item is for."""
    known = {("clock", ("events", "0")): 5, ("clock", ("events", "1")): 3}

    assert [gathered(rows, target).watermarks for target in range(TARGETS)] == [known, known]


def without(rows: list[Row], lost: Callable[[Row], bool]) -> list[Row]:
    """Return the rows that a broken shuffle brings."""
    return [row for row in rows if not lost(row)]


@pytest.mark.parametrize(
    ("lost", "said"),
    [
        (lambda row: row.source == 1 and row.sequence < LAST, "task 1 sent 1, and 0 arrived"),
        (lambda row: row.source == 1, "1 of 2 tasks were heard of"),
        (lambda row: row.sequence == LAST, "0 of 2 tasks were heard of"),
        (lambda row: True, "0 of 2 tasks were heard of"),
    ],
)
def test_lost_rows_are_noticed(rows: list[Row], lost: Any, said: str) -> None:
    """Partials, the last row of a task, or all that a target should have."""
    with pytest.raises(EngineError, match=rf"the shuffle before step 5 of 9: .window\(...\) lost rows: {said}"):
        gathered(without(rows, lost), 0)


def test_rows_that_come_twice_are_noticed(rows: list[Row]) -> None:
    """A number that is too large is as wrong."""
    with pytest.raises(EngineError, match="task 0 sent 1, and 2 arrived"):
        gathered([*rows, *(row for row in rows if row.source == 0 and row.sequence < LAST)], 0)


def test_nothing_was_sent_by_no_task() -> None:
    """An epoch that reads nothing has no source tasks, and loses nothing."""
    assert gathered([], 0, sources=0) == Gathered(0, TARGETS)
