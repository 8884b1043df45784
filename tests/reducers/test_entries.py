"""The collector behind `to_imap`: one value for each key, over many batches of items."""

from __future__ import annotations

import operator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dstream.connectors.collections.sinks import entries
from dstream.errors import NullElementError
from dstream.failures.attribution import given_to
from dstream.values import Entry

NUMBERS = range(10_000)


def held(collector, items):
    """Return what one partition holds after `items`."""
    return collector.accumulated(collector.supplier(), items)


def test_values_of_a_key_are_merged_in_order_across_batches():
    """Each value comes right of those before it, and a key keeps the place where it was first seen."""
    collector = entries(lambda n: n * 7 % 5, lambda n: [n], operator.add)
    expected = {}
    for n in NUMBERS:
        expected.setdefault(n * 7 % 5, []).append(n)

    found = held(collector, NUMBERS)

    assert found == expected
    assert list(found) == list(expected)


def test_without_merge_the_last_value_of_a_key_stays():
    """Also where the key was in a batch before."""
    assert held(entries(None, None, None), [(n % 3, n) for n in NUMBERS]) == {0: 9999, 1: 9997, 2: 9998}


def test_keys_of_one_batch_that_are_equal_are_one():
    """1 and 1.0 in one batch, and NaN that are objects of their own in two."""
    found = held(entries(None, None, operator.add), [(1, 1), (1.0, 2), *((float("nan"), n) for n in NUMBERS)])

    assert list(found.values()) == [3, sum(NUMBERS)]


def test_entries_lists_and_tuples_are_pairs():
    """What has two parts goes into a map."""
    assert held(entries(None, None, None), [Entry("a", 1), ("b", 2), ["c", 3]]) == {"a": 1, "b": 2, "c": 3}


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        ((None, 1), "holds no None keys, and the item (None, 1)"),
        ((1, None), "holds no None values, and the item (1, None)"),
    ],
)
def test_a_none_is_refused_with_its_item(pair, message):
    """Whichever place in its batch it has."""
    with pytest.raises(NullElementError) as raised:
        held(entries(None, None, None), [("a", 1)] * 5000 + [pair])

    assert message in str(raised.value)


PAIRS = st.lists(
    st.tuples(st.sampled_from([*"abc", 1, 1.0]), st.sampled_from([1, 1, 1, 1, 2, True, 1.0, -0.5])), max_size=30
)


@given(PAIRS, PAIRS, st.integers(1, 5))
def test_ones_that_are_counted_give_what_adding_gives(left, right, size):
    """Whatever comes before or after them, here or in the next partition; types and the order of keys are the same."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dstream.connectors.collections.sinks._BATCH", size)
        counted, added = (
            collector.accumulated(collector.combined(held(collector, left), held(collector, right)), left)
            for collector in (entries(None, None, operator.add), entries(None, None, lambda one, other: one + other))
        )

    assert repr(dict(counted)) == repr(added)


def test_text_added_to_ones_fails_with_both():
    """Counting does not hide which values `merge` was given."""
    with pytest.raises(TypeError) as raised:
        held(entries(None, None, operator.add), [*[("a", 1)] * 1000, ("a", "text")])

    assert given_to(raised.value) == "when merge was given 1000 and 'text'"


def test_one_added_to_a_text_of_another_partition_fails_with_both():
    """What was counted and then combined with something else is no longer counted."""
    collector = entries(None, None, operator.add)
    combined = collector.combined(held(collector, [("a", 1)]), held(collector, [("b", "text")]))
    with pytest.raises(TypeError) as raised:
        collector.accumulated(combined, [("b", 1)])

    assert given_to(raised.value) == "when merge was given 'text' and 1"


def test_a_merge_is_called_once_for_each_pair_of_values():
    """Functions of the user's run as often as they have to."""
    calls = []
    collector = entries(lambda n: 0, lambda n: n, lambda left, right: calls.append((left, right)) or right)

    held(collector, range(5000))

    assert calls == [(n, n + 1) for n in range(4999)]
