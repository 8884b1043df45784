"""`unordered`: the items without their encounter order."""

from __future__ import annotations


def test_unordered_keeps_every_item(engine):
    """Only the promise of an order goes; no item does."""
    assert sorted(engine.stream([3, 1, 2], 3).unordered().map(lambda n: n * 2).to_list()) == [2, 4, 6]


def test_unordered_limit_gives_any_items_but_as_many(engine):
    """`limit` of an unordered stream takes some of its items, each at most once."""
    some = engine.stream(range(9), 3).unordered().limit(4).map(lambda n: n).to_list()

    assert (len(set(some)), set(some) <= set(range(9))) == (4, True)


def test_unordered_stream_may_be_sorted_again(engine):
    """Sorting gives an order back."""
    assert engine.stream([3, 1, 2], 3).unordered().sorted().to_list() == [1, 2, 3]
