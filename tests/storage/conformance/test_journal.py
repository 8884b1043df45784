"""The journal: every change of every entry, in the order in which it happened."""

from __future__ import annotations

import random
import re
import time

import pytest

from dstream.errors import IllegalStateError
from dstream.spi.store import UNCHANGED


@pytest.fixture
def kept(storage, use):
    """A map that keeps a journal."""
    return use.map(storage, "kept", journal=True)


def _events(store, since=0):
    return [tuple(event)[:4] for event in store.journal(since)]


def test_journal_says_what_was_added_updated_and_removed(kept, use):
    """Each event has the value before and the value after."""
    use.put(kept, {"k": 1})
    use.put(kept, {"k": [2]})
    kept.update(["k"], lambda old: [None])

    assert _events(kept) == [("ADDED", "k", None, 1), ("UPDATED", "k", 1, [2]), ("REMOVED", "k", [2], None)]


def test_journal_is_silent_about_what_did_not_change(kept):
    """UNCHANGED, and removing what is not there, are no events."""
    kept.update(["a", "b"], lambda old: [UNCHANGED, None])

    assert _events(kept) == []


def test_journal_has_what_jobs_wrote(kept, use):
    """A job's entries are events with their old values, merged or not."""
    use.put(kept, {"a": 1})
    use.run(kept, "first", {"a": 2, "b": 2})
    use.run(kept, "second", {"a": 3}, merge=lambda old, new: old + new)
    events = _events(kept)

    assert sorted(events[1:3]) == [("ADDED", "b", None, 2), ("UPDATED", "a", 1, 2)]
    assert events[3:] == [("UPDATED", "a", 2, 5)]


def test_journal_has_what_replacing_and_clearing_removed(kept, use):
    """What disappears is an event each; what a replacing job writes again is an update."""
    use.put(kept, {"a": 1, "b": 2})
    use.run(kept, "job", {"b": 3}, replace=True)
    assert use.content(kept) == {"b": 3}
    kept.clear()

    assert sorted(_events(kept)[2:4]) == [("REMOVED", "a", 1, None), ("UPDATED", "b", 2, 3)]
    assert _events(kept)[4:] == [("REMOVED", "b", 3, None)]


def test_journal_offsets_grow(kept, use):
    """No offset is 0, and each is larger than the one before, within a change and across changes."""
    for n in range(4):
        use.put(kept, dict.fromkeys("abc", n))
    offsets = [event.offset for event in kept.journal(0)]

    assert len(offsets) == 12
    assert offsets[0] > 0
    assert offsets == sorted(set(offsets))


def test_journal_since_gives_what_came_after(kept, use):
    """Each offset is a place to go on from; after the last one there is nothing yet."""
    for n in range(3):
        use.put(kept, {"a": n, "b": n})
    events = list(kept.journal(0))

    for position, event in enumerate(events, 1):
        assert list(kept.journal(event.offset)) == events[position:]


def test_journal_end_stands_between_what_was_and_what_comes(kept, use):
    """No event so far has a larger offset, and every later one has."""
    assert list(kept.journal(kept.journal_end())) == []
    for n in range(3):
        before = kept.journal_end()
        use.put(kept, {"a": n, "b": n})
        offsets = [event.offset for event in kept.journal(before)]
        assert len(offsets) == 2
        assert before < min(offsets) <= max(offsets) <= kept.journal_end()


def test_journal_end_is_refused_where_no_journal_is_kept(storage, use):
    """As the journal itself."""
    with pytest.raises(IllegalStateError, match="journal=True"):
        use.map(storage).journal_end()


def test_journal_goes_on_across_handles(backend, kept, use):
    """Offsets of one handle mean the same to another one."""
    use.put(kept, {"k": 1})
    [first] = kept.journal(0)
    other = use.map(backend.open(), "kept")
    use.put(other, {"k": 2})

    assert _events(other, first.offset) == _events(kept, first.offset) == [("UPDATED", "k", 1, 2)]


def test_journal_survives_compaction(kept, use):
    """Compacting changes neither events nor offsets."""
    for n in range(10):
        use.put(kept, {n % 3: n})
    events = list(kept.journal(0))
    kept.compact()

    assert list(kept.journal(0)) == events
    use.put(kept, {0: "more"})
    assert next(iter(kept.journal(events[-1].offset))).new_value == "more"


def test_journal_is_refused_where_none_is_kept(storage, use):
    """The message says how a map gets one, at once and not at the first event."""
    with pytest.raises(IllegalStateError, match="journal=True"):
        use.map(storage).journal(0)


