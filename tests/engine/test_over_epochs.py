"""Steps over epochs on both engines: what goes on, what the state keeps, and what tasks say about it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from dstream.errors import IllegalStateError
from dstream.failures import failure
from dstream.operators.state.keyed_operators import StatefulMapping
from dstream.plan.operations.ends import Write
from dstream.plan.operations.pairs import HashJoin, Join
from dstream.plan.operations.streams import Read, Spread
from dstream.values.time import END_OF_TIME, NO_WATERMARK
from sources import Items
from tests.engine.epochs import Epoch, Folder, Lag, SumByKey, again, key_of, left_of_pair, result, run, step, together

FIRST = [(1, "a", 1), (2, "b", 10), (5, "c", 100)]
SECOND = [(2, "a", 2), (7, "b", 20)]


@pytest.fixture
def state(tmp_path: Path) -> Folder:
    """The state of a step that has seen nothing."""
    return Folder(str(tmp_path))


def test_over_epochs_gives_what_the_watermark_passes(engine: Any, state: Folder) -> None:
    """The watermark is the least of the partitions that were read: 5 here, behind "a" alone."""
    epoch = Epoch()
    events = together(epoch.stamped(FIRST, "0"), epoch.stamped(SECOND, "1"))

    assert run(epoch.over(events, state=state), engine.context) == [(2, ("a", 3))]


def test_over_epochs_goes_on_from_the_state(engine: Any, state: Folder) -> None:
    """What the watermark did not pass is there in the next epoch, also in which nothing comes for its shard."""
    first = Epoch()
    run(first.over(first.stamped(FIRST), state=state), engine.context)
    second = Epoch(2, old=5, unread_watermark=9)
    later = second.over(second.stamped([(9, "a", 1)]), state=state.after(first.steps))

    assert run(later, engine.context) == [(5, ("c", 100))]
    assert [receipt.watermark for receipt in second.steps] == [9]


def so_far(state: list[str], pair: Any) -> str:
    """Take the key of a pair into the state, and give all that came."""
    state.append(pair[0])
    return "".join(state)


def test_what_stands_behind_a_step_sees_the_order_of_its_shards(engine: Any, tmp_path: Path) -> None:
    """However many tasks the shards were divided among."""
    events, found = [(1, key, 1) for key in "abcdefghijklmnop"], set()
    for parts in (1, 2, 3):
        epoch = Epoch()
        read = together(*(epoch.stamped(events[part::parts], str(part), ends=True) for part in range(parts)))
        sums = again(epoch.over(read, state=Folder(str(tmp_path))))
        last = StatefulMapping(None, list, so_far, "map")
        behind = epoch.over(sums, state=Folder(str(tmp_path)), operator=last, stage="behind")
        found.add(max(run(behind, engine.context), key=lambda pair: len(pair[1]))[1])

    assert len(found) == 1
    assert sorted(found.pop()) == list("abcdefghijklmnop")


def test_partitions_that_are_not_read_hold_time_back(engine: Any, state: Folder) -> None:
    """What stands at 2 lets "a" pass, and not "b", although the partition that is read has come to 5."""
    epoch = Epoch(unread_watermark=2)

    assert run(epoch.over(epoch.stamped(FIRST), state=state), engine.context) == [(1, ("a", 1))]
    assert {receipt.watermark for receipt in epoch.steps} == {2}


def test_an_idle_partition_without_an_event_holds_nothing_back(engine: Any, state: Folder) -> None:
    """Although it is read: its items may all be filtered out before they get timestamps. With an event it counts."""
    epoch = Epoch()
    idle = epoch.stamped([], "1", watermark=0, counts=False)
    assert run(epoch.over(together(epoch.stamped(FIRST), idle), state=state), engine.context) == [
        (1, ("a", 1)),
        (2, ("b", 10)),
    ]

    again = Epoch()
    woken = again.stamped([(1, "d", 1)], "1", watermark=0, counts=False)
    assert run(again.over(together(again.stamped(FIRST), woken), state=state), engine.context) == []


def test_time_passes_without_items(engine: Any, state: Folder) -> None:
    """An epoch that reads nothing gives what the watermark of the partitions at rest passes; time never goes back."""
    first = Epoch()
    run(first.over(first.stamped(FIRST), state=state), engine.context)
    second = Epoch(2, old=5, unread_watermark=6)
    third = Epoch(3, old=6, unread_watermark=4)

    assert run(second.over(together(), state=state.after(first.steps)), engine.context) == [(5, ("c", 100))]
    assert run(third.over(together(), state=state), engine.context) == []
    assert [receipt.watermark for receipt in (*second.steps, *third.steps)] == [6, 6]


def test_a_partition_that_ends_lets_all_pass(engine: Any, state: Folder) -> None:
    """Its watermark is the end of time."""
    epoch = Epoch()

    assert run(epoch.over(epoch.stamped(FIRST, ends=True), state=state), engine.context) == [
        (1, ("a", 1)),
        (2, ("b", 10)),
        (5, ("c", 100)),
    ]
    assert epoch.partitions[0].watermark == END_OF_TIME


def test_items_and_late_ones_are_counted_once(engine: Any, state: Folder) -> None:
    """Two of five items come behind the watermark; one result goes on."""
    epoch = Epoch(old=2)
    events = together(epoch.stamped(FIRST, "0"), epoch.stamped([(1, "a", 2), (3, "c", 20)], "1"))
    over = epoch.over(events, state=state)

    assert run(over, engine.context) == [(2, ("b", 10))]
    sums = [sum(getattr(each, name) for each in epoch.steps) for name in ("items", "late", "outputs")]
    assert sums == [5, 2, 1]
    assert {each.stage for each in epoch.steps} == {"sums"}


def test_each_task_says_once_what_became_of_its_shards(engine: Any, state: Folder) -> None:
    """Each shard changes in one receipt; deadlines are those of what is left."""
    epoch = Epoch()
    events = together(epoch.stamped(FIRST, "0"), epoch.stamped(SECOND, "1"))
    run(epoch.over(events, state=state), engine.context)
    shards = [change.shard for receipt in epoch.steps for change in receipt.changes]

    assert len(shards) == len(set(shards))
    assert sum(change.keys for receipt in epoch.steps for change in receipt.changes) == 2
    assert min(each.deadline for each in epoch.steps if each.deadline is not None) == 6


def test_each_partition_says_once_how_far_it_has_come(engine: Any) -> None:
    """A lag of 3 behind the greatest timestamp; a partition without items stays where it was."""
    epoch = Epoch()
    run(together(epoch.stamped(SECOND, "0", policy=Lag(3)), epoch.stamped([], "1", watermark=4)), engine.context)
    said = sorted(epoch.partitions, key=lambda each: each.partition)

    assert [each.partition for each in said] == [("events", "0"), ("events", "1")]
    assert [(each.watermark, each.greatest, each.items) for each in said] == [(4, 7, 2), (4, NO_WATERMARK, 0)]


@pytest.mark.parametrize(("greatest_only", "told"), [(True, 1), (False, 3)])
def test_the_policy_of_the_plan_is_left_alone(local_context: Any, greatest_only: bool, told: int) -> None:
    """A task that runs again begins with the policy of the last epoch; one may want all timestamps, or the greatest."""
    policy, epoch = Lag(greatest_only=greatest_only), Epoch()
    run(epoch.stamped(FIRST, policy=policy), local_context)

    assert policy.told == 0
    assert [(each.policy, each.watermark) for each in epoch.partitions] == [(Lag(0, 5, greatest_only, told), 5)]


def test_without_timestamps_the_clock_of_the_epoch_counts(engine: Any) -> None:
    """Its reading in milliseconds, for each item."""
    epoch = Epoch(now=2.5)
    stamped = epoch.stamped(FIRST[:2], timestamp=None)

    assert run(stamped, engine.context) == [(2500, ("a", 1)), (2500, ("b", 10))]
    assert [(each.watermark, each.greatest) for each in epoch.partitions] == [(2500, 2500)]


def test_watermarks_pass_steps_over_epochs(engine: Any, state: Folder, tmp_path: Path) -> None:
    """A cascade lets the results of its first step pass the second one in the same epoch."""
    epoch = Epoch()
    first = epoch.over(together(epoch.stamped(FIRST, "0"), epoch.stamped([(9, "a", 2)], "1")), state=state)
    second = epoch.over(again(first), state=Folder(str(tmp_path)), stage="sums of sums")

    assert run(second, engine.context) == [(2, ("b", 10))]
    assert {receipt.stage: receipt.watermark for receipt in epoch.steps} == {"sums": 5, "sums of sums": 5}


def test_several_inputs_meet_in_one_state(engine: Any, state: Folder) -> None:
    """The watermark is the least of the partitions of all inputs."""
    epoch = Epoch()
    left = together(epoch.stamped(FIRST, "0"), epoch.stamped([(8, "a", 1000)], "1"))
    over = epoch.over(left, epoch.stamped(SECOND, "2"), state=state)

    assert run(over, engine.context) == []
    assert {receipt.watermark for receipt in epoch.steps} == {5}
    assert sum(receipt.items for receipt in epoch.steps) == 6


def test_watermarks_pass_a_spread(engine: Any, state: Folder) -> None:
    """What is kept, looked at and dealt out again loses no watermark."""
    epoch = Epoch()
    events = together(epoch.stamped(FIRST, "0"), epoch.stamped(SECOND, "1"))

    assert run(epoch.over(Spread(events, 3, step=step("rebalance")), state=state), engine.context) == [(2, ("a", 3))]
    assert sorted(each.partition for each in epoch.partitions) == [("events", "0"), ("events", "1")]


def test_watermarks_pass_a_hash_join(engine: Any, state: Folder) -> None:
    """The left side keeps them; the right side, which ends, has none."""
    epoch = Epoch()
    right = Read(Items([("a", "apple"), ("b", "pear")], 2), step=step("right"))
    events = together(epoch.stamped(FIRST, "0"), epoch.stamped(SECOND, "1"))
    joined = HashJoin(events, right, key_of, key_of_right, None, True, None, step=step("join"))

    assert run(epoch.over(again(joined, left_of), state=state), engine.context) == [(2, ("a", 3))]


def test_watermarks_pass_a_join(engine: Any, state: Folder) -> None:
    """Also those of a side that is small and goes to all tasks of the other one."""
    epoch = Epoch()
    left, right = epoch.stamped([*FIRST, (9, "d", 1)], "0"), epoch.stamped(SECOND, "1")
    joined = Join(left, right, key_of, key_of, "inner", step=step("join"))

    assert run(epoch.over(again(joined, left_of_pair), state=state), engine.context) == [(1, ("a", 1)), (2, ("b", 10))]
    assert {receipt.watermark for receipt in epoch.steps} == {7}
    assert sorted(each.partition for each in epoch.partitions) == [("events", "0"), ("events", "1")]


def key_of_right(item: tuple[str, str]) -> str:
    """Return the key of an item of the right side."""
    return item[0]


def left_of(entry: Any) -> Any:
    """Return the left item of a match."""
    return entry[0]


@pytest.mark.parametrize("timestamp", [key_of, lambda event: 1 / (event[2] - 10)])
def test_a_failure_of_a_timestamp_names_its_item(engine: Any, timestamp: Any) -> None:
    """Whether the function raises, or gives no int."""
    with pytest.raises((TypeError, ZeroDivisionError)) as raised:
        run(Epoch().stamped(FIRST, timestamp=timestamp), engine.context)
    known = failure(raised.value)

    assert known is not None
    assert known.step == step(".add_timestamps(...)", 3)
    assert known.item in FIRST


def test_a_policy_that_says_nothing_is_named(local_context: Any) -> None:
    """One of a user's may give None where it has no number."""
    policy = Lag(1)
    policy.watermark = lambda now: None  # type: ignore[assignment, method-assign, return-value]

    with pytest.raises(TypeError, match=r"policy\.watermark\(now\) must give milliseconds as int, not None") as raised:
        run(Epoch().stamped(FIRST, policy=policy), local_context)
    assert failure(raised.value).step == step(".add_timestamps(...)", 3)


