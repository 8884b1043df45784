"""Compaction on the way: how many files there are, which are rewritten, and what must survive it."""

from __future__ import annotations

from dstream.storage.lake.merge import MAX_FILES
from tests.storage.lake.writing import written


def _with_base(lake, rows):
    """Return a map of one bucket whose oldest file has that many rows, and the path of the file."""
    store = lake.map(buckets=1)
    job = store.begin(None)
    job.commit(written(job.writer, ((f"base{n}", n) for n in range(rows))))
    return store, store.log.files()[0].path


def test_fold_of_small_files_keeps_what_was_removed(lake):
    """The base still holds a removed entry, so that it is removed must not be folded away."""
    store, base = _with_base(lake, 2000)
    lake.put(store, base7=None)
    for n in range(2 * MAX_FILES):
        lake.put(store, **{f"k{n % 5}": n})

    assert store.log.is_live(base), "the base was not rewritten"
    assert len(store.log.files()) <= MAX_FILES
    assert lake.map().get_many(["base7", "base8", "k2"]) == [None, 8, 127]
    assert lake.content(lake.map()).keys() >= {"base8", "k4"}
    assert "base7" not in lake.content(lake.map())
    assert lake.map().size() == 2004


def test_fold_rewrites_the_base_when_the_rest_is_a_quarter_of_it(lake):
    """Then one file is left, sorted by key, without removed rows."""
    store, base = _with_base(lake, 100)
    lake.put(store, base7=None)
    for n in range(MAX_FILES):
        lake.put(store, **{f"k{n}": n})
    files = store.log.files()

    assert not store.log.is_live(base)
    assert len(files) < MAX_FILES // 2
    assert max(file.rows for file in files) >= 160
    assert lake.map().size() == 99 + MAX_FILES


def test_fold_of_a_list_keeps_the_order(lake):
    """Neighbours are folded, the large file before them is not."""
    items = lake.list()
    items.extend(range(20_000))
    first = items.log.files()[0].path
    for n in range(2 * MAX_FILES):
        items.extend([n])

    assert items.log.is_live(first)
    assert len(items.log.files()) <= MAX_FILES
    assert items.read(19_999, 30_000) == lake.list().read(19_999, 30_000) == [19_999, *range(2 * MAX_FILES)]


def test_appending_leaves_no_trace_in_the_list_of_jobs(lake):
    """Only jobs are remembered by name; a list of a million appends is not a million names."""
    items = lake.list()
    items.extend([1])
    store = lake.map(journal=True)
    lake.put(store, a=1)
    store.clear()
    version = store.log.version
    store.clear()

    assert store.log.version == version, "nothing to clear, nothing committed"
    assert not items.log._transactions
    assert not store.log._transactions
