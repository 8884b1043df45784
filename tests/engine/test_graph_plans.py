"""A graph that reads and writes, run as a job on the local engine."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Sequence
from queue import Queue
from typing import Any
from uuid import uuid4

import pytest

import dstream as ds
from dstream.core import DAG, AbstractProcessor, Edge, Vertex, processors, whole_item
from dstream.errors import CancelledError, UnsupportedError
from dstream.explain.drawing import drawn
from dstream.session.connection import stages_on
from dstream.spi.processor import Inbox, Outbox, Processor, ProcessorContext
from dstream.spi.suppliers import ProcessorMetaSupplier, ProcessorSupplier
from dstream.testing import Parts
from reducers import to_ilist
from sources import Items


class Doubling(Processor):
    """Emits twice each number."""

    def init(self, outbox: Outbox, context: ProcessorContext) -> None:
        self.outbox = outbox

    def process(self, ordinal: int, inbox: Inbox) -> None:
        while len(inbox) and self.outbox.offer(2 * inbox.peek()):
            inbox.remove()


def test_a_job_runs_a_graph_from_its_source_to_its_sink(local_context: ds.Context) -> None:
    """The names of stages are those of vertices."""
    dag = DAG()
    numbers = dag.new_vertex("numbers", processors.read(Items(range(5), 2)))
    twice = dag.new_vertex("twice", Doubling)
    sink = dag.new_vertex("sink", processors.write(to_ilist("doubled-by-a-graph")))
    dag.edge(Edge.between(numbers, twice)).edge(Edge.between(twice, sink))

    local_context.new_job(dag).join()

    assert sorted(local_context.get_list("doubled-by-a-graph")) == [0, 2, 4, 6, 8]
    assert [each.name for each in dag.plan().stages] == ["numbers", "twice", "sink"]


def counted(context: ds.Context, name: str) -> Any:
    """Return the metrics of the stages of a job whose graph forks."""
    dag = DAG()
    numbers = dag.new_vertex("numbers", processors.read(Items(range(50), 3)))
    twice = dag.new_vertex("twice", Doubling).local_parallelism(2)
    even = dag.new_vertex("even", processors.filter(lambda n: n % 4 == 0)).local_parallelism(3)
    sink = dag.new_vertex("sink", processors.write(to_ilist(name)))
    dag.edge(Edge.between(numbers, twice))
    dag.edge(Edge.between(twice, even).broadcast()).edge(Edge.from_(twice, 1).to(sink))
    job = context.new_job(dag.edge(Edge.from_(even).to(sink, 1)))
    job.join()
    assert len(context.get_list(name)) == 125
    return job.metrics().stages


def test_a_job_counts_the_items_of_each_edge(engine: Any) -> None:
    """Of a source and a sink, what they read and wrote."""
    stages = counted(engine.context, f"counted-edges-{uuid4().hex}")

    assert stages["numbers"].items_out == 50
    assert (stages["twice"].items_in_by_edge, stages["twice"].items_out_by_edge) == ((50,), (50, 50))
    assert (stages["even"].items_in, stages["even"].items_out) == (150, 75)
    assert stages["sink"].items_out == 125


class Failing(Doubling):
    """Fails on 7."""

    def process(self, ordinal: int, inbox: Inbox) -> None:
        for item in inbox:
            assert item != 7 or ordinal == 0, "no sevens"


def test_a_failure_names_the_vertex_its_inbound_edge_and_the_item(engine: Any) -> None:
    """And the line where the vertex was made."""
    dag = DAG()
    some, more = (dag.new_vertex(name, processors.read(Items(range(9), 2))) for name in ("some", "more"))
    both = dag.new_vertex("both", Failing).local_parallelism(2)
    sink = dag.new_vertex("sink", processors.write(to_ilist(f"never-written-{uuid4().hex}")))
    dag.edge(Edge.between(some, both)).edge(Edge.from_(more).to(both, 1)).edge(Edge.between(both, sink))

    with pytest.raises(AssertionError, match="no sevens") as caught:
        engine.context.new_job(dag).join()

    notes = " ".join(caught.value.__notes__)
    assert "vertex 'both', inbound edge 1 at tests/engine/test_graph_plans.py" in notes
    assert "on the item 7" in notes


class Draining(Doubling):
    """Takes all items at once, and emits None for 99."""

    def process(self, ordinal: int, inbox: Inbox) -> None:
        for each in inbox.drain():
            self.outbox.offer(each if each != 99 else None)


@pytest.mark.parametrize(
    ("numbers", "where"), [([99], "on the item 99"), (range(100), r"among \d+ items from \d+ on")], ids=["one", "many"]
)
def test_a_failure_behind_drain_names_the_vertex_and_the_items(engine: Any, numbers: Sequence[int], where: str) -> None:
    """Which of several items it was nobody can tell."""
    dag = DAG()
    source = dag.new_vertex("numbers", processors.read(Items(numbers, 1))).local_parallelism(1)
    draining = dag.new_vertex("draining", Draining).local_parallelism(1)
    sink = dag.new_vertex("sink", processors.write(to_ilist(f"never-written-{uuid4().hex}")))
    dag.edge(Edge.between(source, draining)).edge(Edge.between(draining, sink))

    with pytest.raises(TypeError, match="a processor emits no None") as caught:
        engine.context.new_job(dag).join()

    notes = " ".join(caught.value.__notes__)
    assert "vertex 'draining' at tests/engine/test_graph_plans.py" in notes
    assert re.search(where, notes)


def test_a_plan_of_a_graph_is_explained_without_running() -> None:
    """Each part of it is a stage; also where nobody knows how many cores there will be."""
    dag = DAG()
    numbers, twice = dag.new_vertex("numbers", Doubling), dag.new_vertex("twice", Doubling)
    sink = dag.new_vertex("sink", processors.write(to_ilist("never")))
    dag.edge(Edge.between(numbers, twice).broadcast()).edge(Edge.between(twice, sink))

    text = drawn(stages_on(None, dag.plan().several([None]), None), "text")

    assert "each task runs one processor of numbers" in text
    assert "1 or more tasks (one for each processor), in no order" in text
    assert "4,611" not in text


def read_by(processors_of_vertex: int | None, splits: int, cores: int) -> str:
    """Return what is said of a graph whose vertex reads a source, with so many splits and cores."""
    dag = DAG()
    numbers = dag.new_vertex("numbers", processors.read(Items(range(99), splits))).local_parallelism(splits)
    twice = dag.new_vertex("twice", Doubling).local_parallelism(processors_of_vertex or -1)
    sink = dag.new_vertex("sink", processors.write(to_ilist("never")))
    dag.edge(Edge.between(numbers, twice)).edge(Edge.between(twice, sink))
    return str(drawn(stages_on(cores, dag.plan().several([None]), None), "text"))


@pytest.mark.parametrize(("parallelism", "splits"), [(None, 4), (None, 2), (2, 5), (3, 3)])
def test_the_tasks_of_a_vertex_read_the_splits_of_its_source(parallelism: int | None, splits: int) -> None:
    """Nothing moves, where any processor may get an item."""
    assert "1 job, 0 shuffles" in read_by(parallelism, splits, cores=2)


@pytest.mark.parametrize(("parallelism", "splits"), [(3, 2), (2, 4)])
def test_items_move_where_a_processor_or_a_core_would_have_nothing_to_do(parallelism: int, splits: int) -> None:
    """There are more processors than splits, or more cores than processors."""
    assert "1 job, 1 shuffle" in read_by(parallelism, splits, cores=3)


@pytest.mark.parametrize("processors_of_vertex", [2, 3])
def test_each_item_comes_once_where_tasks_read_several_splits(engine: Any, processors_of_vertex: int) -> None:
    """Five splits, some of them empty, for two tasks or three."""
    dag, name = DAG(), f"read-by-{processors_of_vertex}-{uuid4().hex}"
    numbers = dag.new_vertex("numbers", processors.read(Items([1, 2, 3, 4], 5)))
    twice = dag.new_vertex("twice", Doubling).local_parallelism(processors_of_vertex)
    sink = dag.new_vertex("sink", processors.write(to_ilist(name)))
    engine.context.new_job(dag.edge(Edge.between(numbers, twice)).edge(Edge.between(twice, sink))).join()

    assert sorted(engine.context.get_list(name)) == [2, 4, 6, 8]


class Told(AbstractProcessor):
    """Emits its number with each item."""

    def try_process(self, ordinal: int, item: Any) -> bool:
        return self.try_emit((self.context.index, item))


def told(context: ds.Context, name: str, parallelism: int, say: Callable[[Edge], Edge]) -> list[Any]:
    """Return what processors tell of the items of a source in three parts, each in its order."""
    dag = DAG()
    source = dag.new_vertex("source", processors.read(Parts([1, 4, 7], [2, 5, 8], [3, 6, 9])))
    tells = dag.new_vertex("tells", Told).local_parallelism(parallelism)
    sink = dag.new_vertex("sink", processors.write(to_ilist(name)))
    dag.edge(say(Edge.between(source, tells))).edge(Edge.between(tells, sink))
    context.new_job(dag).join()
    return list(context.get_list(name))


@pytest.mark.parametrize("parallelism", [1, 2])
def test_an_ordered_edge_merges_the_parts_of_a_source(engine: Any, parallelism: int) -> None:
    """Also where one task, or one process, reads all of them."""
    found = told(
        engine.context,
        f"merged-{parallelism}-{uuid4().hex}",
        parallelism,
        lambda edge: edge.all_to_one().ordered(whole_item),
    )

    assert [item for _, item in found] == [1, 2, 3, 4, 5, 6, 7, 8, 9]


def test_an_isolated_edge_gives_each_part_of_a_source_a_processor_of_its_own(engine: Any) -> None:
    """As it gives one to each processor."""
    found = told(engine.context, f"isolated-{uuid4().hex}", 3, Edge.isolated)

    assert {number: [item for n, item in found if n == number] for number in range(3)} == {
        0: [1, 4, 7],
        1: [2, 5, 8],
        2: [3, 6, 9],
    }


ITEMS = processors.read(Items(range(3), 1))
LIST = processors.write(to_ilist("never"))


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([("a", "b"), ("b", "read"), ("a", "write")], "b -> read leads to processors.read"),
        ([("read", "a"), ("a", "write"), ("write", "b")], "write -> b leaves processors.write"),
        ([("read", "a")], "no edge leads to it"),
    ],
)
def test_edges_beyond_the_ends_of_a_graph_are_refused(edges: list[tuple[str, str]], message: str) -> None:
    """Otherwise their items would be lost."""
    dag = DAG()
    made = {name: Vertex(name, Doubling) for name in "ab"} | {
        "read": Vertex("read", ITEMS),
        "write": Vertex("write", LIST),
    }
    for each in made.values():
        dag.vertex(each)
    leaving = dict.fromkeys(made, 0)
    for source, destination in edges:
        dag.edge(Edge.from_(made[source], leaving[source]).to(made[destination]))
        leaving[source] += 1

    with pytest.raises(ValueError, match=message):
        dag.plan()


def test_an_ordered_edge_beside_another_one_of_a_source_is_refused() -> None:
    """Nobody would know the parts of what both read."""
    dag = DAG()
    source, sink = dag.new_vertex("source", ITEMS), dag.new_vertex("sink", LIST)
    one, two = dag.new_vertex("one", Doubling), dag.new_vertex("two", Doubling)
    dag.edge(Edge.between(source, one).ordered(abs)).edge(Edge.from_(source, 1).to(two)).edge(Edge.between(one, sink))

    with pytest.raises(UnsupportedError, match="source -> one is ordered or isolated"):
        dag.plan()


class Odd(ProcessorMetaSupplier):
    """Has attributes that vertices of reads and writes have too."""

    source = sink = "a name of the user's"

    def get(self, addresses: Any) -> Any:
        return lambda address: ProcessorSupplier.of(Doubling)


def test_attributes_of_a_meta_supplier_mean_nothing(local_context: ds.Context) -> None:
    """It is no read because it has a source."""
    dag = DAG()
    source, sink = dag.new_vertex("source", ITEMS), dag.new_vertex("sink", processors.write(to_ilist("of-odd")))
    twice = dag.new_vertex("twice", Odd())
    local_context.new_job(dag.edge(Edge.between(source, twice)).edge(Edge.between(twice, sink))).join()

    assert sorted(local_context.get_list("of-odd")) == [0, 2, 4]


BEGUN, CLOSED = threading.Event(), Queue[BaseException | None]()


class Endless(AbstractProcessor):
    """Is never complete."""

    def complete(self) -> bool:
        BEGUN.set()
        return False

    def close(self, error: BaseException | None) -> None:
        CLOSED.put(error)


def test_a_cancelled_graph_stops_and_closes_its_processors(local_context: ds.Context) -> None:
    """Also where no source gives items, which is where other plans look."""
    dag = DAG()
    endless = dag.new_vertex("endless", Endless).local_parallelism(1)
    job = local_context.new_job(dag.edge(Edge.between(endless, dag.new_vertex("sink", LIST))))
    assert BEGUN.wait(10)

    job.cancel()

    assert isinstance(CLOSED.get(timeout=10), CancelledError)
