"""Graphs that end in vertices of the user's own, and what `explain` says of graphs."""

from __future__ import annotations

from functools import partial

import pytest

from dstream.core import DAG, AbstractProcessor, Edge, processors
from dstream.errors import UnsupportedError
from reducers import to_ilist
from sources import Items, items


class Appending(AbstractProcessor):
    """Writes items into a file of its own, with the number of the processor."""

    def __init__(self, folder):
        self.folder = folder

    def start(self, context):
        self.file = (self.folder / f"{context.vertex}-{context.index}").open("a")

    def try_process(self, ordinal, item):
        self.file.write(f"{item}\n")
        return True

    def close(self, error):
        self.file.close()


def written(folder):
    """Return all that was written."""
    return sorted(line for path in folder.iterdir() for line in path.read_text().split())


def test_a_graph_may_end_in_a_processor_that_writes_by_itself(engine, tmp_path):
    """Jet: no vertex has to be a sink."""
    dag = DAG()
    numbers = dag.new_vertex("numbers", processors.read(Items(range(6), 3)))
    end = dag.new_vertex("end", partial(Appending, tmp_path)).local_parallelism(2)
    engine.context.new_job(dag.edge(Edge.between(numbers, end))).join()

    assert written(tmp_path) == list("012345")


def test_such_an_end_runs_beside_a_sink_that_reads_the_source(local_context, tmp_path):
    """Nothing reads what the processors give, and they run all the same."""
    dag = DAG()
    numbers = dag.new_vertex("numbers", processors.read(items(1, 2)))
    end = dag.new_vertex("end", partial(Appending, tmp_path)).local_parallelism(1)
    sink = dag.new_vertex("sink", processors.write(to_ilist("beside-an-end")))
    dag.edge(Edge.between(numbers, end)).edge(Edge.from_(numbers, 1).to(sink))
    job = local_context.new_job(dag)
    job.join()

    assert written(tmp_path) == ["1", "2"]
    assert sorted(local_context.get_list("beside-an-end")) == [1, 2]
    assert job.metrics().stages["end"].items_in == 2


def test_a_failure_of_such_an_end_fails_the_job(local_context, tmp_path):
    """It names the vertex."""
    dag = DAG()
    numbers = dag.new_vertex("numbers", processors.read(items(1)))
    dag.edge(Edge.between(numbers, dag.new_vertex("end", partial(Appending, tmp_path / "missing"))))

    with pytest.raises(FileNotFoundError) as caught:
        local_context.new_job(dag).join()
    assert "vertex 'end'" in " ".join(caught.value.__notes__)


def test_sources_alone_are_refused():
    """Nothing would become of their items."""
    dag = DAG()
    dag.new_vertex("numbers", processors.read(items(1)))
    with pytest.raises(UnsupportedError, match="this graph has sources alone"):
        dag.plan()


def test_a_graph_is_explained_as_a_pipeline_is(capsys, local_context):
    """On the default context; nothing runs."""
    dag = DAG()
    numbers = dag.new_vertex("numbers", processors.read(items(1)))
    shout = dag.new_vertex("shout", processors.map(lambda item: pytest.fail("it ran")))
    sink = dag.new_vertex("sink", processors.write(to_ilist("never-explained")))
    dag.edge(Edge.between(numbers, shout)).edge(Edge.between(shout, sink))

    assert dag.explain() is None
    text = capsys.readouterr().out
    assert "processors.read(...) as 'numbers'" in text
    assert "write_to(to_ilist('never-explained')) as 'sink'" in text
    assert "flowchart" in dag.explain("mermaid")
    with pytest.raises(ValueError, match="'png'"):
        DAG().explain("png")
