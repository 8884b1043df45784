import copy
import importlib
import math
import operator
import pickle
from collections import OrderedDict
from operator import itemgetter

import pytest

from collectors import (
    averaging,
    counting,
    filtering,
    frequencies,
    grouping_by,
    grouping_by_concurrent,
    max_by,
    partitioning_by,
    reducing,
    to_list,
)
from dstream import failure
from dstream.errors import NullElementError, UnstableKeyError
from dstream.spi import Characteristics, Collector

BOTH = pytest.mark.parametrize("factory", [grouping_by, grouping_by_concurrent])
NAN = float("nan")


def alone(collector, items):
    """Collect with the accumulator, one by one."""
    container = collector.supplier()
    for item in items:
        collector.accumulator(container, item)
    return collector.finisher(container)


def itself(item):
    """Return the item."""
    return item


@BOTH
def test_grouping_gathers_lists(factory):
    """Without a downstream collector the groups are lists in encounter order; nothing is an empty dict."""
    assert factory(len).collect(["a", "bb", "c"]) == {1: ["a", "c"], 2: ["bb"]}
    assert factory(len).collect([]) == {}


def test_keys_stand_in_first_seen_order():
    """Also across parts."""
    collector = grouping_by(itself, counting())
    left, right = (collector.accumulated(collector.supplier(), part) for part in ("ca", "bc"))

    assert list(collector.finisher(collector.combined(left, right))) == ["c", "a", "b"]


def test_downstream_collects_each_group():
    """Any collector serves, another grouping too."""
    nested = grouping_by(len, grouping_by(itemgetter(0), counting()))

    assert nested.collect(["ab", "ac", "b"]) == {2: {"a": 2}, 1: {"b": 1}}
    assert grouping_by(bool, averaging()).collect([1, 2, 0]) == {True: 1.5, False: 0.0}


@BOTH
def test_a_none_key_is_refused(factory):
    """The message is Java's and names the item, in bulk and alone; so does the classifier of the keyed view."""
    collector = factory({1: "a"}.get)
    message = "element cannot be mapped to a null key: 77"

    with pytest.raises(NullElementError, match=message):
        collector.collect([1, 77])
    with pytest.raises(NullElementError, match=message):
        alone(collector, [77])
    with pytest.raises(NullElementError, match=message):
        collector.keyed.classifier(77)


def test_none_items_are_allowed():
    """Keys may not be None, items may."""
    assert grouping_by(lambda item: item is None).collect([None, 1]) == {True: [None], False: [1]}


def test_keys_are_equal_as_in_a_dict():
    """1, 1.0 and True are one key, the first one seen; every NaN is one key."""
    assert grouping_by(itself, counting()).collect([1, 1.0, True, 0.0, -0.0]) == {1: 3, 0.0: 2}
    assert list(grouping_by(itself, counting()).collect([NAN, float("nan"), -NAN]).values()) == [3]
    assert list(grouping_by(itself, counting()).collect([(NAN, 1), (float("nan"), 1)]).values()) == [2]


def test_nan_keys_meet_again_after_pickle():
    """A NaN in a container that was sent is another object, and still the same key."""
    collector = grouping_by(itself, counting())
    left, right = (collector.accumulated(collector.supplier(), [NAN, (NAN, 2)]) for _ in range(2))
    combined = collector.combined(left, pickle.loads(pickle.dumps(right)))

    assert list(collector.finisher(combined).values()) == [2, 2]


@pytest.mark.parametrize("key", [object(), [1], lambda: 0])
def test_unstable_keys_are_refused(key):
    """A key without a hash, or with one that comes from its identity."""
    with pytest.raises(UnstableKeyError, match="cannot be a key"):
        grouping_by(lambda item: key).collect([1])
    with pytest.raises(UnstableKeyError, match="cannot be a key"):
        alone(grouping_by(lambda item: key), [1])


