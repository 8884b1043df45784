"""Rolling aggregates over epochs: results so far, by key or of all items."""

from __future__ import annotations

import pytest

from collectors import AggregateOperation, all_of, averaging_int, counting, to_list
from dstream.operators.state.keyed_operators import RollingAggregate
from dstream.values import Entry
from tests.operators.by_hand import DUMPED, KEPT, PATCHED, ByHand


def letter(item):
    """Return the key of an item such as "a1"."""
    return item[0]


def number(item):
    """Return the number of an item such as "a1"."""
    return int(item[1:])


@pytest.mark.parametrize("fate", [KEPT, DUMPED, PATCHED])
def test_results_go_on_in_the_next_epoch(fate):
    """Each has the timestamp of its item, and the key."""
    by_hand = ByHand(RollingAggregate(letter, averaging_int(number)), fate=lambda: fate)

    assert by_hand.epoch([[(5, "a1"), (7, "b4")], [(2, "a5")]]) == [(5, ("a", 1.0)), (7, ("b", 4.0)), (2, ("a", 3.0))]
    assert by_hand.epoch([[(9, "a3")]]) == [(9, Entry("a", 3.0))]


def test_without_a_key_the_result_stands_alone():
    """All items go to one shard, in order; timestamps may be missing."""
    by_hand = ByHand(RollingAggregate(None, counting()), shards=5)

    assert by_hand.epoch([[(None, "x"), (None, "y")], [(None, "z")]]) == [(None, 1), (None, 2), (None, 3)]
    assert by_hand.opened == [0]


def test_to_makes_something_else_of_key_and_result():
    """It takes both; without a key, the key is None."""
    by_key, of_all = (ByHand(RollingAggregate(key, counting(), "{}={}".format)) for key in (letter, None))

    assert by_key.epoch([[(1, "a1"), (2, "a2")]]) == [(1, "a=1"), (2, "a=2")]
    assert of_all.epoch([[(1, "a1")]]) == [(1, "None=1")]


def test_what_was_given_does_not_change_later():
    """Whether the container is the result or a part of it."""
    by_hand = ByHand(RollingAggregate(None, all_of(to_list(), counting())))

    assert by_hand.epoch([[(1, "x"), (2, "y")]]) == [(1, (["x"], 1)), (2, (["x", "y"], 2))]


def test_an_operation_may_put_another_container_in_place():
    """It returns the next one instead of changing the one that it was given."""
    longest = AggregateOperation(str, max, finish=str.upper)
    by_hand = ByHand(RollingAggregate(None, longest), fate=lambda: PATCHED)

    assert by_hand.epoch([[(1, "b")]]) + by_hand.epoch([[(2, "a"), (3, "c")]]) == [(1, "B"), (2, "B"), (3, "C")]


def test_who_looks_sees_results_so_far():
    """Not containers, which may mean nothing to a user."""
    by_hand = ByHand(RollingAggregate(letter, averaging_int(number)), shards=3)
    by_hand.epoch([[(1, "a1"), (2, "a2"), (3, "b5")]])

    assert by_hand.entries() == {"a": 1.5, "b": 5.0}
    assert [state.deadline() for state in by_hand.states] == [None, None, None]


def test_state_belongs_to_keys_and_the_kind_of_operation():
    """Another function inside of the operation is another version of the same program."""
    assert RollingAggregate(letter, averaging_int(number)).signature == (True, "averaging_int")
    assert RollingAggregate(None, averaging_int(len)).signature == (False, "averaging_int")
