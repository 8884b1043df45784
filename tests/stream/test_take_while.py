"""`take_while`: the longest prefix whose items satisfy a predicate."""

from __future__ import annotations

import pytest

from dstream import Stream


def test_take_while_stops_at_the_first_failure(engine):
    """Items after the first failing one are dropped, also those that would pass."""
    numbers = engine.stream([1, 2, 9, 3], partitions=2)

    assert numbers.take_while(lambda n: n < 5).to_list() == [1, 2]


def test_take_while_goes_on_over_partitions(engine):
    """A partition that passes as a whole, or is empty, does not end the prefix; None is asked about too."""
    items = engine.stream([None, 1, 2, 9, 1, 1], 4).filter(lambda item: item != 1)

    assert items.take_while(lambda item: item != 9).map(str).to_list() == ["None", "2"]


def test_take_while_of_nothing_of_all_and_of_none(engine):
    """Nothing stays nothing; a prefix may be all or none."""
    assert engine.stream([], 2).take_while(bool).to_list() == []
    assert engine.stream([1, 2], 3).take_while(bool).to_list() == [1, 2]
    assert engine.stream([0, 2], 3).take_while(bool).to_list() == []


def test_take_while_ends_an_infinite_stream(default_engine):
    """The prefix of an endless stream is finite."""
    assert Stream.iterate(1, lambda n: n * 2).take_while(lambda n: n < 20).reduce(0, lambda a, b: a + b) == 31


@pytest.mark.parametrize("method", ["take_while", "drop_while"])
def test_take_while_does_not_mistake_an_exception_for_the_end(engine, method):
    """A `StopIteration` of the predicate is an error as any other; it never cuts the stream short in silence."""
    with pytest.raises((StopIteration, RuntimeError)):
        getattr(engine.stream([1, 2], 1), method)(lambda n: next(iter(()))).to_list()
