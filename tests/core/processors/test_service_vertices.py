"""Vertices with services: the cases of Jet's TransformUsingContextPTest."""

from __future__ import annotations

import pickle

import pytest

import dstream as ds
from dstream.base.pickling import dumps
from dstream.core import DAG, Edge, force_total_parallelism_one, processors
from dstream.processors.blocks import GraphArrival
from dstream.spi.suppliers import SupplierContext
from dstream.testing.protocol import RUNS, ProcessorRun
from reducers import replacing, to_ilist
from sources import Items, items
from tests.core.processors.four_runs import emitted_in_four_runs
from tests.processors.graphs_by_hand import edge, run_of, vertex


def given(supplier, items, parallelism=1):
    """Return what one vertex emits."""
    edges = [edge("in", "only"), edge("only", "out")]
    return run_of([vertex("only", supplier, parallelism)], edges, [GraphArrival(0, 0, None, list(items))])


TENS = ds.Service(lambda: 10)


def test_map_using_leaves_out_none():
    """As map does."""
    assert emitted_in_four_runs(processors.map_using(TENS, lambda ten, n: ten * n if n else None), [1, 0, 2]) == [
        10,
        20,
    ]


def test_filter_using_keeps_what_satisfies_the_predicate():
    """It takes the service and the item."""
    assert emitted_in_four_runs(processors.filter_using(TENS, lambda ten, n: n < ten), [9, 10, 1]) == [9, 1]


def test_flat_map_using_emits_all():
    """In order."""
    assert emitted_in_four_runs(processors.flat_map_using(TENS, lambda ten, n: [n, ten]), [1, 2]) == [1, 10, 2, 10]


@pytest.mark.parametrize(("shared", "services"), [(True, 1), (False, 3)])
def test_a_service_is_made_once_for_a_process_or_for_each_processor(shared, services):
    """And each is destroyed at the end."""
    made, destroyed = [], []
    service = ds.Service(lambda: made.append(len(made)) or made[-1], destroyed.append, shared=shared)

    assert sorted(given(processors.map_using(service, lambda one, n: n), range(6), 3)) == list(range(6))
    assert made == destroyed == list(range(services))


@pytest.mark.parametrize("around", [lambda supplier: supplier, processors.peek_output])
def test_a_task_with_one_processor_makes_one_service(around):
    """The other processors of the vertex run elsewhere."""
    made = []
    meta = around(processors.map_using(ds.Service(lambda: made.append(1), shared=False), lambda one, n: n))
    supplier = meta.get(["x"])("x")
    supplier.init(SupplierContext("v", 8))

    supplier.get_one(5, 8)

    assert made == [1]


def test_a_service_is_destroyed_after_a_failure():
    """Of a function."""
    destroyed = []
    one = ProcessorRun(processors.map_using(ds.Service(list, destroyed.append), lambda one, n: 1 // n), RUNS[0])
    with pytest.raises(ZeroDivisionError) as caught:
        one.process(0, 0)
    one.supplier.close(caught.value)

    assert destroyed == [[]]


def test_what_is_no_service_is_refused():
    """When the vertex is made."""
    with pytest.raises(TypeError, match="must be a Service, not"):
        processors.map_using(len, max)


def test_vertices_with_services_travel():
    """Pickled, with lambdas."""
    assert given(pickle.loads(dumps(processors.map_using(TENS, lambda ten, n: ten + n))), [1]) == [11]


def test_all_services_are_destroyed_although_one_fails():
    """The failure is told, and logged by who runs this."""
    destroyed = []
    made = iter([1, 0, 2])
    service = ds.Service(lambda: next(made), lambda one: destroyed.append(1 // one), shared=False)
    supplier = processors.map_using(service, max).get(["here"])("here")
    supplier.init(SupplierContext("v"))
    supplier.get(3)
    with pytest.raises(ZeroDivisionError):
        supplier.close(None)

    assert destroyed == [1, 0]


def name_of(names, number):
    """Look a number up, and leave those out that have no name."""
    return names.get(number)


@pytest.mark.parametrize("wrapped", [lambda supplier: supplier, force_total_parallelism_one, processors.peek_output])
def test_a_service_may_be_a_map_of_the_context(local_context, wrapped):
    """Known by its name until the job runs, also inside of another supplier; the same graph runs with another map."""
    dag = DAG()
    numbers = dag.new_vertex("numbers", processors.read(items(1, 2, 3)))
    named = dag.new_vertex("named", wrapped(processors.map_using(ds.imap_service("vertex-names"), name_of)))
    sink = dag.new_vertex("sink", processors.write(replacing(to_ilist("named-by-a-vertex"))))
    dag.edge(Edge.between(numbers, named)).edge(Edge.between(named, sink))
    for names in ({1: "one", 3: "three"}, {2: "two"}):
        local_context.get_map("vertex-names").clear()
        local_context.get_map("vertex-names").put_all(names)
        local_context.new_job(dag).join()
        assert sorted(local_context.get_list("named-by-a-vertex")) == sorted(names.values())


def test_workers_look_up_in_a_map(spark_context):
    """What travels is a view of the map."""
    spark_context.get_map("vertex-names-of-workers").put_all({1: "one", 3: "three"})
    dag = DAG()
    numbers = dag.new_vertex("numbers", processors.read(Items(range(5), 3)))
    names = ds.imap_service("vertex-names-of-workers")
    known = dag.new_vertex("known", processors.filter_using(names, lambda view, number: number in view))
    sink = dag.new_vertex("sink", processors.write(to_ilist("known-to-workers")))
    spark_context.new_job(dag.edge(Edge.between(numbers, known)).edge(Edge.between(known, sink))).join()

    assert sorted(spark_context.get_list("known-to-workers")) == [1, 3]
