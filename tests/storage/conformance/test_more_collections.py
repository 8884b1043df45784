"""Sets, counters and queues on every storage: what many threads and processes do to them, each does whole."""

from __future__ import annotations

import collections
import math
import threading
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dstream.collections.counter import IStreamCounter
from dstream.collections.queue import IStreamQueue
from dstream.collections.set import IStreamSet
from dstream.errors import CollectionDestroyedError, IllegalStateError, NullElementError, UnstableKeyError
from dstream.spi.store import Options
from tests.failures.test_items import Mute

OPTIONS = {"set": Options(value_type=bool), "counter": Options(key_type=str, value_type=int, buckets=1)}
OPTIONS["queue"] = Options(key_type=int, value_type=tuple, buckets=1)
few = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


class Open:
    """What a handle needs of a context that is never closed."""

    def check_open(self):
        """Be open."""


class Clock:
    """A clock that is turned by hand, also by who waits."""

    now = 1000.0

    def __call__(self):
        """Give the time."""
        return self.now

    def sleep(self, seconds):
        """Advance the time."""
        self.now += seconds


def make(kind, storage, *more):
    """Return a handle to the one collection of a kind."""
    handles = {"set": IStreamSet, "counter": IStreamCounter, "queue": IStreamQueue}
    return handles[kind](storage.create(kind, "one", OPTIONS[kind]), Open(), *more)


# ----------------------------------------------------------------------------------------------------------------- sets


def test_a_set_holds_each_item_once(storage):
    """Items are equal as in Python, and every NaN is one."""
    numbers = make("set", storage)
    numbers.update([1, 1.0, True, math.nan, float("nan"), "1"])
    numbers.add("1")

    assert len(numbers) == 3
    assert 1.0 in numbers
    assert math.nan in numbers
    assert 2 not in numbers
    assert None not in numbers


@few
@given(st.lists(st.tuples(st.sampled_from(["add", "discard", "remove", "update", "pop", "clear"]), st.integers(0, 4))))
def test_a_set_is_that_of_python(storage, calls):
    """After any calls it holds the same items, and refuses what a set refuses."""
    ours, theirs = make("set", storage), set()
    ours.clear()
    for name, n in calls:
        argument = {"update": ([n, n + 1],), "pop": (), "clear": ()}.get(name, (n,))
        if name == "pop" and theirs:
            theirs.remove(ours.pop())
            continue
        outcomes = []
        for each in (theirs, ours):
            try:
                outcomes.append(getattr(each, name)(*argument))
            except KeyError:
                outcomes.append("KeyError")
        assert outcomes[0] == outcomes[1]

    assert ours == theirs
    assert set(ours) == theirs
    assert (ours | {9}, ours & {1}, ours - {1}) == (
        theirs | {9},
        theirs & {1},
        theirs - {1},
    )


@pytest.mark.parametrize("kind", [set, frozenset, list, tuple, iter])
def test_every_nan_is_one_item_of_either_side(storage, kind):
    """A set of the caller's finds a NaN by its identity, which no item keeps in a storage."""
    numbers = make("set", storage)
    numbers.update([1, math.nan, (2, math.nan)])

    assert numbers - kind([float("nan"), (2, float("nan")), 5]) == {1}
    assert len(numbers ^ kind([float("nan"), 1])) == 1
    assert len(numbers | kind([float("nan"), (2, float("nan"))])) == 3
    numbers &= kind([float("nan"), (2, float("nan")), 5])
    assert len(numbers) == 2
    numbers ^= kind([float("nan"), 1])
    assert (len(numbers), (2, float("nan")) in numbers) == (2, True)


def test_sets_that_hold_nan_are_compared(storage):
    """As the same sets without it are."""
    numbers = make("set", storage)
    numbers.update([1, math.nan])

    assert numbers == {float("nan"), 1}
    assert numbers <= {float("nan"), 1, 2} > numbers
    assert not numbers < {float("nan"), 1}
    assert numbers != {float("nan"), 2}
    assert numbers.__le__([1, math.nan]) is NotImplemented


def test_of_several_who_remove_an_item_one_succeeds(storage, use):
    """`pop()` gives each item to one caller."""
    numbers, taken = make("set", storage), []
    numbers.update(range(20))
    use.together(*[lambda: taken.extend(numbers.pop() for _ in range(5)) for _ in range(4)])

    assert sorted(taken) == list(range(20))
    with pytest.raises(KeyError):
        numbers.pop()


def test_a_set_refuses_what_it_cannot_find_again(storage):
    """Nothing is added then."""
    numbers = make("set", storage)
    with pytest.raises(NullElementError, match="set 'one' cannot hold None"):
        numbers.update([1, None])
    with pytest.raises(UnstableKeyError):
        numbers.add(object())

    assert not numbers


# ------------------------------------------------------------------------------------------------------------- counters


