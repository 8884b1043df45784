"""What cannot travel to the workers is named."""

from __future__ import annotations

import threading

import pytest

from collectors import grouping_by
from dstream import Stream
from dstream.errors import SerializationError


@pytest.fixture
def numbers(spark_context):
    """Some numbers on Spark, in two partitions."""
    return spark_context.stream([1, 2], 2)


def steps_with_a_lock(numbers):
    """Return terminal operations whose functions capture the variable `lock`."""
    lock = threading.Lock()
    return {
        "map": lambda: numbers.map(lambda n: lock.locked()).to_list(),
        "filter": lambda: numbers.filter(lambda n: lock.locked()).count(),
        "sorted": lambda: numbers.sorted(key=lambda n: lock.locked()).to_list(),
        "distinct": lambda: numbers.distinct(key=lambda n: lock.locked()).to_list(),
        "take_while": lambda: numbers.take_while(lambda n: lock.locked()).to_list(),
        "any_match": lambda: numbers.any_match(lambda n: lock.locked()),
        "reduce": lambda: numbers.reduce(lambda a, b: lock.locked()),
        "collect": lambda: numbers.collect(grouping_by(lambda n: lock.locked())),
        "for_each_partition": lambda: numbers.for_each_partition(lambda ns: lock.locked()),
        "iterate": lambda: (numbers + Stream.iterate(0, lambda n: lock.locked() or n + 1)).limit(9).to_list(),
        "generate": lambda: (numbers + Stream.generate(lambda: lock.locked())).limit(9).to_list(),
    }


@pytest.mark.parametrize("step", steps_with_a_lock(None))
def test_a_captured_variable_that_cannot_be_pickled_is_named(numbers, step):
    """The message names the variable, the function's file, and the step."""
    with pytest.raises(SerializationError, match="'lock'") as caught:
        steps_with_a_lock(numbers)[step]()

    assert __file__ in str(caught.value)


def test_the_message_names_the_step(numbers):
    """In a chain of several steps it says which one captures the variable."""
    lock = threading.Lock()

    with pytest.raises(SerializationError, match=r"step 3 of 4: \.map\(lambda\)"):
        numbers.map(str).map(lambda n: lock.locked()).filter(bool).to_list()


def test_a_captured_context_is_named(numbers, spark_context):
    """A context cannot be used on a worker; the message says so, and names the variable that holds it."""
    ctx = spark_context

    with pytest.raises(SerializationError, match="Context") as caught:
        numbers.map(lambda n: ctx.stream([n]).to_list()).to_list()
    assert "'ctx'" in str(caught.value)


def test_a_captured_stream_is_named(numbers):
    """A stream cannot be used on a worker either; the message says so, and names the variable."""
    other = numbers.map(str)

    with pytest.raises(SerializationError, match="Stream") as caught:
        numbers.filter(lambda n: str(n) in other.to_list()).count()
    assert "'other'" in str(caught.value)


def test_an_item_of_the_caller_that_cannot_travel_is_refused(spark_context):
    """The items of a list must be picklable to reach the workers."""
    with pytest.raises(SerializationError):
        spark_context.stream([1, threading.Lock()], 2).map(str).count()


def test_a_result_that_cannot_travel_is_refused(numbers):
    """What a function makes must be picklable to reach the caller."""
    with pytest.raises(SerializationError):
        numbers.map(lambda n: threading.Lock()).to_list()


def test_items_that_stay_in_one_stage_need_not_travel(numbers):
    """Between the steps of one stage an item may be anything."""
    assert numbers.map(lambda n: threading.Lock()).map(lambda lock: lock.locked()).to_list() == [False, False]


def test_the_actions_of_peek_and_for_each_stay_in_the_caller(numbers):
    """They may capture what cannot travel."""
    lock, seen = threading.Lock(), []
    numbers.peek(lambda n: seen.append(lock.locked())).for_each(lambda n: seen.append(lock.locked()))

    assert seen == [False] * 4


def test_on_the_local_engine_nothing_travels(local_context):
    """Functions may capture anything in the caller's own process."""
    lock = threading.Lock()

    assert local_context.stream([1]).map(lambda n: lock.locked()).to_list() == [False]
