"""`imap_journal`: the changes of a map, in ranges of offsets."""

from __future__ import annotations

import datetime
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dstream as ds
from collectors import to_list
from dstream.errors import IllegalStateError, SourceError, UnsupportedError
from dstream.pipeline import Pipeline
from dstream.spi import OpenedLater, StreamSource, Timestamped, TimestampedBeside
from dstream.values import JournalEvent
from dstream.windows import tumbling
from reducers import to_ilist
from sources import icache_journal, imap_journal
from tests.jobs.unbounded.streams import eventually


@pytest.fixture(params=["lake", "memory"])
def context(request, tmp_path):
    """A context on each kind of storage that needs no server."""
    with ds.connect(engine="local", storage=tmp_path if request.param == "lake" else "memory:") as context:
        yield context


@pytest.fixture
def ages(context):
    """A map that keeps a journal, with two entries."""
    ages = context.get_map("ages", journal=True)
    ages.update(Ada=36)
    ages.update(Grace=85)
    return ages


def seen(events):
    """Return what matters of events."""
    return [(event.kind, event.key, event.new_value) for event in events]


def test_events_are_given_once_in_order(context, ages, follow):
    """From the oldest one on; removals only if they are asked for."""
    puts, everything = (follow(imap_journal("ages", events=events).opened(context)) for events in ("puts", "all"))
    assert seen(puts.news()) == seen(everything.news()) == [("ADDED", "Ada", 36), ("ADDED", "Grace", 85)]
    ages.update(Ada=37)
    del ages["Grace"]
    ages["Alan"] = 41
    changed, added = ("UPDATED", "Ada", 37), ("ADDED", "Alan", 41)

    assert seen(puts.news()) == [changed, added]
    assert seen(everything.news()) == [changed, ("REMOVED", "Grace", None), added]
    assert puts.news() == everything.news() == []


def test_a_job_may_begin_now_or_behind_an_event(context, ages, follow):
    """What happened before is left out."""
    first = next(ages.journal()).offset
    now, behind = (follow(imap_journal("ages", start=start).opened(context)) for start in ("current", first))
    ages["Alan"] = 41

    assert seen(now.news()) == [("ADDED", "Alan", 41)]
    assert seen(behind.news()) == [("ADDED", "Grace", 85), ("ADDED", "Alan", 41)]


def test_a_journal_says_how_much_is_left(context, ages):
    """Also of what its predicate leaves out; where it has read everything, nothing more is asked."""
    source = imap_journal("ages", predicate=lambda event: False).opened(context)
    for number in range(5):
        ages[f"n{number}"] = number
    found = [source.reach(source.begin(), most) for most in (1, 2, None)]
    last = source.reach(found[-1], 3)

    assert [each.left for each in (*found, last)] == [6, 5, 0, 0]


def test_functions_run_where_events_are_read(context, ages, follow):
    """First the predicate, then the projection; of which a None is dropped."""
    old = imap_journal("ages", "oldest", lambda event: event.new_value > 40, projection=lambda event: event.key)
    none = imap_journal("ages", projection=lambda event: None)

    assert [follow(each.opened(context)).news() for each in (old, none)] == [["Grace"], []]
    assert repr(old) == "imap_journal('ages', predicate=lambda, projection=lambda)"


def test_a_range_has_a_bound(context, ages, follow):
    """So many events, of one commit or of several, also of those that are left out."""
    ages.update({f"key {n}": n for n in range(5)})
    job = follow(imap_journal("ages").opened(context))

    assert [len(job.news(most)) for most in (1, 3, 0, 2, 9, 9)] == [1, 3, 0, 2, 1, 0]


