"""Random operations through several handles, compared with a dict and a list after each."""

from __future__ import annotations

import random

import pytest

from dstream.spi.store import Splice
from dstream.storage.lake import lists, maps
from dstream.storage.lake import merge as compaction
from tests.storage.lake.writing import written


@pytest.fixture
def early(monkeypatch):
    """Fold after a few files, so that few operations reach everything."""
    for module in (maps, lists):
        monkeypatch.setattr(module, "MAX_FILES", 5)
    monkeypatch.setattr(compaction, "_SHORTEST_RUN", 2)
    monkeypatch.setattr(compaction, "_SMALL_ROWS", 3)


class MapModel:
    """A map beside a dict. Every method does the same to both."""

    def __init__(self, rng, merge):
        self.rng, self.merge, self.entries = rng, merge, {}

    def _some(self, count=40):
        return {self.rng.randrange(count): self.rng.choice([self.rng.randrange(9), [1], "x"]) for _ in range(5)}

    def put(self, store):
        new = self._some()
        old = store.update(list(new), lambda old: list(new.values()))
        assert old == [self.entries.get(key) for key in new]
        self.entries.update(new)

    def remove(self, store):
        gone = list(self._some())
        store.update(gone, lambda old: [None] * len(gone))
        for key in gone:
            self.entries.pop(key, None)

    def job(self, store):
        self._run(store.begin(None), self._some(200), None)

    def merging(self, store):
        self._run(store.begin(None, merge=lambda old, new: [old, new]), self._some(), lambda old, new: [old, new])

    def _run(self, job, new, merge, disturb=False):
        job.commit(written(job.writer, new.items()))
        for key, value in new.items():
            there = merge is not None and key in self.entries
            self.entries[key] = merge(self.entries[key], value) if there else value

    def replace(self, store):
        self.entries = self._some()
        job = store.begin(None, replace=True)
        job.commit(written(job.writer, self.entries.items()))

    def disturbed(self, store):
        """A merging job, and a change between its tasks and its commit."""
        new = self._some()
        job = store.begin(None, merge=lambda old, new: [old, new])
        receipts = written(job.writer, new.items())
        self.put(store)
        self.remove(store)
        job.commit(receipts)
        for key, value in new.items():
            self.entries[key] = [self.entries[key], value] if key in self.entries else value

    def clear(self, store):
        store.clear()
        self.entries = {}

    def compact(self, store):
        store.compact()

    def vacuum(self, store):
        store.vacuum(0)


MAP_STEPS = ["put"] * 8 + ["remove"] * 3 + ["job", "merging", "disturbed"] * 2 + ["replace", "clear", "compact"]


@pytest.mark.parametrize("journal", [False, True], ids=["plain", "journal"])
@pytest.mark.parametrize("seed", range(4))
def test_map_is_a_dict(lake, early, seed, journal):
    """Whatever happens through whichever handle, all see the same; the journal replays to it."""
    rng = random.Random(seed)
    handles = [lake.map(buckets=2, journal=journal) for _ in range(3)]
    model = MapModel(rng, None)
    steps = MAP_STEPS if journal else [*MAP_STEPS, "vacuum"]
    for _ in range(70):
        getattr(model, rng.choice(steps))(rng.choice(handles))
        reader = rng.choice(handles)
        assert reader.get_many(range(200)) == [model.entries.get(key) for key in range(200)]
        assert lake.content(rng.choice(handles)) == model.entries
        assert rng.choice(handles).size() == len(model.entries)
    assert lake.content(lake.map()) == model.entries
    if journal:
        _check_journal(rng.choice(handles), model.entries)


def _check_journal(store, entries):
    """Replay the journal, from the start and from somewhere, and compare every old value."""
    replayed, events = {}, list(store.journal(0))
    for event in events:
        assert event.old_value == replayed.get(event.key), event
        assert event.kind == ("REMOVED" if event.new_value is None else "UPDATED" if event.key in replayed else "ADDED")
        replayed[event.key] = event.new_value
        if event.new_value is None:
            del replayed[event.key]
    assert replayed == entries
    offsets = [event.offset for event in events]
    assert offsets == sorted(set(offsets))
    middle = len(events) // 2
    assert list(store.journal(offsets[middle])) == events[middle + 1 :]


@pytest.mark.parametrize("seed", range(4))
def test_list_is_a_list(lake, early, seed):
    """Appends, splices, jobs, compactions through any handle: the items and their order are those of a list."""
    rng = random.Random(seed)
    handles = [lake.list() for _ in range(3)]
    items: list = []
    for number in range(100):
        store, step = rng.choice(handles), rng.random()
        new = [rng.choice([number, None, "x", [number]]) for _ in range(rng.randrange(4))]
        if step < 0.5:
            store.extend(new)
            items.extend(new)
        elif step < 0.85:
            start = rng.randint(0, len(items))
            stop = rng.randint(start, min(len(items), start + 6))
            store.edit(lambda view, start=start, stop=stop, new=new: Splice(start, stop, new))
            items[start:stop] = new
        elif step < 0.95:
            replace = rng.random() < 0.2
            job = store.begin(None, replace=replace)
            job.commit([receipt for _ in range(3) for receipt in job.writer.write(iter(new))])
            items = [] if replace else items
            items.extend(new * 3)
        else:
            store.compact()
            store.vacuum(0)
        reader = rng.choice(handles)
        start, stop = sorted((rng.randint(0, len(items)), rng.randint(0, len(items) + 2)))
        assert reader.read(start, stop) == items[start:stop]
        assert (reader.size(), lake.items(rng.choice(handles))) == (len(items), items)
