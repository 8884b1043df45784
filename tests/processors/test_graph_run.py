"""The executor: processors of a graph take turns, and nothing is lost between them."""

from __future__ import annotations

import operator
import threading
import time
from itertools import pairwise

import pytest

from dstream.errors import IllegalStateError
from dstream.failures import failure
from dstream.plan.processor_graph import Routing, VertexGraph
from dstream.processors.blocks import GraphArrival, Mark, items_of_outlet
from dstream.processors.graph_execution import GraphExecution
from dstream.processors.tasklets import ProcessorTasklet, TaskletState
from dstream.spi.processor import Processor, Watermark
from dstream.values.time import NO_WATERMARK
from tests.processors.graphs_by_hand import Log, Mapped, Source, Summing, edge, graph_of, run_of, vertex


def test_items_pass_through_vertices_in_order():
    """One processor of each vertex keeps the order, however many items there are."""
    vertices = [vertex("more", lambda: Mapped(lambda n: n + 1)), vertex("double", lambda: Mapped(lambda n: n * 2))]
    edges = [edge("in", "more"), edge("more", "double"), edge("double", "out")]

    given = run_of(vertices, edges, [GraphArrival(0, 0, None, list(range(5000)))])

    assert given == [(n + 1) * 2 for n in range(5000)]


@pytest.mark.parametrize("routing", [Routing.UNICAST, Routing.PARTITIONED])
def test_every_item_comes_to_one_processor(routing):
    """With a key, equal ones come to the same."""
    vertices = [vertex("source", lambda: Source(range(30)), 2), vertex("log", Log, 3)]
    edges = [edge("source", "log", routing=routing, key=lambda n: n % 5), edge("log", "out")]

    given = [each for each in run_of(vertices, edges) if each[1] == 0]

    assert sorted(item for _, _, item in given) == sorted([*range(30), *range(30)])
    if routing is Routing.PARTITIONED:
        assert all(len({index for index, _, item in given if item % 5 == key}) == 1 for key in range(5))
    else:
        assert {index for index, _, _ in given} == {0, 1, 2}


def test_a_broadcast_edge_brings_every_item_to_every_processor():
    """Each of three processors gets all of them."""
    vertices = [vertex("source", lambda: Source("ab")), vertex("log", Log, 3)]

    given = run_of(vertices, [edge("source", "log", routing=Routing.BROADCAST), edge("log", "out")])

    assert [each for each in given if each[1] == 0 and each[0] == 2] == [(2, 0, "a"), (2, 0, "b")]
    assert len([each for each in given if each[1] == 0]) == 6


def test_an_isolated_edge_gives_each_producer_consumers_of_its_own():
    """Producer k sends to those consumers alone whose number leaves k."""
    vertices = [vertex("name", lambda: Named(), 2), vertex("log", Log, 4)]

    given = run_of(vertices, [edge("name", "log", routing=Routing.ISOLATED), edge("log", "out")])

    assert {(index, item) for index, ordinal, item in given if ordinal == 0} == {(0, 0), (2, 0), (1, 1), (3, 1)}


class Named(Processor):
    """Gives its number, ten times."""

    def init(self, outbox, context):
        self.outbox, self.index = outbox, context.index

    def complete(self):
        return self.outbox.offer_all([self.index] * 10) == 10


def test_a_prior_edge_is_read_to_its_end_first():
    """Also where the other edge comes from the same source, which would have to wait for ever otherwise."""
    vertices = [vertex("source", lambda: Source(range(20_000))), vertex("log", Log)]
    edges = [edge("source", "log", 0, 0, priority=1), edge("source", "log", 1, 1, priority=-1), edge("log", "out")]

    ordinals = [ordinal for _, ordinal, _ in run_of(vertices, edges)]

    assert ordinals == [1] * 20_000 + ["end of"] + [0] * 20_000 + ["end of", "end"]


def test_the_least_watermark_of_all_senders_goes_on():
    """And none goes back, or comes twice."""
    vertices = [vertex("log", Log)]
    edges = [edge("a", "log"), edge("b", "log", 0, 1), edge("log", "out")]
    arrivals = [
        GraphArrival(0, 0, None, [Watermark(5), "x"]),
        GraphArrival(1, 0, None, [Watermark(3), Watermark(7)]),
        GraphArrival(0, 0, None, [Watermark(6)]),
    ]

    told = [item for _, what, item in run_of(vertices, edges, arrivals) if what == "watermark"]

    assert told == [3, 5, 6]


def test_a_full_outbox_holds_the_one_before_back():
    """A source that is faster than what follows it is called only as often as there is room."""
    seen = []

    class Slow(Mapped):
        def process(self, ordinal, inbox):
            seen.append(len(inbox))
            super().process(ordinal, inbox)

    vertices = [vertex("source", lambda: Source(range(50_000))), vertex("slow", lambda: Slow(lambda n: n))]

    given = run_of(vertices, [edge("source", "slow", queue_size=10), edge("slow", "out")])

    assert given == list(range(50_000))
    assert max(seen) == 10


