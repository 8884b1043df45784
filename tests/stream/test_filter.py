"""`filter`: the items that satisfy a predicate."""

from __future__ import annotations


def test_filter_keeps_the_items_that_satisfy_it_in_order(engine):
    """Order stays, over several partitions of which some become empty."""
    assert engine.stream([5, 2, 8, 1, 3, 9], 3).filter(lambda n: n > 4).to_list() == [5, 8, 9]


def test_filter_takes_any_truth_value_and_none_items(engine):
    """The predicate may give anything that has a truth value; a None item is asked about as any other."""
    assert engine.stream([None, 0, "a", None], 2).filter(lambda item: [] if item == 0 else [0]).to_list() == [
        None,
        "a",
        None,
    ]


def test_filter_of_nothing_and_of_one_item(engine):
    """Nothing stays nothing; one item stays or goes."""
    kept, gone = engine.stream([1], 2).filter(bool), engine.stream([0], 2).filter(bool)

    assert (engine.stream([], 2).filter(bool) + kept + gone).to_list() == [1]
