"""`check_operation` passes what keeps the laws and finds what breaks one."""

from __future__ import annotations

import operator
from collections import Counter

import pytest

from collectors import co_operation, counting, summing, to_bags, to_list
from dstream import Collector
from dstream.spi import AggregateOperation
from dstream.testing import check_operation


def broken(operation, *inputs, **named):
    """Return what is said against an operation."""
    with pytest.raises(AssertionError) as caught:
        check_operation(operation, *inputs, **named)
    return str(caught.value)


def add(container, item):
    """Add an item to a list."""
    container.append(item)


@pytest.mark.parametrize(
    ("operation", "inputs"),
    [
        (co_operation(counting(), to_list()), (["a", "b"], [3, 1, 3])),
        (to_bags(2), ([1, 2], [3, 4])),
        (AggregateOperation(int, operator.add, operator.add, operator.sub), ([5, -1, 7],)),
        (AggregateOperation(list, add), ([5, -1, 7],)),
        (summing(), ([1, 2, 3],)),
        (to_bags(3), ([], [], [])),
    ],
)
def test_operations_that_keep_the_laws_pass(operation, inputs):
    """Of one input and of several, with and without combining and deducting."""
    check_operation(operation, *inputs)


def test_a_container_that_is_not_fresh_is_found():
    """Also without combining."""
    shared: list[int] = []

    assert broken(AggregateOperation(lambda: shared, add), [1, 2]).startswith("create: a new container after another")


def test_a_combiner_that_is_not_associative_is_found():
    """The message says how the items were split, and of which inputs they are."""
    mixed = AggregateOperation(tuple, lambda held, n: (*held, n), lambda left, right: right + left if right else left)
    said = broken(mixed, [1, 2])

    assert said == "combine: [[1], [2]] from the left: at [0]: expected 1, got 2"


def test_a_combiner_that_loses_something_is_found():
    """With the items behind the numbers of their inputs."""
    said = broken(AggregateOperation(list, (add, add), lambda left, right: right), [1], [2])

    assert said == (
        "the identity: an empty one after: at [0]: expected 1, got nothing more "
        "(items stand behind the numbers of their inputs)"
    )


def test_a_finish_that_changes_the_container_is_found():
    """As one that empties it."""

    def emptied(container):
        found = list(container)
        container.clear()
        return found

    said = broken(AggregateOperation(list, add, list.extend, finish=emptied), [1, 2])
    assert said == "finish: [1] finished twice: at [0]: expected 1, got nothing more"


def test_a_deduct_that_undoes_nothing_is_found():
    """Whichever part leaves."""
    keeps = AggregateOperation(int, operator.add, operator.add, lambda left, right: left)
    counts = AggregateOperation(Counter, lambda held, item: held.update([item]), Counter.update, Counter.subtract)

    assert broken(keeps, [4, 5]).startswith("deduct: [] and [4, 5] combined, [4, 5] deducted: expected 0, got 9")
    assert broken(counts, ["a", "b"]).startswith("deduct: ")
    check_operation(counts, ["a", "b"], by=lambda held: +held)


def test_an_item_that_changes_is_found():
    """The accumulator may not do that."""
    assert broken(AggregateOperation(list, lambda held, item: item.append(1)), [[2]]).startswith("an item: ")


def test_a_collector_keeps_the_laws_of_collectors():
    """Its functions too, such as `accumulate_all`."""
    wrong = Collector(int, operator.add, operator.add, accumulate_all=lambda total, items: total)

    assert broken(wrong, [1]).startswith("accumulate_all: ")


def test_another_number_of_inputs_is_refused():
    """Before anything is tried."""
    with pytest.raises(TypeError, match=r"to_bags\(\.\.\.\) has 2 inputs, and there are items for 1"):
        check_operation(to_bags(2), [1])
