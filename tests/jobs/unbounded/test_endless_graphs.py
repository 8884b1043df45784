"""Graphs and `custom_transform` without an end: processors go on from epoch to epoch."""

from __future__ import annotations

import itertools
import signal
from collections import Counter
from concurrent.futures import CancelledError

import pytest

import dstream as ds
from collectors import counting
from dstream.core import DAG, Edge, ProcessorMetaSupplier, ProcessorSupplier, processors, whole_item
from dstream.errors import IllegalStateError, UnsupportedError
from dstream.jobs import JobStatus
from dstream.testing import epochs
from dstream.windows import limiting_lag, tumbling
from reducers import to_ilist, to_processor
from sources import Items, stream_from_processor
from tests.jobs.unbounded.counting_processors import CALLS, Called, Numbers, Slow, Totals
from tests.jobs.unbounded.streams import Feed, eventually

DRIVER = "from tests.jobs.unbounded.killed_graph import main; main()"


@pytest.fixture(autouse=True)
def calls():
    """Nothing was called yet."""
    CALLS.clear()
    Called.failures = 1


def totals_of(source, create=Totals, processors=2, stamped=False):
    """Return a pipeline of counts by word."""
    pipeline = ds.Pipeline()
    stage = pipeline.read_from(source)
    stage = stage.add_timestamps(len) if stamped else stage
    keyed = stage.grouping_key(whole_item).custom_transform("totals", create)
    keyed.set_local_parallelism(processors).write_to(to_ilist("out"))
    return pipeline


def line_of(*vertices, changed=None):
    """Return a graph of vertices one behind another: pairs of a name and a supplier; edges by their ends may change."""
    dag = DAG()
    made = [dag.new_vertex(name, supplier) for name, supplier in vertices]
    for before, behind in itertools.pairwise(made):
        dag.edge((changed or {}).get(behind.name, lambda edge: edge)(Edge.between(before, behind)))
    return dag


def written(given):
    """Return what the one sink got."""
    ((_, items),) = given.items()
    return sorted(items)


def test_a_stage_of_processors_goes_on_from_epoch_to_epoch():
    """Each gets the words of its keys, and completes when the source has ended."""
    by_hand = epochs()
    words = by_hand.source("words", partitions=2)
    by_hand.of(totals_of(words))

    assert written(by_hand.cut({words: {0: ["a", "b", "a"], 1: ["c"]}})) == [("a", 1), ("a", 2), ("b", 1), ("c", 1)]
    assert written(by_hand.cut({words: ["a"]})) == [("a", 3)]
    last = written(by_hand.cut({words: ["b"]}, is_end=True))
    assert last[0] == ("b", 2)
    assert sum(count for what, count in last if what == "end") == 6


def test_watermarks_reach_every_processor():
    """The least of the partitions, also one to which no item came, and each once."""
    by_hand = epochs()
    words = by_hand.source("words", partitions=2)
    by_hand.of(totals_of(words, stamped=True))

    assert written(by_hand.cut({words: {0: ["aaaaa"], 1: ["bb"]}})) == [
        ("aaaaa", 1),
        ("bb", 1),
        ("until", 2),
        ("until", 2),
    ]
    assert written(by_hand.cut({words: {0: ["aaaaaa"]}})) == [("aaaaaa", 1)]
    assert written(by_hand.cut({words: {1: ["bbb"]}})) == [("bbb", 1), ("until", 3), ("until", 3)]


def test_the_calls_come_in_the_order_of_the_protocol():
    """Also where an epoch failed: the processor is made again, and gets what it saved before."""
    by_hand = epochs()
    words = by_hand.source("words")
    by_hand.of(totals_of(words, Called, processors=1, stamped=True))
    by_hand.cut({words: ["a"]})

    assert CALLS == ["init", "process", "watermark 1", "save"]
    CALLS.clear()
    with pytest.raises(ValueError, match="as it was told"):
        by_hand.cut({words: ["fail"]})
    assert CALLS == ["process", "close"]
    CALLS.clear()
    assert written(by_hand.cut({words: ["fail"]}, is_end=True)) == [("end", 2), ("fail", 1)]
    restored = ["init", "restore", "finish_restore", "process"]
    assert [*restored, "complete_edge 0", "complete", "close"] == CALLS