def test_a_counter_adds_up(storage):
    """From 0, to either side, without bounds; each call returns the sum."""
    counter = make("counter", storage)

    assert (counter.get(), counter.add(), counter.add(-3), counter.add(10**30)) == (0, 1, -2, 10**30 - 2)
    assert int(make("counter", storage)) == 10**30 - 2


def test_nothing_that_is_added_is_lost(storage, use):
    """Each sum is returned once, to whoever made it."""
    counter, sums = make("counter", storage), []
    use.together(*[lambda: sums.extend(counter.add() for _ in range(25)) for _ in range(4)])

    assert sorted(sums) == list(range(1, 101))


@pytest.mark.parametrize("wrong", [1.5, "1", None, True])
def test_a_counter_adds_ints_only(storage, wrong):
    """The argument is refused at the call."""
    with pytest.raises(TypeError, match="n must be an int"):
        make("counter", storage).add(wrong)


# --------------------------------------------------------------------------------------------------------------- queues


def test_a_queue_gives_what_came_first(storage):
    """None and values that cannot be keys are items too; what is taken is gone."""
    queue = make("queue", storage)
    queue.put(None)
    queue.put_all([[1], {"a": 2}])

    assert len(queue) == 3
    assert [queue.take(), queue.take(), make("queue", storage).take()] == [None, [1], {"a": 2}]
    with pytest.raises(TimeoutError, match="queue 'one' had no item within 0 seconds"):
        queue.take(timeout=0)


@few
@given(st.lists(st.sampled_from(["put", "put_all", "take", "lease", "fail", "clear"]), max_size=12))
def test_a_queue_is_a_deque(storage, calls):
    """Whatever is put, taken, leased and given back, in whatever order."""
    ours, theirs, numbers = make("queue", storage), collections.deque(), iter(range(99))
    ours.clear()
    for name in calls:
        if name in ("put", "put_all"):
            new = [next(numbers) for _ in range(1 if name == "put" else 3)]
            ours.put(new[0]) if name == "put" else ours.put_all(new)
            theirs.extend(new)
        elif name == "clear":
            ours.clear(), theirs.clear()
        elif theirs:
            assert look(ours, name) == theirs[0]
            theirs.popleft() if name != "fail" else None

    assert [row[0] for row in ours._walk()] == list(theirs)
    assert len(ours) == len(theirs)


def look(queue, how):
    """Take an item, or lease it and let the block end or fail."""
    if how == "take":
        return queue.take(timeout=0)
    try:
        with queue.lease(60, timeout=0) as item:
            if how == "fail":
                raise LookupError
    except LookupError:
        pass
    return item


def test_what_is_leased_is_nobody_elses(storage):
    """Until the block ends; it counts as an item of the queue until then."""
    queue = make("queue", storage)
    queue.put_all("ab")
    with queue.lease(60) as first, queue.lease(60) as second:
        assert (first, second, len(queue)) == ("a", "b", 2)
        with pytest.raises(TimeoutError):
            queue.take(timeout=0)

    assert queue.is_empty()


def test_a_block_that_fails_gives_its_item_back(storage):
    """To the front, at once, and the exception leaves the block as it is."""
    queue = make("queue", storage)
    queue.put_all("ab")
    with pytest.raises(OSError, match="disk"), queue.lease(60):
        raise OSError("disk")

    assert [queue.take(), queue.take()] == ["a", "b"]


@pytest.mark.parametrize("failure", [IllegalStateError("damaged"), OSError(28, "No space left on device")])
def test_a_block_fails_as_it_did_though_its_item_is_not_given_back(storage, monkeypatch, failure):
    """A storage that fails then adds a note to the exception, and does not take its place."""
    queue = make("queue", storage)
    queue.put("a")

    def work():
        with queue.lease(60):
            monkeypatch.setattr(queue, "_change", fails(failure))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as raised:
        work()

    assert raised.value.__notes__ == [
        f"queue {queue.name!r} gets the item back at the end of its lease, for now: {failure}"
    ]


def test_a_block_fails_with_an_exception_that_takes_no_notes(storage, monkeypatch):
    """It is raised without the note that its item is not given back."""
    queue = make("queue", storage)
    queue.put("a")

    def work():
        with queue.lease(60):
            monkeypatch.setattr(queue, "_change", fails(OSError(28, "No space left on device")))
            raise Mute

    with pytest.raises(Mute):
        work()


def fails(failure):
    """Return a function that raises."""

    def fail(*given):
        raise failure

    return fail


def test_a_lease_that_ends_gives_its_item_back(storage):
    """Then it is somebody else's, and who had it first is told so at the end of the block."""
    clock = Clock()
    queue = make("queue", storage, clock, clock.sleep)
    queue.put_all("ab")
    with pytest.raises(IllegalStateError, match="for longer than its lease of 5 seconds"), queue.lease(5):
        assert [clock.sleep(5), queue.take()] == [None, "a"]

    assert queue.take() == "b"
    assert not queue


