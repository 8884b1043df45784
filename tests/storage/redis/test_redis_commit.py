"""The script that publishes looks itself: what it was told may be out of date by the time that it runs."""

from __future__ import annotations

import pytest

from dstream.spi.store import Options


@pytest.fixture(params=["map", "list"])
def store(request, storage):
    """A map and a list in turn."""
    return storage.create(request.param, "c", Options())


def _before_it_publishes(job, monkeypatch, action):
    """Let something happen between the last look of the driver and the script."""
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
