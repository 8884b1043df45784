"""`flat_map` and its numeric kin: each item replaced by many."""

from __future__ import annotations

from itertools import count, islice

import pytest

from dstream import Stream


def test_flat_map_gives_the_items_of_any_iterable_in_order(engine):
    """Lists, texts, generators, dicts, ranges and None, which is an empty one."""
    made = {1: [1, None], 2: "ab", 3: (n for n in ()), 4: {"k": "v"}, 5: range(2), 6: None}
    stream = engine.stream([1, 2, 3, 4, 5, 6], 3).flat_map(lambda n: list(made[n]) if n == 3 else made[n])
    del made[3]
    made[3] = []

    assert stream.to_list() == [1, None, "a", "b", "k", 0, 1]


def test_flat_map_takes_generators(engine):
    """A generator function is the natural way to give many."""

    def down(n):
        while n:
            yield n
            n -= 1

    assert engine.stream([2, 0, 3], 2).flat_map(down).to_list() == [2, 1, 3, 2, 1]


def test_flat_map_of_nothing_and_of_one_item(engine):
    """Nothing stays nothing; one item may become none."""
    nothing, one = engine.stream([], 2), engine.stream([""], 2)

    assert (nothing.flat_map(list) + one.flat_map(list)).to_list() == []


def test_flat_map_takes_streams(default_engine):
    """A stream made inside the function is read on the spot."""
    pairs = default_engine.stream([1, 2], 2).flat_map(lambda n: Stream.of(n, n * 10).filter(lambda m: m != 2))

    assert pairs.to_list() == [1, 10, 20]


def test_flat_map_closes_the_streams_that_it_is_given(local_context):
    """The handlers of an inner stream run when its items are used up."""
    closed = []
    inner = lambda n: local_context.stream([n]).on_close(lambda: closed.append(n))  # noqa: E731

    assert (local_context.stream([1, 2]).flat_map(inner).to_list(), closed) == ([1, 2], [1, 2])


def test_flat_map_reads_the_inner_items_lazily(engine):
    """Of an endless inner iterable only what is asked for is made."""
    assert engine.stream([5, 7], 2).flat_map(count).limit(3).to_list() == [5, 6, 7]


def test_flat_map_nests_deeper_than_python_nests_loops(engine):
    """Thirty `flat_map` steps in a row are one stage, and none of them loses an item."""
    stream = engine.stream([0, 1], 2)
    for _ in range(30):
        stream = stream.flat_map(lambda n: [n])

    assert stream.flat_map(lambda n: islice(count(n), 2)).to_list() == [0, 1, 1, 2]


def test_flat_map_refuses_a_result_that_is_not_iterable(engine):
    """A number cannot be walked over: a `TypeError` that names the item."""
    with pytest.raises(TypeError, match="iterable") as caught:
        engine.stream(["a"], 2).flat_map(len).to_list()

    assert "on the item 'a'\n" in caught.value.__notes__[1]
    assert caught.value.__notes__[0].startswith("What happened: len gave something that .flat_map() does not take")


def test_flat_map_to_numbers_checks_each_of_them(engine):
    """`flat_map_to_int` and `_long` give ints, `_double` floats."""
    words = engine.stream(["1 2", "", "3"], 2)
    ints = words.flat_map_to_int(lambda text: map(int, text.split()))
    longs = words.flat_map_to_long(lambda text: map(int, text.split()))

    assert (ints + ints).sum() + longs.sum() == 18
    assert repr(words.flat_map_to_double(lambda text: map(int, text.split())).to_list()) == "[1.0, 2.0, 3.0]"


def test_flat_map_to_int_refuses_what_is_no_int(engine):
    """An inner item of another type is a `TypeError` that names it."""
    with pytest.raises(TypeError, match="'x'"):
        engine.stream([["x"]], 1).flat_map_to_int(lambda items: items).sum()
