"""`range` and `range_closed` of `IntStream` and `LongStream`."""

from __future__ import annotations

import pytest

from dstream import IntStream, LongStream


def test_range_ends_before_its_stop(default_engine):
    """The stop is no part of a range, but of a closed one."""
    both = IntStream.range(2, 5) + IntStream.range_closed(2, 5)

    assert both.to_list() == [2, 3, 4, 2, 3, 4, 5]


def test_range_that_starts_behind_its_stop_is_empty(default_engine):
    """A range from 5 to 2 has no items; a closed one from 2 to 2 has one."""
    numbers = LongStream.range(5, 2) + LongStream.range_closed(5, 4) + LongStream.range_closed(2, 2)

    assert numbers.to_list() == [2]


def test_range_of_any_length_is_never_built(default_engine):
    """The first items of a range of a quintillion are there at once."""
    numbers = IntStream.range(0, 10**18)

    assert (numbers.limit(2).to_list(), numbers.map(lambda n: n + 5).find_first().get()) == ([0, 1], 5)


def test_range_is_split_over_partitions(spark_context):
    """A range on Spark runs in as many partitions as there are cores."""
    stream = spark_context.stream(range(10)).map(lambda n: n)

    assert [list(part) for part in stream.partitions()] == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]


@pytest.mark.parametrize("bounds", [(None, 1), (0, "1"), (0.5, 2)])
@pytest.mark.parametrize("factory", [IntStream.range, IntStream.range_closed])
def test_range_refuses_what_is_no_int(factory, bounds):
    """Both bounds are ints, checked at the call."""
    with pytest.raises(TypeError):
        factory(*bounds)


STEPS = [(0, 10, 2), (0, 10, 3), (10, 0, -4), (0, 10, -1), (5, 5, 1), (-3, 4, 2), (0, 1, 10**30)]


@pytest.mark.parametrize("kind", [IntStream, LongStream])
@pytest.mark.parametrize("arguments", STEPS)
def test_range_steps_as_pythons_range_does(default_engine, kind, arguments):
    """Forwards and backwards, in several partitions."""
    start, stop, step = arguments

    assert kind.range(*arguments).to_list() == list(range(*arguments))
    assert kind.range_closed(*arguments).to_list() == list(range(start, stop + (1 if step > 0 else -1), step))


def test_a_step_of_zero_is_refused():
    """At the call, as Python's range does."""
    with pytest.raises(ValueError, match="step must not be 0"):
        IntStream.range(0, 3, 0)
    with pytest.raises(ValueError, match="step must not be 0"):
        LongStream.range_closed(0, 3, 0)
    with pytest.raises(TypeError, match="step must be an int, not float"):
        IntStream.range(0, 3, 1.5)
