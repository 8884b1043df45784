"""What goes through a vertex is logged: the cases of Jet's PeekingWrapperTest, and of preferred parallelism."""

from __future__ import annotations

import logging
from uuid import uuid4

import pytest

from collectors import counting
from dstream.core import (
    DAG,
    AbstractProcessor,
    Edge,
    Processor,
    ProcessorMetaSupplier,
    ProcessorSupplier,
    Watermark,
    force_total_parallelism_one,
    processors,
)
from dstream.errors import UnsupportedError
from dstream.processors.blocks import GraphArrival
from dstream.testing.protocol import RUNS, ProcessorRun
from reducers import to_ilist
from sources import Items, text_files
from tests.core.processors.four_runs import emitted_in_four_runs
from tests.processors.graphs_by_hand import edge, run_of, vertex


@pytest.fixture
def lines(caplog):
    """Return what gives the lines of the log."""
    caplog.set_level(logging.INFO, "dstream.core")
    return lambda: [each.getMessage() for each in caplog.records]


class OneByOne(AbstractProcessor):
    """Emits what it gets, and says once for each item that it is not done."""

    def start(self, context):
        """Nothing came yet."""
        self.has_waited = False

    def try_process(self, ordinal, item):
        """Wait once, then emit."""
        self.has_waited = not self.has_waited
        return not self.has_waited and self.try_emit(item)


class OfOneByOne(ProcessorSupplier):
    """Makes them."""

    def get(self, count):
        """Return so many."""
        return [OneByOne() for _ in range(count)]


def through(supplier, items=(1, 2), outlets=1):
    """Run one vertex."""
    edges = [edge("in", "v"), *(edge("v", f"out{n}", n) for n in range(outlets))]
    run_of([vertex("v", supplier)], edges, [GraphArrival(0, 0, None, list(items))])


@pytest.mark.parametrize("supplier", [processors.map(abs), OneByOne, OfOneByOne(), ProcessorMetaSupplier.of(OneByOne)])
def test_input_is_logged_once(supplier, lines):
    """Jet: peekInput, for each kind of supplier, also where an item comes again."""
    through(processors.peek_input(supplier), [1, 2, Watermark(3)])

    assert lines() == [
        "Input from ordinal 0: 1",
        "Input from ordinal 0: 2",
        "Input: Watermark(timestamp=3)",
    ]


def peek_and_remove(inbox):
    """Look, look again, and take."""
    while (item := inbox.peek()) is not None:
        assert inbox.peek() is item
        inbox.remove()


def poll(inbox):
    """Take one after another."""
    while inbox.poll() is not None:
        pass


@pytest.mark.parametrize("take", [peek_and_remove, poll, list, lambda inbox: inbox.drain()])
def test_input_is_logged_however_it_is_taken(take, lines):
    """Jet: when_peekInputWithPeekingProcessorSupplier, PollingProcessorSupplier, IteratingProcessorSupplier."""

    class Taking(Processor):
        def process(self, ordinal, inbox):
            take(inbox)

    through(processors.peek_input(Taking), [1, 2])

    assert lines() == ["Input from ordinal 0: 1", "Input from ordinal 0: 2"]


@pytest.mark.parametrize("supplier", [processors.map(abs), OneByOne, OfOneByOne(), ProcessorMetaSupplier.of(OneByOne)])
def test_output_is_logged_for_each_edge(supplier, lines):
    """Jet: peekOutput, for each kind of supplier."""
    through(processors.peek_output(supplier), [1, Watermark(3)], outlets=2)

    assert lines() == [
        "Output to ordinal 0: 1",
        "Output to ordinal 1: 1",
        "Output forwarded: Watermark(timestamp=3)",
    ]


def test_some_items_are_logged(lines):
    """As they are to be shown."""
    through(processors.peek_input(processors.noop(), hex, lambda n: n > 9), [9, 10])
    through(processors.peek_output(processors.map(abs), hex, lambda n: n > 9), [9, 10])

    assert lines() == ["Input from ordinal 0: 0xa", "Output to ordinal 0: 0xa"]


def test_items_to_some_edges_are_logged_for_these(lines):
    """Jet: offers to one ordinal, and to several."""

    class ToSome(Processor):
        def init(self, outbox, context):
            self.outbox = outbox

        def process(self, ordinal, inbox):
            inbox.drain_to(lambda item: self.outbox.offer(item, 1) and self.outbox.offer(item, [0, 2]))

    through(processors.peek_output(ToSome), [7], outlets=3)

    assert lines() == [f"Output to ordinal {ordinal}: 7" for ordinal in (1, 0, 2)]


