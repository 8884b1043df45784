"""`Stream.iterate`: each item made from the one before."""

from __future__ import annotations

import pytest

from dstream import IntStream, Stream


def test_iterate_is_infinite_and_ordered(default_engine):
    """The seed comes first, then `next` of each item, as far as they are asked for."""
    assert Stream.iterate(1, lambda n: n * 2).skip(2).limit(4).to_list() == [4, 8, 16, 32]


def test_iterate_ends_when_has_next_fails(default_engine):
    """With `has_next` the stream ends before the first item for which it does not hold."""
    assert Stream.iterate(1, lambda n: n < 20, lambda n: n * 3).to_list() == [1, 3, 9]


def test_iterate_whose_seed_fails_has_next_is_empty(default_engine):
    """`has_next` is asked about the seed too."""
    assert Stream.iterate(1, lambda n: n > 1, lambda n: n + 1).to_list() == []


def test_iterate_can_be_walked_without_end(default_engine):
    """An iterator over an infinite stream gives item after item, far behind the first chunk."""
    numbers = IntStream.iterate(0, lambda n: n + 1).map(lambda n: n * 2).iterator()

    assert [next(numbers) for _ in range(1500)][-2:] == [2996, 2998]


@pytest.mark.parametrize("functions", [(None,), (3,), (None, abs), (abs, None)])
def test_iterate_refuses_what_is_no_function(functions):
    """A None or a number in place of a function is a `TypeError` at the call."""
    with pytest.raises(TypeError, match="must be a function"):
        Stream.iterate(0, *functions)


@pytest.mark.parametrize("functions", [(), (abs, abs, abs)])
def test_iterate_refuses_another_number_of_functions(functions):
    """`iterate` takes one or two functions."""
    with pytest.raises(TypeError, match="iterate"):
        Stream.iterate(0, *functions)