def test_nobody_ends_the_lease_of_somebody_else(storage):
    """Who slept through the end of a lease leaves the item to who has it now."""
    clock = Clock()
    queue = make("queue", storage, clock, clock.sleep)
    queue.put("a")
    late = queue.lease(5)
    assert [late.__enter__(), clock.sleep(6)] == ["a", None]
    with queue.lease(60) as item:
        with pytest.raises(IllegalStateError):
            late.__exit__(None, None, None)
        assert (item, len(queue)) == ("a", 1)

    assert queue.is_empty()


def test_a_lease_of_a_queue_that_was_cleared_says_so(storage):
    """The item is gone, and no longer lease would have kept it; what was put since stays."""
    queue = make("queue", storage)
    queue.put("a")
    with pytest.raises(IllegalStateError, match="or somebody cleared the queue"), queue.lease(60):
        assert [queue.clear(), queue.put("b")] == [None, None]

    assert queue.take(0) == "b"


def test_a_lease_that_nobody_missed_ends_well(storage):
    """A block that takes too long still removes the item if nobody else has asked for it."""
    clock = Clock()
    queue = make("queue", storage, clock, clock.sleep)
    queue.put("a")
    with queue.lease(5):
        clock.now += 60

    assert queue.is_empty()


def test_who_waits_gets_what_comes(storage):
    """`take()` looks again and again, without an end if it has none."""
    queue = make("queue", storage)
    waiting = make("queue", storage, time.time, lambda seconds: queue.put("late"))

    assert waiting.take() == "late"
    threading.Timer(0.02, queue.put, ["later"]).start()
    assert queue.take(timeout=20) == "later"


def test_nothing_is_lost_or_taken_twice_by_threads(storage, use):
    """While some put, others take and lease."""
    queue, got = make("queue", storage), []

    def leased():
        with queue.lease(60, timeout=20) as item:
            got.append(item)

    use.together(
        *[lambda start=start: [queue.put(start + n) for n in range(10)] for start in (0, 10)],
        lambda: got.extend(queue.take(timeout=20) for _ in range(10)),
        lambda: [leased() for _ in range(10)],
    )

    assert sorted(got) == list(range(20))
    assert queue.is_empty()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda queue: queue.take("x"), TypeError, "timeout must be a number of seconds, not str"),
        (lambda queue: queue.take(-1), ValueError, "timeout must be at least 0, not -1"),
        (lambda queue: queue.take(math.nan), ValueError, "timeout must be at least 0"),
        (lambda queue: queue.lease(0).__enter__(), ValueError, "seconds must be above 0, not 0"),
        (lambda queue: queue.lease(None).__enter__(), TypeError, "seconds must be a number of seconds, not None"),
    ],
)
def test_wrong_times_are_refused(storage, call, error, message):
    """Nothing is taken then."""
    queue = make("queue", storage)
    queue.put(1)
    with pytest.raises(error, match=message):
        call(queue)

    assert len(queue) == 1


# ----------------------------------------------------------------------------------------------------- names, processes


@pytest.mark.parametrize("kind", ["set", "counter", "queue"])
def test_what_was_destroyed_is_gone(storage, kind):
    """Its name goes, and each handle says so; a new one of that name is empty."""
    handle, other = make(kind, storage), make(kind, storage)
    handle.put(1) if kind == "queue" else handle.add(1)
    assert storage.names() == [(kind, "one")]
    handle.destroy()

    assert storage.names() == []
    with pytest.raises(CollectionDestroyedError):
        other.size()
    assert make("counter", storage).get() == 0


def _work(backend):
    """Put numbers, take as many, then lease an item, say so, and never end."""
    queue, counter = (make(kind, backend.open()) for kind in ("queue", "counter"))
    for number in range(25):
        queue.put(number)
        counter.add()
        yield queue.take(timeout=20)
    while counter.get() <= 50:  # What the others still have to take is not to be leased.
        time.sleep(0.01)
    with queue.lease(0.5, timeout=20) as item:
        yield item
        time.sleep(60)


@pytest.mark.usefixtures("shared")
def test_processes_share_a_queue(backend, storage, elsewhere):
    """Nothing is lost or taken twice, and a process that is killed gives back what it leased."""
    queue, counter = make("queue", storage), make("counter", storage)
    working, taken = elsewhere(_work, backend), []
    said = working.said()
    for number in range(25, 50):
        queue.put(number), counter.add()
        taken += [queue.take(timeout=20), next(said)]
    assert (sorted(taken), counter.add()) == (list(range(50)), 51)

    queue.put("job")
    assert next(said) == "job"
    working.kill()
    assert queue.take(timeout=20) == "job"