@given(st.lists(st.dictionaries(st.sampled_from("abc"), st.integers(0, 2), max_size=3), max_size=6), st.integers(1, 4))
@settings(max_examples=12)
def test_ranges_are_the_journal(tmp_path_factory, follow, changes, most):
    """However they are cut."""
    with ds.connect(engine="local", storage=tmp_path_factory.mktemp("journal")) as context:
        store, events = context.get_map("m", journal=True), []
        job = follow(imap_journal("m", events="all").opened(context))
        for change in changes:
            store.update(change)
            events += job.news(most)
        while news := job.news(most):
            assert len(news) <= most
            events += news

        assert events == list(store.journal())


def test_events_that_are_gone_are_an_error(tmp_path, follow):
    """A vacuum removes what was folded; the error says behind which offset the journal may go on."""
    with ds.connect(engine="local", storage=tmp_path) as context:
        ages = context.get_map("ages", journal=True)
        ages["Ada"] = 36
        ages["Ada"] = 37
        ages.compact()
        job = follow(imap_journal("ages").opened(context))
        context.vacuum(0)
        [split] = job.ranges()

        with pytest.raises(SourceError, match=r"imap_journal\('ages'\): the journal of .* no longer reaches back"):
            list(split.read())


def test_events_that_miss_are_an_error(context, ages):
    """A range gives all events up to its end, or says so."""
    journal = imap_journal("ages").opened(context)
    last = journal.reach(journal.begin())["events"]

    with pytest.raises(SourceError, match=rf"the events between the offsets {last} and {last + 1} are gone"):
        list(journal.split("events", 0, last + 1).read())


def test_a_map_that_is_not_there_is_an_error(context, ages):
    """Or keeps no journal, or was destroyed."""
    with pytest.raises(SourceError, match=r"there is no map 'sizes' in this storage; get_map\('sizes', journal=True\)"):
        imap_journal("sizes").opened(context)
    context.get_map("plain")
    with pytest.raises(SourceError, match=r"the map keeps no journal; get_map.* makes one that does"):
        imap_journal("plain").opened(context)
    journal = imap_journal("ages").opened(context)
    ages.destroy()
    with pytest.raises(SourceError, match=r"imap_journal\('ages'\): .*destroyed"):
        journal.reach({})


def test_a_map_that_was_made_anew_is_an_error(context, ages):
    """A job that goes on would wait for events behind those of the old map, and miss those before."""
    offsets = imap_journal("ages").opened(context).reach({})
    ages.destroy()
    context.get_map("ages", journal=True)["Ada"] = 37

    with pytest.raises(SourceError, match=r"read up to the offset \d+, but the journal ends at \d+: .* made anew"):
        imap_journal("ages").opened(context).reach(offsets)
    assert imap_journal("ages", start=9**18).opened(context).reach({"events": 9**18}) == {"events": 9**18}


def test_it_is_a_name_until_it_is_opened():
    """By a context."""
    source = imap_journal("ages")

    assert (isinstance(source, StreamSource), isinstance(source, OpenedLater)) == (True, True)
    for ask in source.begin, lambda: source.reach({}), lambda: source.split("events", 0, 1):
        with pytest.raises(IllegalStateError, match=r"is a name until \.opened\(context\)"):
            ask()


@pytest.mark.parametrize("offsets", [-1, "x", [1], True])
def test_offsets_are_checked(context, ages, offsets):
    """They were kept anywhere."""
    journal = imap_journal("ages").opened(context)

    with pytest.raises(SourceError, match="is no offset of an event"):
        journal.reach({"events": offsets})
    with pytest.raises(SourceError, match="there is no partition 'other'"):
        journal.split("other", 0, 1)


def test_a_job_may_begin_at_a_time(context, ages, follow):
    """With what was committed from then on, which is all or nothing at the ends of time."""
    second = list(ages.journal())[1].timestamp
    while time.time() * 1000 < second + 2:
        pass
    ages["Alan"] = 41
    start = datetime.datetime.fromtimestamp((second + 1) / 1000, datetime.UTC)

    assert seen(follow(imap_journal("ages", start=start).opened(context)).news()) == [("ADDED", "Alan", 41)]
    for year, n in (1971, 3), (2971, 0):
        journal = imap_journal("ages", start=start.replace(year=year)).opened(context)
        assert len(follow(journal).news()) == n
    with pytest.raises(ValueError, match="start must be a datetime with a time zone"):
        imap_journal("ages", start=start.replace(tzinfo=None))


