"""`take_while`: the longest prefix whose items satisfy a predicate."""

from __future__ import annotations


def test_take_while_stops_at_the_first_failure(engine):
    """Items after the first failing one are dropped, also those that would pass."""
    numbers = engine.stream([1, 2, 9, 3], partitions=2)

    assert numbers.take_while(lambda n: n < 5).to_list() == [1, 2]
