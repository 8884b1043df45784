"""`same_everywhere` finds pipelines that would be wrong on Spark, and says what to look at."""

from __future__ import annotations

import contextlib
import functools
import operator
import random
import threading
from typing import Any

import pytest

from collectors import counting, mapping
from dstream import Collector
from dstream.testing import Parts, same_everywhere

MODULE_STATE: list[int] = []
NUMBERS = list(range(1, 10))
WORDS = ["call", "me", "Ishmael", "some", "years", "ago", "never", "mind"]


def refused(pipeline: Any, *inputs: Any, **arguments: Any) -> str:
    """Return what `same_everywhere` says against a pipeline."""
    with pytest.raises(AssertionError) as caught:
        same_everywhere(pipeline, *inputs, **arguments)
    return str(caught.value)


def on_spark_only(pipeline: Any, items: Any, *words: str, partitions: Any = (1, 2, 3, 8)) -> None:
    """Make sure that the local half passes, that Spark gives something else, and that the message has the words."""
    with contextlib.suppress(ArithmeticError):
        same_everywhere(pipeline, items, engines=["local"])
    said = refused(pipeline, items, partitions=partitions)
    assert "something else on Spark than on the local engine" in said
    for word in words:
        assert word in said


def test_a_reduce_that_is_not_associative_is_found():
    """Subtraction depends on where the items are cut."""
    on_spark_only(lambda s: s.reduce(operator.sub), NUMBERS, "first difference: ", "not associative")


def test_an_identity_that_changes_something_is_found():
    """An identity is folded in once for each partition."""
    pipeline = lambda s: s.reduce(100, lambda total, n: total + n, operator.add)  # noqa: E731

    on_spark_only(pipeline, NUMBERS, "expected 145, got 245", "an identity that changes something")


def test_a_collector_that_is_not_associative_is_found():
    """A combiner that forgets the right side gives what the first partition has."""
    forgetful: Collector[int, list[int], int] = Collector(list, list.append, lambda left, right: left, len)

    on_spark_only(lambda s: s.collect(forgetful), NUMBERS, "expected 9, got", "a combiner that is not associative")


def test_a_reduce_that_depends_on_the_order_is_found():
    """Of an unordered stream, the last item may be any."""
    shuffled = Parts(NUMBERS, ordered=False)

    on_spark_only(lambda s: s.reduce(lambda left, right: right), shuffled, "in the order [")


def test_a_function_of_a_partition_is_found():
    """What looks at a partition as a whole depends on how many there are."""
    lengths: Collector[int, list[int], list[int]] = Collector(list, list.append, lambda a, b: [len(a) + len(b)])

    on_spark_only(lambda s: s.collect(lengths), NUMBERS, "where the items are cut")


def test_float_sums_that_depend_on_the_cuts_are_found():
    """Addition of floats is not associative in the last digits."""
    on_spark_only(lambda s: s.reduce(operator.add), [1 / n for n in range(1, 60)], "sums of floats")


def test_a_result_that_depends_on_hash_is_found():
    """`hash` of a text is another one in each process."""
    on_spark_only(lambda s: s.map(hash), WORDS, "hash() of a text")


def test_a_result_that_depends_on_the_order_of_a_set_is_found():
    """A set of texts has another order in each process."""
    on_spark_only(lambda s: s.flat_map(lambda text: list({*text, *WORDS})), WORDS, "the order of a set")


def test_int_and_float_are_not_the_same():
    """A sum that is an int on one partition only differs in its type."""
    pipeline = lambda s: s.reduce(0, lambda total, n: total + n, lambda a, b: float(a + b))  # noqa: E731

    on_spark_only(pipeline, NUMBERS, "expected 45 (int), got 45.0 (float)")


def test_chance_is_found():
    """What is another number each time is told apart from what partitions change."""
    assert "random numbers" in refused(lambda s: s.map(lambda n: random.random()), NUMBERS)


