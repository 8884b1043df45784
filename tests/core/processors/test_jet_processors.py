"""The cases of Jet's ProcessorsTest, under the names that they have there: what goes in, and what comes out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

import dstream as ds
from dstream.core import processors, traverse
from dstream.spi import AggregateOperation
from dstream.testing import same_items_in_any_order, verify_processor

SHOWN_LIST = AggregateOperation(list, list.append, list.extend, finish=str)


class Last:
    """A service that holds a number, and notes it when it is destroyed."""

    noted: list[int]

    def __init__(self, noted, value=0):
        self.noted, self.value = noted, value

    def destroy(self):
        """Note the number."""
        self.noted.append(self.value)


class Case(NamedTuple):
    """A vertex, items, and what is emitted; `any_order` where Jet promises none."""

    supplier: Any
    items: list[Any]
    emitted: list[Any]
    any_order: bool = False


CASES = {
    "map": Case(processors.map(str), [1], ["1"]),
    "filteringWithMap": Case(processors.map(lambda n: n if n > 1 else None), [1, 2], [2]),
    "filter": Case(processors.filter(lambda n: n == 1), [1, 2, 1, 2], [1, 1]),
    "flatMap": Case(processors.flat_map(lambda n: traverse([f"{n}a", f"{n}b"])), [1], ["1a", "1b"]),
    "aggregateByKey": Case(
        processors.aggregate_by_key([str], SHOWN_LIST),
        [1, 1, 2, 2],
        [ds.Entry("1", "[1, 1]"), ds.Entry("2", "[2, 2]")],
        True,
    ),
    "accumulateByKey": Case(
        processors.accumulate_by_key([str], SHOWN_LIST),
        [1, 1, 2, 2],
        [ds.Entry("1", [1, 1]), ds.Entry("2", [2, 2])],
        True,
    ),
    "combineByKey": Case(
        processors.combine_by_key(SHOWN_LIST),
        [("1", [1, 2]), ("1", [3, 4]), ("2", [5, 6]), ("2", [7, 8])],
        [ds.Entry("1", "[1, 2, 3, 4]"), ds.Entry("2", "[5, 6, 7, 8]")],
        True,
    ),
    "aggregate": Case(processors.aggregate(SHOWN_LIST), [1, 2], ["[1, 2]"]),
    "accumulate": Case(processors.accumulate(SHOWN_LIST), [1, 2], [[1, 2]]),
    "combine": Case(processors.combine(SHOWN_LIST), [[1], [2]], ["[1, 2]"]),
    "noop": Case(processors.noop(), ["a"] * 100, []),
}


@pytest.mark.parametrize("name", CASES)
def test_a_case_of_jets_processors_holds(name):
    """In all runs, with and without snapshots."""
    supplier, items, emitted, any_order = CASES[name]
    verified = verify_processor(supplier).input(items)
    (verified.output_checker(same_items_in_any_order) if any_order else verified).expect_output(emitted)


def added(last: Last, item: int) -> int:
    """Add an item to the number, and return it."""
    last.value += item
    return last.value


def replaced(last: Last, item: int) -> int:
    """Return the number, and put an item in its place."""
    before, last.value = last.value, item
    return before


class Using(NamedTuple):
    """What makes a vertex of a service, items, what is emitted, and the number at the end."""

    make: Callable[[ds.Service[Last]], Any]
    items: list[int]
    emitted: list[int]
    left: int


USING = {
    "mapUsingContext": Using(lambda service: processors.map_using(service, added), [1, 2, 3], [1, 3, 6], 6),
    "filteringWithMapUsingContext": Using(
        lambda service: processors.map_using(
            service, lambda last, item: item if replaced(last, item) % 2 == 0 else None
        ),
        *([1, 2, 3], [1, 3], 3),
    ),
    "filterUsingContext": Using(
        lambda service: processors.filter_using(service, lambda last, item: item > replaced(last, item)),
        *([1, 2, 1, 2], [1, 2, 2], 2),
    ),
    "flatMapUsingContext": Using(
        lambda service: processors.flat_map_using(service, lambda last, item: [item, added(last, item)]),
        *([1, 2, 3], [1, 1, 2, 3, 3, 6], 6),
    ),
}


@pytest.mark.parametrize("name", USING)
def test_a_case_of_jets_services_holds(name):
    """One service sees all items of a run, and is destroyed as the last of them left it; it is in no snapshot."""
    make, items, emitted, left = USING[name]
    noted: list[int] = []
    service = ds.Service(lambda: Last(noted), Last.destroy, shared=False)
    verify_processor(make(service)).disable_snapshots().input(items).expect_output(emitted)

    assert set(noted) == {left}


def test_any_order_counts_items():
    """Jet: TestSupportTest.test_compareAsSet: as often as they come."""
    assert same_items_in_any_order(["a", "b", "a"], ["a", "a", "b"])
    assert not same_items_in_any_order(["a", "b", "a"], ["a", "b", "b"])
