"""`compact` and `vacuum`: nobody sees a difference, not even with a handle or split from before."""

from __future__ import annotations

import pytest

from dstream.errors import CollectionDestroyedError
from dstream.spi.store import Options, Splice


def _worn(store, use):
    """Change a map many times, and return what it holds."""
    use.run(store, "job", dict.fromkeys(range(20), -1))
    for n in range(30):
        use.put(store, {n % 7: n})
    store.update([0, 19], lambda old: [None, None])
    return use.content(store)


def test_compact_changes_nothing_that_can_be_seen(backend, storage, use):
    """Entries, size, types and finished jobs are as before, for old and new handles."""
    store, other = use.map(storage), use.map(backend.open())
    content = _worn(store, use)
    options = store.options
    store.compact()

    for handle in (store, other, use.map(backend.open())):
        assert (use.content(handle), handle.size(), handle.options) == (content, 18, options)
        assert handle.begin("job").is_done
        assert handle.get_many([0, 1, 19]) == [None, content[1], None]


def test_vacuum_spares_what_is_in_use(backend, storage, use):
    """A handle that was opened before compaction and vacuum reads and writes as ever."""
    store, other = use.map(storage), use.map(backend.open())
    content = _worn(store, use)
    assert other.get_many([1]) == [content[1]]
    store.compact()
    assert store.vacuum(0) >= 0

    assert (use.content(other), other.get_many([1, 2])) == (content, [content[1], content[2]])
    use.put(other, {"after": 1})
    assert store.get_many(["after"]) == [1]


def test_vacuum_spares_splits_and_jobs_younger_than_it_says(storage, use):
    """What a reader or a task started an hour ago at most stays readable and can be committed."""
    store, items = use.map(storage), use.list(storage, 1, 2)
    content = _worn(store, use)
    splits, parts, job = store.splits(2), items.splits(2), store.begin("next")
    receipts = use.tasks(job, {"written": 1})
    store.compact()
    items.compact()
    store.vacuum(3600)
    items.vacuum(3600)

    assert dict(pair for split in splits for pair in split.read()) == content
    assert [item for part in parts for item in part.read()] == [1, 2]
    job.commit(receipts)
    assert store.get_many(["written"]) == [1]


def test_compact_and_vacuum_of_a_list_keep_its_items(backend, storage, use):
    """Order and items stay, and old handles go on."""
    store, other = use.list(storage), use.list(backend.open())
    for n in range(20):
        store.extend([n])
    store.edit(lambda view: Splice(3, 6, [None]))
    items = other.read(0, 99)
    store.compact()
    store.vacuum(0)

    assert other.read(0, 99) == use.items(store) == use.items(other) == items
    other.extend(["more"])
    assert store.read(0, 99) == [*items, "more"]


def test_compact_beside_writers_loses_nothing(backend, use):
    """Compaction and vacuum while others count: every increment is there."""
    stores = [use.map(backend.open()) for _ in range(3)]

    def count(store):
        for n in range(40):
            store.update(["n", n % 5], lambda old, n=n: [(old[0] or 0) + 1, n])

    def maintain(store):
        for _ in range(8):
            store.compact()
            store.vacuum(3600)

    use.together(lambda: count(stores[0]), lambda: count(stores[1]), lambda: maintain(stores[2]))
    assert use.map(backend.open()).get_many(["n"]) == [80]


def test_vacuum_of_a_storage(storage):
    """All collections are kept, destroyed ones stay destroyed, and nothing that lives is lost."""
    store, gone = storage.create("map", "m", Options()), storage.create("list", "l", Options())
    store.update(["a"], lambda old: [1])
    gone.extend([1])
    gone.destroy()
    storage.vacuum(0)

    assert store.get_many(["a"]) == [1]
    assert storage.names() == [("map", "m")]
    with pytest.raises(CollectionDestroyedError):
        gone.size()
