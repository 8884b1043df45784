"""`semi_join`, `anti_join`, `intersection`, `subtract`: which items the other side has."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dstream import Entry, IntStream, Stream
from dstream.errors import IllegalStateError, UnstableKeyError
from dstream.testing.comparison import exact

NAN = float("nan")
ITEMS = st.lists(st.sampled_from([0, 1, 2, 2.5, None, "k", NAN, (1, None), (NAN,)]), max_size=20)
LARGE = {"spark.sql.autoBroadcastJoinThreshold": "0"}


def same(item):
    """Return a key that is equal as dstream promises: every NaN is one."""
    if isinstance(item, tuple):
        return tuple(map(same, item))
    return "NaN" if item != item else item


def kind(item):
    """Return a key that several items have."""
    return type(item).__name__


WAYS = {
    "semi_join": (
        lambda left, right: left.semi_join(right, on=kind),
        lambda lefts, rights: [item for item in lefts if kind(item) in map(kind, rights)],
    ),
    "anti_join": (
        lambda left, right: left.anti_join(right, on=kind),
        lambda lefts, rights: [item for item in lefts if kind(item) not in map(kind, rights)],
    ),
    "intersection": (
        lambda left, right: left.intersection(right),
        lambda lefts, rights: {same(item): item for item in lefts if same(item) in map(same, rights)}.values(),
    ),
    "subtract": (
        lambda left, right: left.subtract(right),
        lambda lefts, rights: [item for item in lefts if same(item) not in map(same, rights)],
    ),
}


def counted(items):
    """Return items as what can be compared."""
    return Counter(exact(same(item)) for item in items)


@pytest.mark.parametrize("name", WAYS)
@settings(max_examples=40)
@given(lefts=ITEMS, rights=ITEMS)
def test_membership_agrees_with_plain_python(local_context, name, lefts, rights):
    """None is an item, and every NaN is one; what is repeated stays so, but in an intersection."""
    ours, theirs = WAYS[name]

    found = ours(local_context.stream(lefts), local_context.stream(rights))

    assert counted(found.to_list()) == counted(theirs(lefts, rights))


@pytest.mark.parametrize("name", WAYS)
@pytest.mark.parametrize("large", [False, True])
@settings(max_examples=1, suppress_health_check=list(HealthCheck))
@given(lefts=ITEMS.filter(len), rights=ITEMS.filter(len), of_left=st.integers(1, 8), of_right=st.integers(1, 8))
def test_membership_agrees_with_plain_python_on_spark(spark_context, name, large, lefts, rights, of_left, of_right):
    """Where the keys travel, and where both sides move."""
    ours, theirs = WAYS[name]

    found = ours(spark_context.stream(lefts, of_left), spark_context.stream(rights, of_right))

    assert counted(found.configure(LARGE if large else {}).to_list()) == counted(theirs(lefts, rights))


def test_entries_are_looked_up_by_their_keys(engine):
    """They stay whole; the other side may be a dict."""
    crews = engine.stream([Entry("Pequod", 30), Entry("Rachel", 26)], 2)

    assert crews.semi_join({"Pequod": None}).to_list() == [Entry("Pequod", 30)]
    assert crews.anti_join([("Pequod", 1)]).to_list() == [Entry("Rachel", 26)]
    with pytest.raises(TypeError, match=r"the items must be entries, \(key, value\), not 5"):
        crews.semi_join([5]).to_list()


def test_a_distributed_set_is_the_other_side(engine):
    """As a set of the caller's is: what it holds when the plan runs."""
    seen = engine.context.get_set(f"seen {engine.name}")
    seen.update([1, NAN])
    unseen = engine.stream([1, 2, NAN, 3], 2).subtract(seen)
    seen.add(3)

    assert unseen.to_list() == [2]
    assert len(engine.stream([1, 2, NAN, 3], 2).intersection(seen).to_list()) == 3
    assert engine.stream([5], 2).cross(seen).count() == 3


def test_an_endless_stream_passes_by_a_small_other_side(engine):
    """Reading no further than wanted."""
    numbers = engine.context.read(Stream.iterate(0, lambda n: n + 1)._node.source)

    assert numbers.semi_join([3, 5, 8], on=int).limit(3).to_list() == [3, 5, 8]
    assert numbers.subtract(range(100)).find_first().get() == 100
    with pytest.raises(IllegalStateError, match="an infinite stream cannot be the other side here"):
        engine.stream([1]).anti_join(numbers, on=int).to_list()


def test_streams_of_numbers_stay_what_they_are():
    """What is kept of ints is a stream of ints."""
    assert IntStream.of(1, 2, 2, 3).subtract([3]).sum() == 5
    assert IntStream.of(1, 2, 2, 3).intersection(IntStream.of(2, 3)).sum() == 5


def test_items_without_a_stable_hash_are_refused(engine):
    """On either side."""
    with pytest.raises(UnstableKeyError):
        engine.stream([1, 2], 2).subtract([[1]]).to_list()


def test_an_intersection_moves_less_than_a_join(spark_context):
    """The keys of the other side travel; the items that are left are made distinct in one shuffle."""
    text = str(spark_context.stream([1], 3).intersection(spark_context.stream([1], 3)).explain("mermaid"))

    assert ".intersection#40;...#41;" in text
    assert ".distinct" not in text


def test_calls_are_shown_as_they_were_made():
    """With the keys that the user gave."""
    words = Stream.of("a")

    assert words.semi_join(words, on=len)._node.label() == ".semi_join(..., on=len)"
    assert words.anti_join(words, on=(len, str))._node.label() == ".anti_join(..., on=(len, str))"
    assert words.subtract(["a"])._node.label() == ".subtract(...)"


@pytest.mark.parametrize("largest", ["10mb", "0"])
def test_semi_and_anti_join_by_a_function_of_pairs_that_stand_in_columns(spark_context, largest):
    """The first of a pair is its key only where no function says otherwise, whether the other side travels or not."""
    pairs = spark_context.stream(range(20_000)).map(lambda n: (n, n % 7))
    pairs = pairs.configure({"spark.sql.autoBroadcastJoinThreshold": largest})
    others = [(7, 3), (9, 5), (11, 8)]

    kept = pairs.semi_join(others, on=lambda pair: pair[1]).map(lambda pair: pair[0])
    dropped = pairs.anti_join(others, on=lambda pair: pair[1]).map(lambda pair: pair[0])
    assert sorted(kept.to_list()) == [n for n in range(20_000) if n % 7 in (3, 5)]
    assert sorted(dropped.to_list()) == [n for n in range(20_000) if n % 7 not in (3, 5)]
