"""`explain` lists the functions of a graph of processors as called for each item, each with its vertex."""

from __future__ import annotations

import operator

import pytest

import dstream as ds
from collectors import AggregateOperation, counting, mapping, summing
from dstream import Pipeline
from dstream.core import (
    DAG,
    AbstractProcessor,
    Edge,
    ProcessorSupplier,
    force_total_parallelism_one,
    processor_of,
    processors,
)
from dstream.session.connection import stages_on
from dstream.windows import limiting_lag, session, tumbling
from reducers import to_ilist, to_imap, to_processor
from sources import Items, from_processor, stream_from_processor

_CALLED = "Python: processors take items one by one"


class Own(AbstractProcessor):
    """Emits what comes."""

    def try_process(self, ordinal, item):
        """Emit it."""
        return self.try_emit(item)


class Many(ProcessorSupplier):
    """Makes such processors."""

    def get(self, count):
        """Make them."""
        return [Own() for _ in range(count)]


def key(item):
    """Return the item: a function of the user's."""
    return item


def emit(ordinal, items):
    """Give the items."""
    yield from items


_JOINS = [ds.JoinClause.join_map_entries(key)]
_OWN = AggregateOperation(list, list.append, list.extend)
_TIMES = {"timestamps": [key], "operation": counting()}
VERTICES = [
    ("fn", processors.map(key)),
    ("predicate", processors.filter(key)),
    ("fn", processors.flat_map(key)),
    ("fn", processors.map_using(ds.Service(dict), operator.add)),
    ("predicate", processors.filter_using(ds.Service(dict), operator.contains)),
    ("fn", processor_of(emit)),
    ("processor", Own),
    ("processor", lambda: Own()),
    ("processor", Many()),
    ("fn", force_total_parallelism_one(processors.map(key))),
    ("fn|should_log", processors.peek_input(processors.map(key), repr, should_log=key)),
    ("summing(fn)", processors.aggregate(summing(key))),
    ("mapping(fn)", processors.aggregate(mapping(key, counting()))),
    ("accumulate", processors.aggregate(_OWN)),
    ("keys|to", processors.aggregate_by_key([key], counting(), lambda key, count: count)),
    ("left_key", processors.hash_join(joins=_JOINS)),
    ("keys|timestamps", processors.aggregate_to_sliding_window(keys=[key], window=tumbling(10), **_TIMES)),
    ("timestamps", processors.aggregate_to_session_window(window=session(10), **_TIMES)),
    ("timestamps", processors.insert_watermarks(timestamps=key, policy=limiting_lag(1))),
    ("receive", processors.write_buffered(list, key, key)),
    ("to_string", processors.write_logger(key)),
]


@pytest.mark.parametrize(("names", "supplier"), VERTICES)
def test_functions_of_vertices_are_named(names, supplier):
    """By their arguments; what makes a state or tells the time is left out."""
    said = _said(_dag(Edge.between, supplier).plan())

    for name in names.split("|"):
        assert f"{name} of 'tested'" in said, said
    for other in ("create", "kind", "clock", "policy", "emission", "service", "flush"):
        assert f"{other} of" not in said
    assert said.endswith(_CALLED)


@pytest.mark.parametrize("supplier", [processors.noop(), processors.aggregate(counting())], ids=["noop", "counting"])
def test_functions_of_ours_are_not_named(supplier):
    """They cannot be written in another way."""
    assert _CALLED not in _said(_dag(Edge.between, supplier).plan())


def test_functions_of_edges_are_named():
    """A key, what chooses a processor, and an order; those of ours are left out."""

    def edge(source, tested):
        """Return an edge that has all of them."""
        return Edge.between(source, tested).partitioned(key, lambda key, count: 0).ordered(key)

    said = _said(_dag(edge, processors.noop()).plan())
    assert all(f"{name} of 'numbers' -> 'tested'" in said for name in ("key", "partitioner", "order"))


def test_each_part_of_a_graph_names_its_own_functions():
    """Also those of senders that accumulate first; where vertices have several processors, each part is a stage."""
    dag = DAG()
    source = dag.new_vertex("numbers", processors.read(Items(range(9), 3)))
    mapped = dag.new_vertex("mapped", processors.map(key)).local_parallelism(2)
    sums = dag.new_vertex("sums", processors.aggregate_by_key([key], summing(key), lambda *of: of)).local_parallelism(3)
    sink = dag.new_vertex("sink", processors.write(to_ilist("out")))
    dag.edge(Edge.between(source, mapped)).edge(Edge.between(mapped, sums).partitioned(key)).edge(
        Edge.between(sums, sink)
    )
    parts = [note for note in _notes(dag.plan()) if _CALLED in note]

    assert ["fn of 'mapped'" in each for each in parts] == [True, False]
    assert "summing(fn) of 'sums (first stage of edge 0)'" in parts[0]
    assert "to of 'sums'" in parts[1]


def test_steps_of_pipelines_made_of_processors_name_functions():
    """At both ends and in between; also where they run in epochs."""
    ends, endless = Pipeline(), Pipeline()
    read = ends.read_from(from_processor("from", Own))
    read.custom_transform("between", processors.map(key)).write_to(to_processor("to", processors.write_logger(key)))
    stage = endless.read_from(stream_from_processor("from", Own)).custom_transform("between", processors.map(key))
    stage.write_to(to_ilist("out"))

    said = _said(ends.plan())
    assert all(each in said for each in ("processor of 'from'", "fn of 'between'", "to_string of 'to'"))
    said = _said(endless.plan())
    assert all(each in said for each in ("processor of 'from'", "fn of 'between'"))


def test_results_that_a_map_takes_say_what_their_senders_do():
    """They are made without processors, and may be made over columns."""
    dag = DAG()
    source = dag.new_vertex("numbers", processors.read(Items(range(9), 3)))
    sums = dag.new_vertex("sums", processors.aggregate_by_key([key], summing(key)))
    sink = dag.new_vertex("sink", processors.write(to_imap("out")))
    dag.edge(Edge.between(source, sums).partitioned(key)).edge(Edge.between(sums, sink))

    assert "summing(fn)" in _said(dag.plan())


def test_explain_of_a_graph_says_why(spark_context):
    """As that of a stream does."""
    dag = _dag(Edge.between, processors.map(key))
    ds.set_default_context(spark_context)
    try:
        assert "fn of 'tested': Python" in dag.explain("dot")
        assert "called for each item, since processors take" in dag.explain("dot", routes=True)
    finally:
        ds.set_default_context(None)


def _dag(edge, supplier):
    dag = DAG()
    source = dag.new_vertex("numbers", processors.read(Items(range(9), 3)))
    tested = dag.new_vertex("tested", supplier)
    sink = dag.new_vertex("sink", processors.write(to_ilist("out")))
    return dag.edge(edge(source, tested)).edge(Edge.between(tested, sink))


def _notes(plan):
    stages = stages_on(4, plan.several([None] * len(plan.writes)), None).stages
    return [call.note for stage in stages for call in stage.calls]


def _said(plan):
    return " ".join(filter(None, _notes(plan)))
