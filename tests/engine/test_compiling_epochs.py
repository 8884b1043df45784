"""What steps over epochs are compiled to, and what is said of it: values, made without Spark."""

from __future__ import annotations

from typing import Any

import pytest

from dstream.engine.compiler import ClusterFacts, compiled
from dstream.engine.compiler.stateful_steps import FEW
from dstream.engine.compiler.walk import Across
from dstream.engine.physical.graph import Done, Graph
from dstream.engine.physical.vertices import Rows
from dstream.errors import SerializationError
from dstream.explain.stages import spark_stages
from dstream.plan.capture_checks import check_captures
from dstream.plan.operations.ends import ToList
from dstream.plan.operations.streams import Node
from dstream.plan.properties import is_bounded, is_of_epoch, is_ordered
from dstream.plan.walk import nothing_kept
from sources import Items
from tests.engine.epochs import SHARDS, Epoch, Folder, again, itself, step, together

FACTS = ClusterFacts(parallelism=2, cores=2, largest_small_side=100)


def over(*partitions: Node) -> Node:
    """Return a step over epochs."""
    return Epoch().over(together(*partitions), state=Folder(""))


def events(number: int, source: Any = None) -> Node:
    """Return the items of a partition of which nobody knows how many there are, or of a source that does."""
    return Epoch().stamped([], str(number), source=source)


def ending(core: Node) -> ToList:
    """Return a plan."""
    return ToList(core, step=step("to_list()", 9))


def graph(core: Node, facts: ClusterFacts = FACTS) -> Graph:
    """Compile a plan."""
    return compiled(ending(core), facts)[0]


@pytest.mark.parametrize(("partitions", "cores", "targets"), [(3, 2, 3), (7, 2, 6), (100, 40, SHARDS)])
def test_partials_go_to_no_more_tasks_than_there_are_shards(partitions: int, cores: int, targets: int) -> None:
    """Nor to more than partitions, or three for each core."""
    (decision,) = graph(over(events(0), events(1)), ClusterFacts(2, cores, 100)).decisions
    assert isinstance(decision, Across)
    move = decision.begin(decision.inputs, (partitions,))
    assert isinstance(move, Done)
    (met,) = move.inputs

    assert isinstance(met, Rows)
    assert met.targets == targets


def test_one_partition_moves_nothing() -> None:
    """The task that reads it has all shards."""
    (decision,) = graph(over(events(0))).decisions
    move = decision.begin(decision.inputs, (1,))

    assert isinstance(move, Done)
    assert not any(isinstance(each, Rows) for each in move.inputs)


@pytest.mark.parametrize(("count", "decisions"), [(FEW // 2, 0), (FEW // 2 + 1, 1)])
def test_few_items_are_read_by_one_task(count: int, decisions: int) -> None:
    """If all sources know how many they have."""
    partitions = [events(number, Items(range(count), 1)) for number in range(2)]

    assert len(graph(over(*partitions)).decisions) == decisions
    assert len(graph(over(*partitions, events(2))).decisions) == 1


def test_a_sequential_plan_needs_no_decision() -> None:
    """Nor does one over the results of another."""
    twice = Epoch().over(again(over(events(0), events(1))), state=Folder(""))

    assert graph(twice, ClusterFacts(1, 2, 100)).decisions == ()


def test_an_epoch_ends_and_has_no_order() -> None:
    """Timestamps leave the order alone."""
    plan = over(events(0), events(1))

    assert (is_bounded(plan), is_ordered(plan), is_ordered(events(0))) == (True, False, True)
    assert (is_of_epoch(plan), is_of_epoch(events(0)), is_of_epoch(again(together()))) == (True, True, False)


def test_the_stages_say_where_the_state_is() -> None:
    """What moves, and what travels with it."""
    said = str(spark_stages(ending(over(events(0), events(1))), 2, 100, nothing_kept))

    assert "items of a key meet where their state is" in said
    assert "watermarks travel behind the items" in said
    assert "each task first reduces what it has of each shard of the state" in said


def test_what_cannot_travel_is_refused() -> None:
    """A timestamp that captures what belongs to this process names its step; what takes receipts stays here."""
    lock = __import__("threading").Lock()
    check_captures(over(events(0)))
    with pytest.raises(SerializationError, match=r"step 3 of 9: .add_timestamps\(...\)"):
        check_captures(Epoch().stamped([], timestamp=lambda event: lock and itself(event)))