def test_an_epoch_that_was_not_committed_is_forgotten():
    """A processor that had counted its words begins where the last epoch ended."""

    def fail(pair):
        if pair == ("b", 1) and not done:
            done.append(pair)
            raise ValueError("behind the processors")
        return pair

    done = []
    by_hand = epochs()
    words = by_hand.source("words")
    pipeline = ds.Pipeline()
    keyed = pipeline.read_from(words).grouping_key(whole_item).custom_transform("totals", Totals)
    keyed.set_local_parallelism(1).map(fail).write_to(to_ilist("out"))
    by_hand.of(pipeline)
    by_hand.cut({words: ["a"]})
    with pytest.raises(ValueError, match="behind the processors"):
        by_hand.cut({words: ["a", "b"]})

    assert written(by_hand.cut({words: ["a", "b"]})) == [("a", 2), ("b", 1)]


def test_a_suspended_job_goes_on_with_what_processors_saved(connect):
    """In this process, and in a later context."""
    feed, first = Feed(), connect()
    job = first.new_job(totals_of(feed), name="words")
    feed.give("a", "b")
    eventually(lambda: len(first.get_list("out")) == 2)
    job.suspend()
    eventually(lambda: job.status is JobStatus.SUSPENDED)
    job.resume()
    feed.give("a")
    eventually(lambda: len(first.get_list("out")) == 3)
    first.close()
    feed.give("a")
    feed.end()
    second = connect()
    second.new_job(totals_of(feed), name="words").join(20)
    found = sorted(second.get_list("out"))

    assert [each for each in found if each[0] != "end"] == [("a", 1), ("a", 2), ("a", 3), ("b", 1)]
    assert sum(count for what, count in found if what == "end") == 4


def test_a_killed_driver_loses_and_doubles_nothing(start, connect, place):
    """A graph with a source of its own and states of processors goes on behind its last epoch."""
    from tests.jobs.unbounded.killed_graph import MOST, submitted

    driver = start(DRIVER, place)
    driver.says("three")
    driver.signal(signal.SIGKILL)
    driver.ended()
    ctx = connect()
    lost = ctx.job("letters")
    assert (lost.status, lost.is_lost) == (JobStatus.NOT_RUNNING, True)
    job = submitted(ctx)
    job.join(240)
    found = list(ctx.get_list("counts"))

    assert job.id == lost.id
    assert sorted(found) == sorted((key, n + 1) for key in "abc" for n in range(MOST))


def test_a_source_vertex_that_ends_lets_the_job_end(ctx):
    """It runs epoch by epoch, since it was said to be endless."""
    dag = DAG()
    numbers = dag.new_vertex("numbers", lambda: Numbers(5000)).endless().local_parallelism(2)
    sink = dag.new_vertex("sink", processors.write(to_ilist("numbers")))
    dag.edge(Edge.between(numbers, sink))
    job = ctx.new_job(dag)
    job.join(30)

    assert sorted(ctx.get_list("numbers")) == [(index, n) for index in range(2) for n in range(5000)]
    assert job.status is JobStatus.COMPLETED


def test_a_source_vertex_gets_a_slice_in_each_epoch(ctx):
    """The job goes on until it is cancelled; nothing is left out or comes twice."""
    dag = DAG()
    numbers = dag.new_vertex("numbers", Numbers).endless().local_parallelism(1)
    few = dag.new_vertex("few", processors.filter(lambda pair: pair[1] % 1000 == 0)).local_parallelism(2)
    sink = dag.new_vertex("sink", processors.write(to_ilist("numbers")))
    dag.edge(Edge.between(numbers, few).partitioned(lambda pair: pair[1])).edge(Edge.between(few, sink))
    job = ctx.new_job(dag)
    eventually(lambda: job.epoch >= 4 and len(ctx.get_list("numbers")) > 3)
    job.cancel()
    with pytest.raises(CancelledError):
        job.join(20)
    found = sorted(ctx.get_list("numbers"))

    assert found == [(0, 1000 * n) for n in range(len(found))]


def test_a_stage_of_processors_that_go_on_has_a_slice_in_each_epoch(ctx):
    """`stream_from_processor` is such a vertex as a stage; processors behind it go on, too, with what they saved."""
    pipeline = ds.Pipeline()
    numbers = pipeline.read_from(stream_from_processor("numbers", Numbers)).set_local_parallelism(2)
    words = numbers.filter(lambda pair: pair[1] % 1000 == 0).map(lambda pair: f"{pair[0]}")
    words.grouping_key(whole_item).custom_transform("totals", Totals).write_to(to_ilist("totals"))
    words.write_to(to_processor("called", Called)).set_local_parallelism(1)
    job = ctx.new_job(pipeline, name="numbers")
    eventually(lambda: job.epoch >= 3 and len(ctx.get_list("totals")) > 4)
    job.restart()
    before = job.epoch
    eventually(lambda: job.status is JobStatus.RUNNING and job.epoch >= before + 2)
    job.cancel()
    with pytest.raises(CancelledError):
        job.join(20)
    counts = [[count for word, count in ctx.get_list("totals") if word == each] for each in "01"]

    assert [sorted(each) for each in counts] == [list(range(1, len(each) + 1)) for each in counts]
    assert all(len(each) > 2 for each in counts)


