"""A driver of a graph without an end that is killed: `python killed_graph.py STORAGE`."""

from __future__ import annotations

import sys
import time

import dstream as ds
from dstream.core import DAG, Edge, entry_key, processors
from dstream.jobs import Job
from reducers import to_ilist
from tests.jobs.unbounded.counting_processors import Numbers, Totals

__all__ = ["MOST", "submitted"]

MOST = 4_000
"""Numbers of the source, each of which is a word of each of three letters."""


def submitted(ctx: ds.Context) -> Job:
    """Submit the job: how often there was each of three letters, into a list."""
    dag = DAG()
    numbers = dag.new_vertex("numbers", lambda: Numbers(MOST, 200)).endless().local_parallelism(1)
    letters = dag.new_vertex("letters", processors.flat_map(lambda pair: list("abc"))).local_parallelism(1)
    totals = dag.new_vertex("totals", Totals).local_parallelism(2)
    counts = dag.new_vertex("counts", processors.filter(lambda pair: pair[0] != "end")).local_parallelism(2)
    sink = dag.new_vertex("sink", processors.write(to_ilist("counts")))
    dag.edge(Edge.between(numbers, letters)).edge(Edge.between(letters, totals).partitioned(str))
    dag.edge(Edge.between(totals, counts).partitioned(entry_key)).edge(Edge.between(counts, sink))
    return ctx.new_job(dag, name="letters")


def main() -> None:
    """Say when some epochs are there, and go on."""
    with ds.connect(engine="local", storage=sys.argv[1]) as ctx:
        job = submitted(ctx)
        while job.epoch < 3:
            time.sleep(0.001)
        print("three", flush=True)
        job.join()


if __name__ == "__main__":
    main()
