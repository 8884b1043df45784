"""`gather(map_concurrent(...))`: on both engines, alike; `tests/gatherers` has its calls themselves."""

from __future__ import annotations

import asyncio
import itertools
import threading
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dstream as ds
from dstream import Stream
from dstream.errors import SerializationError, UnstableKeyError
from dstream.gatherers import Gatherer, map_concurrent
from dstream.testing import Parts, same_everywhere
from dstream.testing.partitions import folder_for, note, notes, task_name


def slowly(n):
    """Give the negative number, sooner for some than for others."""
    time.sleep(0.001 * (n % 3))
    return -n


async def asynchronously(n):
    """Do the same without a thread."""
    await asyncio.sleep(0.001 * (n % 3))
    return -n


class Calls:
    """A function that notes each call, on any engine, with the time."""

    def __init__(self):
        self.folder = folder_for(self)

    def function(self):
        folder = self.folder

        def called(item):
            note(folder, f"{task_name()}-{threading.get_ident()}", (item, time.time()))
            return [item]

        return called

    @property
    def made(self):
        return [each for _, each in notes(self.folder)]


@pytest.mark.parametrize(("fn", "options"), [(asynchronously, {}), (slowly, {"rate": 5000}), (slowly, {"cache": True})])
def test_results_stand_where_their_items_stood(fn, options):
    """Whichever call ends first, for 1 to 8 partitions and empty ones."""
    items = [3, 1, 4, 1, 5, 9, 2, 6, 5]
    found = same_everywhere(lambda s: s.gather(map_concurrent(3, fn, **options)), items, partitions=[1, 5])

    assert found == [-n for n in items]


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    items=st.lists(st.sampled_from([0, 1, 2, 1.0, "a", "bc", None, (1, None), ""]), max_size=12),
    n=st.integers(1, 5),
    partitions=st.integers(1, 5),
    cache=st.booleans(),
)
def test_map_concurrent_is_map(engine, items, n, partitions, cache):
    """Up to equality, in any division, with a cache and without."""
    stream = engine.stream(items, partitions).gather(map_concurrent(n, lambda item: (item, 1), cache=cache))

    assert stream.to_list() == [(item, 1) for item in items]


def test_equal_items_of_all_partitions_are_called_once(engine):
    """The results go to each of them, in their order."""
    calls = Calls()
    items = ["b", "a", "b", "c", "a", "b"] * 3
    found = engine.stream(items, 4).gather(map_concurrent(2, calls.function(), cache=True)).to_list()

    assert found == [[item] for item in items]
    assert sorted(item for item, _ in calls.made) == ["a", "b", "c"]


def itself(item):
    """Return the item."""
    return item


@pytest.mark.parametrize(
    "first", [map_concurrent(1, itself), Gatherer.of(integrator=lambda _, item, out: out.push(item))]
)
def test_equal_items_are_called_once_inside_of_another_gatherer(engine, first):
    """A part of a gatherer promises what it promises alone."""
    calls = Calls()
    once = map_concurrent(2, calls.function(), cache=True)

    assert engine.stream("abab", 4).gather(first.and_then(once)).to_list() == [["a"], ["b"], ["a"], ["b"]]
    assert sorted(item for item, _ in calls.made) == ["a", "b"]


def test_a_rate_inside_of_another_gatherer_is_that_of_the_job(engine):
    """One task makes the calls."""
    calls = Calls()
    paced = map_concurrent(4, calls.function(), rate=50).and_then(map_concurrent(1, itself))
    engine.stream(range(10), 2).gather(paced).to_list()

    made = sorted(at for _, at in calls.made)
    assert made[-1] - made[0] >= 0.7 * 9 / 50  # The first call may be noted late.


def test_calls_inside_of_another_gatherer_are_several_at_a_time(local_context):
    """The second call begins before the first one ends."""
    meeting = threading.Barrier(2, timeout=10)
    first = Gatherer.of(integrator=lambda _, item, out: out.push(item))
    stream = local_context.stream([1, 2]).gather(first.and_then(map_concurrent(2, lambda item: meeting.wait() >= 0)))

    assert stream.to_list() == [True, True]


def test_equal_items_past_the_memory_bound_are_called_once(monkeypatch):
    """What waits for its call waits on disk."""
    from dstream.operators.rows.gatherers import called_once
    from dstream.operators.rows.operations import operation
    from dstream.plan import rewrite
    from dstream.plan.operations.elementwise import CallResults

    calls = []
    stream = Stream.of(1).gather(map_concurrent(4, lambda n: calls.append(n) or n % 7, cache=True))
    node = rewrite(stream._node)
    assert isinstance(node, CallResults)
    assert operation(node) is not None
    pairs = [((0, place), place % 1000) for place in range(5000)]
    found = sorted(called_once(node, iter(pairs), _Full()))

    assert found == [(place, item % 7) for place, item in pairs]
    assert sorted(calls) == list(range(1000))


class _Full:
    """A task whose memory is always full."""

    partition = 0

    def at_end(self, close):
        pass

    class bound:
        exceeded = staticmethod(lambda: True)
        spilled = staticmethod(lambda: None)


def test_an_unordered_stream_with_a_cache_has_all_results(engine):
    """In any order."""
    stream = engine.stream([1, 2, 1, 3], 3).unordered().gather(map_concurrent(2, str, cache=True))

    assert sorted(stream.to_list()) == ["1", "1", "2", "3"]


