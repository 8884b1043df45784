"""Distinct items by key: the first one, and with `within` the next one that is far enough behind it."""

from __future__ import annotations

import pytest

from dstream.operators.state.keyed_operators import KeyedDistinct
from dstream.spi.epochs import EpochTime
from dstream.values.time import Late
from tests.operators.by_hand import DUMPED, KEPT, PATCHED, ByHand


def letter(item):
    """Return the key of an item such as "a1"."""
    return item[0]


def keep(item):
    """Return an item as its own key."""
    return item


@pytest.mark.parametrize("fate", [KEPT, DUMPED, PATCHED])
def test_the_first_item_of_each_key_passes(fate):
    """For ever, whatever its timestamp is and how far the watermark has come."""
    by_hand = ByHand(KeyedDistinct(letter), fate=lambda: fate)

    assert by_hand.epoch([[(5, "a1"), (4, "a2")], [(None, "b1"), (3, "a3")]], to=9) == [(5, "a1"), (None, "b1")]
    assert by_hand.epoch([[(1, "b2"), (2, "c1")]], to=9**9) == [(2, "c1")]
    assert by_hand.entries() == {"a": 5, "b": None, "c": 2}


def test_only_the_first_item_of_each_key_travels():
    """Where nothing depends on the others."""
    items = iter([(5, "a1"), (4, "a2"), (1, "b1")])
    partials = KeyedDistinct(letter).partial(0, items, EpochTime(epoch=1, now=0.0, old=0, new=0), shards=1)

    assert (partials.items, partials.of_shards[0].items) == (3, ["a1", "b1"])


def test_keys_that_are_equal_are_one():
    """1, 1.0 and True, all NaN, and None, also where they came from other processes."""
    by_hand, nan = ByHand(KeyedDistinct(keep), shards=3), float("nan")

    assert len(by_hand.epoch([[(1, each) for each in (1, 1.0, True, nan, float("nan"), None, (nan,))]])) == 4
    assert by_hand.epoch([[(1, each) for each in (True, float("nan"), None, (float("nan"),))]]) == []


@pytest.mark.parametrize("fate", [KEPT, DUMPED, PATCHED])
def test_a_key_passes_again_after_the_time(fate):
    """Counted from the item that passed, and not from those that did not; `within` behind it is enough."""
    by_hand = ByHand(KeyedDistinct(letter, within=10), fate=lambda: fate)

    assert by_hand.epoch([[(0, "a1"), (9, "a2"), (10, "a3")]], to=0) == [(0, "a1"), (10, "a3")]
    assert by_hand.epoch([[(19, "a4"), (20, "a5")]]) == [(20, "a5")]


def test_an_item_of_before_the_one_that_passed_does_not_pass():
    """Time counts from that one, and goes forward."""
    assert ByHand(KeyedDistinct(letter, within=10)).epoch([[(50, "a1"), (2, "a2")]]) == [(50, "a1")]


@pytest.mark.parametrize("fate", [KEPT, DUMPED, PATCHED])
def test_a_key_is_forgotten_when_all_that_may_come_passes(fate):
    """At `watermark >= passed + within`."""
    by_hand = ByHand(KeyedDistinct(letter, within=10), fate=lambda: fate)
    by_hand.epoch([[(5, "a1"), (7, "b1")]], to=14)

    assert (len(by_hand.states[0]), by_hand.states[0].deadline()) == (2, 15)
    assert by_hand.epoch(to=15) == []
    assert (by_hand.entries(), by_hand.states[0].deadline()) == ({"b": 7}, 17)


def test_items_behind_the_watermark_are_late():
    """With `within` only; they change nothing."""
    by_hand = ByHand(KeyedDistinct(letter, within=10, gives_late=True))
    by_hand.epoch(to=5)

    assert by_hand.epoch([[(4, "a1"), (5, "a2")]]) == [(5, "a2"), (4, Late("a1"))]
    assert by_hand.late == 1


def test_state_belongs_to_the_duration():
    """A key that was forgotten after a shorter one could pass too early."""
    assert KeyedDistinct(letter, 5).signature == (5,)
