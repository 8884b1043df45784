"""How the tests of this folder get at collections: each in a storage of its own, in memory."""

from __future__ import annotations

import itertools

from dstream.collections import IStreamCache, IStreamList, IStreamMap, stored_options
from dstream.spi.store import Options, Settings
from dstream.storage.memory import open_memory

_numbers = itertools.count()


class Open:
    """What a handle needs of a context that is never closed."""

    def check_open(self):
        pass


class Clock:
    """A clock that is turned by hand."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self):
        return self.now


class Making:
    """Makes handles, by default to new collections named after their kind."""

    def __init__(self, runtime=None):
        self.runtime = runtime or Open()
        self.storage = open_memory("memory:", Settings())

    def store(self, kind, name=None, **options):
        """Return a store."""
        return self.storage.create(kind, name or f"{kind}-{next(_numbers)}", Options(**options))

    def map(self, entries=(), name="ages", **options):
        """Return a map of these entries."""
        made = IStreamMap(self.store("map", name, **options), self.runtime)
        made.update(entries)
        return made

    def list(self, items=(), name="names", **options):
        """Return a list of these items."""
        made = IStreamList(self.store("list", name, **options), self.runtime)
        made.extend(items)
        return made

    def cache(self, entries=(), name="sessions", clock=None, **options):
        """Return a cache of these entries."""
        options = stored_options(Options(**options))
        made = IStreamCache(self.storage.create("cache", name, options), self.runtime, clock or Clock())
        made.update(entries)
        return made


class StoreAround:
    """Passes everything on to a store."""

    def __init__(self, store):
        self.store = store

    def __getattr__(self, name):
        return getattr(self.store, name)


class Spy(StoreAround):
    """Counts the entries or items that the splits of a store give."""

    given = 0

    def splits(self, parallelism):
        return [SpySplit(self, split) for split in self.store.splits(parallelism)]


class SpySplit:
    def __init__(self, spy, split):
        self.spy = spy
        self.split = split

    def read(self):
        for item in self.split.read():
            self.spy.given += 1
            yield item
