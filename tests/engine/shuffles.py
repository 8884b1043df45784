"""Operations that move rows through a shuffle, one of each kind, for tests of what an epoch does with them."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import dstream as ds
from collectors import counting, grouping_by
from dstream import Pipeline, Stream
from dstream.core import DAG, Edge, processors, whole_item
from dstream.gatherers import Gatherer, map_concurrent
from dstream.plan import here
from dstream.plan.operations.streams import Spread
from reducers import to_ilist, to_imap
from sources import Items

__all__ = ["SHUFFLES", "spread"]


def spread(context: ds.Context, count: int, is_ordered: bool) -> Any:
    """Rebalance numbers."""
    numbers = context.stream(range(12), 3)
    numbers = numbers if is_ordered else numbers.unordered()
    return Stream(Spread(numbers._node, count, step=here()), numbers._runtime).to_list()


def calling(context: ds.Context, **more: Any) -> Any:
    """Make calls that share something, in several tasks."""
    return context.stream(range(12), 4).gather(map_concurrent(2, abs, **more)).to_list()


def written(context: ds.Context, pipeline: Pipeline | DAG) -> None:
    """Run a pipeline, or a graph; one that fails is not run again."""
    context.new_job(pipeline, config=ds.JobConfig(auto_restart=False)).join(240)


def results_in_buckets(context: ds.Context) -> None:
    """Write the results of keys."""
    pipeline = Pipeline()
    keyed = pipeline.read_from(Items(range(12), 3)).grouping_key(lambda n: n % 4)
    keyed.aggregate(counting()).write_to(to_imap("counted-rows"))
    written(context, pipeline)


def vertex_in_buckets(context: ds.Context) -> None:
    """Write the results of the last vertex of a graph."""
    dag = DAG()
    numbers = dag.new_vertex("numbers", processors.read(Items(range(12), 3)))
    counts = dag.new_vertex("counts", processors.aggregate_by_key([whole_item], counting())).local_parallelism(2)
    sink = dag.new_vertex("sink", processors.write(to_imap("counted-rows")))
    dag.edge(Edge.between(numbers, counts).partitioned(whole_item)).edge(Edge.between(counts, sink))
    written(context, dag)


def integrating() -> Gatherer[int, list[int], int]:
    """Return a gatherer whose states travel as a summary, and arrive as items."""
    return Gatherer.of(
        list,
        integrator=lambda state, item, out: state.append(item) or True,  # type: ignore[func-returns-value]
        combiner=operator.iadd,
        finisher=lambda state, out: out.push(len(state)),
    )


def graph_in_one_task(context: ds.Context) -> None:
    """Run a graph of one processor behind a shuffle."""
    pipeline = Pipeline()
    distinct = pipeline.read_from(Items(range(12), 3)).distinct()
    distinct.custom_transform("all", processors.map(abs)).set_local_parallelism(1).write_to(to_ilist("counted-rows"))
    written(context, pipeline)


SHUFFLES: dict[str, Callable[[ds.Context], Any]] = {
    "a spread to one task": lambda context: spread(context, 1, True),
    "a spread in turn": lambda context: spread(context, 3, False),
    "a spread of neighbours": lambda context: spread(context, 3, True),
    "buckets": lambda context: context.stream(range(12), 3).collect(to_imap("counted-rows", abs, abs, operator.add)),
    "buckets of results": results_in_buckets,
    "buckets of a vertex": vertex_in_buckets,
    "calls at a rate": lambda context: calling(context, rate=1e6),
    "calls that share a cache": lambda context: calling(context, cache=True),
    "a graph in one task": graph_in_one_task,
    "distinct": lambda context: context.stream(range(12), 3).distinct().to_list(),
    "sorted": lambda context: context.stream(range(12), 3).sorted().to_list(),
    "states of gatherers": lambda context: context.stream(range(12), 3).gather(integrating()).to_list(),
    "sides that meet": lambda context: (
        context.stream(range(12), 3).cogroup(context.stream(range(12), 3), on=abs).to_list()
    ),
    "groups": lambda context: context.stream(range(12), 3).collect(grouping_by(abs)),
    "stretches of two sides": lambda context: context.stream(range(12), 3).zip(context.stream(range(12), 2)).to_list(),
}
