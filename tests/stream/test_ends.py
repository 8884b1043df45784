"""`first`, `last`, `to_set`, `to_dict`, `to_map`, `group_by`, `count_by`: what collectors do, in one word."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dstream as ds
from collectors import frequencies, mode
from dstream import Entry, IntStream, Optional, Stream
from dstream.errors import IllegalStateError, NullElementError, UnstableKeyError
from dstream.stream.reductions import latest, latest_by_key
from dstream.testing import Parts, check_collector, same_everywhere

WORDS = ["sea", "whale", "sky", "sea", "ship"]
KEYS = st.none() | st.integers(-2, 2) | st.sampled_from(["a", 1.0, True, -0.0])
PAIRS = st.lists(st.tuples(KEYS, st.none() | st.integers(0, 9)), max_size=20)


def test_first_and_last_are_those_of_the_order(engine):
    """Empty partitions at either end have none; of nothing there is neither."""
    parts = engine.context.read(Parts([], ["a", "b"], [], ["c"], []))

    assert (parts.first(), parts.last()) == (Optional.of("a"), Optional.of("c"))
    assert (engine.stream([], 3).first(), engine.stream([], 3).last()) == (Optional.empty(), Optional.empty())


def test_first_and_last_may_be_none(engine):
    """`find_first()` refuses a None, as Java does."""
    items = engine.stream([None, 1, None], 2)

    assert (repr(items.first()), repr(items.last())) == ("Optional[None]", "Optional[None]")
    with pytest.raises(NullElementError):
        items.find_first()


@pytest.mark.parametrize("collector", [latest(), latest_by_key()])
def test_what_comes_last_stays_however_items_are_divided(collector):
    """The laws of collectors hold for what is behind `last()` and `to_dict()`."""
    check_collector(collector, [("a", 1), ("b", None), ("a", 2)])


def test_first_reads_no_further(default_engine):
    """Not even a stream without an end, of which there is no last item."""
    endless = Stream.iterate(5, lambda n: n + 1)

    assert endless.first().get() == 5
    with pytest.raises(IllegalStateError):
        endless.last()


def test_ends_of_numbers(local_context):
    """Streams of numbers have them but for those of pairs."""
    numbers = IntStream.of(3, 1, 3)

    assert (numbers.first().get(), numbers.last().get(), numbers.to_set()) == (3, 3, {1, 3})
    assert (numbers.group_by(lambda n: n % 2), numbers.count_by(str)) == ({1: [3, 1, 3]}, {"3": 2, "1": 1})
    with pytest.raises(AttributeError, match=r"use boxed\(\)\.to_dict"):
        _ = numbers.to_dict


def test_groups_and_counts_by_what_a_function_gives():
    """On both engines, as `grouping_by`, keys in the order in which they were first seen."""
    assert same_everywhere(lambda s: s.group_by(len), WORDS) == {3: ["sea", "sky", "sea"], 5: ["whale"], 4: ["ship"]}
    assert same_everywhere(lambda s: s.count_by(len), WORDS) == {3: 3, 5: 1, 4: 1}
    assert same_everywhere(lambda s: s.to_set(), WORDS, partitions=(3,)) == set(WORDS)


def test_to_dict_keeps_the_last_of_equal_keys():
    """As `dict(pairs)`: keys and values may be None, and `1`, `1.0` and `True` are one key, the first of them."""
    pairs = [(1, "a"), (None, None), Entry(1.0, "b"), ["x", 0], (True, None)]

    assert same_everywhere(lambda s: s.to_dict(), pairs) == {1: None, None: None, "x": 0}


@settings(max_examples=50)
@given(PAIRS)
def test_to_dict_is_the_dict_of_python(pairs):
    """Whatever keys and values there are, in the same order."""
    with ds.connect(engine="local") as ctx:
        found = ctx.stream(pairs, 3).to_dict()

    assert list(map(repr, found.items())) == list(map(repr, dict(pairs).items()))


@settings(max_examples=50)
@given(st.lists(KEYS, min_size=1, max_size=20))
def test_mode_is_that_of_the_standard_library(items):
    """The first of those that occur most often."""
    counts = frequencies().collect(items)
    assert mode().collect(items) == Optional.of_item(max(counts, key=lambda key: counts[key]))


def test_to_map_is_the_collector(engine):
    """Pairs without functions, any items with them; equal keys are an error without `merge`."""
    pairs = engine.stream([("a", 1), ("b", 2), ("a", 3)], 2)

    assert pairs.to_map(merge=max) == {"a": 3, "b": 2}
    assert engine.stream(WORDS, 2).to_map(len, str.upper, max) == {3: "SKY", 5: "WHALE", 4: "SHIP"}
    with pytest.raises(IllegalStateError, match="Duplicate key a"):
        pairs.to_map()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda s: s.group_by(5), TypeError, "fn must be a function, not int"),
        (lambda s: s.count_by(None), TypeError, "fn must be a function, not None"),
        (lambda s: s.to_map(len), TypeError, "value must be a function"),
        (lambda s: s.to_dict(), TypeError, r"to_dict\(\) takes entries and other pairs .*, not 'sea'"),
        (lambda s: s.map(lambda word: (object(), 1)).to_dict(), UnstableKeyError, "object"),
        (lambda s: s.group_by(lambda word: None), NullElementError, "null key"),
        (lambda s: s.map(lambda word: [word]).to_set(), TypeError, "unhashable"),
    ],
)
def test_what_cannot_be_answered_is_refused_in_words(local_context, call, error, message):
    """The argument or the item is named."""
    with pytest.raises(error, match=message):
        call(local_context.stream(WORDS))


def test_an_optional_of_none_is_present():
    """It travels, and differs from an empty one."""
    held = Optional.of_item(None)

    assert held
    assert held.is_present()
    assert held.get() is None
    assert held.or_else(1) is None
    assert held != Optional.empty() == Optional.of_nullable(None)
    assert repr(held.map(str)) == "Optional['None']"
