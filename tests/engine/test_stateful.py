"""Stateful steps, and items that are spread over partitions."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dstream as ds
from dstream import Stream
from dstream.engine.compiler import ClusterFacts, compiled
from dstream.engine.physical.graph import Ask, Done
from dstream.errors import IllegalStateError, SerializationError, UnstableKeyError
from dstream.plan import Partitions, here, rewrite
from dstream.plan.operations.keyed import Stateful
from dstream.plan.operations.streams import Spread

Key = Callable[[Any], Any] | None


def stateful(stream: Stream[Any], create: Any, fn: Any, action: Any = "map", key: Key = None) -> Stream[Any]:
    """Return the stream of what becomes of the items."""
    return Stream(Stateful(stream._node, create, fn, action, key, step=here()), stream._runtime)


def spread(stream: Stream[Any], count: int | None) -> Stream[Any]:
    """Return the same items in that many partitions."""
    return Stream(Spread(stream._node, count, step=here()), stream._runtime)


def running(state: list[int], item: int) -> int:
    """Return the sum of all items so far."""
    state[0] += item
    return state[0]


def running_of_key(state: list[int], key: int, item: int) -> tuple[int, int]:
    """Return the sum of all items of a key so far."""
    return key, running(state, item)


@pytest.mark.parametrize("partitions", [1, 3])
def test_one_state_sees_all_items_in_order(engine, partitions):
    """Results stand where their items stood."""
    numbers = engine.context.stream([1, 2, 3, 4], partitions)

    assert stateful(numbers, lambda: [0], running).to_list() == [1, 3, 6, 10]
    assert stateful(numbers, lambda: [0], lambda s, n: running(s, n) % 2, "filter").to_list() == [1, 2]
    assert stateful(numbers, lambda: [0], lambda s, n: range(running(s, n) - 5), "flat_map").to_list() == [0, *range(5)]


@pytest.mark.parametrize("partitions", [1, 3])
def test_each_key_has_a_state_of_its_own(engine, partitions):
    """The function is given the key; the order of the stream is kept, also of several results of an item."""
    numbers = engine.context.stream(range(8), partitions)
    parity = lambda n: n % 2  # noqa: E731

    expected = [(0, 0), (1, 1), (0, 2), (1, 4), (0, 6), (1, 9), (0, 12), (1, 16)]
    assert stateful(numbers, lambda: [0], running_of_key, "map", parity).to_list() == expected
    kept = stateful(numbers, lambda: [0], lambda s, k, n: running(s, n) > 5, "filter", parity)
    assert kept.to_list() == [4, 5, 6, 7]
    twice = stateful(numbers, lambda: [0], lambda s, k, n: (k, running(s, n)), "flat_map", parity)
    assert twice.to_list() == [value for pair in expected for value in pair]


def test_an_unordered_stream_needs_no_way_back(engine):
    """Each item still passes the state of its key once."""
    numbers = engine.context.stream(range(8), 3).unordered()
    sums = stateful(numbers, lambda: [0], running_of_key, "map", lambda n: n % 2).to_list()

    assert (max(s for k, s in sums if k == 0), max(s for k, s in sums if k == 1), len(sums)) == (12, 16, 8)


def test_keys_are_those_of_a_dict(engine):
    """1, 1.0 and True are one key, and so is every NaN, wherever it was made; None is a key."""
    nan = float("nan")
    items = engine.context.stream([nan, 1, -nan, True, nan, None, 1.0, None], 4)
    counted = stateful(items, lambda: [0], lambda seen, key, item: running(seen, 1), "map", lambda item: item)
    paired = stateful(items, lambda: [0], lambda seen, key, item: running(seen, 1), "map", lambda item: (item, 0))

    assert counted.to_list() == paired.to_list() == [1, 1, 2, 2, 3, 1, 3, 2]


def test_a_key_without_a_value_of_its_own_is_refused(engine):
    """With the step, and the item."""
    with pytest.raises(UnstableKeyError) as caught:
        stateful(engine.context.stream([1, 2], 2), list, max, "map", lambda item: object()).to_list()
    assert ds.failure(caught.value).item in (1, 2)


def test_what_a_function_captures_is_checked(spark_context):
    """Before anything runs, by the name of the variable."""
    lock = threading.Lock()
    with pytest.raises(SerializationError, match="captures the variable 'lock'"):
        stateful(spark_context.stream([1], 2), lambda: lock, max).to_list()


def test_none_goes_on_as_an_item(engine):
    """And is an item like any other to the function."""
    items = engine.context.stream([None, 1, None], 2)

    assert stateful(items, list, lambda seen, item: seen.append(item)).to_list() == [None] * 3


@pytest.mark.parametrize("key", [None, lambda n: 0])
def test_a_failure_names_the_step_and_the_item(engine, key):
    """Of the function, and of what makes a state; StopIteration ends nothing."""
    numbers = engine.context.stream([1, 0, 2], 3)
    for create, fn, kind in [
        (list, lambda *given: 1 // given[-1], ZeroDivisionError),
        (lambda: 1 // 0, max, ZeroDivisionError),
        (list, lambda *given: next(iter(())), RuntimeError),
    ]:
        with pytest.raises(kind) as caught:
            stateful(numbers, create, fn, "map", key).to_list()
        assert ".map_stateful(" in str(ds.failure(caught.value).step)
        assert ds.failure(caught.value).item in (0, 1)


@pytest.mark.parametrize("key", [None, lambda n: 0])
def test_what_fails_while_it_is_asked_for_names_the_step_and_the_item(engine, key):
    """A function that yields fails after its call."""

    def yielding(*given: Any) -> Any:
        yield given[-1]
        yield 1 // given[-1]

    with pytest.raises(ZeroDivisionError) as caught:
        stateful(engine.context.stream([1, 0], 2), list, yielding, "flat_map", key).to_list()
    found = ds.failure(caught.value)
    assert (found.item, found.step.label) == (0, ".map_stateful(list, yielding)")


def test_an_endless_stream_has_states_too(engine):
    """One task reads it, as far as items are wanted."""
    numbers = Stream(Stream.iterate(0, lambda n: n + 1)._node, engine.context)
    sums = stateful(numbers, lambda: [0], running_of_key, "map", lambda n: n % 2)

    assert sums.limit(3).to_list() == [(0, 0), (1, 1), (0, 2)]


@pytest.mark.parametrize("count", [1, 2, 5, 8])
def test_items_are_spread_evenly_in_their_order(spark_context, count):
    """However they stood before, some partitions empty."""
    numbers = spark_context.stream(range(20), 4).filter(lambda n: n < 3 or n > 8)
    parts = [list(part) for part in spread(numbers, count).partitions()]

    assert [n for part in parts for n in part] == [0, 1, 2, *range(9, 20)]
    assert len(parts) == count
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


@pytest.mark.parametrize(("is_ordered", "count", "move"), [(True, 3, Ask), (False, 3, Done), (True, 1, Done)])
def test_only_items_in_order_are_counted_before_they_are_spread(is_ordered, count, move):
    """It takes a job of its own; others go in turn, or to the one partition that there is."""
    numbers = Stream.of(*range(9)) if is_ordered else Stream.of(*range(9)).unordered()
    graph, _ = compiled(rewrite(Partitions(spread(numbers, count)._node)), ClusterFacts(2, 2, 100))
    (decision,) = graph.decisions

    assert isinstance(decision.begin(decision.inputs, (2,)), move)


def test_items_in_no_order_are_spread_evenly(spark_context):
    """To each partition as many from each task."""
    parts = [list(part) for part in spread(spark_context.stream(range(60), 3).unordered(), 4).partitions()]

    assert sorted(n for part in parts for n in part) == list(range(60))
    assert set(map(len, parts)) == {15}


def test_spreading_changes_no_result(engine):
    """Of nothing, of few items, with steps behind it."""
    numbers = engine.context.stream(range(5), 2)

    assert spread(numbers, 3).map(str).to_list() == ["0", "1", "2", "3", "4"]
    assert spread(numbers, None).sorted(reverse=True).to_list() == [4, 3, 2, 1, 0]
    assert spread(engine.context.stream([]), 3).to_list() == []
    assert spread(numbers.unordered(), 4).count() == 5


def test_an_endless_stream_cannot_be_spread():
    """Nobody knows how many items a partition would have."""
    with pytest.raises(IllegalStateError, match="cannot be spread over partitions"):
        spread(Stream.iterate(1, lambda n: n), 2).limit(3).to_list()


@settings(max_examples=6, deadline=None)
@given(st.lists(st.integers(-9, 9), max_size=20), st.integers(1, 8), st.integers(1, 4), st.sampled_from([1, 3, 8]))
def test_spark_gives_what_plain_python_gives(spark_context, items, partitions, modulus, count):
    """Any items in any partitions, spread, then through states."""
    states: dict[int, list[int]] = {}
    expected = [running_of_key(states.setdefault(n % modulus, [0]), n % modulus, n) for n in items]
    spreading = spread(spark_context.stream(items, partitions), count)

    assert stateful(spreading, lambda: [0], running_of_key, "map", lambda n: n % modulus).to_list() == expected
