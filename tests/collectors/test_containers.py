import pickle
from collections import deque
from functools import partial

import numpy
import pytest

from collectors import grouping_by, to_collection, to_list, to_set, to_unmodifiable_list, to_unmodifiable_set
from dstream.errors import NullElementError
from dstream.spi import Characteristics

NAN = float("nan")


def test_to_list_keeps_order_and_none():
    """A list holds every item in encounter order, None too."""
    assert to_list().collect([3, None, 1, 3]) == [3, None, 1, 3]


def test_to_list_of_nothing_is_a_new_list():
    """Each result is a list of its own, which may be changed."""
    first = to_list().collect([])
    first.append(1)

    assert to_list().collect([]) == []


def test_to_set_keeps_distinct_items():
    """A set holds each item once, None too."""
    assert to_set().collect([1, None, 1, 2]) == {1, 2, None}


def test_to_set_takes_every_nan_as_one():
    """Two NaN are one item, also inside tuples."""
    assert len(to_set().collect([NAN, float("nan"), (NAN,), (float("nan"),)])) == 2


def test_to_set_takes_objects_that_equal_only_themselves():
    """A set is not a grouping: an object without its own equality is an item."""
    first, second = object(), object()

    assert to_set().collect([first, second, first]) == {first, second}


def test_to_set_refuses_what_has_no_hash():
    """A list is no item of a set."""
    with pytest.raises(TypeError, match="unhashable"):
        to_set().collect([[1]])


@pytest.mark.parametrize("collector", [to_set(), to_unmodifiable_set(), grouping_by(len, to_set())])
def test_sets_name_what_has_no_hash(local_context, collector):
    """The item, as any step that fails does."""
    with pytest.raises(TypeError, match="unhashable") as caught:
        local_context.stream(["a", "b", ["c"], "d"]).collect(collector)

    assert "on the item ['c']" in "\n".join(caught.value.__notes__)


def test_to_set_does_not_promise_order():
    """An engine may collect a set in any order."""
    assert Characteristics.UNORDERED in to_set().characteristics


@pytest.mark.parametrize(
    ("factory", "result"),
    [(deque, deque([2, 1, 2])), (partial(deque, maxlen=2), deque([1, 2])), (set, {1, 2}), (list, [2, 1, 2])],
)
def test_to_collection_fills_what_the_factory_makes(factory, result):
    """Anything with add() or append() can be filled."""
    assert to_collection(factory).collect([2, 1, 2]) == result


def test_to_collection_refuses_what_cannot_be_filled():
    """A dictionary has neither add() nor append()."""
    with pytest.raises(TypeError, match=r"add\(\) or append\(\), not \{\}"):
        to_collection(dict).collect([1])


def test_to_collection_prefers_add():
    """A sorted list has an append() that only raises."""

    class Sorted(list):
        def add(self, item):
            self.insert(0, item)

        def append(self, item):
            raise AssertionError("a collection with add() is not appended to")

    assert to_collection(Sorted).collect([1, 2]) == [2, 1]


def test_unmodifiable_ones_are_a_tuple_and_a_frozenset():
    """The results cannot be changed."""
    assert to_unmodifiable_list().collect("aba") == ("a", "b", "a")
    assert to_unmodifiable_set().collect("aba") == frozenset("ab")
    assert type(to_unmodifiable_set().collect("")) is frozenset


@pytest.mark.parametrize("factory", [to_unmodifiable_list, to_unmodifiable_set])
def test_unmodifiable_ones_refuse_none(factory):
    """A None item is an error that names the factory, taken in bulk or alone."""
    collector = factory()

    with pytest.raises(NullElementError, match=factory.__name__ + r"\(\) refuses None"):
        collector.collect([1, None])
    with pytest.raises(NullElementError, match=factory.__name__ + r"\(\) refuses None"):
        collector.accumulator(collector.supplier(), None)


def test_an_unmodifiable_list_refuses_none_behind_items_without_a_truth():
    """An array of NumPy compares with None element by element."""
    with pytest.raises(NullElementError, match="item 1 of this batch is None"):
        to_unmodifiable_list().collect([numpy.array([1, 2]), None])


@pytest.mark.parametrize("factory", [to_set, to_unmodifiable_set])
def test_nans_from_other_processes_are_one_item(factory):
    """A container that went through pickle holds another NaN than the one that is put in later."""
    collector = factory()
    nan = float("nan")
    left, right = (pickle.loads(pickle.dumps(collector.accumulated(collector.supplier(), [nan, 1]))) for _ in range(2))

    combined = collector.accumulated(collector.combined(left, right), [nan, (nan,), (float("nan"),)])

    assert len(collector.finisher(combined)) == 3


def test_nans_of_several_partitions_are_one_item_of_a_set(engine):
    """On Spark the sets of partitions come from other processes."""
    numbers = engine.stream([float("nan"), 1.0, float("nan"), 1.0, float("nan")], partitions=3)

    assert len(numbers.collect(to_set())) == 2
    assert len(numbers.collect(grouping_by(bool, to_unmodifiable_set()))[True]) == 2
