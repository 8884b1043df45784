"""Groups that a task sends in several rounds, since they did not fit into its memory at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from collectors import counting, grouping_by
from dstream.engine.tasks.readers import combine_groups, read_batches
from dstream.engine.tasks.routing import RouteGroups, RoutePartials
from dstream.engine.tasks.runtime import StageTask
from dstream.operators.rows.spill import merged
from dstream.plan.steps import Step

_STEP = Step("collect", None, 1, 1)


class _Full:
    """A bound that is always reached."""

    def exceeded(self) -> bool:
        return True

    def spilled(self) -> None:
        """Nothing is left to do."""


@pytest.fixture
def full_task(monkeypatch: pytest.MonkeyPatch) -> StageTask:
    """Return a task whose memory is full after each piece of items."""
    monkeypatch.setenv("PYTHONHASHSEED", "0")
    task = StageTask(0, 2**40)
    task.bound = _Full()  # type: ignore[assignment]
    return task


def test_rounds_that_have_the_same_keys_are_combined(full_task: StageTask) -> None:
    """A batch has each key once, so that the parts of a key meet."""
    collector = grouping_by(lambda text: len(text), counting())
    items = ["a", "bb", "c", "dd", "e", "fff"] * 3

    rows = list(RouteGroups(collector, 1, _STEP)(iter(items), full_task))

    groups = combine_groups(counting(), _STEP, read_batches(iter(rows)), StageTask(0, 2**40))
    assert [(key, count) for _, key, count in groups] == [(1, 9), (2, 6), (3, 3)]


def test_rounds_of_containers_are_combined(full_task: StageTask) -> None:
    """The same holds for aggregates by key."""
    rounds: Iterator[Any] = iter([(["a", "b"], [1, 1]), (["a"], [2]), (["b", "a"], [5, 3])])

    rows = list(RoutePartials(1, _STEP)(rounds, full_task))

    assert dict(merged(read_batches(iter(rows)), counting().combined, StageTask(0, 2**40).bound)) == {"a": 6, "b": 6}
