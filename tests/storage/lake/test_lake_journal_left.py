"""How much a journal in a lake has left, where counting it would take long."""

from __future__ import annotations

from dstream.storage.lake import maps


def test_events_of_many_commits_are_not_counted(lake, monkeypatch):
    """Each commit is a file to be read; a job that keeps up has few behind it."""
    monkeypatch.setattr(maps, "_MOST_COUNTED", 3)
    store = lake.map(journal=True)
    for number in range(5):
        store.update([str(number)], lambda old, number=number: [number])
    offsets = [event.offset for event in store.journal(0)]

    assert [store.journal_left(since) for since in (0, *offsets)] == [None, None, None, 2, 1, 0]
