"""Entries of a cache expire; the clock is turned by hand."""

from __future__ import annotations

import pickle

import pytest

from dstream.collections import Expiring, stored_options
from dstream.errors import IllegalStateError
from dstream.spi.store import Options
from tests.collections.stored import Clock


@pytest.fixture
def clock():
    """A clock that is turned by hand."""
    return Clock()


def test_a_cache_is_a_map_as_long_as_nothing_expires(make):
    """Values are not seen as they are stored."""
    sessions = make.cache({"Ada": "a"}, ttl=60)

    assert (sessions["Ada"], sessions.put("Ada", "b"), sessions == {"Ada": "b"}, len(sessions)) == ("a", "a", True, 1)
    assert sessions.stream().to_list() == [("Ada", "b")]
    assert (sessions.replace("Ada", "b", "c"), sessions.remove("Ada", "c"), sessions.is_empty()) == (True, True, True)


def test_an_entry_lives_for_ttl_after_it_was_written(make, clock):
    """Reading it does not help, writing it again does."""
    sessions = make.cache({"Ada": 1, "Alan": 2}, clock=clock, ttl=60)
    clock.now += 59
    assert (sessions["Ada"], sessions.put("Alan", 3)) == (1, 2)
    clock.now += 1

    assert sessions == {"Alan": 3}


def test_an_entry_lives_for_max_idle_after_it_was_used(make, clock):
    """At least that long, and at most 1.1 times that."""
    sessions = make.cache({"used": 1, "left": 2}, clock=clock, max_idle=100)
    for _ in range(10):
        clock.now += 99
        assert sessions["used"] == 1
    assert "left" not in sessions

    clock.now += 111
    assert "used" not in sessions


@pytest.mark.parametrize("pause", [0.0, 1.0, 9.0, 9.99, 10.01, 50.0, 109.0])
def test_the_bounds_of_max_idle(make, clock, pause):
    """Whenever the last use was recorded, the entry lives at least 100 and at most 110 seconds after the last one."""
    sessions = make.cache({"Ada": 1}, clock=clock, max_idle=100)
    clock.now += pause
    assert sessions["Ada"] == 1
    last_use = clock.now

    clock.now = last_use + 99.99
    assert list(sessions) == ["Ada"]
    clock.now = last_use + 110.01
    assert list(sessions) == []


def test_a_use_near_the_end_of_ttl_does_not_shorten_the_life(make, clock):
    """Where both bounds are near each other, the entry still lives as long as the nearer one."""
    sessions = make.cache({"Ada": 1}, clock=clock, ttl=115, max_idle=100)
    clock.now += 80
    assert sessions["Ada"] == 1
    clock.now += 34.9
    assert sessions["Ada"] == 1
    clock.now += 0.1

    assert "Ada" not in sessions


def test_a_use_is_recorded_once_in_a_tenth_of_max_idle(make, clock):
    """Reading is not writing every time."""
    sessions = make.cache({"Ada": 1}, clock=clock, max_idle=100)
    writes = counted_writes(sessions)
    for _ in range(100):
        clock.now += 1
        sessions.get("Ada")

    assert len(writes) in (9, 10)


def counted_writes(cache):
    """Return a list to which every change of the stored entries adds something."""
    writes, store = [], cache.store._store
    update = store.update
    store.update = lambda keys, change: writes.append(keys) or update(keys, change)
    return writes


def test_iterating_is_no_use(make, clock):
    """Nor are streams, sizes and tables."""
    sessions = make.cache({"Ada": 1}, clock=clock, max_idle=100)
    clock.now += 60
    assert (list(sessions.items()), sessions.size(), sessions.stream().count()) == ([("Ada", 1)], 1, 1)
    clock.now += 60

    assert sessions.is_empty()