def test_what_is_saved_is_logged(lines):
    """Jet: peekSnapshot."""
    one = ProcessorRun(processors.peek_snapshot(processors.aggregate(counting())), RUNS[1])
    one.process(0, "x")

    assert lines() == [
        "Output to snapshot: (BroadcastKey(key='ended'), False)",
        "Output to snapshot: (ShardKey(shard=0), {None: 1})",
    ]


@pytest.mark.parametrize("peek", [processors.peek_input, processors.peek_output, processors.peek_snapshot])
def test_processors_see_no_difference(peek):
    """In all runs."""
    assert emitted_in_four_runs(peek(processors.aggregate_by_key([abs], counting())), [1, 1, 2]) == [(1, 2), (2, 1)]
    assert emitted_in_four_runs(peek(OneByOneQuietly), [1, 2]) == [1, 2]


class OneByOneQuietly(AbstractProcessor):
    """Emits what it gets."""

    def try_process(self, ordinal, item):
        """Emit it."""
        return self.try_emit(item)


@pytest.mark.parametrize("peek", [processors.peek_input, processors.peek_output, processors.peek_snapshot])
def test_the_preferred_parallelism_stays(peek):
    """Jet: PeekingWrapperPreferredParallelismTest."""
    assert peek(force_total_parallelism_one(OneByOne)).preferred_local_parallelism == 1
    assert peek(processors.write_logger()).preferred_local_parallelism == 1
    assert peek(OneByOne).preferred_local_parallelism == -1


def test_what_makes_no_processors_is_refused():
    """A source has no input, a sink no output, and neither has a snapshot."""
    read, write = processors.read(text_files("x")), processors.write(to_ilist("x"))
    for peek, each in (
        (processors.peek_input, read),
        (processors.peek_output, write),
        (processors.peek_snapshot, read),
        (processors.peek_snapshot, write),
    ):
        with pytest.raises(UnsupportedError, match="in a graph; peek_"):
            peek(each)


def test_what_a_job_reads_and_writes_for_vertices_is_logged(engine, caplog):
    """Under the names of the vertices, in the caller; once for each edge."""
    caplog.set_level(logging.INFO, "dstream.core")
    dag, name = DAG(), f"peeked-{uuid4().hex}"
    read = processors.peek_output(processors.read(Items([1, 2], 2)), should_log=lambda n: n == 1)
    numbers = dag.new_vertex("numbers", force_total_parallelism_one(read))
    negative = dag.new_vertex("negative", processors.map(lambda n: -n)).local_parallelism(1)
    sink = dag.new_vertex("sink", processors.peek_input(processors.write(to_ilist(name)), hex))
    dag.edge(Edge.between(numbers, negative)).edge(Edge.from_(numbers, 1).to(sink))
    engine.context.new_job(dag.edge(Edge.from_(negative).to(sink, 1))).join()

    logged = sorted((each.name, each.getMessage()) for each in caplog.records)
    assert logged[:2] == [("dstream.core.numbers", f"Output to ordinal {n}: 1") for n in (0, 1)]
    assert [line for name, line in logged[2:] if name == "dstream.core.sink"] == [
        *(f"Input from ordinal 0: {text}" for text in ("0x1", "0x2")),
        *(f"Input from ordinal 1: {text}" for text in ("-0x1", "-0x2")),
    ]
    assert repr(read) == "peek_output(read(...))"
    assert sorted(engine.context.get_list(name)) == [-2, -1, 1, 2]


@pytest.mark.parametrize("place", [0, 1])
def test_one_part_is_forced_upon_what_a_job_reads_and_writes(place):
    """A vertex that asks for more is refused with the same words as others."""
    suppliers = [processors.read(Items([1], 1)), processors.write(to_ilist("never-in-parts"))]
    suppliers[place] = force_total_parallelism_one(suppliers[place])
    dag = DAG()
    vertices = [dag.new_vertex(f"v{number}", each) for number, each in enumerate(suppliers)]
    vertices[place].local_parallelism(2)
    dag.edge(Edge.between(*vertices))

    with pytest.raises(ValueError, match=f"vertex 'v{place}' is to have 2 processors, and its supplier allows one"):
        dag.plan()


def test_an_item_that_was_seen_before_the_others_were_taken_is_logged_once(lines):
    """By `peek`, then `drain`."""

    class SeesFirst(Processor):
        def process(self, ordinal, inbox):
            inbox.peek()
            inbox.drain()

    through(processors.peek_input(SeesFirst), [1, 2])

    assert lines() == ["Input from ordinal 0: 1", "Input from ordinal 0: 2"]


def test_where_nobody_listens_no_text_is_made(lines, caplog):
    """As of the peek of a stage."""
    caplog.set_level(logging.WARNING, "dstream.core")
    through(processors.peek_input(processors.noop(), lambda item: 1 // item), [0])

    assert lines() == []
