"""`cogroup`: the items of both streams for each key."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dstream import Entry, Stream
from dstream.errors import IllegalStateError, UnstableKeyError

pairs = st.lists(st.tuples(st.sampled_from([0, 1, 2, None, "k", True, 1.0]), st.integers(0, 99)), max_size=15)


def by_hand(lefts, rights):
    """Group two lists of pairs; the first of equal keys stays."""
    groups = {}
    for side, some in enumerate((lefts, rights)):
        for key, value in some:
            groups.setdefault(key, ([], []))[side].append(value)
    return sorted(map(repr, groups.items()))


@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(pairs, pairs, st.integers(1, 8), st.integers(1, 8))
def test_cogroup_lists_the_items_of_each_key_in_order(engine, lefts, rights, left_parts, right_parts):
    """Both lists are in the order of their stream, for one to eight partitions, some of them empty."""
    groups = engine.stream(lefts, left_parts).cogroup(engine.stream(rights, right_parts)).to_list()

    assert sorted(repr(tuple(group)) for group in groups) == by_hand(lefts, rights)


def test_cogroup_keeps_the_order_behind_a_skip_on_the_other_side(engine):
    """Pages that are empty have no tasks, which matters to the numbers of those behind them."""
    many = range(2000)
    rights = engine.stream(many[:1000], 2) + engine.stream(many[:999:-1], 2).sorted()
    (group,) = engine.stream([0, 0], 2).skip(2).cogroup(rights, on=lambda n: 0).to_list()

    assert group.value == ([], list(many))


def test_cogroup_takes_every_nan_as_one_key(engine):
    """NaN from both sides and several partitions meet."""
    (group,) = engine.stream([float("nan")] * 3, 3).cogroup(engine.stream([float("nan")], 1), on=float).to_list()

    assert (len(group.value[0]), len(group.value[1])) == (3, 1)


def test_cogroup_by_key_functions_groups_the_items(engine):
    """One key function for both sides, or one for each."""
    words, lengths = engine.stream(["sea", "ship", "bay"], 3), engine.stream([3, 9], 2)

    groups = words.cogroup(lengths, on=(len, int))
    assert sorted(groups.to_list()) == [(3, (["sea", "bay"], [3])), (4, (["ship"], [])), (9, ([], [9]))]
    assert Entry(4, (["ship"], ["ship"])) in words.cogroup(words, on=len).to_list()


def test_cogroup_of_many_items(engine):
    """Groups of many batches keep their order."""
    numbers = engine.stream(range(3000), 4)
    groups = dict(numbers.cogroup(numbers.map(abs), on=lambda n: n % 3).to_list())

    assert groups == {key: (list(range(key, 3000, 3)),) * 2 for key in range(3)}


def test_cogroup_refuses_an_endless_side(default_engine):
    """Before anything runs."""
    endless = Stream.iterate(0, lambda n: n + 1)
    with pytest.raises(IllegalStateError, match=r"cannot be grouped: .cogroup\(\.\.\., on=int\)"):
        Stream.of(1).cogroup(endless, on=int).limit(1).to_list()


def test_cogroup_refuses_what_cannot_be_grouped(engine):
    """A key without a hash at run time, what is no stream at the call."""
    with pytest.raises(UnstableKeyError):
        engine.stream([1], 1).cogroup(engine.stream([1], 1), on=lambda n: [n]).to_list()
    with pytest.raises(TypeError, match="other must be a stream, a map, a dict or a list, not int"):
        engine.stream([1], 1).cogroup(5, on=int)


def test_cogroup_is_shown_with_the_other_stream():
    """The text of a stream shows both sides."""
    assert repr(Stream.of(1).cogroup(Stream.of("a"), on=hash)) == "Stream.of(1).cogroup(Stream.of('a'), on=hash)"
