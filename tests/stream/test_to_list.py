"""`to_list` and `to_array`: all items in the caller."""

from __future__ import annotations

import array

import numpy


def test_to_list_gives_a_new_list_each_time(engine):
    """The list is the caller's to change; a stream gives another one the next time."""
    stream = engine.stream([1, None], 3)
    stream.to_list().append("changed")

    assert stream.to_list() == [1, None]


def test_to_list_of_nothing_and_of_one_item(engine):
    """No partition has anything, or one has."""
    assert (engine.stream([], 3).to_list(), engine.stream(["a"], 3).to_list()) == ([], ["a"])


def test_to_list_takes_more_items_than_fit_into_one_batch(engine):
    """Thousands of small items and some large ones arrive in order."""
    texts = engine.stream(range(20_000), 2).map(lambda n: "x" * 300_000 if n % 10_000 == 0 else n).to_list()

    assert (len(texts), texts[1:3], texts[-1], len(texts[10_000])) == (20_000, [1, 2], 19_999, 300_000)


def test_to_array_gives_what_the_factory_makes(engine):
    """The factory gets the list of all items; without one it is a list."""
    numbers = engine.stream([3, 1, 2], 2)

    assert (numbers.to_array(tuple), numbers.to_array()) == ((3, 1, 2), [3, 1, 2])
    assert numbers.to_array(lambda items: array.array("i", items)).itemsize == 4
    assert numpy.array_equal(numbers.to_array(numpy.array), [3, 1, 2])