def test_no_more_waits_than_the_queue_of_an_edge_may_hold():
    """A block that is larger goes in parts, in order, with the watermarks in it; also one that comes from outside."""
    seen = []

    class Noting(Log):
        def process(self, ordinal, inbox):
            seen.append(len(inbox))
            super().process(ordinal, inbox)

    items = [1, 2, 3, Watermark(3), 4, Watermark(4)]
    for size in (1, 2):
        edges = [edge("in", "first", queue_size=size), edge("first", "log", queue_size=size), edge("log", "out")]
        vertices = [vertex("first", lambda: Mapped(lambda n: n)), vertex("log", Noting)]

        told = run_of(vertices, edges, [GraphArrival(0, 0, None, [*items, Mark.ENDED])])

        assert [what for _, _, what in told] == [1, 2, 3, 3, 4, 4, 0, None]
        assert max(seen) == size


def test_an_ordered_edge_merges_what_its_senders_send_in_order():
    """Two sorted halves come as one sorted whole."""
    vertices = [vertex("source", Halves, 2), vertex("log", Log)]

    given = run_of(vertices, [edge("source", "log", order=lambda n: n), edge("log", "out")])

    assert [item for _, ordinal, item in given if ordinal == 0] == list(range(3000))


class Halves(Processor):
    """The even numbers, or the odd ones."""

    def init(self, outbox, context):
        self.outbox = outbox
        self.left = list(range(context.index, 3000, 2))

    def complete(self):
        del self.left[: self.outbox.offer_all(self.left)]
        return not self.left


