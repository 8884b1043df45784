"""A disk that is full at some moment: the collection is as it was, and the error names it."""

from __future__ import annotations

import errno
import os

import pytest

from dstream.errors import EngineError
from dstream.spi.store import Splice
from tests.storage.lake.writing import written

WRITING = {"create", "writing", "write"}


class FullAt:
    """A hook that refuses one write, or all from then on."""

    def __init__(self):
        self.number, self.forever, self.count = None, False, 0

    def arm(self, number, forever):
        self.number, self.forever, self.count = number, forever, 0

    def __call__(self, operation, path):
        if operation not in WRITING or self.number is None:
            return
        self.count += 1
        if self.count == self.number or (self.forever and self.count > self.number):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)


def _job(store, **arguments):
    job = store.begin(None, **arguments)
    try:
        job.commit(written(job.writer, [(f"new{n}", n) for n in range(200)]))
    except BaseException:
        job.abort()
        raise


MAP_CHANGES = {
    "update": lambda store: store.update([f"k{n}" for n in range(6)], lambda old: ["x"] * 6),
    "clear": lambda store: store.clear(),
    "job": _job,
    "merging job": lambda store: _job(store, merge=lambda old, new: new),
    "replacing job": lambda store: _job(store, replace=True),
    "compact": lambda store: store.compact(),
    "destroy": lambda store: store.destroy(),
}


@pytest.mark.parametrize("journal", [False, True], ids=["plain", "journal"])
@pytest.mark.parametrize("change", MAP_CHANGES)
def test_full_disk_leaves_a_map_as_it_was(lake, change, journal):
    """Whichever write fails, once or from then on: an error that names the map, and the old content."""
    full = FullAt()
    store = lake.map(full, buckets=3, journal=journal)
    lake.put(store, **{f"k{n}": n for n in range(10)})
    lake.put(store, k3=33)
    before = lake.content(store)
    for message in _failures(full, lambda: MAP_CHANGES[change](store)):
        assert "map 'm'" in message
        assert "No space left" in message
        for handle in (store, lake.map()):
            assert (lake.content(handle), handle.get_many(["k3"]), handle.size()) == (before, [33], 10)


def _failures(full, change):
    """Refuse each write of a change in turn, once or from then on; give the errors until it succeeds."""
    for number in range(1, 200):
        full.arm(number, forever=number % 2 == 0)
        try:
            change()
        except EngineError as error:
            full.arm(None, False)
            yield str(error)
        else:
            assert number > 1, "nothing was written"
            assert full.count < number, "a failure went unnoticed"
            return
    raise AssertionError("its last writes were never refused")


LIST_CHANGES = {
    "extend": lambda items: items.extend(range(200)),
    "edit": lambda items: items.edit(lambda view: Splice(1, 4, ["x"])),
    "compact": lambda items: items.compact(),
}


@pytest.mark.parametrize("change", LIST_CHANGES)
def test_full_disk_leaves_a_list_as_it_was(lake, change):
    """As for a map."""
    full = FullAt()
    items = lake.list(full)
    for n in range(3):
        items.extend([n, n])
    for message in _failures(full, lambda: LIST_CHANGES[change](items)):
        assert "list 'l'" in message
        assert lake.items(items) == lake.items(lake.list()) == [0, 0, 1, 1, 2, 2]


def test_full_disk_leaves_no_files_of_a_change_behind(lake):
    """What was written for a change that failed is removed while that is certain to be safe."""
    full = FullAt()
    store = lake.map(full, buckets=2)
    lake.put(store, a=1, b=2)
    before = lake.files(store)
    full.arm(3, forever=False)
    with pytest.raises(EngineError):
        lake.put(store, a=3, b=4, c=5, d=6)

    assert lake.files(store) == before


def test_full_disk_while_tidying_up_does_not_fail_the_change(lake, caplog):
    """A commit that stands is acknowledged although the compaction after it fails."""
    full = FullAt()
    store = lake.map(full, buckets=1)
    for n in range(64):
        lake.put(store, k=n)
    full.arm(4, forever=True)
    lake.put(store, k=64)
    full.arm(None, False)

    assert lake.map().get_many(["k"]) == [64]
    assert "map 'm' could not be tidied up" in caplog.text