def test_steps_hear_that_processors_have_ended_which_might_have_gone_on(ctx):
    """Behind their last item, and once; then the job ends. One that takes its time to complete is waited for."""
    pipeline = ds.Pipeline()
    numbers = pipeline.read_from(stream_from_processor("numbers", lambda: Numbers(500))).set_local_parallelism(2)
    words = numbers.map(lambda pair: f"{pair[0]}").custom_transform("totals", Totals).set_local_parallelism(1)
    words.custom_transform("slow", Slow).set_local_parallelism(1).write_to(to_ilist("totals"))
    job = ctx.new_job(pipeline)
    job.join(240)
    found = list(ctx.get_list("totals"))

    assert job.status is JobStatus.COMPLETED
    assert found.count(("end", 1000)) == 1
    assert [each for each in found if each[0] == "0"] == [("0", n) for n in range(1, 501)]
    assert found[-1] == ("slowly", len(found) - 1)


def test_items_without_timestamps_of_processors_have_no_windows():
    """As behind any processors."""
    numbers = ds.Pipeline().read_from(stream_from_processor("numbers", Numbers))

    with pytest.raises(
        UnsupportedError, match=r"add_timestamps\(\) behind read_from\(stream_from_processor\('numbers'\)\)"
    ):
        numbers.add_timestamps(lambda pair: pair[1])
    with pytest.raises(IllegalStateError, match="gives items without"):
        numbers.window(tumbling(10))


def test_a_side_that_ends_is_read_before_items_without_an_end():
    """Its edge has an earlier priority, and its source is read as a whole in the first epoch."""
    by_hand = epochs()
    orders = by_hand.source("orders")
    dag = DAG()
    left = dag.new_vertex("orders", processors.read(orders))
    right = dag.new_vertex("names", processors.read(Items([(1, "one"), (2, "two")])))
    clause = ds.JoinClause.join_map_entries(whole_item)
    join = dag.new_vertex("join", processors.hash_join(joins=[clause])).local_parallelism(2)
    sink = dag.new_vertex("sink", processors.write(to_ilist("out")))
    dag.edge(Edge.between(left, join)).edge(Edge.between(join, sink))
    dag.edge(Edge.from_(right).to(join, 1).priority(-1).broadcast())
    by_hand.of(dag)

    assert written(by_hand.cut({orders: [2]})) == [(2, "two")]
    assert written(by_hand.cut({orders: [1, 2, 2]})) == [(1, "one"), (2, "two"), (2, "two")]


def test_windows_of_vertices_close_where_watermarks_pass():
    """Watermarks that a vertex inserts travel from part to part, and from epoch to epoch."""
    by_hand = epochs()
    events = by_hand.source("events")
    window = processors.aggregate_to_sliding_window(
        keys=[whole_item], timestamps=[whole_item], window=tumbling(10), operation=counting(), to=lambda *result: result
    )
    stamped = processors.insert_watermarks(timestamps=whole_item, policy=limiting_lag(0))
    dag = line_of(
        ("events", processors.read(events)),
        ("stamped", stamped),
        ("window", window),
        ("sink", processors.write(to_ilist("out"))),
        changed={"window": lambda edge: edge.partitioned(whole_item)},
    )
    dag.get_vertex("stamped").local_parallelism(1)
    dag.get_vertex("window").local_parallelism(2)
    by_hand.of(dag)
    first = by_hand.cut({events: [1, 1, 2]})["sink"]
    second = by_hand.cut({events: [3, 12]})["sink"]
    third = by_hand.cut({events: [13]}, is_end=True)["sink"]

    assert first == []
    assert sorted(each[2:4] for each in second) == [(1, 2), (2, 1), (3, 1)]
    assert sorted(each[2:4] for each in third) == [(12, 1), (13, 1)]