def test_events_have_timestamps(context, ages):
    """Those of their commits."""
    journal = imap_journal("ages")
    times = [event.timestamp for event in ages.journal()]

    assert isinstance(journal, Timestamped)
    assert [journal.timestamp(event) for event in ages.journal()] == times == sorted(times)
    assert abs(times[0] / 1000 - time.time()) < 60


def test_what_a_projection_makes_has_the_time_of_its_event(context, ages):
    """In `native_timestamps()`, though it does not say it, and in what windows are made of it."""
    times = [event.timestamp for event in ages.journal()]
    journal = imap_journal("ages", projection=lambda event: event.key if event.key == "Grace" else None)
    opened = journal.opened(context)

    assert isinstance(journal, TimestampedBeside)
    assert not isinstance(journal, Timestamped)
    assert list(opened.split("events", 0, opened.reach({})["events"]).read_timed()) == [(times[1], "Grace")]


def test_windows_take_the_time_of_what_was_projected(context, ages):
    """A window of a millisecond holds what was committed in it."""
    first = next(iter(ages.journal()))
    pipeline = Pipeline()
    keys = pipeline.read_from(imap_journal("ages", projection=lambda event: event.key)).native_timestamps()
    keys.window(tumbling(1)).aggregate(to_list()).write_to(to_ilist("windows"))
    job = context.new_job(pipeline)
    context.get_map("ages")["Barbara"] = 1
    eventually(lambda: len(context.get_list("windows")) > 0 or job.status.has_ended)
    job.cancel()

    window = context.get_list("windows")[0]
    assert (window.start, window.result[0]) == (first.timestamp, first.key)


def test_caches_have_journals_too(context, follow):
    """A lookup that is recorded is a place in the journal, and no event."""
    tokens = context.get_cache("tokens", max_idle=1e-9, ttl=1e9, journal=True)
    tokens["Ada"] = "x"
    assert tokens.get("Ada") is None
    tokens["Ada"] = "y"
    puts, everything = (icache_journal("tokens", events=events).opened(context) for events in ("puts", "all"))

    assert seen(follow(puts).news()) == [("ADDED", "Ada", "x"), ("ADDED", "Ada", "y")]
    assert seen(follow(everything).news()) == [("ADDED", "Ada", "x"), ("REMOVED", "Ada", None), ("ADDED", "Ada", "y")]


def test_a_cache_without_a_journal_is_an_error(context):
    """The message says how to make one that has."""
    context.get_cache("tokens", ttl=5)
    with pytest.raises(
        SourceError, match=r"the cache keeps no journal; get_cache\('tokens', ttl=\.\.\., journal=True\)"
    ):
        icache_journal("tokens").opened(context)
    with pytest.raises(SourceError, match=r"icache_journal\('others'\): there is no cache 'others'"):
        icache_journal("others").opened(context)


def test_a_stream_takes_no_source_without_an_end(local_context):
    """It says so before it is opened, at the call, with its name; a pipeline does."""
    source = imap_journal("ages")
    with pytest.raises(
        UnsupportedError, match=r"read\(\) takes sources that end, and imap_journal\('ages'\) has no end"
    ):
        local_context.read(source)
    assert repr(Pipeline().read_from(source)) == "<StreamStage 'read_from': read_from(imap_journal('ages'))>"


def test_events_are_plain(context, ages, follow):
    """What a reader of the map gets, with the offset."""
    [first, _] = follow(imap_journal("ages").opened(context)).news()

    assert first == JournalEvent("ADDED", "Ada", None, 36, *next(ages.journal())[4:])
