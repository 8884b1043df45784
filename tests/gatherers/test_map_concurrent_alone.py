"""`map_concurrent` without an engine: its calls, its threads, its waiting."""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from dataclasses import replace

import pytest

from dstream.errors import IllegalStateError
from dstream.gatherers import Retry, map_concurrent
from reducers import to_ilist


def timed(gatherer, clock):
    """Return the calls of a gatherer on a clock that is turned by hand."""
    return replace(gatherer.parallel, clock=clock)


class Flight:
    """Counts the calls that are in flight, and knows when three of them have been."""

    def __init__(self):
        self.now = self.most = 0
        self.full = threading.Event()
        self.lock = threading.Lock()

    def __enter__(self):
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
            if self.now == 3:
                self.full.set()

    def __exit__(self, *exc_info):
        with self.lock:
            self.now -= 1


def left_threads(within=2.0):
    """Return the threads of calls that are still there after a while."""
    end = time.monotonic() + within
    while (found := [each.name for each in threading.enumerate() if each.name.startswith("dstream-call")]) and (
        time.monotonic() < end
    ):
        time.sleep(0.005)
    return found


@pytest.mark.parametrize("is_async", [False, True])
def test_no_more_calls_are_in_flight_than_allowed(is_async):
    """With n=3, three calls run at the same time, never four, and the order of the items is kept."""
    flight = Flight()

    def plain(n):
        with flight:
            assert flight.full.wait(10)
            time.sleep(0.002 * (n % 3))
            return n

    async def asynchronous(n):
        with flight:
            while not flight.full.is_set():
                await asyncio.sleep(0.001)
            await asyncio.sleep(0.002 * (n % 3))
            return n

    fn = asynchronous if is_async else plain
    assert list(map_concurrent(3, fn).gather(range(20))) == list(range(20))
    assert (flight.most, left_threads()) == (3, [])


@pytest.mark.parametrize("n", [1, 2, 5])
def test_no_more_items_are_read_ahead_than_calls_are_allowed(n):
    """Before the first result is asked for nothing is read; then up to n items, and one more for each result."""
    numbers = itertools.count()
    results = map_concurrent(n, lambda number: time.sleep(0.01) or number).gather(numbers)
    first = next(results)
    results.close()

    assert (first, 1 <= next(numbers) <= n) == (0, True)


def test_calls_in_flight_are_cancelled_when_nobody_wants_more():
    """A coroutine that would wait for an hour is cancelled, and the loop is gone at once."""
    cancelled = []

    async def fetch(n):
        try:
            await asyncio.sleep(3600 * n)
        except asyncio.CancelledError:
            cancelled.append(n)
            raise
        return n

    results = map_concurrent(3, fetch).gather([0, 1, 2, 3])
    assert next(results) == 0
    started = time.monotonic()
    results.close()

    assert (set(cancelled) <= {1, 2}, left_threads(), time.monotonic() - started < 2) == (True, [], True)


def test_threads_start_no_call_that_nobody_wants():
    """A call that fails meanwhile is not repeated; nobody waits for the one that runs."""
    started, begun, go_on = [], threading.Event(), threading.Event()

    def fetch(n):
        started.append(n)
        if n == 0:
            begun.wait(10)
            return n
        begun.set()
        go_on.wait(10)
        raise ValueError

    results = map_concurrent(2, fetch, retry=Retry(5, delay=60)).gather(range(9))
    assert next(results) == 0
    results.close()
    go_on.set()

    assert (left_threads(), started) == ([], [0, 1])


def test_a_generator_that_is_dropped_ends_its_threads():
    """Nobody needs to close it."""
    results = map_concurrent(4, str).gather(itertools.count())
    assert next(results) == "0"
    del results

    assert left_threads() == []


