"""Collectors that give each item to several others."""

from collectors import all_of, counting, joining, summing, teeing, to_list


def test_teeing_gives_each_item_to_both():
    """One pass over a one-time iterator serves both."""
    average = teeing(summing(), counting(), lambda total, count: total / count)

    assert average.collect(iter([1, 2, 6])) == 3.0


def test_teeing_may_return_none():
    """The merging function decides."""
    assert teeing(counting(), counting(), lambda left, right: None).collect([1]) is None


def test_all_of_gives_a_tuple():
    """One result for each collector, in their order."""
    assert all_of(counting(), joining("-"), to_list()).collect(["a", "b"]) == (2, "a-b", ["a", "b"])
    assert all_of().collect([1]) == ()
