"""The script that publishes looks itself: what it was told may be out of date by the time that it runs."""

from __future__ import annotations

import pytest

from dstream.errors import IllegalStateError
from dstream.spi.store import Options


@pytest.fixture(params=["map", "list"])
def store(request, storage):
    """A map and a list in turn."""
    return storage.create(request.param, "c", Options())


def _before_it_publishes(job, monkeypatch, action):
    """Call something between the last look of the driver and the script."""
    look = job._types

    def looked(receipts):
        seen = look(receipts)
        monkeypatch.undo()
        action()
        return seen

    monkeypatch.setattr(job, "_types", looked)


def test_redis_commit_notices_another_driver_in_the_last_moment(store, written, monkeypatch):
    """Two drivers that both saw that the job is not done: one commits."""
    store.begin(None).commit(written(store.begin(None), {"k": "first"}))
    job, other = store.begin("job"), store.begin("job")
    receipts, others = written(job, {"k": "mine"}), written(other, {"k": "other"})
    _before_it_publishes(job, monkeypatch, lambda: other.commit(others))
    job.commit(receipts)

    assert [item for split in store.splits(1) for item in split.read()] in ([("k", "other")], ["first", "other"])


def test_redis_commit_notices_types_decided_in_the_last_moment(store, written, monkeypatch):
    """Two drivers that both saw that the types are open: the first commit decides."""
    job, first = store.begin("job"), store.begin("first")
    receipts, others = written(job, {"a": 1}), written(first, {"b": 2.5})
    _before_it_publishes(job, monkeypatch, lambda: first.commit(others))
    job.commit(receipts)

    assert store.options.value_type is float
    assert store.size() == 2


def test_redis_commit_notices_that_staged_old_values_were_evicted(storage, server, written):
    """Without them nobody can say whether a value changed since it was merged with."""
    store = storage.create("map", "merging", Options())
    store.update(["k"], lambda old: [1])
    job = store.begin("job", merge=lambda old, new: old + new)
    receipts = written(job, {"k": 10})
    store.update(["k"], lambda old: [2])
    server.delete(*server.keys("*:old"))

    with pytest.raises(IllegalStateError, match="run the job again"):
        job.commit(receipts)
    assert store.get_many(["k"]) == [2]
