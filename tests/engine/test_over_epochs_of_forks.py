"""Steps over epochs that read what several operations of a plan read: watermarks are kept with the items."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from dstream.plan.operations.ends import Several, Write
from dstream.plan.operations.pairs import Join
from dstream.plan.operations.streams import CacheIdentity, Fork, Node
from tests.engine.epochs import Epoch, Folder, again, key_of, left_of_pair, result, run, step, together

FIRST = [(1, "a", 1), (2, "b", 10), (5, "c", 100)]
SECOND = [(2, "a", 2), (7, "b", 20)]


@dataclass(frozen=True)
class Noted:
    """A writer whose receipts are the items, each in a tuple."""

    def write(self, items: Iterator[Any]) -> Iterator[Any]:
        return ((item,) for item in items)


def fork(core: Node) -> Fork:
    """Return what several operations may read."""
    return Fork(core, CacheIdentity(), step=step("fork"))


def written(*ends: Node) -> Several:
    """Return a plan that writes the items of each."""
    return Several(tuple(Write(each, Noted(), None, step=step("write")) for each in ends), step=step("writes"))


def received(plan: Several, context: Any) -> list[list[Any]]:
    """Return the items that came to each writer, in no order."""
    return [sorted(item for (item,) in receipts) for receipts in result(plan, context)]


def test_two_steps_read_one_fork(engine: Any, tmp_path: Path) -> None:
    """Each of them learns of both partitions, which are read once."""
    epoch = Epoch()
    events = fork(together(epoch.stamped(FIRST, "0"), epoch.stamped(SECOND, "1")))
    ends = [epoch.over(again(events), state=Folder(str(tmp_path)), stage=stage) for stage in ("one", "two")]

    assert received(written(*ends), engine.context) == [[(2, ("a", 3))], [(2, ("a", 3))]]
    assert {(each.stage, each.watermark) for each in epoch.steps} == {("one", 5), ("two", 5)}
    assert sorted(each.partition for each in epoch.partitions) == [("events", "0"), ("events", "1")]


def test_results_are_written_and_read_again(engine: Any, tmp_path: Path) -> None:
    """A step behind a fork of results passes what the first step forwards; receipts come once."""
    epoch = Epoch()
    events = together(epoch.stamped(FIRST, "0"), epoch.stamped([(9, "a", 2)], "1"))
    results = fork(epoch.over(events, state=Folder(str(tmp_path))))
    second = epoch.over(again(results), state=Folder(str(tmp_path)), stage="again")

    assert received(written(again(results), second), engine.context) == [[(2, ("b", 10))], [(2, ("b", 10))]]
    assert sum(each.items for each in epoch.steps if each.stage == "sums") == 4
    assert sum(each.items for each in epoch.steps if each.stage == "again") == 1


def test_what_a_fork_kept_is_of_no_use_to_the_next_epoch(engine: Any, tmp_path: Path) -> None:
    """The plan of the next epoch is the same, with other ranges in the place of its sources."""
    epoch = Epoch()
    first = fork(epoch.stamped(FIRST))
    second = replace(first, upstream=epoch.stamped(SECOND))

    assert received(written(first, again(first)), engine.context)[1] == [(1, ("a", 1)), (2, ("b", 10)), (5, ("c", 100))]
    ends = [epoch.over(second, state=Folder(str(tmp_path))), second]
    assert received(written(*ends), engine.context) == [[(2, ("a", 2))], [(2, ("a", 2)), (7, ("b", 20))]]


def test_watermarks_pass_a_join_with_what_was_kept(engine: Any, tmp_path: Path) -> None:
    """Nothing stands beside the items of a kept side but watermarks, and these go on without it."""
    epoch = Epoch()
    right = fork(epoch.stamped(SECOND, "1"))
    joined = Join(epoch.stamped([*FIRST, (9, "d", 1)], "0"), right, key_of, key_of, "inner", step=step("join"))

    assert run(epoch.over(again(joined, left_of_pair), state=Folder(str(tmp_path))), engine.context) == [
        (1, ("a", 1)),
        (2, ("b", 10)),
    ]
    assert {receipt.watermark for receipt in epoch.steps} == {7}


def test_a_failure_before_a_fork_is_raised(engine: Any, tmp_path: Path) -> None:
    """A row that says so is found where the items are kept, and nobody reads on."""
    epoch = Epoch()
    events = fork(together(epoch.stamped(FIRST, "0"), epoch.stamped(SECOND, "1", timestamp=fraction)))
    over = epoch.over(again(events), state=Folder(str(tmp_path)))

    with pytest.raises(ZeroDivisionError):
        received(written(over, again(events)), engine.context)
    assert epoch.steps == []


def fraction(event: Any) -> int:
    """Fail on the last event."""
    return 100 // (event[2] - 20)
