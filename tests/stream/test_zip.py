"""`zip` and its kin: two streams whose items meet by their places."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from more_itertools import interleave_longest

from dstream import IntStream, Stream
from dstream.errors import IllegalStateError, UnsupportedError

WAYS = {
    "zip": (lambda left, right: left.zip(right), lambda left, right: zip(left, right, strict=False)),
    "zip_longest": (
        lambda left, right: left.zip_longest(right, "-"),
        lambda left, right: itertools.zip_longest(left, right, fillvalue="-"),
    ),
    "interleave": (lambda left, right: left.interleave(right), interleave_longest),
    "cross": (lambda left, right: left.cross(right), itertools.product),
}
numbers = st.lists(st.integers(0, 9), max_size=20)
partitions = st.integers(1, 8)


@pytest.mark.parametrize("name", WAYS)
@settings(max_examples=40)
@given(lefts=numbers, rights=numbers, most=st.integers(0, 12))
def test_places_meet_as_in_itertools(local_context, name, lefts, rights, most):
    """Whole, and the first ones."""
    ours, theirs = WAYS[name]
    found, wanted = ours(local_context.stream(lefts), local_context.stream(rights)), list(theirs(lefts, rights))

    assert found.to_list() == wanted
    assert found.limit(most).to_list() == wanted[:most]


@pytest.mark.parametrize("name", WAYS)
@settings(max_examples=2, suppress_health_check=list(HealthCheck))
@given(lefts=numbers, rights=numbers, of_left=partitions, of_right=partitions)
def test_places_meet_as_in_itertools_on_spark(spark_context, name, lefts, rights, of_left, of_right):
    """In order, from any partitions, empty ones among them."""
    ours, theirs = WAYS[name]
    found = ours(spark_context.stream(lefts, of_left), spark_context.stream(rights, of_right))

    assert found.to_list() == list(theirs(lefts, rights))


@pytest.mark.parametrize("sizes", [(3, 3), (0, 0), (5, 4), (1, 7), (0, 2), (2, 0)])
def test_zip_strict_says_which_side_is_longer(engine, sizes):
    """Once the ends are read."""
    zipped = engine.stream(range(sizes[0]), 3).zip(engine.stream(range(sizes[1]), 2), strict=True)
    if sizes[0] == sizes[1]:
        assert zipped.count() == sizes[0]
        return
    longer, shorter = ("left", "right") if sizes[0] > sizes[1] else ("right", "left")
    ended = "1 item" if min(sizes) == 1 else f"{min(sizes)} items"
    with pytest.raises(ValueError, match=f"^the {longer} stream is longer: the {shorter} one ended after {ended}"):
        zipped.to_list()


def test_zip_strict_reads_no_ends_that_nobody_wants(engine):
    """The first pairs are there, though one side is longer."""
    zipped = engine.stream([1, 2, 3], 2).zip(engine.stream([4, 5], 2), strict=True)

    assert zipped.limit(2).to_list() == [(1, 4), (2, 5)]
    assert zipped.find_first().get() == (1, 4)


def test_an_endless_side_is_read_as_far_as_the_other_one_goes(engine):
    """On either side."""
    endless = engine.context.read(Stream.iterate(1, lambda n: n + 1)._node.source)
    letters = engine.stream("abc", 2)

    assert letters.zip(endless).to_list() == [("a", 1), ("b", 2), ("c", 3)]
    assert endless.map(str).zip(letters).to_list() == [("1", "a"), ("2", "b"), ("3", "c")]
    with pytest.raises(ValueError, match="the right stream is longer: the left one ended after 3 items"):
        letters.zip(endless, strict=True).to_list()


@pytest.mark.parametrize("call", ["zip", "zip_longest", "interleave"])
def test_two_endless_sides_are_read_as_far_as_wanted(engine, call):
    """A limit that follows at once ends both."""
    endless = engine.context.read(Stream.iterate(1, lambda n: n + 1)._node.source)
    both = getattr(endless, call)(endless)

    assert both.limit(3).to_list() == ([1, 1, 2] if call == "interleave" else [(1, 1), (2, 2), (3, 3)])
    with pytest.raises(IllegalStateError, match="the stream is infinite"):
        both.to_list()


def test_spark_refuses_what_has_no_end(spark_context, local_context):
    """Locally a loop goes on as long as it likes."""
    first = lambda stream: next(iter(stream.zip(stream).map(sum)))  # noqa: E731
    source = Stream.iterate(1, lambda n: n + 1)._node.source

    assert first(local_context.read(source)) == 2
    with pytest.raises(UnsupportedError, match=r"\.zip\(\.\.\.\) of an endless stream where the result has no end"):
        first(spark_context.read(source))


def test_zip_takes_no_more_than_one_job_beside_that_of_a_map(spark_context):
    """Which counts; the same items from one partition each need none."""
    left, right = spark_context.stream(range(9), 3), spark_context.stream(range(9), 4)

    assert "2 jobs, 1 shuffle" in str(left.zip(right).explain("mermaid"))


def test_zip_keeps_the_order_of_both(engine):
    """So what follows sees an ordered stream."""
    zipped = engine.stream(range(40), 4).zip(engine.stream(range(40), 3))

    assert zipped.skip(37).to_list() == [(37, 37), (38, 38), (39, 39)]


def test_numbers_are_zipped_to_objects(engine):
    """A stream of numbers gives a plain one."""
    assert IntStream.of(1, 2).zip(["a", "b"]).map(lambda pair: pair[1] * pair[0]).to_list() == ["a", "bb"]


def test_a_map_a_dict_and_a_list_are_the_other_side(engine):
    """What they hold when the plan runs."""
    rates = {"a": 1}
    named = engine.context.get_map(f"rates {engine.name}")
    named["a"] = 5
    letters = engine.stream(["a", "b", "a"], 2).key_by(str)
    joined = letters.join(rates).values()
    rates["b"] = 2

    assert sorted(joined.to_list()) == [("a", 1), ("a", 1), ("b", 2)]
    assert letters.join(named).values().to_list() == [("a", 5), ("a", 5)]
    assert letters.join([("b", 3)], how="inner").values().to_list() == [("b", 3)]


def test_cross_refuses_a_large_other_side(engine):
    """It would go to every task."""
    crossed = engine.stream([1], 2).cross(engine.stream(range(1000), 2), broadcast_limit=100)

    with pytest.raises(UnsupportedError, match="Swap the sides, or raise broadcast_limit"):
        crossed.to_list()
