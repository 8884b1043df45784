"""Reading a map: the bucket cache, buckets that are too large for it, and readers beside writers."""

from __future__ import annotations

import os
from collections import Counter

import pytest

from dstream.spi.store import UNCHANGED, Options
from dstream.storage import Settings, open_storage
from dstream.storage.lake import caches, maps
from dstream.storage.lake.caches import BucketCache
from tests.storage.lake.writing import written

KEYS = [1, 2.5, "text", b"bytes", ("a", 1), True, float("nan"), -0.0]


@pytest.fixture
def small_cache(monkeypatch):
    """Keep next to no rows in memory."""
    monkeypatch.setattr(maps, "BucketCache", lambda folder, buckets: BucketCache(folder, buckets, rows_kept=10))


@pytest.mark.parametrize("first", ["text", 1, 2.5, ("a", 1)], ids=repr)
def test_large_bucket_is_looked_up_in_its_files(lake, small_cache, first):
    """Keys of any type are found, newest first, removed ones are not; newer rows alone are kept."""
    store = lake.map(buckets=1)
    store.update([first], lambda old: ["first"])
    job = store.begin(None)
    job.commit(written(job.writer, ((("n", n), n) for n in range(20_000))))
    store.update(list(dict.fromkeys(key for key in KEYS if key != first)), lambda old: ["old"] * len(old))
    store.update(["text", 2.5], lambda old: [None, [3]])
    store.compact()
    store.update([1], lambda old: ["new"])

    assert store.get_many([("n", 19_999), 1, 2.5, "text", b"bytes", ("a", 1), float("nan"), 0, "absent"]) == [
        19_999, "new", [3], None, "old", "first" if first == ("a", 1) else "old", "old", "old", None,
    ]  # fmt: skip
    assert store._cache._rows == 1


def test_cache_gives_up_buckets_that_were_not_used_lately(lake, monkeypatch):
    """The rows of all buckets are bounded; what was given up is read again."""
    monkeypatch.setattr(maps, "BucketCache", lambda folder, buckets: BucketCache(folder, buckets, rows_kept=100))
    store = lake.map(buckets=8)
    lake.put(store, **{f"k{n}": n for n in range(200)})
    for n in range(200):
        assert store.get_many([f"k{n}"]) == [n]
        assert store._cache._rows == sum(len(bucket.entries) for bucket in store._cache._buckets.values()) <= 100


def test_cache_gives_up_buckets_of_many_bytes(lake, monkeypatch):
    """The bytes of the files of all buckets are bounded, however few rows there are."""
    monkeypatch.setattr(maps, "BucketCache", lambda folder, buckets: BucketCache(folder, buckets, files_kept=200_000))
    store = lake.map(buckets=8)
    lake.put(store, **{f"k{n}": os.urandom(10_000) for n in range(60)})
    for n in range(60):
        assert len(store.get_many([f"k{n}"])[0]) == 10_000
        kept = [file.size for bucket in store._cache._buckets.values() for file in bucket.files]
        assert store._cache._size == sum(kept) <= 200_000


def test_cache_gives_up_what_a_process_has_written_itself(lake, monkeypatch):
    """A process that writes without reading holds no more than one that reads."""
    monkeypatch.setattr(maps, "BucketCache", lambda folder, buckets: BucketCache(folder, buckets, rows_kept=100))
    store = lake.map(buckets=2)
    for n in range(120):
        assert store.get_many([f"k{n}"]) == [None]
        lake.put(store, **{f"k{n}": n})
        assert store._cache._rows == sum(len(bucket.entries) for bucket in store._cache._buckets.values()) <= 100
    assert store.get_many(["k0", "k119"]) == [0, 119]


def test_cache_of_a_list_keeps_no_large_files(lake, monkeypatch):
    """One item is read without the others of a large file; others are read once, and have a bounded size in all."""
    monkeypatch.setattr(caches, "_CACHED_BYTES", 120_000)
    store, opened, original = lake.list(), Counter(), caches.opened
    monkeypatch.setattr(caches, "opened", lambda folder, file: opened.update([file.rows]) or original(folder, file))
    for count in (3, 13, 10, 5, 5):
        store.extend([os.urandom(10_000) for _ in range(count)])
    opened.clear()
    for n in range(36):
        assert len(store.read(n, n + 1)[0]) == 10_000
        assert store._cache._size == sum(file.size for file, _ in store._cache._items.values()) <= 120_000
    assert [file.rows for file, _ in store._cache._items.values()] == [5, 5]
    assert opened == {3: 1, 13: 13, 10: 1, 5: 2}