def test_another_exception_is_found():
    """An exception is compared by its type and its message."""

    def failing(left: int, right: int) -> int:
        raise ArithmeticError(f"{left} and {right}")

    on_spark_only(lambda s: s.reduce(failing), NUMBERS, "'ArithmeticError: 1 and 2'", "what raises")


def test_a_captured_list_that_changes_is_found():
    """Appending to a list from a worker changes a copy."""
    seen: list[int] = []
    said = refused(lambda s: s.map(lambda n: seen.append(n)), NUMBERS, engines=["local"])

    assert "changed 'seen' from [] to [1, 2, 3, 4, 5, 6, 7, 8, 9]" in said
    assert __file__ in said
    assert "peek()" in said


@pytest.mark.parametrize(
    "add",
    [
        MODULE_STATE.append,
        functools.partial(operator.iadd, MODULE_STATE),
        lambda n: MODULE_STATE.append(n),
        lambda n, state=MODULE_STATE: state.append(n),
    ],
    ids=["method", "partial", "global", "default"],
)
def test_state_is_found_wherever_a_function_holds_it(add):
    """The object of a bound method, an argument of a partial, a global and a default are captured too."""
    MODULE_STATE.clear()

    assert "from [] to [" in refused(lambda s: s.map(lambda n: [n]).map(add), NUMBERS, engines=["local"])


def test_state_is_found_in_collectors():
    """The functions inside a collector are looked at as well."""
    seen: list[int] = []
    pipeline = lambda s: s.collect(mapping(lambda n: seen.append(n), counting()))  # noqa: E731

    assert "'seen'" in refused(pipeline, NUMBERS, engines=["local"])


class Tally:
    def __init__(self) -> None:
        self.count = 0

    def add(self, item: int) -> int:
        self.count += 1
        return item


def test_an_object_that_counts_is_found():
    """A method that changes its object changes a copy on a worker."""
    tally = Tally()

    assert "the object of .add" in refused(lambda s: s.map(tally.add), NUMBERS, engines=["local"])


def test_an_item_that_is_changed_is_found():
    """A step that changes its item in place is named with the item."""
    said = refused(lambda s: s.map(lambda pair: pair.append(0) or pair), [[1], [2]], engines=["local"])

    assert "a step changed item 0 of input 1 from [1] to [1, 0]" in said


@pytest.mark.parametrize("step", ["map", "filter", "sorted", "distinct", "collect"])
def test_a_capture_that_cannot_travel_is_found_without_spark(step):
    """A lock cannot be pickled; the variable and the line are named."""
    lock = threading.Lock()
    steps: dict[str, Any] = {
        "map": lambda s: s.map(lambda n: lock.locked()),
        "filter": lambda s: s.filter(lambda n: lock.locked()),
        "sorted": lambda s: s.sorted(key=lambda n: lock.locked()),
        "distinct": lambda s: s.distinct(key=lambda n: lock.locked()),
        "collect": lambda s: s.collect(mapping(lambda n: lock.locked(), counting())),
    }
    said = refused(steps[step], NUMBERS, engines=["local"])

    assert f".{step}(" in said
    assert "captures the variable 'lock', a lock" in said


def test_an_item_that_cannot_travel_is_found():
    """An item that cannot be pickled is named by its number."""
    assert refused(lambda s: s.count(), [1, threading.Lock()]).startswith("item 1 of input 1 cannot be sent")


def test_the_message_makes_the_difference_again():
    """The number of partitions and the seed of the message give the same cuts."""
    pipeline = lambda s: s.reduce(operator.sub)  # noqa: E731
    first = refused(pipeline, NUMBERS, seed=5)
    [line] = [line for line in first.splitlines() if "again:" in line]

    assert line == "  again: same_everywhere(..., partitions=[2], seed=5)"
    assert refused(pipeline, NUMBERS, partitions=[2], seed=5).splitlines()[2] == first.splitlines()[2]
