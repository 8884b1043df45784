"""States by key: what functions make of items, which items are late, and when a state goes."""

from __future__ import annotations

import pytest

from dstream.operators.state.keyed_operators import StatefulMapping
from dstream.values.time import END_OF_TIME, Late
from tests.operators.by_hand import DUMPED, KEPT, PATCHED, ByHand


def letter(item):
    """Return the key of an item such as "a1"."""
    return item[0]


def so_far(state, key, item):
    """Take an item into the state, and give all that came."""
    state.append(item)
    return " ".join(state)


def gone(state, key, watermark):
    """Say that the state of a key goes."""
    return f"{key} gone at {watermark}: {' '.join(state)}"


def fading(ttl=10, fate=KEPT, **changed):
    """Return texts that fade, with their farewells, in two shards."""
    given = {"action": "map", "on_evict": gone, **changed}
    return ByHand(StatefulMapping(letter, list, so_far, ttl=ttl, **given), shards=2, fate=lambda: fate)


@pytest.mark.parametrize("fate", [KEPT, DUMPED, PATCHED])
def test_items_meet_the_state_of_their_key(fate):
    """In the order of (epoch, partition, offset), whatever their timestamps."""
    by_hand = ByHand(StatefulMapping(letter, list, so_far, "map"), fate=lambda: fate)

    assert by_hand.epoch([[(9, "a1")], [(3, "a2"), (4, "b1")]], to=50) == [(9, "a1"), (3, "a1 a2"), (4, "b1")]
    assert by_hand.epoch([[(None, "a3")]]) == [(None, "a1 a2 a3")]


def test_without_a_key_one_state_meets_all_items():
    """In shard 0; the function takes no key."""
    by_hand = ByHand(StatefulMapping(None, list, lambda state, item: state.append(item) or len(state), "map"), shards=3)

    assert by_hand.epoch([[(1, "a"), (1, "b")]]) == [(1, 1), (1, 2)]
    assert by_hand.opened == [0]


@pytest.mark.parametrize(
    ("action", "expected"),
    [("map", [(1, None), (2, ["a2"])]), ("filter", [(2, "a2")]), ("flat_map", [(2, "a2")])],
)
def test_results_become_what_the_action_says(action, expected):
    """None goes on from `map`, as where data are bounded; it drops the item of `filter`, and is nothing to flatten."""

    def all_but_the_first(state, key, item):
        return [item] if state.setdefault("first", item) != item else None

    assert ByHand(StatefulMapping(letter, dict, all_but_the_first, action)).epoch([[(1, "a1"), (2, "a2")]]) == expected


@pytest.mark.parametrize("fate", [KEPT, DUMPED, PATCHED])
def test_a_state_goes_when_the_watermark_is_more_than_the_ttl_behind_its_last_item(fate):
    """`last < watermark - ttl`, where `last` is the greatest timestamp, and not that of the item that came last."""
    by_hand = fading(fate=fate)
    by_hand.epoch([[(20, "a1"), (5, "a2")]], to=30)

    assert (by_hand.entries(), min(state.deadline() or 99 for state in by_hand.states)) == ({"a": ["a1", "a2"]}, 31)
    assert by_hand.epoch(to=31) == [(30, "a gone at 31: a1 a2")]
    assert (by_hand.entries(), [state.deadline() for state in by_hand.states]) == ({}, [None, None])


def test_states_go_by_the_times_of_their_last_items():
    """Those of one shard; the state of a key that got an item meanwhile stays longer."""
    by_hand = ByHand(StatefulMapping(letter, list, so_far, "filter", 10, gone))
    by_hand.epoch([[(3, "a1"), (1, "b1"), (2, "c1")]], to=1)
    by_hand.epoch([[(4, "b2")]], to=1)

    assert [item for _, item in by_hand.epoch(to=40)] == ["c gone at 40: c1", "a gone at 40: a1", "b gone at 40: b1 b2"]


def test_an_item_that_is_more_than_the_ttl_behind_the_last_one_finds_a_new_state():
    """In one epoch as well as in two; the old one goes before the item."""
    expected = [(0, "a1"), (10, "a1 a2"), (20, "a gone at 21: a1 a2"), (21, "a3")]

    at_once = fading().epoch([[(0, "a1"), (10, "a2"), (21, "a3")]])
    by_hand = fading()
    in_two = by_hand.epoch([[(0, "a1"), (10, "a2")]]) + by_hand.epoch([[(21, "a3")]])

    assert at_once == in_two == expected


def test_an_item_of_before_meets_the_state_that_is_there():
    """Its own age does not matter as long as it is not late."""
    assert fading().epoch([[(100, "a1"), (1, "a2")]], to=0) == [(100, "a1"), (1, "a1 a2")]


def test_items_behind_the_watermark_are_late():
    """One at the watermark is not; the watermark is that of the start of the epoch."""
    by_hand = fading(ttl=1000, gives_late=True)

    assert by_hand.epoch([[(1, "a1"), (0, "a2")]], to=5) == [(1, "a1"), (0, "a1 a2")]
    assert sorted(by_hand.epoch([[(4, "a3"), (5, "a4")]]), key=repr) == [(4, Late("a3")), (5, "a1 a2 a4")]
    assert by_hand.late == 1


