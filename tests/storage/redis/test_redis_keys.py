"""Which keys a collection has on the server, where they are, and that none stays for ever."""

from __future__ import annotations

import operator

import pytest

from dstream.errors import CollectionDestroyedError, IllegalStateError
from dstream.spi.store import Options, Splice
from dstream.storage import Settings, open_storage


def _keys(server):
    return {key for key in server.keys("*") if key != b"dstream:names"}


def _worked(storage, written):
    """Make a map and a list, and use all that leaves keys."""
    store = storage.create("map", "m", Options(journal=True))
    items = storage.create("list", "l", Options())
    job = store.begin("job", merge=operator.add)
    job.commit(written(job, {n: n for n in range(100)}))
    items.extend(range(6000))
    items.splits(1)
    items.edit(lambda view: Splice(0, 1, []))
    written(store.begin("lost"), {1: 1})
    return store, items


def test_redis_cluster_keeps_a_collection_in_one_slot(redis_cluster, written):
    """All keys of a collection share a hash tag, so that scripts may change them together."""
    clients = [node.client() for node in redis_cluster]
    for client in clients:
        client.flushall()
    _worked(open_storage(redis_cluster[0].url, Settings()), written)
    keys = {key for client in clients for key in client.keys("*") if key != b"dstream:names"}
    slots = {key.partition(b"}")[0]: clients[0].cluster("keyslot", key.decode()) for key in keys}

    assert len(slots) == 2
    assert len(keys) > 10
    for key in keys:
        assert clients[0].cluster("keyslot", key.decode()) == slots[key.partition(b"}")[0]]


def test_redis_staged_data_expire_and_published_data_do_not(storage, server, written):
    """What tasks stage disappears by itself after a day at most; once it is published it stays."""
    store, items = (storage.create(kind, "c", Options()) for kind in ("map", "list"))
    before = _keys(server)
    jobs = [store.begin("job", merge=operator.add), items.begin("job")]
    receipts = [written(job, {"k": 1}) for job in jobs]
    staged = {key for key in _keys(server) - before if not key.endswith(b":temporary")}

    assert len(staged) == 4
    assert all(0 < server.ttl(key) <= 86_400 for key in staged)
    for job, receipt in zip(jobs, receipts, strict=True):
        job.commit(receipt)
    assert _keys(server) & staged == set()
    assert {server.ttl(key) for key in _keys(server)} == {-1}


@pytest.mark.parametrize("replace", [False, True])
def test_redis_commit_and_abort_remove_what_losing_attempts_staged(storage, server, written, replace):
    """Nothing of a run stays, whether it won or gave up."""
    store = storage.create("map", "m", Options())
    job = store.begin("job", replace=replace)
    written(job, {"losing": 1})
    job.commit(written(job, {"k": 1}))
    given_up = store.begin("other")
    written(given_up, {"k": 2})
    given_up.abort()

    assert [key for key in _keys(server) if b":s:" in key] == []
    assert store.get_many(["k", "losing"]) == [1, None]


def test_redis_vacuum_removes_what_is_stale(storage, server, written):
    """Vacuum takes what was staged long enough ago, and nothing younger; nobody can commit it then."""
    store = storage.create("map", "m", Options())
    job = store.begin("job")
    receipts = written(job, {"k": 1})

    assert store.vacuum(3600) == 0
    assert store.vacuum(0) == 1
    assert [key for key in _keys(server) if b":s:" in key] == []
    with pytest.raises(IllegalStateError, match="run the job again"):
        job.commit(receipts)
    assert store.size() == 0


def test_redis_vacuum_removes_pinned_lists(storage):
    """A split whose list was changed and vacuumed says so, and gives nothing wrong."""
    items = storage.create("list", "l", Options())
    items.extend([1, 2])
    [split] = items.splits(1)
    items.edit(lambda view: Splice(0, 1, []))
    assert list(split.read()) == [1, 2]
    assert items.vacuum(0) == 1

    with pytest.raises(IllegalStateError, match="vacuum"):
        list(split.read())


def test_redis_copies_a_pinned_list_once(storage, server):
    """Only the first change after a reader began keeps a copy, and appending needs none."""
    items = storage.create("list", "l", Options())
    items.extend([1, 2, 3])
    splits = items.splits(2)
    items.extend([4])
    assert len(_keys(server)) == 2
    for _ in range(3):
        items.edit(lambda view: Splice(0, 1, []))

    assert len([key for key in _keys(server) if b":items:" in key]) == 1
    assert [item for split in splits for item in split.read()] == [1, 2, 3]


def test_redis_destroy_leaves_nothing(storage, server, written):
    """Entries, items, journal, jobs, staged and pinned data all go."""
    for store in _worked(storage, written):
        store.destroy()

    assert [key for key in _keys(server) if server.ttl(key) == -1] == []
    assert server.hgetall("dstream:names") == {}


def test_redis_split_of_a_destroyed_collection_says_so(storage):
    """What was to be read is gone; a split never gives fewer items instead."""
    store, items = (storage.create(kind, "gone", Options()) for kind in ("map", "list"))
    items.extend([1])
    splits = [*store.splits(1), *items.splits(1)]
    store.destroy()
    items.destroy()

    for split in splits:
        with pytest.raises(CollectionDestroyedError, match="gone"):
            list(split.read())


@pytest.mark.parametrize("kind", ["map", "list"])
def test_redis_destroy_that_broke_off_is_done(storage, server, kind):
    """Once the meta hash is gone the collection is, even if its name was left behind; it can be made again."""
    storage.create(kind, "m", Options(value_type=int))
    server.delete(*_keys(server))

    assert storage.names() == []
    assert storage.open(kind, "m", Options()) is None
    assert storage.create(kind, "m", Options(value_type=str)).size() == 0
    assert storage.names() == [(kind, "m")]