def test_map_factory_makes_the_result():
    """It is called with no argument and filled by item assignment."""

    class Log(OrderedDict):
        def __setitem__(self, key, value):
            super().__setitem__(key, (value,))

    result = grouping_by(len, counting(), map_factory=Log).collect(["a", "bb", "c"])

    assert type(result) is Log
    assert list(result.items()) == [(1, (2,)), (2, (1,))]


def test_containers_of_functional_downstreams_are_replaced():
    """An accumulator may return the next container, even a false one."""
    product = Collector(lambda: 1, lambda left, right: left * right, lambda left, right: left * right)

    assert grouping_by(bool, product).collect([2, 0, 3, 0]) == {True: 6, False: 0}
    assert grouping_by(lambda n: n // 10, product).collect([2, 0, 10, 20, 30]) == {0: 0, 1: 10, 2: 20, 3: 30}


def test_many_keys_and_few_keys_take_different_paths_to_the_same():
    """Batches with mostly distinct keys, with few keys, and both."""
    items = [*range(9_000), *[1, 2] * 5_000, *range(9_000)]
    expected = {}
    for item in items:
        expected.setdefault(item, []).append(item)

    assert grouping_by(itself).collect(items) == expected
    assert grouping_by(itself, counting()).collect(items) == {key: len(group) for key, group in expected.items()}


def test_groups_of_a_max_are_optionals():
    """A group is never empty, but its greatest item may be None."""
    assert str(grouping_by(bool, max_by()).collect([1, 2])) == "{True: Optional[2]}"


def test_concurrent_grouping_does_not_promise_order():
    """An engine may combine its groups in any order."""
    assert grouping_by_concurrent(len).characteristics == {Characteristics.UNORDERED}
    assert grouping_by(len).characteristics == frozenset()


def test_concurrent_grouping_refuses_a_none_result():
    """The plain one takes it. The message names the key, also in the keyed view."""
    nothing = reducing(None, lambda left, right: None)
    message = r"grouping_by_concurrent\(\) refuses None results, but downstream gave None for key 2"

    assert grouping_by(len, nothing).collect(["ab"]) == {2: None}
    with pytest.raises(NullElementError, match=message):
        grouping_by_concurrent(len, nothing).collect(["ab"])
    with pytest.raises(NullElementError, match=message):
        grouping_by_concurrent(len, nothing).keyed.assemble([(2, None)])


def test_frequencies_counts_items():
    """In a Counter, in first-seen order, None and NaN among them."""
    result = frequencies().collect(["b", None, "a", "b", None, NAN, float("nan")])

    assert list(result.values()) == [2, 2, 1, 2]
    assert frequencies().collect("abca").most_common(1) == [("a", 2)]
    assert frequencies().collect([1, True, 1.0, "x"]) == {1: 3, "x": 1}


def test_frequencies_refuses_unstable_items():
    """Items are keys here."""
    with pytest.raises(UnstableKeyError, match="cannot be a key"):
        frequencies().collect(["a", object()])


class Untrue:
    """A result of a predicate without a truth, as an array of several numbers."""

    def __bool__(self):
        raise ValueError("no truth")


TRUTHS = {
    "partitioning_by": lambda stream, truth: stream.collect(partitioning_by(truth)),
    "filtering": lambda stream, truth: stream.collect(filtering(truth, to_list())),
    "filter": lambda stream, truth: stream.filter(truth).to_list(),
    "take_while": lambda stream, truth: stream.take_while(truth).to_list(),
    "drop_while": lambda stream, truth: stream.drop_while(truth).to_list(),
    "all_match": lambda stream, truth: stream.all_match(truth),
}


@pytest.mark.parametrize("ends", TRUTHS)
def test_a_result_without_truth_fails_at_its_item(engine, ends):
    """The truth of the result of a predicate is asked where the item is known."""
    with pytest.raises(ValueError, match="no truth") as caught:
        TRUTHS[ends](engine.stream([1, 2, 3], 1), lambda n: Untrue() if n == 2 else 1)
    assert failure(caught.value).item == 2


class Toggled:
    """A predicate that returns itself, whose truth is that of its last item."""

    is_true = False

    def __bool__(self):
        return self.is_true

    def __call__(self, item):
        self.is_true = item % 3 == 0
        return self


@pytest.mark.parametrize("collector", [partitioning_by, filtering])
def test_the_truth_of_a_result_is_asked_before_the_next_item(engine, collector):
    """A predicate may return one object again and again."""
    found = engine.stream(range(3000), 1).collect(collector(Toggled(), counting()))

    assert found == ({False: 2000, True: 1000} if collector is partitioning_by else 1000)


def test_partitioning_asks_for_each_truth_once():
    """Results that are no bools divide by their truth, as in `filter`."""
    assert partitioning_by(lambda n: n % 3).collect([1, 2, 3]) == {False: [3], True: [1, 2]}
    assert partitioning_by(lambda n: n or None).collect([0, "", "a"]) == {False: [0, ""], True: ["a"]}


def test_partitioning_always_has_both_keys():
    """False comes first, also when nothing was collected."""
    assert list(partitioning_by(bool).collect([]).items()) == [(False, []), (True, [])]
    assert list(partitioning_by(bool, counting()).collect([1]).items()) == [(False, 0), (True, 1)]


def test_partitioning_goes_by_truth():
    """A predicate may give any value; groups keep encounter order."""
    assert partitioning_by(itself).collect(["a", "", None, "b"]) == {False: ["", None], True: ["a", "b"]}
    assert alone(partitioning_by(itself), ["a", ""]) == {False: [""], True: ["a"]}
    assert partitioning_by(itself, to_list()).keyed is None


def test_partitioning_looks_at_no_container_for_each_item(monkeypatch):
    """One that is a tuple would be looked through from its start, for something to await, with each item."""
    looked = []
    monkeypatch.setattr(importlib.import_module("dstream.spi.collector"), "refuse_awaitable", looked.append)
    tuples = Collector(tuple, lambda held, item: (*held, item), operator.add)

    assert alone(partitioning_by(bool, tuples), [1, 0, 2]) == {False: (0,), True: (1, 2)}
    assert looked == []


def test_partitioning_refuses_a_container_that_has_to_be_awaited():
    """Item by item, as in a batch."""

    async def added(held, item):
        return [*held, item]

    collector = partitioning_by(bool, Collector(list, lambda held, item: added(held, item), operator.add))

    with pytest.raises(TypeError, match="has to be awaited"):
        alone(collector, [1])


def test_groups_of_nan_that_were_pickled_are_one_group():
    """On both sides of a combiner: an unpickled NaN is an object of its own."""
    collector = frequencies()
    left, right = (pickle.loads(pickle.dumps(collector.accumulated(collector.supplier(), [math.nan]))) for _ in "ab")

    assert list(collector.finisher(collector.combined(left, right)).values()) == [2]


@pytest.mark.parametrize("odd", [math.nan, 2.5, ("a", math.nan)])
def test_keys_that_begin_as_text_and_go_on_otherwise_are_counted(odd):
    """The quick way of counting texts and ints takes back what it counted."""
    counted = frequencies().collect(["a", "b", odd, "a", copy.deepcopy(odd), "b", "a"])

    assert list(counted.values()) == [3, 2, 2]


def test_a_none_key_among_texts_names_its_item():
    """The quick way of counting texts looks at the keys, and finds the item."""
    with pytest.raises(NullElementError, match="null key: 'c'"):
        grouping_by({"a": "x", "b": "y"}.get, counting()).collect("abc")


def test_a_key_without_hash_among_texts_is_named():
    """As where it comes first."""
    with pytest.raises(UnstableKeyError, match=r"\[1\] cannot be a key: list has no hash"):
        frequencies().collect(["a", [1]])