def test_parts_of_a_graph_may_have_any_number_of_processors():
    """Counts by key behind counts by key, each part with its own state; a part to nowhere runs, too."""
    by_hand = epochs()
    words = by_hand.source("words", partitions=2)
    dag = DAG()
    source = dag.new_vertex("words", processors.read(words))
    one = dag.new_vertex("one", Totals).local_parallelism(3)
    two = dag.new_vertex("two", Totals).local_parallelism(2)
    nowhere = dag.new_vertex("nowhere", Called).local_parallelism(1)
    sink = dag.new_vertex("sink", processors.write(to_ilist("out")))
    dag.edge(Edge.between(source, one).partitioned(whole_item))
    dag.edge(Edge.between(one, two).partitioned(lambda pair: pair[1]))
    dag.edge(Edge.from_(one, 1).to(nowhere)).edge(Edge.between(two, sink))
    by_hand.of(dag)
    by_hand.cut({words: {0: ["a", "b"], 1: ["a"]}})
    given = written(by_hand.cut({words: {0: ["a"], 1: ["b", "c"]}}))

    assert given == [(("a", 3), 1), (("b", 2), 1), (("c", 1), 1)]
    assert CALLS.count("process") >= 2


def test_processors_of_one_another_s_stages_complete_in_order():
    """One behind another one in a pipeline gets all that the first one emits at its end."""
    by_hand = epochs()
    words = by_hand.source("words")
    pipeline = ds.Pipeline()
    stage = pipeline.read_from(words).custom_transform("one", Totals).set_local_parallelism(2)
    stage.custom_transform("two", Totals).set_local_parallelism(1).write_to(to_ilist("out"))
    by_hand.of(pipeline)
    by_hand.cut({words: ["a"]})

    assert Counter(type(each[0]) for each in by_hand.cut({}, is_end=True)["write_to"]) == {tuple: 2, str: 1}


def test_a_source_that_ends_without_an_item_ends_its_processors(ctx):
    """They complete in an epoch of their own."""
    feed = Feed()
    feed.end()
    ctx.new_job(totals_of(feed)).join(20)

    assert ctx.get_list("out").copy() == [("end", 0), ("end", 0)]


def test_the_number_of_processors_stays_as_it_was_when_the_job_began(connect, monkeypatch):
    """On whatever machine it goes on."""
    feed, first = Feed(), connect()
    pipeline = totals_of(feed, processors=-1)
    monkeypatch.setattr("dstream.engine.local.execution.cores_here", lambda: 3)
    job = first.new_job(pipeline, name="words")
    feed.give("a", "b")
    eventually(lambda: len(first.get_list("out")) == 2)
    first.close()
    monkeypatch.setattr("dstream.engine.local.execution.cores_here", lambda: 5)
    feed.give("a")
    feed.end()
    second = connect()
    job = second.new_job(pipeline, name="words")
    job.join(20)

    assert sorted(each for each in second.get_list("out") if each[0] == "end" or each[1] > 1)[0] == ("a", 2)
    assert sum(each[0] == "end" for each in second.get_list("out")) == 3


def test_the_state_of_a_stage_of_processors_can_be_seen(ctx):
    """As pairs of the name of the vertex and the key, with what was saved."""
    feed = Feed()
    job = ctx.new_job(totals_of(feed))
    feed.give("a", "b", "a")
    eventually(lambda: len(ctx.get_list("out")) == 3)

    assert sorted((each.key, each.value) for each in job.state("totals")) == [
        (("totals", "a"), 2),
        (("totals", "b"), 1),
    ]
    job.cancel()


def test_the_items_of_each_edge_are_counted(ctx):
    """Over all epochs, and by the name of the vertex."""
    feed, dag = Feed(), DAG()
    source = dag.new_vertex("words", processors.read(feed))
    one = dag.new_vertex("one", processors.map(str.upper)).local_parallelism(2)
    two = dag.new_vertex("two", processors.flat_map(list)).local_parallelism(1)
    sink = dag.new_vertex("sink", processors.write(to_ilist("out")))
    dag.edge(Edge.between(source, one)).edge(Edge.between(one, two).broadcast()).edge(Edge.between(two, sink))
    job = ctx.new_job(dag)
    feed.give("ab", "cde")
    eventually(lambda: len(ctx.get_list("out")) == 5)
    feed.give("f")
    feed.end()
    job.join(20)
    stages = job.metrics().stages

    assert [stages[name].items_in_by_edge for name in ("one", "two")] == [(3,), (3,)]
    assert [stages[name].items_out_by_edge for name in ("one", "two")] == [(3,), (6,)]


class Noted(ProcessorSupplier):
    """Notes when it gets ready, and when it closes."""

    def init(self, context):
        CALLS.append(("init", context.vertex, context.total_parallelism, context.guarantee))

    def get(self, count):
        return [Totals() for _ in range(count)]

    def close(self, error):
        CALLS.append("close")


