"""Parts of a graph that run epoch by epoch: what they saved is all that the next epoch needs."""

from __future__ import annotations

import gc
import itertools
import pickle
import weakref
from dataclasses import replace
from types import SimpleNamespace

import pytest

from dstream.core import processors
from dstream.errors import IllegalStateError
from dstream.plan.processor_graph import Routing
from dstream.processors.blocks import GraphBlock, Mark, MarkedBlock, items_of_outlet
from dstream.processors.graph_operator import GraphOperator
from dstream.spi.epochs import EpochTime, OfFixedShards
from dstream.spi.processor import BroadcastKey, Processor, Watermark
from dstream.values.time import END_OF_TIME, NO_WATERMARK
from tests.processors.graphs_by_hand import Log, Source, Summing, edge, graph_of, vertex

BY_KEY = {"routing": Routing.PARTITIONED, "key": lambda item: item[0]}


class Epochs:
    """Runs an operator; between epochs its shards are kept, or made again from a dump, or from deltas."""

    def __init__(self, operator, fate="kept"):
        self.operator, self.fate, self.number = operator, fate, 0
        self.states = [operator.new() for _ in range(operator.shards)]
        self.dumps = [pickle.dumps(each.dump()) for each in self.states]
        self.deltas = [[] for _ in self.states]

    def epoch(self, *inputs, is_last=False):
        """Return the blocks of an epoch."""
        self.number += 1
        ended = frozenset(range(self.operator.inputs) if is_last else ())
        moment = EpochTime(self.number, 0.0, NO_WATERMARK, END_OF_TIME, ended=ended)
        shards = self.operator.shards
        partials = [
            (number, self.operator.partial(number, ((None, item) for item in items), moment, shards).of_shards)
            for number, items in enumerate(inputs)
        ]
        return [block for shard in range(shards) for block in self._applied(shard, partials, moment)]

    def _applied(self, shard, partials, moment):
        state = self.states[shard]
        here = [(number, of_shards[shard]) for number, of_shards in partials if shard in of_shards]
        moment = replace(moment, shard=shard)
        blocks = [block for _, block in state.apply(here, moment).outputs]
        self.clock_deadline = state.clock_deadline()
        delta = state.delta()
        if delta is not None:
            self.deltas[shard].append(pickle.dumps(delta))
        if self.fate == "dumped":
            self.dumps[shard], self.deltas[shard] = pickle.dumps(state.dump()), []
        if self.fate != "kept":
            self.states[shard] = self.operator.new()
            self.states[shard].load(pickle.loads(self.dumps[shard]))
            for each in self.deltas[shard]:
                self.states[shard].patch(pickle.loads(each))
        return blocks


@pytest.mark.parametrize("fate", ["kept", "dumped", "patched"])
def test_sums_go_on_from_epoch_to_epoch(fate):
    """Whatever process has the processors."""
    graph = graph_of([vertex("sum", Summing)], [edge("in", "sum", **BY_KEY), edge("sum", "out")])
    epochs = Epochs(GraphOperator(graph, 3, (1,)), fate)

    assert epochs.epoch([("a", 1), ("b", 2), ("c", 3)]) == []
    assert epochs.epoch([("a", 10)]) == []
    assert epochs.epoch([]) == []
    given = list(items_of_outlet(0, epochs.epoch([("c", 30)], is_last=True)))

    assert {key: total for sums in given for key, total in sums.items()} == {"a": 11, "b": 2, "c": 33}


def test_a_delta_holds_what_changed():
    """Not the sums that nothing was added to."""
    graph = graph_of([vertex("sum", Summing)], [edge("in", "sum", **BY_KEY)])
    epochs = Epochs(GraphOperator(graph, 1, (1,)))
    epochs.epoch([("a", 1), ("b", 2)])
    epochs.epoch([("a", 1)])
    epochs.epoch([])

    assert len(epochs.deltas[0]) == 2
    _, changed, removed = pickle.loads(epochs.deltas[0][1])
    assert (changed, removed) == ({(("sum", 0), "a"): 2}, [])


def test_runs_that_a_delta_made_useless_are_let_go_of():
    """A shard whose epochs other processes run in turns has many of them, each with a copy of the state."""
    graph = graph_of([vertex("sum", Summing)], [edge("in", "sum", **BY_KEY)])
    epochs, runs = Epochs(GraphOperator(graph, 1, (1,))), []
    for _ in range(3):
        epochs.epoch([("a", 1)])
        runs.append(weakref.ref(epochs.states[0]._run))
        epochs.states[0].patch(pickle.loads(epochs.deltas[0][-1]))
    gc.collect()

    assert [each() for each in runs] == [None, None, None]


def test_an_entry_that_is_saved_no_more_is_gone():
    """Also for who loads the state."""

    class Last(Summing):
        def process(self, ordinal, inbox):
            self.sums = dict(inbox.drain())

    graph = graph_of([vertex("last", Last)], [edge("in", "last", **BY_KEY), edge("last", "out")])
    epochs = Epochs(GraphOperator(graph, 1, (1,)), "patched")
    epochs.epoch([("a", 1)])
    epochs.epoch([("b", 2)])

    assert list(items_of_outlet(0, epochs.epoch([], is_last=True))) == [{"b": 2}]


