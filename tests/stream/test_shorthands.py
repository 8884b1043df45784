"""`flatten`, `pluck`, `starmap`, `top`, `union`, `apply`."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dstream import Entry, IntStream, Stream
from dstream.errors import IllegalStateError
from dstream.failures import failure


@dataclass(frozen=True)
class Ship:
    name: str
    crew: int


def test_flatten_gives_the_items_of_all_items(engine):
    """Any iterable, also an empty one, a stream on the local engine; None is an empty one."""
    assert engine.stream([[1, 2], (), None, range(2), "ab"], 3).flatten().to_list() == [1, 2, 0, 1, "a", "b"]
    assert engine.stream([], 2).flatten().to_list() == []


def test_flatten_names_what_is_no_iterable(engine):
    """The item is shown, and the step is the one that the user wrote."""
    with pytest.raises(TypeError, match="flatten") as caught:
        engine.stream([[1], 7], 2).flatten().to_list()

    assert (failure(caught.value).item, failure(caught.value).step.label) == (7, ".flatten()")


def test_pluck_takes_parts_by_name_and_by_place(engine):
    """Keys of mappings, places of sequences, attributes of everything else."""
    items = [{"name": "Pequod", 0: "zero"}, Ship("Rachel", 26)]

    assert engine.stream(items, 2).pluck("name").to_list() == ["Pequod", "Rachel"]
    assert engine.stream([("a", "b"), ["c", "d"], "ef", {1: "g"}], 3).pluck(1).to_list() == ["b", "d", "f", "g"]
    assert engine.stream([Entry("k", 1)], 1).pluck("key").to_list() == ["k"]
    assert engine.stream(["ab"], 1).pluck(-1).to_list() == ["b"]


@pytest.mark.parametrize(
    ("item", "name", "error"),
    [
        ({"a": 1}, "b", KeyError),
        ((1, 2), 5, IndexError),
        (Ship("Rachel", 26), "sea", AttributeError),
        (3, 0, TypeError),
    ],
)
def test_pluck_names_the_item_that_has_no_such_part(engine, item, name, error):
    """The type of the error is Python's own; the message shows the item."""
    with pytest.raises(error) as caught:
        engine.stream([item], 1).pluck(name).to_list()

    assert f"pluck({name!r}) found no such part in" in str(caught.value)
    assert (failure(caught.value).item, failure(caught.value).step.label) == (item, f".pluck({name!r})")


class Missing(KeyError):
    """An exception of a user's that is made in its own way."""

    def __init__(self, table, column):
        super().__init__(table, column)


class Row(dict):
    """A mapping that fails with it."""

    def __missing__(self, key):
        """Tell the column."""
        raise Missing("crews", key)


def test_pluck_leaves_exceptions_of_users_as_they_are(local_context):
    """Nobody knows how to make another one of their kind."""
    rows = local_context.stream([Row(sea="Pacific"), Row()])
    with pytest.raises(Missing) as caught:
        rows.pluck("sea").to_list()

    assert (caught.value.args, failure(caught.value).step.label) == (("crews", "sea"), ".pluck('sea')")
    assert rows.pluck("sea").ignore(KeyError).to_list() == ["Pacific"]


def test_starmap_spreads_each_item_over_the_arguments(engine):
    """Items of two, three and no parts."""
    assert engine.stream([(2, 5), Entry(3, 2)], 2).starmap(pow).to_list() == [32, 9]
    assert engine.stream([(2, 5, 7)], 1).starmap(pow).to_list() == [4]
    assert engine.stream([()], 1).starmap(lambda: "none").to_list() == ["none"]


def test_starmap_names_the_item_on_which_the_function_fails(engine):
    """The step shows the user's function."""
    with pytest.raises(ZeroDivisionError) as caught:
        engine.stream([(1, 0)], 1).starmap(divmod).to_list()

    assert (failure(caught.value).item, failure(caught.value).step.label) == ((1, 0), ".starmap(divmod)")


words = st.lists(st.text("ab", max_size=3), max_size=12)


