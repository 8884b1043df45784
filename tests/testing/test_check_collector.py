"""`check_collector` passes what keeps the laws and finds what breaks one."""

from __future__ import annotations

import operator
import threading
from typing import Any

import pytest

from collectors import averaging, grouping_by, joining, summing_double, to_list, to_set
from dstream import Collector
from dstream.spi import Characteristics
from dstream.testing import check_collector

SHARED: list[Any] = []


def broken(law: str, *functions: Any, samples: Any = (3, 1, 2), **named: Any) -> str:
    """Return what is said against a collector, which starts with the law."""
    with pytest.raises(AssertionError) as caught:
        check_collector(Collector(*functions, **named), samples)
    said = str(caught.value)
    assert said.startswith(f"{law}: "), said
    return said


@pytest.mark.parametrize(
    "collector", [to_list(), to_set(), averaging(), summing_double(float), grouping_by(lambda n: n % 2)]
)
@pytest.mark.parametrize("count", [0, 1, 2, 7, 30])
def test_collectors_that_keep_the_laws_pass(collector, count):
    """No false alarm, for no items, few and many."""
    check_collector(collector, [n * 1.5 for n in range(count)])


def test_a_text_keeps_its_order():
    """An order that counts is no problem, since containers are combined in order."""
    check_collector(joining("-", "<", ">"), ["some", "words", "in", "a", "row"])


def test_a_shared_container_is_found():
    """A supplier that gives the same list again."""
    SHARED.clear()
    broken("the supplier", lambda: SHARED, list.append, list.extend)


def test_a_combiner_that_is_not_associative_is_found():
    """An empty container is nothing special here, three parts are."""

    def halved(left: Any, right: Any) -> Any:
        return right if left is None else left if right is None else (left + right) / 2

    said = broken("the combiner", lambda: None, lambda held, n: n if held is None else held + n, halved)
    assert "[[3], [1, 2]] from the left: expected 6 (int), got 3.0 (float)" in said


def test_a_combiner_that_forgets_is_found():
    """What stands right of a cut is lost."""
    broken("the identity", list, list.append, lambda left, right: left)


def test_a_combiner_that_changes_the_order_is_found():
    """Right before left."""
    said = broken("the combiner", list, list.append, lambda left, right: right + left)

    assert said == "the combiner: [[3], [1, 2]] from the left: at [0]: expected 3, got 1"


def test_an_identity_that_changes_something_is_found():
    """A container that starts at 10 adds 10 for each part."""
    assert "an empty one before: expected 16, got 26" in broken("the identity", lambda: 10, operator.add, operator.add)


def test_a_finisher_that_counts_its_calls_is_found():
    """It runs once, but it must not matter what ran before."""
    calls: list[int] = []
    broken("the supplier", list, list.append, list.extend, lambda held: calls.append(1) or len(calls))


def test_a_changed_item_is_found():
    """An accumulator leaves its items alone."""

    def clear(held: list[Any], item: list[Any]) -> None:
        held.append(len(item))
        item.append(0)

    broken("an item", list, clear, list.extend, samples=[[1], [2]])


def test_an_item_taken_for_the_container_is_found():
    """A container that is an item grows the item."""

    def grown(held: list[int] | None, item: list[int]) -> list[int]:
        return item if held is None else held.extend(item) or held

    broken("an item", lambda: None, grown, operator.add, samples=[[1], [2]])


def test_a_bulk_that_is_no_loop_is_found():
    """`accumulate_all` must start from the container that it is given."""
    said = broken("accumulate_all", int, operator.add, operator.add, accumulate_all=lambda held, items: sum(items))

    assert "half item by item, half at once: expected 6, got 3" in said


def test_a_bulk_that_gives_something_else_is_found():
    """In bulk twice as much comes out as item by item."""

    def twice(held: int, items: Any) -> int:
        return held + sum(2 * item for item in items)

    said = broken("accumulate_all", int, operator.add, operator.add, accumulate_all=twice)
    assert said == "accumulate_all: item by item: expected 12, got 6"


def test_what_cannot_travel_is_found():
    """A container that holds a lock, a function that captures one."""
    lock = threading.Lock()
    broken("pickling", list, lambda held, item: held.append(item) if not lock.locked() else None, list.extend)
    broken("pickling", lambda: [threading.Lock()], list.append, lambda a, b: a.extend(b[1:]), lambda held: held[1:])


def test_a_characteristic_that_does_not_hold_is_found():
    """What it says of itself is believed by engines."""
    same = frozenset({Characteristics.IDENTITY_FINISH})

    broken("a characteristic", list, list.append, list.extend, tuple, characteristics=same)


def test_an_unordered_collector_may_depend_on_the_order():
    """`UNORDERED` lets an engine choose; the order in which it is tried is the one that was given."""
    unordered = frozenset({Characteristics.UNORDERED})

    check_collector(Collector(list, list.append, list.extend, characteristics=unordered), range(5))


def test_many_samples_are_cut_everywhere():
    """One bad seam among many is found."""

    def unlucky(left: list[int], right: list[int]) -> list[int]:
        return left if left and right and right[0] == 23 else left + right

    assert "expected 23, got nothing more" in broken("the combiner", list, list.append, unlucky, samples=range(40))


def test_by_makes_results_comparable():
    """Sums of floats that differ in the last digits may pass."""
    mean = Collector(float, operator.add, operator.add)
    numbers = [1 / n for n in range(1, 30)]

    with pytest.raises(AssertionError):
        check_collector(mean, numbers)
    check_collector(mean, numbers, by=lambda total: round(total, 9))
