"""Storage in memory: which handles share it, and the last moment before a commit."""

from __future__ import annotations

import pytest

from dstream.spi.store import Options
from dstream.storage import Settings, open_storage


def test_memory_without_a_name_is_fresh():
    """Each `memory:` is a storage of its own; a name is shared by all who say it."""
    storages = [open_storage(url, Settings()) for url in ("memory:", "memory:", "memory:shared", "memory:shared")]
    for number, storage in enumerate(storages):
        storage.create("map", f"map {number}", Options())

    names = [[name for _, name in storage.names()] for storage in storages]
    assert names == [["map 0"], ["map 1"], ["map 2", "map 3"], ["map 2", "map 3"]]


@pytest.fixture(params=["map", "list"])
def store(request):
    """A map and a list in turn."""
    return open_storage("memory:", Settings()).create(request.param, "c", Options())


def _begun(store, name, value):
    job = store.begin(name)
    if store.options.buckets is None:
        return job, list(job.writer.write(iter([value])))
    return job, list(job.writer.write_bucket(job.writer.bucket_of(value), iter([(value, value)])))


def _before_it_publishes(job, monkeypatch, action):
    """Call something between the last look of the driver and the commit."""
    codec_of = job._codec_of

    def looked(types):
        monkeypatch.undo()
        action()
        return codec_of(types)

    monkeypatch.setattr(job, "_codec_of", looked)


def test_memory_commit_notices_another_driver_in_the_last_moment(store, monkeypatch):
    """Two drivers that both saw that the job is not done: one commits."""
    first, firsts = _begun(store, None, "first")
    first.commit(firsts)
    (job, receipts), (other, others) = _begun(store, "job", "mine"), _begun(store, "job", "other")
    _before_it_publishes(job, monkeypatch, lambda: other.commit(others))
    job.commit(receipts)

    assert [item for split in store.splits(1) for item in split.read()] in (
        ["first", "other"],
        [("first", "first"), ("other", "other")],
    )


def test_memory_commit_notices_types_decided_in_the_last_moment(store, monkeypatch):
    """Two drivers that both saw that the types are open: the first commit decides."""
    (job, receipts), (first, firsts) = _begun(store, "job", 1), _begun(store, "first", 2.5)
    _before_it_publishes(job, monkeypatch, lambda: first.commit(firsts))
    job.commit(receipts)

    assert store.options.value_type is float
    assert store.size() == 2
