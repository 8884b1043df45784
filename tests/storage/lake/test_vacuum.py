"""`vacuum` and the files of a collection: orphans go late, folded files after the time that was given."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from dstream.delta.vacuum import STAGED_FOR
from dstream.errors import IllegalStateError, SourceError
from tests.storage.lake.writing import written


def _age(path, seconds):
    """Make a file, or all below a folder, look as if they were written that long ago."""
    for file in [path] if path.is_file() else path.rglob("*"):
        os.utime(file, (time.time() - seconds,) * 2)


def _folder(store):
    return Path(store.log.folder.url)


def _worn(lake, **options):
    store = lake.map(buckets=1, **options)
    for n in range(4):
        lake.put(store, k=n, **{f"k{n}": n})
    store.compact()
    return store


def test_vacuum_removes_folded_files(lake):
    """Files that a compaction replaced go; what is live stays."""
    store = _worn(lake)

    assert len(lake.files(store)) == 5
    assert store.vacuum(0) == 4
    assert lake.files(store) == {file.path for file in store.log.files()}
    assert store.vacuum(0) == 0


def test_vacuum_counts_from_the_commit_that_took_a_file_out(lake):
    """A file may be old; a reader that began before it was folded still needs it."""
    store = _worn(lake)
    _age(_folder(store), 2 * STAGED_FOR)
    entry = _folder(store) / f"_delta_log/{store.log.version:020d}.json"
    _age(entry, 60)

    assert store.vacuum(3600) == 0
    assert store.vacuum(30) == 4


def test_vacuum_spares_what_is_about_to_be_committed(lake):
    """Even `vacuum(0)` leaves what a job has written and not committed, for a day; then it is an orphan."""
    store = lake.map(buckets=1)
    lake.put(store, a=1)
    job = store.begin("job")
    receipts = written(job.writer, [("b", 2)])
    assert store.vacuum(0) == 0
    job.commit(receipts)
    assert lake.content(store) == {"a": 1, "b": 2}
    orphaned = written(store.begin("next").writer, [("c", 3)])
    _age(_folder(store) / orphaned[0][2][3], STAGED_FOR + 60)

    assert store.vacuum(0) == 1
    assert lake.content(store) == {"a": 1, "b": 2}


def test_vacuum_removes_temporary_files(lake):
    """What a writer was killed over goes when it is a day old."""
    store = lake.map()
    lake.put(store, a=1)
    temporary = _folder(store) / ("_delta_log/.tmp_" + "a" * 32)
    temporary.write_bytes(b"half")
    assert store.vacuum(0) == 0
    _age(temporary, STAGED_FOR + 60)

    assert store.vacuum(0) == 1
    assert not temporary.exists()


def test_vacuum_takes_splits_of_before_with_a_clear_error(lake):
    """A split whose files are gone says so; it does not give other entries."""
    store = _worn(lake)
    lake.put(store, x=1)
    splits = store.splits(1)
    store.compact()
    assert dict(splits[0].read())["x"] == 1
    store.vacuum(0)

    with pytest.raises(SourceError, match="map 'm' was compacted and vacuumed"):
        list(splits[0].read())


def test_vacuum_under_a_handle_from_before(lake):
    """A handle that last looked before compaction and vacuum reads and writes on, uncached buckets too."""
    store = lake.map(buckets=4)
    lake.put(store, **{f"k{n}": n for n in range(20)})
    lake.put(store, k0=100)
    old, seen = lake.map(), lake.map()
    assert (old.size(), seen.get_many(["k1"])) == (20, [1])
    store.compact()
    lake.put(store, k1=None)
    store.compact()
    store.vacuum(0)

    for handle in (old, seen):
        assert handle.get_many(["k0", "k1", "k2"]) == [100, None, 2]
        assert lake.content(handle) == lake.content(store)
    assert old.update(["k2"], lambda values: [values[0] + 1]) == [2]


def test_vacuum_shortens_the_journal_and_says_so(lake):
    """Events that were folded go with the files they stood in; asking for them is an error that names what is left."""
    store = _worn(lake, journal=True)
    events = list(store.journal(0))
    store.vacuum(3600)
    assert list(store.journal(0)) == events
    lake.put(store, after=1)
    store.vacuum(0)

    with pytest.raises(IllegalStateError, match="no longer reaches back"):
        list(store.journal(0))
    assert [event.key for event in store.journal(events[-1].offset)] == ["after"]


def test_vacuum_removes_the_data_of_destroyed_predecessors(lake):
    """The next collection of the name clears up; a handle to the old one still says that it was destroyed."""
    old = lake.map()
    lake.put(old, a=1)
    folder = _folder(old)
    lake.map().destroy()
    new = lake.map()
    lake.put(new, b=2)

    assert new.vacuum(0) == 1
    assert not list(folder.glob("*.parquet"))
    with pytest.raises(IllegalStateError, match="map 'm' was destroyed"):
        old.get_many(["a"])
    assert lake.content(new) == {"b": 2}


def test_vacuum_of_a_storage_removes_what_destroyed_collections_left(lake):
    """Nobody need make a collection of the same name for that; open handles and readers are as safe as ever."""
    old = lake.map()
    lake.put(old, a=1)
    folder, splits = _folder(old), old.splits(1)
    lake.map().destroy()

    assert lake.storage().vacuum(3600) == 0
    assert list(splits[0].read()) == [("a", 1)]
    assert lake.storage().vacuum(0) == 1
    assert not list(folder.glob("*.parquet"))
    with pytest.raises(IllegalStateError, match="map 'm' was destroyed"):
        old.get_many(["a"])
    assert lake.storage().names() == []


def test_vacuum_of_a_storage_takes_all_collections(lake):
    """Live ones as their own vacuum does."""
    store, items = _worn(lake), lake.list()
    items.extend([1])

    assert lake.storage().vacuum(0) == 4
    assert (lake.content(store), lake.items(items)) == ({"k": 3, "k0": 0, "k1": 1, "k2": 2, "k3": 3}, [1])


def test_missing_live_file_is_an_error_that_names_it(lake):
    """What another program has deleted is not taken for a vacuum, so nobody waits for ever."""
    store = lake.map()
    lake.put(store, a=1)
    for file in _folder(store).glob("*.parquet"):
        file.unlink()

    for attempt in (lambda: lake.map().get_many(["a"]), lake.map().size):
        with pytest.raises(IllegalStateError, match="map 'm' is damaged"):
            attempt()
