"""A graph that reads and writes, run as a job on the local engine."""

from __future__ import annotations

from typing import Any

import pytest

import dstream as ds
from dstream.core import DAG, Edge, processors
from dstream.plan.show.drawing import drawn
from dstream.session.explaining import stages_on
from dstream.spi.processor import Inbox, Outbox, Processor, ProcessorContext
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
    stages = counted(engine.context, f"counted-edges-{id(engine)}")

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
    sink = dag.new_vertex("sink", processors.write(to_ilist(f"never-written-{id(engine)}")))
    dag.edge(Edge.between(some, both)).edge(Edge.from_(more).to(both, 1)).edge(Edge.between(both, sink))

    with pytest.raises(AssertionError, match="no sevens") as caught:
        engine.context.new_job(dag).join()

    notes = " ".join(caught.value.__notes__)
    assert "vertex 'both', inbound edge 1 at tests/engine/test_graph_plans.py" in notes
    assert "on the item 7" in notes


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
    dag, name = DAG(), f"read-by-{processors_of_vertex}-{id(engine)}"
    numbers = dag.new_vertex("numbers", processors.read(Items([1, 2, 3, 4], 5)))
    twice = dag.new_vertex("twice", Doubling).local_parallelism(processors_of_vertex)
    sink = dag.new_vertex("sink", processors.write(to_ilist(name)))
    engine.context.new_job(dag.edge(Edge.between(numbers, twice)).edge(Edge.between(twice, sink))).join()

    assert sorted(engine.context.get_list(name)) == [2, 4, 6, 8]
