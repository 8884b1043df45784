"""Plans whose items carry timestamps: what the user's functions see, and what comes out."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from dstream.engine.local import LocalEngine
from dstream.errors import UnsupportedError
from dstream.failures import failure
from dstream.gatherers import map_concurrent
from dstream.pipeline import Pipeline
from dstream.plan import Step, called, rewrite
from dstream.plan.operations.calls import Filter, FlatMap, Map, MapMulti, Peek, Recover, Tally, WithService
from dstream.plan.operations.elementwise import Chain, Gather, UsingBatches
from dstream.plan.operations.ends import ToList, Write
from dstream.plan.operations.keyed import PartitionBy
from dstream.plan.operations.pairs import HashJoin
from dstream.plan.operations.sort_limit import Sorted
from dstream.plan.operations.streams import Fork, Node, Read, Spread, Union
from dstream.plan.operations.unbounded import AssignTimestamps, OverEpochs
from dstream.plan.steps import Op
from dstream.plan.timestamps import InstantOf, StreamRead, in_time, late_ones_of, timed
from dstream.plan.walk import fold
from dstream.spi import Service
from dstream.values.time import Late
from sources import Items


def endless(*items: Any) -> Node:
    """Return a source that a job would read without an end."""
    return Read(StreamRead(Items(items)), step=Step("read"))


def stamped(*items: Any) -> Node:
    """Return items that are a hundredth of their timestamps."""
    return AssignTimestamps(
        endless(*items), InstantOf(lambda n: 100 * n), "stamped", policy=lambda: None, step=Step(".add_timestamps()")
    )


def states(*upstreams: Node) -> Node:
    """Return a step over epochs."""
    return OverEpochs(upstreams, None, "window")


def run(node: Node) -> Any:
    """Return what a lifted plan gives, with its pairs; an epoch without an engine's part: each step passes items on."""
    plan = fold(timed(rewrite(node)), _without_epochs)
    return LocalEngine(2**30).submit(ToList(plan, step=plan.step)).result()


def _without_epochs(each: Node, inputs: list[Node]) -> Node:
    match each:
        case Read(source=StreamRead(source=source)):
            return dataclasses.replace(each, source=source)
        case AssignTimestamps(timestamp=timestamp):
            op = Op("map", lambda pair: (timestamp(pair[1]), pair[1]), None, each.step)
            return Chain(inputs[0], (op,), step=each.step)
        case OverEpochs():
            return Union(tuple(inputs), step=each.step)
    return each.with_inputs(inputs)


LIFTED = {
    "map": (lambda up: Map(up, lambda n: n + 1), [(100, 2), (200, 3)]),
    "map_to_int": (lambda up: Map(up, lambda n: n * 2, int), [(100, 2), (200, 4)]),
    "map_to_double": (lambda up: Map(up, lambda n: n, float), [(100, 1.0), (200, 2.0)]),
    "filter": (lambda up: Filter(up, lambda n: n > 1), [(200, 2)]),
    "flat_map": (lambda up: FlatMap(up, lambda n: ["x"] * n), [(100, "x"), (200, "x"), (200, "x")]),
    "map_multi": (lambda up: MapMulti(up, lambda n, emit: emit(-n)), [(100, -1), (200, -2)]),
    "map_using": (
        lambda up: WithService(up, Service(lambda: 10), lambda ten, n: ten * n, "map"),
        [(100, 10), (200, 20)],
    ),
    "map_using_batches": (
        lambda up: UsingBatches(up, Service(lambda: 10), lambda ten, some: [ten + n for n in some]),
        [(100, 11), (200, 12)],
    ),
    "map_concurrent": (
        lambda up: Gather(up, map_concurrent(2, lambda n: n * 3), step=called("map_concurrent")),
        [(100, 3), (200, 6)],
    ),
    "hash_join": (
        lambda up: HashJoin(up, Read(Items([(2, "b")])), lambda n: n, lambda pair: pair[0]),
        [(100, (1, None)), (200, (2, (2, "b")))],
    ),
    "fork": (Fork, [(100, 1), (200, 2)]),
    "rebalance": (Spread, [(100, 1), (200, 2)]),
    "union": (lambda up: Union((up, endless(7))), [(100, 1), (200, 2), (None, 7)]),
    "in time": (in_time, [(100, 1), (200, 2)]),
    "late": (lambda up: late_ones_of(Map(up, Late)), [(100, 1), (200, 2)]),
    "states": (states, [(100, 1), (200, 2)]),
}


@pytest.mark.parametrize("name", LIFTED)
def test_functions_see_items_and_results_keep_their_timestamps(name):
    """Each operation does to the items what it does without timestamps."""
    step, expected = LIFTED[name]
    assert run(step(stamped(1, 2))) == expected


def test_what_stands_before_the_timestamps_is_as_it_was():
    """Its functions run on plain items, and pairs are made in the same loop."""
    plan = timed(rewrite(AssignTimestamps(Map(endless(1), abs), abs, lambda: None, 60.0)))
    assert [op.action for op in plan.upstream.ops] == ["map", "pair"]


