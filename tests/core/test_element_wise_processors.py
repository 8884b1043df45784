"""Processors that look at each item by itself, and those of generator functions, run by the executor."""

from __future__ import annotations

import pickle
from itertools import islice

import pytest

from dstream import Service
from dstream.base.pickling import dumps
from dstream.core import AbstractProcessor, processor_of, processors, traverse
from dstream.failures import failure
from dstream.processors.blocks import GraphArrival
from tests.processors.graphs_by_hand import edge, run_of, vertex


def given(supplier, items):
    """Return what one vertex emits."""
    edges = [edge("in", "only"), edge("only", "out")]
    return run_of([vertex("only", supplier)], edges, [GraphArrival(0, 0, None, list(items))])


def test_map_leaves_out_none():
    """A processor emits no None."""
    assert given(processors.map({1: "a", 3: "c"}.get), [1, 2, 3]) == ["a", "c"]


def test_filter_keeps_what_satisfies_the_predicate():
    """In order."""
    assert given(processors.filter(lambda n: n % 2), range(6)) == [1, 3, 5]


def test_flat_map_emits_more_than_the_outbox_takes_at_once():
    """What does not fit goes out in the next calls, in order."""
    assert given(processors.flat_map(lambda n: (n * 3000 + k for k in range(3000))), range(3)) == list(range(9000))


def test_noop_emits_nothing():
    """It takes all items."""
    assert given(processors.noop(), range(5)) == []


@pytest.mark.parametrize("make", [processors.map, processors.filter])
def test_a_failure_names_the_item(make):
    """Although the block was taken as a whole."""
    with pytest.raises(ZeroDivisionError) as caught:
        given(make(lambda n: 1 / n), [2, 1, 0, 3])

    assert failure(caught.value).item == 0


def test_a_failure_of_a_generator_names_the_item():
    """It is raised while the outbox asks for more."""
    with pytest.raises(ZeroDivisionError) as caught:
        given(processors.flat_map(lambda n: (1 / k for k in (1, n))), [2, 1, 0, 3])

    assert failure(caught.value).item == 0


@pytest.mark.parametrize("many", [list, iter, traverse])
def test_none_is_no_items_for_a_function_of_flat_map(many):
    """As in streams and pipelines, whatever it gives for other items, and wherever it is called."""

    def odd_twice(n):
        return many([n, n]) if n % 2 else None

    made = given(processors.flat_map(odd_twice), [1, 2, 3])
    using = given(processors.flat_map_using(Service(int), lambda service, n: odd_twice(n)), [1, 2, 3])
    assert made == using == list(traverse([1, 2, 3]).flat_map(odd_twice)) == [1, 1, 3, 3]
    assert given(processors.flat_map(lambda n: None), [1, 2]) == []
    assert given(lambda: Twice(odd_twice), [1, 2, 3]) == [1, 1, 3, 3]


class Twice(AbstractProcessor):
    """Emits by a mapper of its own."""

    def __init__(self, fn):
        self.mapper = self.flat_mapper(fn)

    def try_process(self, ordinal, item):
        return self.mapper.try_process(item)


def test_suppliers_travel_with_lambdas():
    """By value."""
    assert given(pickle.loads(dumps(processors.map(lambda n: n + 1))), [1, 2]) == [2, 3]


def both(ordinal, items):
    """Yield each item and its negative."""
    for item in items:
        yield item
        yield -item


def test_processor_of_gives_what_flat_map_gives():
    """Also when the outbox is full in between."""
    items = range(5000)

    assert given(processor_of(both), items) == given(processors.flat_map(lambda n: (n, -n)), items)


def test_processor_of_goes_on_with_items_that_were_left():
    """A function that stops early is called again: no item is lost."""
    assert given(processor_of(lambda ordinal, items: list(islice(items, 2))), range(5)) == [0, 1, 2, 3, 4]


def test_processor_of_refuses_a_function_that_takes_nothing():
    """It would be called for ever."""
    with pytest.raises(RuntimeError, match="lambda took none of the items"):
        given(processor_of(lambda ordinal, items: []), [1])


def test_processor_of_names_the_item_that_failed():
    """The one that was taken last."""
    with pytest.raises(ZeroDivisionError) as caught:
        given(processor_of(lambda ordinal, items: (1 / item for item in items)), [2, 0, 1])

    assert failure(caught.value).item == 0


@pytest.mark.parametrize(
    "supplier",
    [
        processors.flat_map(lambda n: [n, None] if n == 2 else [n]),
        processors.flat_map(lambda n: (None if n == 2 else each for each in [n])),
        processor_of(lambda ordinal, items: (None if n == 2 else n for n in items)),
    ],
)
def test_a_none_among_what_is_emitted_names_its_item(supplier):
    """The one of which it was made, also where several are emitted together."""
    with pytest.raises(TypeError, match="emits no None") as caught:
        given(supplier, [1, 2, 3])

    assert failure(caught.value).item == 2
