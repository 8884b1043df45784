"""Interval joins: pairs of one key that happened close together, and when an item is forgotten."""

from __future__ import annotations

import pytest

from dstream.operators.joins.intervals import IntervalJoin
from dstream.values.time import Late
from tests.operators.by_hand import DUMPED, KEPT, PATCHED, ByHand


def letter(item):
    """Return the key of an item such as "a1"."""
    return item[0]


def joined(before, after, fate=KEPT, **given):
    """Return a join of texts that begin alike."""
    return ByHand(IntervalJoin(letter, letter, before, after, **given), fate=lambda: fate)


def test_both_bounds_belong_to_the_interval():
    """`left - before <= right <= left + after`; the timestamp is the later one."""
    right = [(time, f"a{time}") for time in (6, 7, 10, 12, 13)]

    assert joined(3, 2).epoch([[(10, "a")]], [right]) == [
        (10, ("a", "a7")),
        (10, ("a", "a10")),
        (12, ("a", "a12")),
    ]


def test_only_items_of_one_key_are_paired():
    """Each side has a key function of its own."""
    by_hand = ByHand(IntervalJoin(letter, str.upper, 5, 5))

    assert by_hand.epoch([[(1, "A"), (1, "B")]], [[(2, "b"), (3, "c")]]) == [(2, ("B", "b"))]


@pytest.mark.parametrize("fate", [KEPT, DUMPED, PATCHED])
def test_partners_may_come_in_a_later_epoch(fate):
    """From both sides, also in an epoch without items of the other side."""
    by_hand = joined(5, 5, fate)

    assert by_hand.epoch([[(1, "a1")]], [[]], to=0) == []
    assert by_hand.epoch([], [[(3, "a2")]], to=0) == [(3, ("a1", "a2"))]
    assert by_hand.epoch([[(8, "a3")]], []) == [(8, ("a3", "a2"))]


def test_pairs_come_by_their_later_item_and_then_by_the_times_of_its_partners():
    """The left input is taken first; partners of one time stand as they came."""
    by_hand = joined(9, 9)

    assert by_hand.epoch([[(5, "a1"), (3, "a2")], [(5, "a3")]], [[(6, "a8"), (4, "a9")]]) == [
        (6, ("a2", "a8")),
        (6, ("a1", "a8")),
        (6, ("a3", "a8")),
        (4, ("a2", "a9")),
        (5, ("a1", "a9")),
        (5, ("a3", "a9")),
    ]


@pytest.mark.parametrize("fate", [KEPT, DUMPED, PATCHED])
def test_an_item_is_forgotten_when_no_partner_can_come(fate):
    """`watermark > left + after`, and `watermark > right + before`."""
    by_hand = joined(3, 20, fate)
    by_hand.epoch([[(10, "a1")]], [[(11, "a2"), (12, "b1")]], to=14)

    assert (by_hand.entries()["a"], by_hand.states[0].deadline()) == (([(10, "a1")], [(11, "a2")]), 15)
    assert (by_hand.epoch(to=15), by_hand.entries()["a"]) == ([], ([(10, "a1")], []))
    assert (by_hand.epoch(to=30), set(by_hand.entries()), by_hand.states[0].deadline()) == ([], {"a"}, 31)
    assert (by_hand.epoch(to=31), by_hand.entries(), by_hand.states[0].deadline()) == ([], {}, None)


@pytest.mark.parametrize("fate", [KEPT, DUMPED, PATCHED])
def test_an_item_whose_last_partner_may_stand_at_the_watermark_waits_on(fate):
    """Also in the delta of the epoch in which it came and others were forgotten: one at the watermark is not late."""
    by_hand = joined(0, 10, fate)
    by_hand.epoch([[(1, "a1"), (5, "a2")]], [], to=15)

    assert by_hand.entries() == {"a": ([(5, "a2")], [])}
    assert by_hand.epoch([], [[(15, "a3")]]) == [(15, ("a2", "a3"))]


def test_an_older_item_is_forgotten_first_though_it_came_later():
    """The deadline of a key may move back."""
    by_hand = joined(0, 10)
    by_hand.epoch([[(50, "a1"), (20, "a2")]], [], to=0)

    assert by_hand.states[0].deadline() == 31
    by_hand.epoch(to=31)
    assert (by_hand.entries(), by_hand.states[0].deadline()) == ({"a": ([(50, "a1")], [])}, 61)


def test_items_behind_the_watermark_are_late():
    """Of both inputs, though a partner would still be there."""
    by_hand = joined(9, 9, gives_late=True)
    by_hand.epoch([[(7, "a1")]], [[(9, "b1")]], to=8)

    assert by_hand.epoch([[(7, "b2")]], [[(7, "a2"), (8, "a3")]]) == [
        (7, Late("b2")),
        (8, ("a1", "a3")),
        (7, Late("a2")),
    ]
    assert by_hand.late == 2


def test_bounds_may_leave_out_the_time_of_the_left_item():
    """A negative `before` says how far behind the right item has to be."""
    assert joined(-2, 4).epoch([[(10, "a")]], [[(11, "a1"), (12, "a2"), (14, "a3")]]) == [
        (12, ("a", "a2")),
        (14, ("a", "a3")),
    ]


def test_a_delta_has_what_came_and_not_what_waits_beside_it():
    """A key may have many items; of what came, those that are forgotten already are left out."""
    by_hand = joined(5, 5)
    by_hand.epoch([[(time, "a1") for time in range(100)]], [], to=50)
    by_hand.epoch([[(70, "a2"), (60, "a3")]], [], to=66)
    delta = by_hand.last_delta()

    assert (delta.watermark, delta.timestamps, delta.items) == (66, [70], ["a2"])


def test_a_dump_shares_nothing_with_a_state_that_goes_on():
    """Items that come later, or are forgotten, are not among those that were dumped."""
    by_hand, again = joined(5, 5), IntervalJoin(letter, letter, 5, 5).new()
    by_hand.epoch([[(1, "a1"), (2, "a2")]], [], to=0)
    dumped = by_hand.states[0].dump()
    by_hand.epoch([], [[(3, "a3")]], to=7)
    again.load(dumped)

    assert dict(again.entries()) == {"a": ([(1, "a1"), (2, "a2")], [])}


def test_state_belongs_to_the_bounds():
    """Items that were forgotten by others would be missed."""
    assert IntervalJoin(letter, letter, 3, 4).signature == (3, 4)