class NotedInTheDriver(ProcessorMetaSupplier):
    """The same in the driver."""

    def init(self, context):
        CALLS.append(("meta", context.vertex, context.total_parallelism, context.guarantee))

    def get(self, addresses):
        return lambda address: Noted()

    def close(self, error):
        CALLS.append("meta close")


def test_suppliers_are_asked_once_and_closed_with_the_job(ctx):
    """However many epochs there were, and processors in this process."""
    feed = Feed()
    job = ctx.new_job(totals_of(feed, NotedInTheDriver(), processors=3))
    for number in range(1, 4):
        feed.give("a")
        eventually(lambda number=number: len(ctx.get_list("out")) == number)
    feed.end()
    job.join(20)
    told = ("totals", 3, "exactly-once")

    assert [("meta", *told), ("init", *told), "close", "meta close"] == CALLS


def test_what_a_kept_side_of_a_join_makes_ends():
    """Processors on the side of a join that is read once complete there, though the rest has no end."""
    by_hand = epochs()
    words = by_hand.source("words")
    pipeline = ds.Pipeline()
    side = pipeline.read_from(Items("aab")).custom_transform("totals", Totals).set_local_parallelism(1)
    clause = ds.JoinClause.join_map_entries(whole_item)
    pipeline.read_from(words).hash_join(side, clause, lambda *both: both).write_to(to_ilist("out"))
    by_hand.of(pipeline)

    assert by_hand.cut({words: ["b", "end"]}) == {"write_to": [("b", 1), ("end", 3)]}


def test_an_edge_that_waits_beyond_an_epoch_is_refused():
    """For one of an earlier priority that has no end; the error names both."""
    by_hand = epochs()
    first, second = by_hand.source("first"), by_hand.source("second")
    dag = DAG()
    read = [dag.new_vertex(name, processors.read(each)) for name, each in (("one", first), ("two", second))]
    both = dag.new_vertex("both", processors.noop())
    sink = dag.new_vertex("sink", processors.write(to_ilist("out")))
    dag.edge(Edge.from_(read[0]).to(both, 0)).edge(Edge.from_(read[1]).to(both, 1).priority(-1))
    dag.edge(Edge.between(both, sink))
    by_hand.of(dag)

    with pytest.raises(UnsupportedError, match="inbound edge 0 of the vertex 'both' waits for edge 1"):
        by_hand.cut({first: ["a"], second: ["b"]})


def test_what_is_not_done_without_an_end_is_refused_by_its_name(ctx):
    """An edge that merges by an order; and a vertex that is said to be endless behind another one."""
    ordered = line_of(
        ("words", processors.read(Feed())),
        ("noop", processors.noop()),
        ("sink", processors.write(to_ilist("out"))),
        changed={"noop": lambda edge: edge.ordered(whole_item)},
    )
    behind = line_of(("words", processors.read(Feed())), ("noop", processors.noop()))
    behind.get_vertex("noop").endless()

    with pytest.raises(UnsupportedError, match="the edge words -> noop merges items by an order"):
        ctx.new_job(ordered)
    with pytest.raises(ValueError, match=r"vertex 'noop'.* is endless\(\)"):
        behind.graph()


def test_windows_behind_processors_are_refused():
    """What they emit has no timestamps."""
    stage = ds.Pipeline().read_from(Feed()).add_timestamps(len).custom_transform("totals", Totals)

    with pytest.raises(ds.errors.IllegalStateError, match="gives items without"):
        stage.window(tumbling(10))


@pytest.mark.parametrize(
    ("change", "times"),
    [(lambda edge: edge, 1), (lambda edge: edge.isolated(), 1), (lambda edge: edge.broadcast(), 2)],
)
def test_an_edge_from_a_source_gives_each_item_to_whom_it_says(change, times):
    """Any processor, or all of them, in every epoch."""
    by_hand = epochs()
    words = by_hand.source("words")
    dag = line_of(
        ("words", processors.read(words)),
        ("same", processors.map(whole_item)),
        ("sink", processors.write(to_ilist("out"))),
        changed={"same": change},
    )
    dag.get_vertex("same").local_parallelism(2)
    by_hand.of(dag)
    given = [written(by_hand.cut({words: some})) for some in (["a", "b", "c"], ["d"], ["e"])]

    assert given == [sorted(["a", "b", "c"] * times), ["d"] * times, ["e"] * times]