def _replayed(store):
    content = {}
    for event in store.journal(0):
        assert repr(content.get(event.key)) == repr(event.old_value), event
        if event.new_value is None:
            del content[event.key]
        else:
            content[event.key] = event.new_value
    return content


@pytest.mark.parametrize("seed", range(2))
def test_journal_replayed_gives_the_map(kept, use, seed):
    """After any changes the events, one after the other, lead to the content, each old value right."""
    random_ = random.Random(seed)
    for step in range(30):
        keys = random_.sample(range(8), 3)
        new = random_.choices([None, UNCHANGED, step, f"text {step}", [step]], k=3)
        if random_.random() < 0.6:
            kept.update(keys, lambda old, new=new: new)
        else:
            use.run(kept, f"job {step}", dict.fromkeys(keys, step), replace=random_.random() < 0.3)

    assert _replayed(kept) == use.content(kept)


def test_journal_replayed_gives_the_map_after_competing_writers(backend, kept, use):
    """Events of writers at the same time stand in the order in which their changes happened."""
    stores = [use.map(backend.open(), "kept") for _ in range(3)]

    def write(store, writer):
        for n in range(20):
            store.update([n % 4, "all"], lambda old: [writer, (old[1] or 0) + 1])

    use.together(*[lambda w=w: write(stores[w], w) for w in range(3)])
    assert _replayed(kept) == use.content(kept)
    assert kept.get_many(["all"]) == [60]


def test_journal_reaches_to_the_last_event(kept, use):
    """Or to the most-th one after an offset, without reading any."""
    assert kept.journal_reach(0) == 0
    use.put(kept, {"a": 1, "b": 2})
    use.put(kept, {"c": 3})
    offsets = [event.offset for event in kept.journal(0)]

    assert [kept.journal_reach(0, most) for most in (0, 1, 2, 3, 9, None)] == [0, *offsets, offsets[2], offsets[2]]
    assert [kept.journal_reach(offsets[0], most) for most in (0, 1, None)] == [offsets[0], offsets[1], offsets[2]]
    assert [kept.journal_reach(offsets[2], most) for most in (0, 1, None)] == [offsets[2]] * 3


def test_journal_counts_what_is_left_behind_an_offset(kept, use):
    """Of commits with one event and with several."""
    assert kept.journal_left(0) == 0
    use.put(kept, {"a": 1, "b": 2})
    use.put(kept, {"c": 3})
    offsets = [event.offset for event in kept.journal(0)]

    assert [kept.journal_left(since) for since in (0, *offsets)] == [3, 2, 1, 0]
    assert kept.journal_left(kept.journal_end()) == 0


def test_an_offset_of_a_journal_is_shown_as_an_event(kept, use):
    """In small numbers, whatever an offset is made of."""
    use.put(kept, {"a": 1, "b": 2})
    shown = [kept.shown_offset(event.offset) for event in kept.journal(0)]

    assert all(re.fullmatch(r"(commit \d+, )?event [12]", each) for each in shown)
    assert len(set(shown)) == 2


@pytest.mark.parametrize("asking", ["journal_reach", "journal_left"])
def test_journal_reach_is_refused_where_none_is_kept(storage, use, asking):
    """As the journal is."""
    with pytest.raises(IllegalStateError, match="journal=True"):
        getattr(use.map(storage), asking)(0)


def test_journal_events_have_the_time_of_their_commit(kept, use):
    """One for all of a commit, however long it takes; it does not go back within a process."""
    before = int(time.time() * 1000)
    many = {str(key): key for key in range(2000)}  # takes more than a millisecond
    use.put(kept, many)
    use.run(kept, "job", many)
    use.put(kept, {"0": 3, "1": None})
    events = list(kept.journal(0))
    times = [event.timestamp for event in events]

    assert before <= times[0] <= times[-1] <= time.time() * 1000
    assert times == sorted(times)
    assert [len(set(times[start:stop])) for start, stop in ((0, 2000), (2000, 4000), (4000, 4002))] == [1, 1, 1]


def test_journal_before_a_time_ends_with_the_last_event_that_is_older(kept, use):
    """0 if there is none; what it is behind has happened then or later."""
    assert kept.journal_before(2**53) == 0
    use.put(kept, {"a": 1, "b": 1})
    time.sleep(0.002)
    use.run(kept, "job", {"a": 2})
    first, second, third = kept.journal(0)

    assert kept.journal_before(first.timestamp) == 0
    assert kept.journal_before(third.timestamp) == second.offset
    assert kept.journal_before(2**53) == third.offset


def test_journal_before_is_refused_where_none_is_kept(storage, use):
    """As the journal itself."""
    with pytest.raises(IllegalStateError, match="journal=True"):
        use.map(storage).journal_before(0)
