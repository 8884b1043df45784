"""What a function given to the library captures is checked before a job starts, and named by its own variable."""

from __future__ import annotations

import functools
import threading

import pytest

import dstream as ds
from collectors import counting, mapping
from dstream.core import DAG, Edge, ProcessorSupplier, force_total_parallelism_one, processor_of, processors
from dstream.errors import SerializationError
from dstream.plan import rewrite
from dstream.plan.capture_checks import check_captures
from reducers import to_ilist
from sources import Items

LOCK = threading.Lock


class Held(ProcessorSupplier):
    """Holds what cannot travel."""

    def __init__(self, lock):
        self.lock = lock


def of_key(make):
    """Return what a vertex gets that uses a function which captures a lock."""
    lock = LOCK()

    def key(*given):
        return lock

    return make(key)


VERTICES = {
    "map": lambda key: processors.map(key),
    "filter": lambda key: processors.filter(key),
    "flat_map": lambda key: processors.flat_map(key),
    "map_using": lambda key: processors.map_using(ds.Service(key), abs),
    "accumulate_by_key": lambda key: processors.accumulate_by_key([key], counting()),
    "aggregate": lambda key: processors.aggregate(mapping(key, counting())),
    "hash_join": lambda key: processors.hash_join(joins=[ds.JoinClause.join_map_entries(key)]),
    "peek_input": lambda key: processors.peek_input(processors.map(key)),
    "processor_of": lambda key: processor_of(key),
    "force_total_parallelism_one": lambda key: force_total_parallelism_one(processors.map(key)),
    "a function": lambda key: lambda: key,
}


@pytest.mark.parametrize("name", VERTICES)
def test_the_function_that_captures_a_lock_is_named(name):
    """With its line, its variable, and the vertex."""
    with pytest.raises(SerializationError) as caught:
        checked(of_key(VERTICES[name]))

    assert "vertex 'tested'" in str(caught.value)
    assert "test_captured_functions.py:3" in str(caught.value)
    assert "captures the variable 'lock', a lock" in str(caught.value)


class Called:
    """Holds what cannot travel, and is called like a function."""

    def __init__(self, lock):
        self.lock = lock

    def __call__(self, *given):
        return given

    def method(self, *given):
        """Do the same."""
        return given


@pytest.mark.parametrize("name", sorted(VERTICES.keys() - {"a function"}))
def test_an_object_that_is_called_like_a_function_is_named(name):
    """By its own class: the user knows no class of the library that holds it."""
    with pytest.raises(
        SerializationError, match=r"workers: Called captures the variable 'self', whose self\.lock is a"
    ):
        checked(VERTICES[name](Called(LOCK())))


@pytest.mark.parametrize("name", sorted(VERTICES.keys() - {"a function"}))
def test_the_object_of_a_method_is_named(name):
    """With the line of the method."""
    with pytest.raises(
        SerializationError, match=r"test_captured_functions\.py:\d+ captures the variable 'self', whose"
    ):
        checked(VERTICES[name](Called(LOCK()).method))


@pytest.mark.parametrize("name", sorted(VERTICES.keys() - {"a function"}))
def test_the_argument_of_a_partial_function_is_named(name):
    """As a variable of the function that it is an argument of."""

    def key(lock, *given):
        return given

    with pytest.raises(
        SerializationError, match=r"test_captured_functions\.py:\d+ captures the variable 'lock', a lock"
    ):
        checked(VERTICES[name](functools.partial(key, LOCK())))


def test_a_supplier_of_the_user_that_holds_a_lock_is_named():
    """By its class, and the attribute."""
    with pytest.raises(SerializationError, match=r"Held captures the variable 'self', whose self.lock is a lock"):
        checked(Held(LOCK()))


def test_it_is_checked_in_epochs_too():
    """Where processors are the state of a step."""
    by_hand = ds.testing.epochs()
    pipeline = ds.Pipeline()
    stage = pipeline.read_from(by_hand.source("numbers")).custom_transform("tested", of_key(VERTICES["map"]))
    stage.write_to(to_ilist("out"))
    runner = by_hand.of(pipeline)._runner

    with pytest.raises(SerializationError, match=r"custom_transform\('tested'\).*captures the variable 'lock'"):
        check_captures(runner.open_plan.several)


def checked(supplier):
    """Check what the functions of a vertex capture."""
    dag = DAG()
    source = dag.new_vertex("numbers", processors.read(Items([1])))
    tested = dag.new_vertex("tested", supplier)
    sink = dag.new_vertex("sink", processors.write(to_ilist("out")))
    dag.edge(Edge.between(source, tested)).edge(Edge.between(tested, sink))
    check_captures(rewrite(dag.plan().several([None])))