@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(words, st.integers(0, 6), st.sampled_from([None, len]), st.integers(1, 8))
def test_top_is_the_head_of_a_stable_sort_in_reverse(engine, items, n, key, partitions):
    """The greatest first; equal ones in encounter order."""
    top = engine.stream(items, partitions).top(n, key=key)

    assert top.to_list() == sorted(items, key=key, reverse=True)[:n]


def test_top_is_shown_as_it_was_written(engine):
    """Also where a limit follows; a failing key function is that of `top`."""
    assert repr(Stream.of(1, 2).top(2, key=abs)) == "Stream.of(1, 2).top(2, key=abs)"
    assert engine.stream([1, 3, 2], 3).top(2).limit(1).to_list() == [3]
    with pytest.raises(TypeError) as caught:
        engine.stream([1, "a"], 1).top(2).to_list()
    assert failure(caught.value).step.label == ".top(2)"


def test_top_of_numbers_stays_a_stream_of_numbers(default_engine):
    """It has a sum."""
    assert IntStream.of(1, 5, 3).top(2).sum() == 8


def test_top_of_very_many_sorts_all(local_context):
    """More than an engine holds at once are sorted and cut."""
    assert local_context.stream(range(100_010)).top(100_005).to_list() == list(range(100_009, 4, -1))


def test_union_gives_all_items_of_both(engine):
    """Empty ones and the stream itself included; the result has no order that must be kept."""
    numbers = engine.stream([3, 1], 2)
    stream = numbers.union(engine.stream([], 1)).union(numbers.map(str))

    assert sorted(map(str, stream.to_list())) == ["1", "1", "3", "3"]
    assert repr(numbers.union(numbers.map(abs))).endswith(".union(stream(list).map(abs))")


def test_20000_streams_can_be_united(local_context):
    """A union of many streams is one flat one."""
    one = stream = local_context.stream([1])
    for _ in range(20_000):
        stream = stream.union(one)

    assert (stream.count(), len(repr(stream)) < 3000) == (20_001, True)


def test_union_refuses_other_contexts_and_other_types(local_context, spark_context):
    """At the call."""
    with pytest.raises(IllegalStateError, match="different contexts"):
        local_context.stream([1]).union(spark_context.stream([1]))
    with pytest.raises(TypeError, match="union"):
        local_context.stream([1]).union([1])
    with pytest.raises(TypeError, match="union"):
        IntStream.of(1).union(Stream.of(1))


def test_apply_gives_what_a_fragment_makes(engine):
    """A fragment of a pipeline under a name of its own, whose steps stand in the plan."""
    double = lambda numbers: numbers.map(lambda n: n * 2).filter(bool)  # noqa: E731

    assert engine.stream([0, 1], 2).apply(double).to_list() == [2]
    assert isinstance(engine.stream(["a"], 1).apply(lambda s: s.map_to_int(len)), IntStream)


def test_apply_refuses_what_is_no_stream_of_this_context(local_context, spark_context):
    """At the call."""
    stream = local_context.stream([1])
    with pytest.raises(TypeError, match="fn must return a stream, not list"):
        stream.apply(lambda s: s.to_list())
    with pytest.raises(TypeError, match="fn must be a function, not int"):
        stream.apply(3)
    with pytest.raises(IllegalStateError, match="different contexts"):
        stream.apply(lambda s: spark_context.stream([1]))


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda s: s.top(-1), ValueError),
        (lambda s: s.top(1, key=3), TypeError),
        (lambda s: s.pluck(None), TypeError),
        (lambda s: s.pluck(True), TypeError),
        (lambda s: s.starmap(None), TypeError),
        (lambda s: s.key_by(None), TypeError),
    ],
)
def test_shorthands_refuse_wrong_arguments_at_the_call(call, error):
    """Nothing runs for that."""
    with pytest.raises(error, match="must"):
        call(Stream.of(1))


def test_flatten_says_in_the_callers_words_what_to_do(engine):
    """No name of a function that he never wrote, and which he could not change."""
    with pytest.raises(TypeError, match="flatten") as caught:
        engine.stream([(1,), 7], 1).flatten().to_list()
    notes = "\n".join(caught.value.__notes__)

    assert "What happened: an item that came to .flatten() is no iterable" in notes
    assert "What to do: make each item an iterable before this step, as .map(lambda item: [item]) does" in notes
    assert "_all_of" not in notes
