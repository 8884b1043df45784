"""`any_match`, `all_match`, `none_match`."""

from __future__ import annotations

import pytest

from dstream import Stream


def test_matches_look_at_all_partitions_if_they_must(engine):
    """The answer may depend on the last item alone."""
    numbers = engine.stream([1, 3, 5, 8], 6)

    assert numbers.any_match(lambda n: n == 8) is True
    assert numbers.all_match(lambda n: n % 2 == 1) is False
    assert numbers.none_match(lambda n: n > 8) is True


def test_matches_of_nothing(engine):
    """Of no items: any is False, all and none are True, and the predicate is not asked."""
    nothing = engine.stream([], 2)
    answers = [getattr(nothing, name)(lambda n: 1 / 0) for name in ("any_match", "all_match", "none_match")]

    assert answers == [False, True, True]


def test_matches_take_any_truth_value_and_none_items(engine):
    """A None item is asked about; the answer is a bool whatever the predicate gives."""
    items = engine.stream([None, 0], 2)

    assert items.any_match(lambda item: [1] if item is None else "") is True
    assert items.all_match(lambda item: [1] if item is None else "") is False


@pytest.mark.parametrize(("method", "answer"), [("any_match", True), ("none_match", False)])
def test_matches_end_on_an_infinite_stream(default_engine, method, answer):
    """The first item that decides ends the search."""
    assert getattr(Stream.iterate(0, lambda n: n + 1), method)(lambda n: n > 9) is answer


def test_all_match_ends_on_an_infinite_unordered_stream(default_engine):
    """An endless generated stream is searched until one item fails."""
    assert Stream.generate(lambda: 1).all_match(lambda n: n > 1) is False