def test_an_item_without_a_hash_is_refused_with_a_cache(engine):
    """And with no silently wrong result."""
    with pytest.raises(UnstableKeyError, match="cannot be a key"):
        engine.stream([[1], 2], 2).gather(map_concurrent(2, str, cache=True)).to_list()


@pytest.mark.parametrize(
    ("fn", "options"), [(None, {}), (lambda n: 10 // n, {"rate": 5000}), (lambda n: 10 // n, {"cache": True})]
)
def test_an_exception_names_the_item_whose_call_failed(engine, fn, options):
    """Not the newest that was read; it keeps its type, and can be replayed."""

    async def divided(n):
        return 10 // n

    stream = engine.stream([5, 0, 2, 1, 5], 2).gather(map_concurrent(4, fn or divided, **options))
    with pytest.raises(ZeroDivisionError) as caught:
        stream.to_list()
    failure = ds.failure(caught.value)

    assert (failure.item, failure.step.position, failure.where.file) == (0, 2, __file__)
    assert failure.origin.file == __file__
    with pytest.raises(ZeroDivisionError):
        failure.replay()


def test_a_short_circuit_reads_and_calls_little_more(default_engine):
    """An endless stream ends with it; the items read ahead are as many as calls may be in flight."""
    calls = Calls()
    found = Stream.iterate(0, lambda n: n + 1).gather(map_concurrent(5, calls.function())).limit(3).to_list()

    assert found == [[0], [1], [2]]
    assert {item for item, _ in calls.made} <= set(range(8))


def test_a_short_circuit_does_not_wait_for_calls_in_flight(engine):
    """The first result is there while other calls would go on for long."""

    async def fetch(n):
        await asyncio.sleep(30 * n)
        return n

    started = time.monotonic()
    first = engine.stream(range(4), 1).gather(map_concurrent(4, fetch)).filter(lambda n: n == 0).find_any().get()

    assert (first, time.monotonic() - started < 20) == (0, True)


def test_no_thread_is_left_in_this_process(local_context):
    """After the end, after a short circuit, after a failure further down, after an iterator is dropped."""
    numbers = local_context.stream(range(50)).gather(map_concurrent(4, str))
    numbers.to_list()
    numbers.find_first()
    with pytest.raises(ZeroDivisionError):
        numbers.map(lambda text: 1 // int(text)).to_list()
    assert next(iter(numbers)) == "0"
    end = time.monotonic() + 3
    while (left := [each for each in threading.enumerate() if each.name.startswith("dstream-call")]) and (
        time.monotonic() < end
    ):
        time.sleep(0.01)

    assert left == []


def test_items_are_read_lazily(engine):
    """Nothing before the end, no further partition than a short circuit needs."""
    source = Parts([1, 2], [3], [4])
    stream = engine.context.read(source).gather(map_concurrent(2, str))
    assert source.parts_read == []
    assert stream.find_first().get() == "1"
    assert source.parts_read == [0]


@pytest.mark.parametrize("partitions", [1, 2, 5])
def test_a_rate_holds_over_all_tasks(engine, partitions):
    """However many tasks there are, and follow one another: no second sees more than the rate, and one."""
    calls = Calls()
    stream = engine.stream(range(36), partitions).gather(map_concurrent(8, calls.function(), rate=30))

    assert stream.to_list() == [[n] for n in range(36)]
    assert most_in_a_second([when for _, when in calls.made]) <= 31


def most_in_a_second(times):
    """Return how many calls at most began in any second."""
    times = sorted(times)
    return max(sum(start <= each < start + 1 for each in times) for start in times)


def test_a_rate_holds_for_results_that_are_read_twice(engine):
    """They are called for once on Spark; here each reading calls, one after the other."""
    calls = Calls()
    called = engine.stream(range(8), 2).gather(map_concurrent(8, calls.function(), rate=20))
    both = (called + called.map(list)).to_list()

    assert both == [[n] for n in range(8)] * 2
    assert most_in_a_second([when for _, when in calls.made]) <= 21
    assert len(calls.made) == (8 if engine.name == "spark" else 16)


def test_what_cannot_travel_is_named(spark_context):
    """The variable of the function, as for every step."""
    lock = threading.Lock()
    with pytest.raises(SerializationError, match=r"\.gather\(map_concurrent\(2, lambda\)\).*the variable 'lock'"):
        spark_context.stream([1]).gather(map_concurrent(2, lambda n: lock and n)).to_list()


def test_the_order_of_batches_is_kept_when_partitions_come_together(spark_context):
    """Many items of more partitions than there are cores."""
    stream = spark_context.stream(range(20_000), 7).gather(map_concurrent(8, str, rate=1e9))

    assert stream.to_list() == list(map(str, range(20_000)))


def test_calls_follow_a_shuffle_and_come_before_one(engine):
    """Behind `distinct`, before `sorted`."""
    stream = engine.stream([3, 1, 2, 3, 1], 3).distinct().gather(map_concurrent(2, slowly, rate=5000)).sorted()

    assert stream.to_list() == [-3, -2, -1]


def test_calls_need_a_gatherer_of_this_kind():
    """`gather` takes nothing else."""
    with pytest.raises(TypeError, match="gatherer must be a Gatherer"):
        Stream.of(1).gather(map_concurrent)
    assert Stream.of(1, 2).gather(map_concurrent(1, itertools.repeat)).count() == 2