INVISIBLE = {
    "[]": lambda c: "Ada" in [*c],
    "get": lambda c: c.get("Ada", "none") != "none",
    "in": lambda c: "Ada" in c,
    "get_all": lambda c: c.get_all(["Ada"]) != {},
    "len": lambda c: len(c) != 0,
    "bool": lambda c: bool(c),
    "items": lambda c: list(c.items()) != [],
    "values": lambda c: list(c.values()) != [],
    "copy": lambda c: c.copy() != {},
    "==": lambda c: c != {},
    "stream": lambda c: c.stream().count() != 0,
    "put": lambda c: c.put("Ada", 5) is not None,
    "put_if_absent": lambda c: c.put_if_absent("Ada", 5) is not None,
    "setdefault": lambda c: c.setdefault("Ada", 5) != 5,
    "replace": lambda c: c.replace("Ada", 5) is not None,
    "replace if": lambda c: c.replace("Ada", 1, 5),
    "remove": lambda c: c.remove("Ada") is not None,
    "remove if": lambda c: c.remove("Ada", 1),
    "pop": lambda c: c.pop("Ada", None) is not None,
    "execute_on_key": lambda c: c.execute_on_key("Ada", lambda entry: entry.value) is not None,
    "execute_on_entries": lambda c: c.execute_on_entries(lambda entry: entry.value) != {},
    "repr": lambda c: "Ada" in repr(c),
    "html": lambda c: "Ada" in c._repr_html_(),
    "arrow": lambda c: c.to_arrow().num_rows != 0,
}


@pytest.mark.parametrize("sees", INVISIBLE)
def test_an_expired_entry_is_invisible(make, clock, sees):
    """To every operation."""
    sessions = make.cache({"Ada": 1}, clock=clock, ttl=60)
    clock.now += 60

    assert not INVISIBLE[sees](sessions)


@pytest.mark.parametrize("meet", ["get", "in", "get_all", "execute_on_key", "remove"])
def test_an_expired_entry_is_removed_when_it_is_met(make, clock, meet):
    """By a lookup or a change; the stored map is empty then."""
    sessions = make.cache({"Ada": 1}, clock=clock, ttl=60)
    clock.now += 60
    INVISIBLE[meet](sessions)

    assert sessions.store.stored_size() == 0


def test_a_new_value_after_expiry_lives_its_own_time(make, clock):
    """Whichever way it gets there."""
    sessions = make.cache({"Ada": 1}, clock=clock, ttl=60)
    clock.now += 70
    assert (sessions.put_if_absent("Ada", 2), sessions.put_if_absent("Ada", 3)) == (None, 2)
    clock.now += 59

    assert sessions == {"Ada": 2}


def test_purge_removes_what_expired(make, clock):
    """And says how many entries that were."""
    sessions = make.cache({n: n for n in range(1500)}, clock=clock, ttl=60)
    clock.now += 30
    sessions.update({n: n for n in range(1400, 1600)})
    clock.now += 30

    assert (sessions.purge(), sessions.purge(), sessions.store.stored_size()) == (1400, 0, 200)


def test_purge_leaves_what_was_written_again_meanwhile(make, clock):
    """And does not count it."""
    sessions = make.cache({"Ada": 1, "Alan": 2}, clock=clock, ttl=60)
    clock.now += 60
    store = sessions.store._store
    update = store.update

    def meddling(keys, change):
        store.update = update
        sessions.put("Ada", 3)
        return update(keys, change)

    store.update = meddling
    assert (sessions.purge(), sessions.copy()) == (1, {"Ada": 3})


def test_a_key_may_be_met_twice_in_one_lookup(make, clock):
    """Also one that is to be removed, or whose use is to be recorded."""
    sessions = make.cache({"Ada": 1, 1: 2}, clock=clock, max_idle=100)
    clock.now += 50
    assert sessions.get_all(["Ada", 1, "Ada", 1.0, True]) == {"Ada": 1, 1: 2}
    clock.now += 111

    assert sessions.get_all(["Ada", "Ada"]) == {}


def test_a_stream_leaves_out_what_is_expired_when_it_starts(make, clock):
    """However long it then takes."""
    sessions = make.cache({"Ada": 1}, clock=clock, ttl=60)
    stream, items = sessions.stream(), iter(sessions.items())
    clock.now += 60

    assert (stream.to_list(), list(items)) == ([], [("Ada", 1)])


