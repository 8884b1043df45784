"""`drop_while`: what follows the longest prefix whose items satisfy a predicate."""

from __future__ import annotations


def test_drop_while_keeps_all_from_the_first_failure(engine):
    """Items after the first failing one stay, also those that would have been dropped."""
    assert engine.stream([1, 2, 9, 3], 2).drop_while(lambda n: n < 5).to_list() == [9, 3]


def test_drop_while_goes_on_over_partitions(engine):
    """A partition that passes as a whole, or is empty, does not end the prefix; None is asked about too."""
    items = engine.stream([None, 1, 2, 9, 1, 3], 4).filter(lambda item: item != 1)

    assert items.drop_while(lambda item: item != 9).map(str).to_list() == ["9", "3"]


def test_drop_while_of_nothing_of_all_and_of_none(engine):
    """Nothing stays nothing; all or none may be dropped."""
    assert engine.stream([], 2).drop_while(bool).to_list() == []
    assert engine.stream([1, 2], 3).drop_while(bool).to_list() == []
    assert engine.stream([0, 2], 3).drop_while(bool).to_list() == [0, 2]


def test_drop_while_asks_about_no_item_behind_the_first_failure(engine):
    """The predicate sees the prefix and one more item of each partition at most."""
    quotients = engine.stream([4, 9, 0, 0], 1).drop_while(lambda n: 8 // n > 1)

    assert quotients.to_list() == [9, 0, 0]
