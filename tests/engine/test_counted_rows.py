"""Rows that `rebalance` sends are counted where they are sent and where they arrive."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dstream import Stream
from dstream.engine.spark.cluster import Cluster
from dstream.engine.worker.behind_items import LAST
from dstream.engine.worker.counted_rows import CountSent, ReadCounted
from dstream.engine.worker.routing import RouteInTurn
from dstream.engine.worker.rows import Row
from dstream.engine.worker.stage_task import StageTask
from dstream.errors import EngineError
from dstream.plan import call_site
from dstream.plan.nodes_of_stages import Spread
from tests.engine.epochs import step

TARGETS = 2
STEP = step(".rebalance()", 5)


@pytest.fixture
def rows() -> list[Row]:
    """What comes to the first target of two tasks, of which the second has items for the other target only."""
    tasks = enumerate([["a", "b", "c"], []])
    sent = (CountSent(RouteInTurn(TARGETS), TARGETS)(iter(items), StageTask(n, 2**60)) for n, items in tasks)
    return [row for rows in sent for row in rows if row.target == 0]


def test_what_was_sent_arrives(rows: list[Row]) -> None:
    """Without the rows that count; also of a task that sent nothing, and of no task."""
    assert list(ReadCounted(2, STEP)(iter(rows))) == ["a", "c"]
    assert list(ReadCounted(0, STEP)(iter(()))) == []


@pytest.mark.parametrize(
    ("lost", "said"),
    [
        (lambda row: row.source == 0 and row.sequence < LAST, "task 0 sent 1, and 0 arrived"),
        (lambda row: row.source == 1, "1 of 2 tasks were heard of"),
        (lambda row: row.sequence == LAST, "0 of 2 tasks were heard of"),
        (lambda row: True, "0 of 2 tasks were heard of"),
    ],
)
def test_lost_rows_are_noticed(rows: list[Row], lost: Callable[[Row], bool], said: str) -> None:
    """Items, the last row of a task, or all that a target should have."""
    left = (row for row in rows if not lost(row))
    with pytest.raises(EngineError, match=rf"the shuffle before step 5 of 9: .rebalance\(\) lost rows: {said}"):
        list(ReadCounted(2, STEP)(left))


def test_rows_that_come_twice_are_noticed(rows: list[Row]) -> None:
    """A number that is too large is as wrong."""
    with pytest.raises(EngineError, match="task 0 sent 1, and 2 arrived"):
        list(ReadCounted(2, STEP)(iter([*rows, rows[0]])))


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("is_ordered", [True, False])
def test_a_rebalance_that_loses_rows_fails(
    spark_context: Any, monkeypatch: pytest.MonkeyPatch, count: int, is_ordered: bool
) -> None:
    """Whichever way the items go: to one task, in turn, or neighbours together."""
    shuffled = Cluster.shuffled

    def losing(cluster: Cluster, frame: Any, targets: int) -> Any:
        return shuffled(cluster, frame.where("source <> 1 or size = 0"), targets)

    numbers = spark_context.stream(range(12), 3)
    numbers = numbers if is_ordered else numbers.unordered()
    spread = Stream(Spread(numbers._node, count, where=call_site()), numbers._runtime)
    assert sorted(spread.to_list()) == list(range(12))
    monkeypatch.setattr(Cluster, "shuffled", losing)
    with pytest.raises(EngineError, match="lost rows: task 1 sent 1, and 0 arrived"):
        spread.to_list()