@pytest.mark.parametrize("fate", ["kept", "dumped", "patched"])
def test_time_and_ends_of_senders_are_known_again(fate):
    """The least watermark of three senders, two of which spoke in earlier epochs; one has ended."""
    graph = graph_of([vertex("log", Log)], [edge("before", "log", carries_blocks=True), edge("log", "out")])
    epochs = Epochs(GraphOperator(graph, 3, (3,)), fate)

    def told(*blocks):
        given = items_of_outlet(0, epochs.epoch(list(blocks)))
        return sorted({(what, item) for _, what, item in given})

    assert told(GraphBlock(0, 0, MarkedBlock([Watermark(5)]))) == []
    assert told(GraphBlock(0, 1, MarkedBlock([Watermark(3)]))) == []
    assert told(GraphBlock(0, 2, MarkedBlock([Mark.ENDED]))) == [("watermark", 3)]
    assert told(GraphBlock(0, 1, MarkedBlock([Watermark(9)]))) == [("watermark", 5)]
    assert told(GraphBlock(0, 0, MarkedBlock([Mark.ENDED])), GraphBlock(0, 1, MarkedBlock([Mark.ENDED]))) == [
        ("end", None),
        ("end of", 0),
        ("watermark", 9),
    ]
    assert told() == []


def test_a_source_goes_on_where_it_was():
    """It saves how far it has come under a key that does not move."""

    class Counting(Processor):
        count = 0

        def init(self, outbox, context):
            self.outbox = outbox

        def complete(self):
            while self.outbox.offer(self.count):
                self.count += 1
            return False

        def save_to_snapshot(self):
            return self.outbox.offer_to_snapshot(BroadcastKey("count"), self.count)

        def restore_from_snapshot(self, inbox):
            ((key, self.count),) = inbox.drain()
            assert key == BroadcastKey("count")

    operator = GraphOperator(graph_of([vertex("count", Counting)], [edge("count", "out")]), 1, ())
    epochs = Epochs(operator, "patched")

    given = [item for _ in range(2) for item in items_of_outlet(0, epochs.epoch())]

    assert isinstance(operator, OfFixedShards)
    assert epochs.clock_deadline == 0.0
    assert given == list(range(len(given)))


def test_a_finished_source_does_not_begin_again():
    """That it has ended is part of the state."""
    graph = graph_of(
        [vertex("source", lambda: Source("ab")), vertex("log", Log)], [edge("source", "log"), edge("log", "out")]
    )
    epochs = Epochs(GraphOperator(graph, 1, ()), "dumped")

    first, second = (list(items_of_outlet(0, epochs.epoch())) for _ in range(2))

    assert first == [(0, 0, "a"), (0, 0, "b"), (0, "end of", 0), (0, "end", None)]
    assert second == []


class Ticking(Summing):
    """Has something to do by the clock."""

    def tick(self):
        return True


@pytest.mark.parametrize(
    ("create", "inlets", "deadline"),
    [(Summing, 1, None), (processors.map(abs), 1, None), (Ticking, 1, 0.2), (lambda: Source("ab"), 0, None)],
)
def test_a_shard_waits_for_the_clock_if_its_processors_do(create, inlets, deadline):
    """A source that has ended does not, nor do processors that only go on with what items began."""
    edges = [edge("in", "a")][:inlets] + [edge("a", "out")]
    epochs = Epochs(GraphOperator(graph_of([vertex("a", create)], edges), 1, (1,)[:inlets]))
    epochs.epoch(*[[]] * inlets)

    assert epochs.clock_deadline == deadline


def test_a_value_that_is_again_what_it_was_is_written_again():
    """If it was another one meanwhile, which this process has only heard of."""

    class Last(Summing):
        def process(self, ordinal, inbox):
            self.sums.update(inbox.drain())

    graph = graph_of([vertex("last", Last)], [edge("in", "last", **BY_KEY)])
    here, there = Epochs(GraphOperator(graph, 1, (1,))), Epochs(GraphOperator(graph, 1, (1,)))
    for each in (here, there):
        each.epoch([("a", 1)])
    there.epoch([("a", 2)])
    here.states[0].patch(pickle.loads(there.deltas[0][1]))
    here.epoch([("a", 1)])

    assert pickle.loads(here.deltas[0][1])[1] == {(("last", 0), "a"): 1}


def test_items_for_processors_that_have_completed_are_refused():
    """They would be lost; in an epoch that only tells again that all has ended nothing happens."""
    epochs = Epochs(GraphOperator(graph_of([vertex("sum", Summing)], [edge("in", "sum"), edge("sum", "out")]), 1, (1,)))
    epochs.epoch([("a", 1)], is_last=True)

    assert epochs.epoch([], is_last=True) == []
    with pytest.raises(IllegalStateError, match="the vertex 'sum', whose processors have completed"):
        epochs.epoch([("b", 1)])


def test_a_source_that_stands_still_lets_go_what_it_has_emitted(monkeypatch):
    """When its time is over and the queue behind it was full."""
    rounds = SimpleNamespace(monotonic=itertools.count().__next__, sleep=lambda seconds: None)
    monkeypatch.setattr("dstream.processors.graph_execution.time", rounds)
    monkeypatch.setattr("dstream.processors.graph_execution.SLICE", 5)

    class Endless(Source):
        def complete(self):
            while self.outbox.offer("item"):
                pass
            return False

        def restore_from_snapshot(self, inbox):
            inbox.drain()

    class OneByOne(Log):
        def process(self, ordinal, inbox):
            if self.outbox.offer(inbox.peek()):
                inbox.remove()

    edges = [edge("source", "slow", queue_size=1), edge("slow", "out")]
    graph = graph_of([vertex("source", lambda: Endless("")), vertex("slow", OneByOne)], edges)
    epochs = Epochs(GraphOperator(graph, 1, ()))

    assert len(list(items_of_outlet(0, epochs.epoch()))) == 2048
