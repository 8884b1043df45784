"""Encounter order, for one partition and several, some of them empty: exactly what plain Python gives."""

from __future__ import annotations

from itertools import dropwhile, islice, takewhile
from operator import add

import pytest

from collectors import grouping_by, joining, to_list

ITEMS = [""] * 8 + ["d", "b", "", "", "a", "c", "a", "b"]
"""In two or three partitions the first is empty after filtering, in eight the first four and one more."""

WORDS = ["d", "b", "a", "c", "a", "b"]


@pytest.fixture(params=[1, 2, 3, 8])
def words(engine, request):
    """The words in that many partitions."""
    return engine.stream(ITEMS, request.param).filter(bool)


def test_order_of_items_in_the_caller(words):
    """`to_list`, `for_each_ordered` and iteration give the encounter order."""
    seen = []
    words.for_each_ordered(seen.append)

    assert words.to_list() == seen == WORDS


def test_order_of_reductions(words):
    """`joining`, `reduce` and `collect` combine partial results from left to right."""
    assert words.collect(joining("-")) == "d-b-a-c-a-b"
    assert words.reduce("", add) == "dbacab"
    assert words.reduce(add).get() == "dbacab"


def test_order_of_groups(words):
    """Keys of `grouping_by` in first-seen order, items of a key in encounter order."""
    groups = words.collect(grouping_by(lambda word: word in "ab", to_list()))

    assert list(groups.items()) == [(False, ["d", "c"]), (True, ["b", "a", "a", "b"])]


@pytest.mark.parametrize("n", [2, 9])
def test_order_of_limit_and_skip(engine, n):
    """`limit` and `skip` count in encounter order, here over three partitions, in the middle of a chain."""
    words = engine.stream(ITEMS, 3).filter(bool)

    assert words.limit(n).map(str.upper).to_list() == [w.upper() for w in islice(WORDS, n)]
    assert words.skip(n).map(str.upper).to_list() == [w.upper() for w in islice(WORDS, n, None)]


def test_order_of_the_first_items(words):
    """`find_first` and `limit` at the end of a chain give the first items in encounter order."""
    assert (words.find_first().get(), words.limit(3).to_list()) == ("d", ["d", "b", "a"])


def test_order_of_a_page(words):
    """`skip` and `limit` in the middle of a chain give the items of a slice."""
    assert words.skip(1).limit(3).map(str.upper).to_list() == ["B", "A", "C"]


def test_order_of_take_while(words):
    """The longest prefix ends at the first failing item of all partitions."""
    assert words.take_while(lambda w: w != "c").to_list() == list(takewhile(lambda w: w != "c", WORDS))


def test_order_of_drop_while(words):
    """What follows the longest prefix begins at the first failing item of all partitions."""
    assert words.drop_while(lambda w: w != "a").to_list() == list(dropwhile(lambda w: w != "a", WORDS))


def test_order_of_distinct(words):
    """The first occurrences, in the order in which they occur."""
    assert words.distinct().to_list() == ["d", "b", "a", "c"]