def test_neighbouring_steps_stay_one_chain():
    """The item leaves its pair once, whatever follows."""
    plan = timed(rewrite(Filter(Map(stamped(1), abs), bool)))
    assert [op.action for op in plan.ops] == ["unpair", "map", "filter", "pair"]


def test_items_without_timestamps_have_none_for_it():
    """A state needs no time."""
    assert run(states(endless(1, 2))) == [(None, 1), (None, 2)]


def test_a_plan_without_time_is_the_same_object():
    """Nothing is lifted where nothing keeps a state or asks for the time."""
    plan = rewrite(Map(endless(1), abs))
    assert timed(plan) is plan


def test_a_peek_and_a_count_see_items():
    """So does what is counted for the metrics of a stage."""
    seen, counts = [], []
    assert run(Tally(Peek(stamped(3), seen.append), counts.append)) == [(300, 3)]
    assert (seen, counts) == ([3], [1])


def test_a_failure_names_the_item_and_not_the_pair():
    """Its timestamp is nothing that the function was given."""
    with pytest.raises(ZeroDivisionError) as caught:
        run(Map(Map(stamped(1, 0), abs), lambda n: 1 / n))
    assert failure(caught.value).item == 0


def test_a_failing_key_of_a_join_names_the_item():
    """Also a key that has no hash."""
    with pytest.raises(TypeError) as caught:
        run(HashJoin(stamped(1), Read(Items([1])), lambda n: [n], abs))
    assert failure(caught.value).item == 1


def test_what_is_resolved_has_the_timestamp_of_its_item():
    """The function that resolves, and a dead letter, are given the item."""
    pipeline = Pipeline()
    tenths = pipeline.read_from(Items([0, 2])).map(lambda n: 10 // n)
    node = tenths.resolve(ZeroDivisionError, lambda n, error: (n, "?"))._record.node
    step = dataclasses.replace(node.upstream, upstream=stamped(0, 2))
    assert run(dataclasses.replace(node, upstream=step)) == [(0, (0, "?")), (200, 5)]


def test_a_call_that_is_resolved_has_the_timestamp_of_its_item():
    """Calls are made for several items at a time, and their results are in order."""
    pipeline = Pipeline()
    tenths = pipeline.read_from(Items([0, 2])).map_concurrent(2, lambda n: 10 // n)
    node = tenths.resolve(ZeroDivisionError, lambda n, error: n)._record.node
    step = dataclasses.replace(node.upstream, upstream=stamped(0, 2))
    assert run(dataclasses.replace(node, upstream=step)) == [(0, 0), (200, 5)]


class Letters(list):
    """Takes dead letters, and keeps what they are of."""

    label = "letters"

    def __call__(self, letters):
        self.extend(letter.item for letter in letters)

    def report(self, say):
        say()


def test_a_dead_letter_has_the_item():
    """Whoever reads it knows nothing of pairs."""
    letters = Letters()
    step = Map(stamped(0, 2), lambda n: 10 // n)
    sent = Recover(
        step, (ZeroDivisionError,), "sent", delivery=letters, step=called("on_error", "ZeroDivisionError", "into=...")
    )
    assert (run(sent), letters) == ([(200, 5)], [0])


def test_sinks_are_given_items():
    """A writer and its collector know nothing of timestamps; the chain before it makes no pairs."""
    node = Write(rewrite(Map(stamped(1), str)), None, None, step=rewrite(stamped(1)).step)
    assert [op.action for op in timed(node).upstream.ops] == ["unpair", "map"]
    node = Write(rewrite(states(stamped(1))), None, None, step=node.step)
    assert [op.action for op in timed(node).upstream.ops] == ["unpair"]


def test_no_item_is_moved():
    """A watermark could not pass what spreads the items."""
    plan = timed(rewrite(states(Spread(Map(Spread(endless(1)), abs)))))
    assert not isinstance(plan.upstreams[0].upstream, Spread)


def test_a_side_that_ends_is_not_lifted():
    """The right side of a join has no timestamps, and may be sorted."""
    right = Sorted(Read(Items([(2, "b"), (1, "a")])))
    joined = HashJoin(stamped(1), right, lambda n: n, lambda pair: pair[0])
    assert run(joined) == [(100, (1, (1, "a")))]


REFUSED = {
    "sorted": lambda: Sorted(stamped(1)),
    "partition_by": lambda: PartitionBy(stamped(1), 2),
    "sorted before": lambda: states(Sorted(endless(1))),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_needs_an_end_is_refused(name):
    """The step is named, and what there is instead."""
    with pytest.raises(UnsupportedError, match=r"\.(sorted|partition_by)\(.*needs all items, and these have no end"):
        timed(rewrite(REFUSED[name]()))


def test_the_right_side_of_a_join_must_end():
    """Every task holds all of it."""
    with pytest.raises(UnsupportedError, match=r"the right side of .*hash_join.* must end"):
        timed(rewrite(HashJoin(stamped(1), endless(1), abs, abs)))


def test_calls_that_tasks_share_are_refused():
    """Their items would move, and watermarks stay behind."""
    calls = Gather(endless(1), map_concurrent(2, abs, rate=5.0), step=called("map_concurrent"))
    with pytest.raises(UnsupportedError, match="leave rate= and cache= out"):
        timed(rewrite(states(calls)))