@pytest.mark.parametrize("partitions", [1, 2])
def test_a_failure_of_an_operator_names_its_item(engine: Any, state: Folder, partitions: int) -> None:
    """Where the items are, before anything moves."""
    epoch = Epoch()
    operator = SumByKey(number_of=lambda item: 100 // (item[1] - 10))
    events = together(*(epoch.stamped(FIRST, str(number)) for number in range(partitions)))
    with pytest.raises(ZeroDivisionError) as raised:
        run(epoch.over(events, state=state, operator=operator), engine.context)
    known = failure(raised.value)

    assert known is not None
    assert (known.step, known.item) == (step(".sums(...)", 5), ("b", 10))
    assert epoch.steps == []


class Full(Folder):
    """A state that cannot be kept."""

    def keep(self, shard: int, state: Any) -> None:
        """Fail as something that cannot be pickled does."""
        raise TypeError("cannot pickle it")


def test_a_state_that_cannot_be_kept_names_its_step(local_context: Any, state: Folder) -> None:
    """And not the one that takes its outputs."""
    epoch = Epoch()
    over = epoch.over(epoch.stamped(FIRST, ends=True), state=Full(state.path))

    with pytest.raises(TypeError, match="cannot pickle it") as raised:
        result(Write(over, First(), None, step=step("write")), local_context)
    assert failure(raised.value).step == step(".sums(...)", 5)


@dataclass(frozen=True)
class First:
    """A writer that takes one item."""

    def write(self, items: Iterator[Any]) -> Iterator[Any]:
        yield next(items)


def test_what_a_writer_leaves_counts_as_read(engine: Any, state: Folder) -> None:
    """The task goes on to the end of its range, so that its receipts come."""
    epoch = Epoch()
    over = epoch.over(epoch.stamped(FIRST, ends=True), state=state)

    assert len(result(Write(over, First(), None, step=step("write")), engine.context)) == 1
    assert [(each.items, each.outputs) for each in epoch.steps] == [(3, 3)]


def test_a_plan_without_an_epoch_says_so(local_context: Any, state: Folder) -> None:
    """Jobs fill in the time; whoever runs the plan itself learns that."""
    epoch = Epoch()
    over = replace(epoch.over(epoch.stamped(FIRST), state=state), time=None)

    with pytest.raises(IllegalStateError, match="runs in jobs"):
        run(over, local_context)
