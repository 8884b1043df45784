import pickle
from collections import OrderedDict
from operator import add, itemgetter
from types import MappingProxyType

import pytest

from collectors import to_concurrent_map, to_map, to_unmodifiable_map
from dstream.errors import IllegalStateError, NullElementError, UnstableKeyError
from dstream.spi import Characteristics
from dstream.values import Entry

key, value = itemgetter(0), itemgetter(1)
ALL = pytest.mark.parametrize("factory", [to_map, to_concurrent_map, to_unmodifiable_map])


def sum_unless_zero(left, right):
    """Return the sum, or None for 0."""
    return left + right or None


@ALL
def test_each_key_has_its_value(factory):
    """Keys stand in first-seen order; nothing is an empty mapping."""
    assert list(factory(key, value).collect([("b", 1), ("a", 2)]).items()) == [("b", 1), ("a", 2)]
    assert factory(key, value).collect([]) == {}


@ALL
def test_a_duplicate_key_is_an_error(factory):
    """The message is Java's: key and both values; in bulk, alone, across parts, and in the keyed view."""
    collector = factory(len, str)
    message = r"Duplicate key 2 \(attempted merging values bb and cc\)"
    left, right = (collector.accumulated(collector.supplier(), [word]) for word in ("bb", "cc"))
    entry = collector.keyed.downstream

    with pytest.raises(IllegalStateError, match=message):
        collector.collect(["a", "bb", "cc"])
    with pytest.raises(IllegalStateError, match=message):
        collector.accumulator(left, "cc")
    with pytest.raises(IllegalStateError, match=message):
        collector.combined(left, right)
    with pytest.raises(IllegalStateError, match=message):
        entry.collect(["bb", "cc"])


def test_the_keyed_view_finds_duplicates_across_parts():
    """Two workers may each have seen the key once."""
    entry = to_map(len, str).keyed.downstream
    left, right = (entry.accumulated(entry.supplier(), [word]) for word in ("bb", "cc"))

    with pytest.raises(IllegalStateError, match="Duplicate key 2"):
        entry.combined(left, pickle.loads(pickle.dumps(right)))


@ALL
def test_merge_gets_the_earlier_value_first(factory):
    """Values are merged in encounter order."""
    assert factory(len, str, add).collect(["a", "b", "cc", "d"]) == {1: "abd", 2: "cc"}


@ALL
def test_a_merge_that_gives_none_removes_the_key(factory):
    """The next value of the key stands alone again."""
    collector = factory(key, value, sum_unless_zero)

    assert collector.collect([("a", 1), ("b", 5), ("a", -1)]) == {"b": 5}
    assert collector.collect([("a", 1), ("a", -1), ("a", 7)]) == {"a": 7}


def test_a_removed_key_stays_removed_on_its_way():
    """The mark of a removed key is the same after pickle, whole or group by group."""
    collector = to_map(key, value, sum_unless_zero)
    entry = collector.keyed.downstream
    whole = collector.accumulated(collector.supplier(), [("a", 1), ("a", -1)])
    group = entry.accumulated(entry.supplier(), [("a", 1), ("a", -1)])
    whole, group = pickle.loads(pickle.dumps((whole, group)))
    removed = pickle.loads(pickle.dumps(entry.finisher(group)))

    earlier = collector.accumulated(collector.supplier(), [("a", 5)])

    assert collector.finisher(collector.combined(collector.supplier(), whole)) == {}
    assert collector.finisher(collector.combined(earlier, whole)) == {"a": 5}
    assert collector.keyed.assemble([("a", removed), ("b", 2)]) == {"b": 2}
    assert entry.finisher(entry.combined(group, entry.accumulated(entry.supplier(), [("a", 3)]))) == 3


@ALL
def test_a_none_value_is_refused(factory):
    """The message names the key, in bulk and alone."""
    collector = factory(key, value)
    message = factory.__name__ + r"\(\) refuses None values, but the value of key 'k' is None"

    with pytest.raises(NullElementError, match=message):
        collector.collect([("a", 1), ("k", None)])
    with pytest.raises(NullElementError, match=message):
        collector.accumulator(collector.supplier(), ("k", None))


def test_to_map_takes_a_none_key():
    """As a HashMap does."""
    assert to_map(key, value, add).collect([(None, 1), (None, 2)]) == {None: 3}
    assert to_map(key, value).keyed.classifier((None, 1)) is None


@pytest.mark.parametrize("factory", [to_concurrent_map, to_unmodifiable_map])
def test_the_others_refuse_a_none_key(factory):
    """The message names the item, in bulk and in the keyed view."""
    message = factory.__name__ + r"\(\) refuses None keys, but the key of \(None, 1\) is None"

    with pytest.raises(NullElementError, match=message):
        factory(key, value).collect([(None, 1)])
    with pytest.raises(NullElementError, match=message):
        factory(key, value).keyed.classifier((None, 1))


@ALL
def test_keys_are_those_of_a_grouping(factory):
    """Every NaN is one key, and unstable keys are refused."""
    nan = float("nan")

    assert list(factory(key, value, add).collect([(nan, 1), (-nan, 2), ("x", 0)]).values()) == [3, 0]
    with pytest.raises(UnstableKeyError, match="cannot be a key"):
        factory(key, value).collect([([1], 1)])


def test_nan_keys_meet_again_after_pickle():
    """A NaN that was sent is another object, and still the same key."""
    collector = to_map(key, value, add)
    left, right = (collector.accumulated(collector.supplier(), [(float("nan"), 1)]) for _ in range(2))

    combined = collector.combined(left, pickle.loads(pickle.dumps(right)))

    assert list(collector.finisher(combined).values()) == [2]


@pytest.mark.parametrize("factory", [to_map, to_concurrent_map])
def test_map_factory_makes_the_result(factory):
    """It is called with no argument and filled by item assignment."""
    result = factory(key, value, None, OrderedDict).collect([("a", 1)])

    assert (type(result), dict(result)) == (OrderedDict, {"a": 1})


def test_to_unmodifiable_map_is_read_only():
    """The result is a read-only view; its containers are plain dictionaries, which can be sent."""
    collector = to_unmodifiable_map(key, value)

    assert type(collector.collect([("a", 1)])) is MappingProxyType
    assert type(collector.supplier()) is dict
    assert type(collector.keyed.assemble([("a", 1)])) is MappingProxyType


def test_only_the_concurrent_map_gives_order_up():
    """The others keep first-seen order."""
    assert to_concurrent_map(key, value).characteristics == {Characteristics.UNORDERED}
    assert to_map(key, value).characteristics == frozenset()


@pytest.mark.parametrize("factory", [to_map, to_concurrent_map, to_unmodifiable_map])
def test_pairs_need_no_functions(engine, factory):
    """Tuples, entries and lists of two."""
    pairs = engine.stream([("a", 1), Entry("b", 2), ["c", 3], ("a", 4)], 2)

    assert dict(pairs.collect(factory(merge=add))) == {"a": 5, "b": 2, "c": 3}
    with pytest.raises(TypeError, match=f"{factory.__name__}.. without key and value takes pairs of the two, not 'ab'"):
        engine.stream(["ab"]).collect(factory())
    with pytest.raises(TypeError, match="value must be a function, not None"):
        factory(len)
