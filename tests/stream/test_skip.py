"""`skip`: what follows the first items."""

from __future__ import annotations


def test_skip_counts_over_partitions(engine):
    """The first items are left out, whole partitions of them too; None counts."""
    assert engine.stream([None, 1, 2, 3, 4], 3).skip(3).to_list() == [3, 4]


def test_skip_of_more_than_there_are_leaves_nothing(engine):
    """Behind the end there is nothing; nothing stays nothing."""
    assert engine.stream([1, 2], 3).skip(5).to_list() == []
    assert engine.stream([], 2).skip(1).count() == 0


def test_skip_of_skips_adds_up_and_of_none_changes_nothing(engine):
    """Two skips leave out the items of both; `skip(0)` none."""
    assert engine.stream("abcde", 2).skip(0).skip(1).skip(2).to_list() == ["d", "e"]


def test_skip_of_an_unordered_stream_leaves_out_as_many(engine):
    """Without an order any of them go, but as many."""
    assert engine.stream([4, 5, 6], 2).unordered().skip(2).count() == 1