@pytest.mark.parametrize("is_async", [False, True])
def test_calls_are_repeated_after_longer_and_longer_waits(clock, is_async):
    """`Retry(3, delay=1, factor=3)` waits for 1, 3 and 9 seconds; then the exception is what it was."""
    made = []

    def plain(n):
        made.append(n)
        raise OSError(len(made))

    async def asynchronous(n):
        plain(n)

    calling = timed(map_concurrent(1, asynchronous if is_async else plain, retry=Retry(3, delay=1, factor=3)), clock)
    (outcome,) = calling.outcomes([7])

    assert (made, clock.waits, type(outcome.error), str(outcome.error)) == ([7] * 4, [1, 3, 9], OSError, "4")


@pytest.mark.parametrize("is_async", [False, True])
def test_only_the_exceptions_that_are_named_are_repeated(clock, is_async):
    """Another one is final; a call that succeeds the second time gives its result."""
    made = []

    def plain(n):
        made.append(n)
        if made.count(n) == 1:
            raise OSError if n else KeyError(n)
        return n

    async def asynchronous(n):
        return plain(n)

    calling = timed(map_concurrent(1, asynchronous if is_async else plain, retry=Retry(2, on=OSError)), clock)
    outcomes = list(calling.outcomes([0, 1]))

    assert ([type(each.error) for each in outcomes], outcomes[1].result) == ([KeyError, type(None)], 1)
    assert (made, clock.waits) == ([0, 1, 1], [0.1])


@pytest.mark.parametrize("is_async", [False, True])
def test_a_rate_spaces_calls_evenly_repeated_ones_too(clock, is_async):
    """With 10 calls a second, 5 % below, calls begin 0.105 seconds apart, the first one after its step began."""
    begun = []

    def plain(n):
        begun.append(clock.time)
        if len(begun) == 2:
            raise OSError

    async def asynchronous(n):
        plain(n)

    calling = timed(map_concurrent(1, asynchronous if is_async else plain, rate=10, retry=Retry(1, delay=0)), clock)
    list(calling.outcomes(range(4)))

    assert len(begun) == 5
    assert begun[0] > 1000
    assert [round(right - left, 6) for left, right in itertools.pairwise(begun)] == [0.105] * 4


def test_tasks_that_share_a_rate_never_begin_at_the_same_time(clock):
    """Each of three slots has every third step; tasks that follow one another in a slot wait for the next one."""
    begun = []
    for task in range(6):
        clock.time = 1000.01 + task // 3 * 3
        calling = timed(map_concurrent(1, lambda n: begun.append(clock.time), rate=3), clock)
        list(calling.outcomes(range(2), task % 3, 3))
    begun.sort()

    assert all(right - left > 0.349 for left, right in itertools.pairwise(begun))


@pytest.mark.parametrize("rate", [3, 7, 30, 999])
def test_no_step_is_taken_twice_however_far_1970_is(clock, rate):
    """The seconds of today leave a float few digits behind the point."""
    clock.time = 1_795_326_893.0802226
    begun = []
    list(timed(map_concurrent(1, lambda n: begun.append(clock.time), rate=rate), clock).outcomes(range(200), 1, 2))

    assert all(right - left > 2.09 / rate for left, right in itertools.pairwise(begun))


def test_a_call_that_comes_too_late_waits_for_another_turn(clock):
    """A machine that slept for a minute makes no burst of calls afterwards."""
    clock.late = 60
    begun = []
    list(timed(map_concurrent(1, lambda n: begun.append(clock.time), rate=10), clock).outcomes([1]))

    assert (len(clock.waits), begun[0] > 1060) == (2, True)


