"""A graph that reads and writes, run as a job on the local engine."""

from __future__ import annotations

from typing import Any

import dstream as ds
from dstream.core import DAG, Edge
from dstream.spi.processor import Inbox, Outbox, Processor, ProcessorContext
from dstream.spi.processor_suppliers import ProcessorMetaSupplier
from reducers import to_ilist
from sources import Items


class Doubling(Processor):
    """Emits twice each number."""

    def init(self, outbox: Outbox, context: ProcessorContext) -> None:
        self.outbox = outbox

    def process(self, ordinal: int, inbox: Inbox) -> None:
        while len(inbox) and self.outbox.offer(2 * inbox.peek()):
            inbox.remove()


def given(**attributes: Any) -> ProcessorMetaSupplier:
    """Return a supplier that stands for a read or a write."""
    made = ProcessorMetaSupplier()
    vars(made).update(attributes)
    return made


def test_a_job_runs_a_graph_from_its_source_to_its_sink(local_context: ds.Context) -> None:
    """The names of stages are those of vertices."""
    dag = DAG()
    numbers = dag.new_vertex("numbers", given(source=Items(range(5), 2)))
    twice = dag.new_vertex("twice", Doubling)
    sink = dag.new_vertex("sink", given(sink=to_ilist("doubled-by-a-graph")))
    dag.edge(Edge.between(numbers, twice)).edge(Edge.between(twice, sink))

    local_context.new_job(dag).join()

    assert sorted(local_context.get_list("doubled-by-a-graph")) == [0, 2, 4, 6, 8]
    assert [each.name for each in dag.plan().stages] == ["numbers", "twice", "sink"]
