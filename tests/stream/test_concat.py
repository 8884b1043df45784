"""`Stream.concat(a, b)` and `a + b`: one stream after another."""

from __future__ import annotations

import pytest

import dstream as ds
from dstream import DoubleStream, IntStream, Stream
from dstream.errors import IllegalStateError


def test_concat_gives_the_first_stream_then_the_second(engine):
    """The order is that of the first stream, then that of the second, over all their partitions."""
    first, second = engine.stream("ba", 3), engine.stream([None, "d", "c"], 2)

    assert Stream.concat(first, second).to_list() == ["b", "a", None, "d", "c"]


def test_concat_of_a_stream_with_itself_gives_it_twice(engine):
    """Streams may be used again, where Java refuses `concat(s, s)`."""
    stream = engine.stream([1, 2], 2).map(lambda n: n + 1)

    assert (stream + stream).to_list() == [2, 3, 2, 3]


def test_concat_with_an_empty_stream_changes_nothing(engine):
    """An empty stream on either side adds nothing."""
    nothing = engine.stream([], 2)

    assert (nothing + engine.stream([1], 1) + nothing).to_list() == [1]


def test_concat_reads_the_second_stream_only_when_it_is_needed(default_engine):
    """A short circuit that ends in the first stream does not run the second."""
    failing = default_engine.stream([0], 1).map(lambda n: 1 // n)

    assert (default_engine.stream([7, 8], 1) + failing).limit(2).to_list() == [7, 8]


def test_concat_continues_after_sorting_each_part(engine):
    """Later steps see the concatenation, not the parts."""
    lower, upper = engine.stream([2, 1], 2).sorted(), engine.stream([4, 3], 2).sorted()

    assert (lower + upper).skip(1).limit(2).map(lambda n: n * 10).to_list() == [20, 30]


def test_concat_takes_a_stream_of_the_default_context(default_engine):
    """A stream without a context of its own joins the context of the other."""
    assert (Stream.of(1) + default_engine.stream([2], 1)).to_list() == [1, 2]


def test_concat_of_sorted_and_infinite_is_read_in_order(default_engine):
    """A stream with no end may follow one that had to be shuffled."""
    endless = default_engine.stream([3, 1], 2).sorted() + Stream.iterate(5, lambda n: n + 1)

    assert endless.skip(1).limit(3).map(str).to_list() == ["3", "5", "6"]


def test_concat_of_finite_and_generated_gives_all_that_limit_asks_for(default_engine):
    """A short part does not use up the share of the endless one."""
    endless = Stream.concat(Stream.of("a"), Stream.generate(lambda: "b"))

    assert endless.limit(9).map(str.upper).count() == 9


def test_concat_of_numbers_stays_a_stream_of_numbers(default_engine):
    """Concatenated `IntStream`s have a sum."""
    assert IntStream.concat(IntStream.of(1, 2), IntStream.range(3, 5)).sum() == 10


def test_concat_of_different_contexts_is_refused(local_context, spark_context):
    """A stream runs on the engine of its context, so two contexts cannot meet in one stream."""
    with pytest.raises(IllegalStateError, match="different contexts"):
        local_context.stream([1]) + spark_context.stream([2])


def test_plus_refuses_a_stream_of_another_type():
    """Ints and doubles do not mix without saying how."""
    with pytest.raises(TypeError):
        IntStream.of(1) + DoubleStream.of(1.0)


@pytest.mark.parametrize("other", [None, [1]])
def test_concat_refuses_what_is_no_stream(other):
    """Both parts are streams; anything else is a `TypeError` at the call."""
    with pytest.raises(TypeError):
        Stream.concat(Stream.of(1), other)


def test_concat_of_numbers_refuses_a_stream_of_objects():
    """`IntStream.concat` makes a stream of ints, so both parts must be streams of ints."""
    with pytest.raises(TypeError):
        IntStream.concat(IntStream.of(1), Stream.of("a"))


@pytest.mark.parametrize("kind", [Stream, IntStream, DoubleStream])
def test_concat_and_union_take_any_number(default_engine, kind):
    """One, several and none of them."""
    one, two, three = kind.of(1), kind.of(2, 2), kind.of(3)

    assert kind.concat(one, two, three).to_list() == [1, 2, 2, 3]
    assert kind.concat(two).to_list() == [2, 2]
    assert kind.concat().to_list() == []
    assert sorted(one.union(two, three).to_list()) == [1, 2, 2, 3]
    assert one.union().to_list() == [1]


def test_each_stream_of_a_concat_is_checked(engine):
    """Its type, and its context."""
    with ds.connect(engine="local") as other:
        words = engine.stream("ab")
        with pytest.raises(TypeError, match="not Stream and list"):
            Stream.concat(words, words, ["c"])
        with pytest.raises(TypeError, match="streams of the same type, not int"):
            words.union(words, 3)
        with pytest.raises(IllegalStateError, match="different contexts"):
            Stream.concat(words, words, other.stream("c"))