def test_what_fails_further_ahead_is_raised_in_its_turn():
    """Results before a failing call, and before a failing item, come first, as in a loop."""

    def items():
        yield from (1, 2)
        raise OSError("no more")

    results = map_concurrent(9, str).gather(items())
    assert [next(results), next(results)] == ["1", "2"]
    with pytest.raises(OSError, match="no more"):
        next(results)

    results = map_concurrent(9, lambda n: 1 // n).gather([1, 0])
    assert next(results) == 1
    with pytest.raises(ZeroDivisionError):
        next(results)


def test_stop_iteration_of_a_function_is_no_end_of_the_items():
    """It becomes a RuntimeError, as in a generator."""
    with pytest.raises(RuntimeError, match="raised StopIteration"):
        list(map_concurrent(2, lambda n: next(iter(()))).gather([1]))


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit])
@pytest.mark.parametrize("given", [{}, {"on_error": None, "retry": 1}])
def test_what_ends_a_program_comes_out_of_a_coroutine_as_it_is(kind, given):
    """The loop lives on until it is closed, so that nobody waits for ever; nothing takes its place."""

    async def end(n):
        if n == 1:
            raise kind
        await asyncio.sleep(60)

    with pytest.raises(kind):
        list(map_concurrent(3, end, **given).gather([1, 2, 3]))


def test_a_coroutine_that_was_cancelled_has_failed():
    """Whoever cancelled it was not the step: the failure is one of this item."""

    async def cancel(n):
        raise asyncio.CancelledError

    assert list(map_concurrent(2, cancel, on_error="late").gather([1, 2])) == ["late", "late"]
    with pytest.raises(RuntimeError, match="raised CancelledError"):
        list(map_concurrent(2, cancel).gather([1]))


def test_equal_items_are_called_once_with_a_cache():
    """Also while the first call is in flight, also if it failed."""
    calls = []

    def fetch(n):
        calls.append(n)
        time.sleep(0.005)
        return 1 // n

    assert list(map_concurrent(4, fetch, cache=True, on_error="failed").gather([2, 0, 2, 0, 2.0, 1])) == [
        0, "failed", 0, "failed", 0, 1,
    ]  # fmt: skip
    assert sorted(calls) == [0, 1, 2]


def test_a_function_that_gives_a_coroutine_is_refused():
    """A lambda around an async function runs nothing: it says what to give instead."""

    async def fetch(n):
        return n

    with pytest.raises(TypeError, match=r"give map_concurrent\(\) the async function itself"):
        list(map_concurrent(2, lambda n: fetch(n)).gather([1]))


def test_dead_letters_need_a_stream():
    """Without one nobody knows where the reducer's collection is."""
    with pytest.raises(IllegalStateError, match=r"needs stream\.gather"):
        list(map_concurrent(2, int, on_error=to_ilist("bad")).gather(["x"]))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"n": 0}, ValueError, "n must be at least 1: 0"),
        ({"n": "3"}, TypeError, "n must be an int, not str"),
        ({"n": True}, TypeError, "n must be an int, not bool"),
        ({"fn": None}, TypeError, "fn must be a function, not None"),
        ({"rate": 0}, ValueError, "rate must be a number of calls a second above 0, not 0"),
        ({"rate": float("nan")}, ValueError, "rate must be"),
        ({"rate": "9"}, TypeError, "rate must be a number of calls a second, not str"),
        ({"retry": -1}, ValueError, "retry must not be negative: -1"),
        ({"retry": 0.5}, TypeError, "retry must be an int or a Retry, not float"),
        ({"cache": 1}, TypeError, "cache must be True or False, not int"),
    ],
)
def test_bad_arguments_are_refused_at_the_call(arguments, error, message):
    """With the name of the argument, before anything runs."""
    with pytest.raises(error, match=message):
        map_concurrent(**{"n": 1, "fn": str} | arguments)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((-1,), ValueError, "times must not be negative"),
        ((1.5,), TypeError, "times must be an int"),
        ((1, -0.1), ValueError, "delay must be a number from 0"),
        ((1, 1, 0.5), ValueError, "factor must be a number from 1"),
        ((1, "1"), TypeError, "delay must be a number, not str"),
        ((1, 1, 2, KeyboardInterrupt), TypeError, "on must be a class of exceptions"),
        ((1, 1, 2, ()), TypeError, "on must be a class of exceptions"),
    ],
)
def test_a_retry_that_makes_no_sense_is_refused(arguments, error, message):
    """With the name of the argument."""
    with pytest.raises(error, match=message):
        Retry(*arguments)