def test_late_items_that_nobody_wants_are_counted():
    """They do not travel, and their keys are not asked for."""
    by_hand = ByHand(StatefulMapping(lambda item: 1 // item, list, so_far, "map", ttl=5))
    by_hand.epoch(to=10)

    assert (by_hand.epoch([[(1, 0), (2, 0)]]), by_hand.late, by_hand.opened) == ([], 2, [])


def test_nothing_is_late_where_states_live_for_ever():
    """Nor does a state ever go."""
    by_hand = fading(ttl=None)
    by_hand.epoch(to=10)

    assert (by_hand.epoch([[(1, "a1")]], to=END_OF_TIME), by_hand.late) == ([(1, "a1")], 0)
    assert by_hand.entries() == {"a": ["a1"]}


@pytest.mark.parametrize(
    ("action", "farewell", "expected"),
    [
        ("flat_map", lambda state, key, watermark: [key, len(state)], [(11, "a"), (11, 1)]),
        ("flat_map", lambda state, key, watermark: None, []),
        ("filter", lambda state, key, watermark: [], [(11, [])]),
        ("map", lambda state, key, watermark: None, []),
    ],
)
def test_a_farewell_is_an_item_or_items_as_the_action_says(action, farewell, expected):
    """None is nothing for each of them."""
    by_hand = fading(action=action, on_evict=farewell)
    by_hand.epoch([[(1, "a1")]])

    assert by_hand.epoch(to=30) == expected


def test_a_farewell_stands_in_the_last_instant_of_its_state():
    """So that windows behind it close, also at the end of all sources; never behind the watermark of before."""
    by_hand, shorter = fading(ttl=10), fading(ttl=2)
    by_hand.epoch([[(1, "a1"), (5, "b1")]], to=11)
    for state, dumped in zip(shorter.states, by_hand.states, strict=True):
        state.load(dumped.dump())
    shorter.watermark = 11

    assert sorted(shorter.epoch(to=END_OF_TIME)) == [(11, "a gone at 4: a1"), (11, "b gone at 8: b1")]


@pytest.mark.parametrize("borders", [[100], [12, 100], [11, 13, 40, 100]])
def test_where_a_farewell_stands_does_not_depend_on_where_epochs_end(borders):
    """The watermark at which the state goes does: a window behind would count it now here, now there."""
    by_hand = fading(on_evict=lambda state, key, watermark: key)
    found = by_hand.epoch([[(1, "a1"), (5, "b1")]])
    for watermark in borders:
        found += by_hand.epoch(to=watermark)

    assert sorted(found[2:]) == [(11, "a"), (15, "b")]


def test_all_states_go_when_the_source_has_ended():
    """Also without a farewell."""
    by_hand = fading(on_evict=None)

    assert sorted(by_hand.epoch([[(1, "a1"), (2, "b1")]], to=END_OF_TIME)) == [(1, "a1"), (2, "b1")]
    assert by_hand.entries() == {}


def test_at_the_end_states_go_when_time_would_have_taken_them():
    """Not at the end of all time, which is in no window that closes."""
    ended = fading().epoch([[(5, "a1"), (1, "b1")]], to=END_OF_TIME)

    assert sorted(ended)[2:] == [(11, "b gone at 12: b1"), (15, "a gone at 16: a1")]


def test_a_delta_has_the_states_that_were_touched_and_the_keys_that_went():
    """Nothing of keys that only wait."""
    by_hand = ByHand(StatefulMapping(letter, list, so_far, "map", ttl=10))
    by_hand.epoch([[(1, "a1"), (2, "b1"), (9, "c1")]])
    by_hand.epoch([[(5, "b2")]], to=12)

    assert by_hand.last_delta() == (["b"], [[["b1", "b2"], 5]], ["a"])


def second(item):
    """Return the key of a pair."""
    return item[1]


@pytest.mark.parametrize("fate", [KEPT, DUMPED, PATCHED])
@pytest.mark.parametrize("later", [1.0, True])
def test_the_key_is_the_one_with_which_its_state_began(fate, later):
    """Of equal keys the first, until the state goes; also where another process goes on with the state."""
    told = StatefulMapping(second, list, lambda s, k, item: repr(k), "map", 10, lambda s, k, w: f"{k!r} gone")
    by_hand = ByHand(told, fate=lambda: fate)
    by_hand.epoch([[(0, ("", 1))]])
    by_hand.epoch([[(5, ("", later)), (16, ("", later))]])
    by_hand.epoch([[(17, ("", 1))]])

    assert [repr(key) for key in by_hand.entries()] == [repr(later)]
    assert by_hand.epoch([[]], to=99) == [(27, f"{later!r} gone")]


def test_a_dump_shares_nothing_with_a_state_that_goes_on():
    """The user's objects change in place."""
    by_hand = ByHand(StatefulMapping(letter, list, so_far, "map"))
    by_hand.epoch([[(1, "a1")]])
    dumped = by_hand.states[0].dump()
    by_hand.epoch([[(2, "a2")]])
    again = by_hand.operator.new()
    again.load(dumped)

    assert (dict(again.entries()), by_hand.entries()) == ({"a": ["a1"]}, {"a": ["a1", "a2"]})


def test_how_long_states_live_may_change():
    """Whether they fade may not: without a `ttl`, a state does not know when its last item was."""
    one, other, for_ever = (StatefulMapping(letter, list, so_far, "map", ttl) for ttl in (5, 6, None))

    assert one.signature == other.signature != for_ever.signature