def test_splits_of_a_cache_travel_with_their_time(make, clock):
    """A worker's clock does not matter."""
    sessions = make.cache({"Ada": 1}, clock=clock, ttl=60)
    splits = pickle.loads(pickle.dumps(sessions.store.splits(2)))
    clock.now += 999

    assert [entry for split in splits for entry in split.read()] == [("Ada", 1)]


def test_a_job_stamps_what_it_writes(make, clock):
    """Its values live from the time at which they are written."""
    sessions = make.cache({"Ada": 1}, clock=clock, ttl=60)
    write(sessions, {"Ada": 2, "Alan": 3}, clock)
    clock.now += 59
    assert sessions == {"Ada": 2, "Alan": 3}
    clock.now += 1

    assert sessions == {}


def test_a_job_merges_only_with_what_is_not_expired(make, clock):
    """What is gone is as if it had never been."""
    sessions = make.cache({"gone": 1}, clock=clock, ttl=60)
    clock.now += 60
    sessions["there"] = 1
    write(sessions, {"gone": 10, "there": 10, "new": 10}, clock, merge=lambda old, new: old + new)

    assert sessions == {"gone": 10, "there": 11, "new": 10}


def test_a_job_may_replace_the_content(make, clock):
    """What was there disappears in the same commit."""
    sessions = make.cache({"Ada": 1}, clock=clock, ttl=60)
    write(sessions, {"Alan": 2}, clock, replace=True)

    assert sessions == {"Alan": 2}


def write(cache, entries, clock, **options):
    """Write entries as a job does."""
    job = cache.store.begin(None, **options)
    writer = pickle.loads(pickle.dumps(job.writer))
    buckets = {}
    for key, value in entries.items():
        buckets.setdefault(writer.bucket_of(key), []).append((key, value))
    assert max(buckets) < writer.buckets
    receipts = [receipt for bucket, some in buckets.items() for receipt in writer.write_bucket(bucket, iter(some))]
    assert not job.is_done
    job.commit(receipts)
    assert job.is_done
    job.abort()


def test_the_value_type_is_that_of_the_user(make):
    """Not that of what is stored."""
    assert make.cache(ttl=60, key_type=str, value_type=int).value_type is int
    assert make.cache(name="other", ttl=60).value_type is None
    assert stored_options(Options(value_type=int, ttl=1)).value_type == Expiring[int]


@pytest.mark.parametrize("options", [{"ttl": 0}, {"ttl": -1}, {"max_idle": 0.0}, {"max_idle": float("nan")}])
def test_times_must_be_positive(options):
    """The message names the option."""
    (name,) = options
    with pytest.raises(ValueError, match=f"{name} must be a positive number of seconds"):
        stored_options(Options(**options))


def test_a_cache_keeps_a_journal_if_it_is_told_to(make):
    """The message says how."""
    with pytest.raises(IllegalStateError, match=r"get_cache\('sessions', journal=True\) makes one that does"):
        make.cache(ttl=1).journal()


def test_the_journal_of_a_cache_has_changes_only(make, clock):
    """A use is none, also one that is recorded; what expired is gone when somebody meets it."""
    sessions = make.cache(clock=clock, max_idle=10, journal=True)
    sessions.update(Ada=1, Alan=1)
    clock.now += 9
    assert (sessions["Ada"], sessions.put("Ada", 2)) == (1, 1)
    clock.now += 10
    assert sessions.get("Alan") is None
    clock.now += 10
    sessions["Ada"] = 3

    events = [(event.kind, event.key, event.old_value, event.new_value) for event in sessions.journal()]
    assert events[:2] == [("ADDED", "Ada", None, 1), ("ADDED", "Alan", None, 1)]
    assert events[2:] == [("UPDATED", "Ada", 1, 2), ("REMOVED", "Alan", 1, None), ("ADDED", "Ada", None, 3)]
