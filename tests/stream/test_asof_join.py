"""`asof_join`: each item with the nearest one of the other side."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dstream import Stream

PAIRS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 99)), max_size=14)
DIRECTIONS = st.sampled_from(["backward", "forward", "nearest"])


def place(pair):
    """Return where a pair stands."""
    return pair[0]


def itself(item):
    """Return where an item stands that is a place."""
    return item


def parity(pair):
    """Return a key that half of the pairs have."""
    return pair[1] % 2


def by_hand(lefts, rights, by, direction, tolerance):
    """Look at all pairs."""
    found = []
    for left in lefts:
        behind, before = None, None
        for right in rights:
            if by is None or by(left) == by(right):
                if place(right) <= place(left) and (behind is None or place(right) >= place(behind)):
                    behind = right
                if place(right) >= place(left) and (before is None or place(right) < place(before)):
                    before = right
        match = {"backward": behind, "forward": before}.get(direction)
        if direction == "nearest":
            both = [each for each in (behind, before) if each is not None]
            match = min(both, key=lambda right: abs(place(right) - place(left)), default=None)
        is_near = match is not None and (tolerance is None or abs(place(match) - place(left)) <= tolerance)
        found.append((left, match if is_near else None))
    return Counter(found)


@settings(max_examples=150)
@given(
    lefts=PAIRS, rights=PAIRS, direction=DIRECTIONS, tolerance=st.sampled_from([None, 0, 1, 3]), has_by=st.booleans()
)
def test_asof_join_agrees_with_a_look_at_all_pairs(local_context, lefts, rights, direction, tolerance, has_by):
    """Of equal right items the last one backward, the first one forward; the earlier one of equally near ones."""
    by = parity if has_by else None
    sides = local_context.stream(lefts), local_context.stream(rights)

    found = sides[0].asof_join(sides[1], place, by, direction, tolerance)

    assert Counter(found.to_list()) == by_hand(lefts, rights, by, direction, tolerance)


@pytest.mark.parametrize("direction", ["backward", "forward", "nearest"])
@settings(max_examples=1, suppress_health_check=list(HealthCheck))
@given(lefts=PAIRS.filter(len), rights=PAIRS.filter(len), of_left=st.integers(1, 8), of_right=st.integers(1, 8))
def test_asof_join_agrees_on_spark(spark_context, direction, lefts, rights, of_left, of_right):
    """From any partitions."""
    sides = spark_context.stream(lefts, of_left), spark_context.stream(rights, of_right)

    found = sides[0].asof_join(sides[1], place, parity, direction, 3)

    assert Counter(found.to_list()) == by_hand(lefts, rights, parity, direction, 3)


def test_both_sides_go_to_disk_past_the_memory_bound(monkeypatch, local_context):
    """Also keys that are NaN, which come back as another object."""
    monkeypatch.setattr("dstream.base.memory.Bound.exceeded", lambda bound: True)
    nan = float("nan")
    lefts, rights = [(n, nan) for n in range(1500)], [(n, nan) for n in range(0, 1500, 3)]

    for direction, near in [("backward", lambda n: n - n % 3), ("nearest", lambda n: n + (0, -1, 1)[n % 3])]:
        found = local_context.stream(lefts).asof_join(rights, place, lambda pair: pair[1], direction).to_list()
        assert all(match[0] == near(left[0]) for left, match in found if left[0] < 1498)
        assert len(found) == 1500


def test_places_are_times_with_a_tolerance(engine):
    """On each side by a function of its own."""
    noon = datetime(2026, 1, 1, 12)
    trades = engine.stream([("buy", noon), ("sell", noon + timedelta(hours=2))], 2)
    quotes = [(noon - timedelta(seconds=5), 10.0)]

    found = trades.asof_join(quotes, (lambda t: t[1], lambda q: q[0]), tolerance=timedelta(minutes=1))

    assert sorted((trade[0], quote and quote[1]) for trade, quote in found.to_list()) == [("buy", 10.0), ("sell", None)]


@pytest.mark.parametrize("direction", ["backward", "forward", "nearest"])
@pytest.mark.parametrize("tolerance", [None, 0, float("inf")])
def test_equal_places_without_end_match(local_context, direction, tolerance):
    """They have no distance, though their difference is NaN."""
    lefts = local_context.stream([(float("inf"), 0), (float("-inf"), 0)])
    rights = [(float("inf"), 1), (5, 2), (float("inf"), 3), (float("-inf"), 4)]

    found = dict(lefts.asof_join(rights, place, direction=direction, tolerance=tolerance).to_list())

    last = 1 if direction == "forward" else 3
    assert found == {(float("inf"), 0): (float("inf"), last), (float("-inf"), 0): (float("-inf"), 4)}


def test_any_kind_of_distance_is_a_tolerance(local_context):
    """Also one that nobody can make without a value."""
    days = [pd.Timestamp("2020-01-01"), pd.Timestamp("2020-01-05")]
    found = local_context.stream(days[1:]).asof_join(days[:1], on=itself, tolerance=days[1] - days[0]).to_list()

    assert found == [(days[1], days[0])]


@pytest.mark.parametrize("nowhere", [None, float("nan")])
def test_an_item_without_a_place_is_refused(engine, nowhere):
    """It would be sorted somewhere."""
    with pytest.raises(ValueError, match=f"on= gave {nowhere}, which has no place in an order") as caught:
        engine.stream([(1, 2), (nowhere, 3)], 2).asof_join([(1, 1)], on=place).to_list()

    notes = "".join(caught.value.__notes__)
    assert f"on the item ({nowhere}, 3)" in notes
    assert "place raised ValueError" in notes


def test_places_that_cannot_be_compared_name_the_step(engine):
    """As a sort of them does."""
    with pytest.raises(TypeError, match="not supported between") as caught:
        engine.stream([(1, 2), ("x", 3)], 2).asof_join([(1, 1)], on=place).to_list()

    notes = "".join(caught.value.__notes__)
    assert ".asof_join(..., on=place)" in notes
    assert "look at place" in notes


def test_no_function_is_blamed_that_is_not_the_users(engine):
    """A step by keys of entries has none."""
    wrongs = [lambda s: s.semi_join([(1, 2)]), lambda s: s.asof_join([1], on=(place, itself), by=itself)]
    for wrong in [*wrongs, lambda s: s.keys(), lambda s: s.values()]:
        with pytest.raises(TypeError) as caught:
            wrong(engine.stream([5], 1)).to_list()
        assert "key_of" not in "".join(caught.value.__notes__)
        assert "no_key" not in "".join(caught.value.__notes__)


REFUSED = {
    "direction": (lambda s: s.asof_join(s, abs, direction="up"), "direction must be one of backward, forward, nearest"),
    "on": (lambda s: s.asof_join(s, None), "on must be a function that gives the place"),
    "by": (lambda s: s.asof_join(s, abs, by=5), "by must be a function"),
    "negative": (lambda s: s.asof_join(s, abs, tolerance=-1), "tolerance must be a distance that is not negative"),
    "nan": (lambda s: s.asof_join(s, abs, tolerance=float("nan")), "tolerance must be a distance"),
    "list": (lambda s: s.asof_join(s, abs, tolerance=[]), "tolerance must be a number or a timedelta, not list"),
    "set": (lambda s: s.asof_join(s, abs, tolerance={1}), "tolerance must be a number or a timedelta, not set"),
    "bool": (lambda s: s.asof_join(s, abs, tolerance=True), "tolerance must be a number or a timedelta, not bool"),
    "text": (lambda s: s.asof_join(s, abs, tolerance="1s"), "tolerance must be a number or a timedelta, not str"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_wrong_arguments_are_refused_at_the_call(name):
    """By their names."""
    call, words = REFUSED[name]
    with pytest.raises((TypeError, ValueError), match=words):
        call(Stream.of(1))