def test_cache_reads_only_what_is_new(lake):
    """After another handle's change, one file is read; after its compaction, none."""
    opened = []
    store = lake.map(lambda operation, path: operation == "open" and opened.append(path), buckets=1)
    other = lake.map()
    for n in range(10):
        lake.put(other, **{f"k{n}": n})
    assert store.get_many(["k1"]) == [1]
    del opened[:]
    lake.put(other, k1=100)
    assert (store.get_many(["k1"]), len(opened)) == ([100], 1)
    other.compact()
    assert (store.get_many(["k1", "k2"]), len(opened)) == ([100, 2], 1)
    lake.put(store, k1=101)
    other.compact()
    assert (store.get_many(["k1", "k2"]), len(opened)) == ([101, 2], 1)


def test_cache_notices_what_a_compaction_left_out(lake):
    """An entry that was removed and folded away between two looks is gone for the cache too."""
    store, other = lake.map(buckets=1), lake.map()
    lake.put(other, a=1, b=2)
    assert store.get_many(["a", "b"]) == [1, 2]
    lake.put(other, a=None)
    other.compact()

    assert store.get_many(["a", "b"]) == [None, 2]
    assert store.size() == 1


def test_what_is_handed_out_is_a_copy(lake):
    """Changing a value changes nothing in the cache, nor does changing what was put, in a typed or an untyped map."""
    for name, value in (("typed", [1]), ("pickled", {"a": [1]})):
        store = lake.map(name=name)
        put = {"a": [1]} if name == "pickled" else [1]
        store.update(["k"], lambda old, put=put: [put])
        put.clear()
        store.get_many(["k"])[0].clear()
        store.update(["k"], lambda old: [UNCHANGED] if old[0].clear() is None else old)

        assert store.get_many(["k"]) == [value]


def test_items_that_are_handed_out_are_copies(lake):
    """As for a map."""
    items = lake.list()
    items.extend([[1], {"a": [2]}])
    for item in items.read(0, 2):
        item.clear()

    assert items.read(0, 2) == [[1], {"a": [2]}]


def _write(path):
    """Keep two sides equal, 400 times, with everything that happens on the way."""
    store = open_storage(str(path), Settings()).create("map", "m", Options(buckets=2))
    for n in range(1, 401):
        store.update(["left", f"other{n % 9}", "right"], lambda old, n=n: [n, n, n])
        if n % 50 == 0:
            store.compact()
            store.vacuum(3600)
    return n


def test_readers_beside_a_writer_see_no_half_commit(lake, elsewhere):
    """Point reads and whole reads, while another process changes, compacts and vacuums."""
    writer = elsewhere(_write, lake.path)
    store = lake.map(buckets=2)
    seen = [0]
    while seen[-1] < 400:
        left, right = store.get_many(["left", "right"])
        content = lake.content(lake.map()) if len(seen) % 20 == 0 else None
        assert left == right
        assert content is None or content.get("left") == content.get("right")
        seen.append(left or 0)

    assert seen == sorted(seen)
    assert writer.returned() == 400


def test_durable_changes_are_flushed(lake, monkeypatch):
    """With `durability="power"` the data, the log entry and the folders of both reach the disk before an answer."""
    flushed = []
    original = os.fsync
    monkeypatch.setattr(
        os,
        "fsync",
        lambda descriptor: flushed.append(os.readlink(f"/proc/self/fd/{descriptor}")) or original(descriptor),
    )
    store = open_storage(str(lake.path), Settings(durability="power")).create(
        "map", "m", Options(key_type=str, value_type=int)
    )
    del flushed[:]
    lake.put(store, a=1)

    table = store.log.folder.url
    below = [path.removeprefix(table) for path in flushed if ".tmp_" not in path]
    assert below == [f"/{store.log.files()[0].path}", "", "/_delta_log"]
    assert any(".tmp_" in path for path in flushed)
