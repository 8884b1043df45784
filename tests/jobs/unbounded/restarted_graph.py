"""A graph with a source of its own in a job that is restarted, so that all its workers make their processors anew."""

from __future__ import annotations

from concurrent.futures import CancelledError
from contextlib import suppress

import dstream as ds
from dstream.core import DAG, Edge, processors
from dstream.jobs import JobStatus
from reducers import to_ilist
from tests.jobs.unbounded.counting_processors import Numbers
from tests.jobs.unbounded.streams import eventually

__all__ = ["some_numbers_over_a_restart"]


def some_numbers_over_a_restart(context: ds.Context, name: str) -> list[list[int]]:
    """Run a graph with a source of its own, restart its job, and return every 500th number of each of its processors.

    Args:
        context: where it runs.
        name: of the list that it writes.
    """
    dag = DAG()
    numbers = dag.new_vertex("numbers", Numbers).endless().local_parallelism(2)
    few = dag.new_vertex("few", processors.filter(lambda pair: pair[1] % 500 == 0)).local_parallelism(1)
    sink = dag.new_vertex("sink", processors.write(to_ilist(name)))
    dag.edge(Edge.between(numbers, few)).edge(Edge.between(few, sink))
    job = context.new_job(dag, config=ds.JobConfig(epoch_length=0.05))
    eventually(lambda: job.epoch >= 2)
    job.restart()
    before = job.epoch
    eventually(lambda: job.status is JobStatus.RUNNING and job.epoch >= before + 2)
    job.cancel()
    with suppress(CancelledError):
        job.join(240)
    assert job.status is JobStatus.CANCELLED
    return [sorted(n for index, n in context.get_list(name) if index == each) for each in range(2)]