def test_a_failure_names_the_vertex_and_the_item():
    """The item is the first one in the inbox."""
    with pytest.raises(ZeroDivisionError) as caught:
        run_of(
            [vertex("divide", lambda: Mapped(lambda n: 1 // n))],
            [edge("in", "divide"), edge("divide", "out")],
            [GraphArrival(0, 0, None, [2, 1, 0, 5])],
        )

    assert failure(caught.value).step.label == "vertex 'divide'"
    assert failure(caught.value).item == 0


def test_a_key_function_that_fails_names_the_sender_and_the_item():
    """Routing belongs to the vertex that sends."""
    vertices = [vertex("source", lambda: Source([1, "x"])), vertex("log", Log, 2)]
    edges = [edge("source", "log", routing=Routing.PARTITIONED, key=lambda n: n + 1), edge("log", "out")]

    with pytest.raises(TypeError) as caught:
        run_of(vertices, edges)

    assert failure(caught.value).step.label == "vertex 'source'"
    assert failure(caught.value).item == "x"


def test_none_is_refused_at_the_door():
    """A processor could not tell it from an empty inbox."""
    with pytest.raises(TypeError, match="None came to the vertex 'log'"):
        run_of([vertex("log", Log)], [edge("in", "log")], [GraphArrival(0, 0, None, [1, None])])


def test_a_processor_that_is_not_cooperative_has_a_thread_of_its_own():
    """While it waits, the others go on; what it raises is raised by the run."""
    seen = set()

    class Waiting(Mapped):
        is_cooperative = False

    def look(n):
        seen.add(threading.current_thread() is threading.main_thread())
        time.sleep(0.001)
        if n == 99:
            raise ValueError("no 99")
        return n

    vertices = [vertex("wait", lambda: Waiting(look)), vertex("log", Log)]
    edges = [edge("in", "wait"), edge("wait", "log"), edge("log", "out")]

    assert len(run_of(vertices, edges, [GraphArrival(0, 0, None, list(range(20)))])) == 22
    assert seen == {False}
    with pytest.raises(ValueError, match="no 99") as caught:
        run_of(vertices, edges, [GraphArrival(0, 0, None, [99])])
    assert failure(caught.value).step.label == "vertex 'wait'"
    assert failure(caught.value).item == 99


def run_on_5000(create):
    """Run one processor on so many numbers, more than an outbox takes in one call."""
    edges = [edge("in", "careless", queue_size=5000), edge("careless", "out")]
    return run_of([vertex("careless", create)], edges, [GraphArrival(0, 0, None, list(range(5000)))])


def test_another_item_after_a_refusal_is_an_error():
    """One that goes on with the next item would lose one silently."""

    class Careless(Mapped):
        def process(self, ordinal, inbox):
            while len(inbox) and self.outbox.offer(inbox.poll()):
                pass

    with pytest.raises(IllegalStateError, match="which is to be offered again first"):
        run_on_5000(lambda: Careless(abs))


@pytest.mark.parametrize("is_same", [True, False])
def test_an_item_after_a_refusal_in_the_same_call_is_an_error(is_same):
    """A loop until the outbox takes it would never end, since nobody empties it meanwhile."""

    class Stubborn(Mapped):
        def process(self, ordinal, inbox):
            for item in inbox:
                while not self.outbox.offer(item) and is_same:
                    pass

    with pytest.raises(IllegalStateError, match="after 2048 was refused, in the same call"):
        run_on_5000(lambda: Stubborn(abs))


def test_an_item_that_is_emitted_in_close_is_refused(caplog):
    """Nobody would send it; what close() raises is logged."""

    class Late(Mapped):
        def close(self, error):
            self.outbox.offer("late")

    run_of([vertex("late", lambda: Late(abs))], [edge("in", "late"), edge("late", "out")])

    assert "'late' was emitted in close()" in caplog.text


@pytest.mark.parametrize("method", ["tick", "complete_edge", "complete", "try_process_watermark"])
def test_a_method_that_does_not_say_whether_it_is_done_is_an_error(method):
    """It would be called for ever."""

    def take(self, ordinal, inbox):
        inbox.drain()

    silent = type("Silent", (Processor,), {"process": take, method: lambda self, *given: None})
    arrivals = [GraphArrival(0, 0, None, [1, Watermark(5)])]

    with pytest.raises(TypeError, match=rf"{method}\(\) of Silent must return True when it is done") as caught:
        run_of([vertex("silent", silent)], [edge("in", "silent"), edge("silent", "out")], arrivals)
    assert failure(caught.value).step.label == "vertex 'silent'"


def test_what_was_saved_is_there_again_in_another_run():
    """Nothing was given before; the sums go on."""
    graph = VertexGraph((vertex("sum", Summing),), (edge("in", "sum"), edge("sum", "out")))
    first = GraphExecution(graph, {"sum": 1})

    assert list(first.epoch(iter([GraphArrival(0, 0, None, [("a", 1), ("b", 2)])]))) == []
    assert list(first.save()) == []
    second = GraphExecution(graph, {"sum": 1})
    second.restore(first.saved)

    blocks = list(second.run(iter([GraphArrival(0, 0, None, [("a", 10)])])))
    assert list(items_of_outlet(0, blocks)) == [{"a": 11, "b": 2}]


class Reopening(Summing):
    """Gives numbers when it is restored, as many as the outbox takes in one call."""

    def __init__(self, count):
        super().__init__()
        self.left = list(range(count))

    def finish_snapshot_restore(self):
        """Give what is left."""
        del self.left[: self.outbox.offer_all(self.left)]
        return not self.left


class ReopeningAlone(Reopening):
    """One with a thread of its own."""

    is_cooperative = False


@pytest.mark.parametrize("way", ["run", "epoch", "save"])
@pytest.mark.parametrize("kind", [Reopening, ReopeningAlone])
@pytest.mark.parametrize("is_source", [False, True])
def test_what_is_emitted_as_a_restore_finishes_waits_like_other_output(way, kind, is_source):
    """It may be more than the outbox and the queue of an edge take, also of a source whose slice of time is over."""
    vertices = [vertex("sum", lambda: kind(10_000)), vertex("next", lambda: Mapped(lambda n: n))]
    edges = [edge("sum", "next", queue_size=10), edge("next", "out")]
    graph = graph_of(vertices, edges if is_source else [edge("in", "sum"), *edges])
    run = GraphExecution(graph, {"sum": 1, "next": 1})
    state = TaskletState(({}, NO_WATERMARK), () if is_source else (frozenset(),), frozenset(), False)

    run.restore({("sum", 0): ({"a": 1}, state)})
    blocks = list(run.save() if way == "save" else getattr(run, way)(iter(())))
    run.close()

    assert [n for n in items_of_outlet(0, blocks) if type(n) is int] == list(range(10_000))


def test_what_is_emitted_while_saving_is_processed_before_the_next_one_saves():
    """A first stage that empties itself leaves what it had with the one behind it."""

    class Emptying(Summing):
        def save_to_snapshot(self):
            left = list(self.sums.items())
            while left and self.outbox.offer(left[-1]):
                del self.sums[left.pop()[0]]
            return not left

    graph = VertexGraph(
        (vertex("first", Emptying), vertex("sum", Summing)), (edge("in", "first"), edge("first", "sum"))
    )
    run = GraphExecution(graph, {"first": 1, "sum": 1})
    list(run.epoch(iter([GraphArrival(0, 0, None, [("a", 1), ("a", 2)])])))

    list(run.save())

    assert run.saved["first", 0][0] == {}
    assert run.saved["sum", 0][0] == {"a": 3}


def saved_by(first):
    """Return what a processor and the one behind it saved, in one snapshot."""
    vertices = vertex("first", first), vertex("sum", Summing)
    run = GraphExecution(VertexGraph(vertices, (edge("in", "first"), edge("first", "sum"))), {"first": 1, "sum": 1})
    list(run.epoch(iter([GraphArrival(0, 0, None, [("a", 1)])])))
    list(run.save())
    run.close()
    return run.saved["first", 0][0], run.saved["sum", 0][0]


def test_a_processor_saves_once_in_a_snapshot():
    """Also where the edge has no room for all that it emits meanwhile."""

    class Announcing(Summing):
        def save_to_snapshot(self):
            return self.outbox.offer_all([("b", 1)] * 2000) == 2000

    assert saved_by(Announcing) == ({}, {"b": 2000})


def test_a_run_goes_on_behind_a_snapshot_that_fails():
    """Processors that had saved are called again; without end it would wait for them."""

    class Failing(Summing):
        has_failed = False

        def save_to_snapshot(self):
            if not self.has_failed:
                self.has_failed = True
                raise ValueError("no room")
            return super().save_to_snapshot()

    vertices = vertex("first", Summing), vertex("sum", Failing)
    run = GraphExecution(VertexGraph(vertices, (edge("in", "first"), edge("first", "sum"))), {"first": 1, "sum": 1})
    with pytest.raises(ValueError, match="no room"):
        list(run.save())
    assert not any(each.has_saved for each in run._tasklets)  # Else the next epoch would never end.
    list(run.epoch(iter([GraphArrival(0, 0, None, [("a", 1)])])))
    list(run.save())

    assert run.saved["first", 0][0] == {"a": 1}


@pytest.mark.parametrize("shares_a_thread", [True, False])
def test_a_processor_that_has_saved_does_nothing_until_all_have(shares_a_thread):
    """Items emitted then would be in the state of those behind it, and not in its own."""

    class Ticking(Summing):
        now = seen = 0
        is_cooperative = shares_a_thread

        def tick(self):
            if self.seen == self.now:
                return True
            self.seen += 1
            return self.outbox.offer(("tick", 1))

        def save_to_snapshot(self):
            is_taken = self.outbox.offer_to_snapshot("seen", self.seen)
            self.now += 1
            return is_taken

    assert saved_by(Ticking) == ({"seen": 0}, {})


def test_a_source_without_end_gets_a_slice_of_time():
    """A run that is not the last ends although the source does not."""

    class Endless(Processor):
        count = 0

        def init(self, outbox, context):
            self.outbox = outbox

        def complete(self):
            while self.outbox.offer(self.count):
                self.count += 1
            return False

    run = GraphExecution(VertexGraph((vertex("count", Endless),), (edge("count", "out"),)), {"count": 1})

    first = list(items_of_outlet(0, run.epoch(iter(()))))
    second = list(items_of_outlet(0, run.epoch(iter(()))))

    assert first + second == list(range(len(first) + len(second)))
    assert len(first) > 0
    assert len(second) > 0


def test_processors_and_suppliers_are_closed_once():
    """With the failure, if there was one; what they raise changes nothing."""
    closed = []

    class Closing(Mapped):
        def close(self, error):
            closed.append(error)
            raise RuntimeError("close")

    run = GraphExecution(VertexGraph((vertex("one", lambda: Closing(operator.neg), 2),), ()), {"one": 2})
    failed = ValueError("x")
    run.close(failed)
    run.close(None)

    assert closed == [failed, failed]


def test_an_end_takes_few_turns_from_one_end_of_a_chain_to_the_other(monkeypatch):
    """Each vertex would wait for a turn of all others: a chain of 2,000 took a minute."""
    calls = []
    call = ProcessorTasklet.call
    monkeypatch.setattr(ProcessorTasklet, "call", lambda self: calls.append(1) or call(self))
    names = [f"v{number}" for number in range(200)]
    edges = [edge(one, two) for one, two in pairwise(["in", *names, "out"])]

    given = run_of([vertex(name, lambda: Mapped(abs)) for name in names], edges, [GraphArrival(0, 0, None, [-1])])

    assert given == [1]
    assert len(calls) < 10 * len(names)


def test_ends_of_many_edges_take_few_turns(monkeypatch):
    """Of 300 vertices that lead to one."""
    calls = []
    call = ProcessorTasklet.call
    monkeypatch.setattr(ProcessorTasklet, "call", lambda self: calls.append(1) or call(self))
    names = [f"v{number}" for number in range(300)]
    edges = [edge("in", name, number) for number, name in enumerate(names)]
    edges += [edge(name, "all", 0, number) for number, name in enumerate(names)] + [edge("all", "out")]
    vertices = [vertex(name, lambda: Mapped(abs)) for name in [*names, "all"]]

    assert run_of(vertices, edges, (GraphArrival(n, 0, None, [-n]) for n in range(300))) == list(range(300))
    assert len(calls) < 20 * len(names)
