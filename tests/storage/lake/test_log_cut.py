"""The cut of a log: old commits go behind a checkpoint, with what they took out, and everybody finds the state."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable

from dstream.delta import checkpoints, vacuum
from dstream.delta.actions import Actions
from dstream.delta.checkpoints import write_checkpoint
from dstream.errors import IllegalStateError
from dstream.storage.lake import collection
from dstream.storage.lake.staging import StagedRows
from tests.storage.lake.writing import written

pytestmark = pytest.mark.usefixtures("without_pauses")


def entries(store):
    """Return the numbers of the commits whose entries are there."""
    return sorted(int(path.stem) for path in Path(store.log.folder.url, "_delta_log").glob("*.json"))


def worn(lake, puts=6, **options):
    """Return a map with one bucket, some commits, a compaction, and one more commit."""
    store = lake.map(buckets=1, **options)
    for n in range(puts):
        lake.put(store, k=n, **{f"k{n}": n})
    store.compact()
    lake.put(store, k=puts)
    return store


def test_what_is_behind_a_checkpoint_goes(lake):
    """The commits with the files that they took out; content and types are the same to every handle."""
    store = worn(lake)
    content = lake.content(store)
    assert store.cut_log(-1.0) == 0
    write_checkpoint(store.log.folder)
    lake.put(store, last=1)

    assert store.cut_log(-1.0) > 5
    assert entries(store) == [store.log.version - 1, store.log.version]
    assert lake.files(store) == {file.path for file in store.log.files()}
    assert lake.content(store) == lake.content(lake.map()) == content | {"last": 1}


def test_what_is_young_stays(lake):
    """A reader that has begun a while ago still finds its files."""
    store = worn(lake)
    write_checkpoint(store.log.folder)

    assert store.cut_log(3600.0) == 0
    assert entries(store)[0] == 0


def test_only_some_go_at_once(lake, monkeypatch):
    """A commit behind each epoch must not take long."""
    monkeypatch.setattr(vacuum, "_MOST", 2)
    store = worn(lake)
    write_checkpoint(store.log.folder)

    assert (store.cut_log(-1.0), entries(store)[0], store.cut_log(-1.0), entries(store)[0]) == (2, 2, 2, 4)


def test_a_handle_that_has_not_looked_for_long_finds_the_state(lake):
    """It begins anew at the checkpoint, whether it reads or commits first."""
    store = worn(lake)
    reader, writer = (lake.map() for _ in range(2))
    assert [lake.content(each)["k"] for each in (reader, writer)] == [6, 6]
    lake.put(store, k=6)
    write_checkpoint(store.log.folder)
    lake.put(store, k=7)
    store.cut_log(-1.0)

    assert lake.content(reader)["k"] == 7
    lake.put(writer, k=8)
    assert lake.content(store)["k"] == lake.content(reader)["k"] == 8


def test_a_job_that_began_before_the_cut_commits(lake):
    """Its files are there, and no commit has named them to be removed."""
    store = worn(lake)
    receipts = written(store.begin("job").writer, [("b", 2)])
    write_checkpoint(store.log.folder)
    lake.put(store, k=9)
    store.cut_log(-1.0)
    again = lake.map()
    again.begin("job").commit(receipts)

    assert lake.content(store)["b"] == 2


def test_a_commit_that_forbids_files_stays(lake):
    """Who began before a vacuum that took the file for an orphan is refused still."""
    store = worn(lake)
    receipts = written(store.begin("job").writer, [("b", 2)])
    condemned = StagedRows.of(receipts[0]).new.path
    store.log.commit(lambda: Actions(condemned=(condemned,)))
    lake.put(store, k=7)
    write_checkpoint(store.log.folder)
    lake.put(store, k=8)
    store.cut_log(-1.0)
    again = lake.map()

    with pytest.raises(IllegalStateError, match="removed before it could be"):
        again.begin("job").commit(receipts)


def test_a_journal_says_that_it_no_longer_reaches_back(lake):
    """Never a gap; what is there is read."""
    store = worn(lake, journal=True)
    last = store.journal_reach(0)
    lake.put(store, k=7)
    write_checkpoint(store.log.folder)
    lake.put(store, k=8)
    store.cut_log(-1.0)
    after = store.journal_reach(0)
    lake.put(store, k=9)

    assert [event.new_value for event in store.journal(after)] == [9]
    with pytest.raises(IllegalStateError, match=r"no longer reaches back .* JobConfig\(keep=\)"):
        list(store.journal(last))


def test_a_checkpoint_forgets_what_was_taken_out_before_the_cut(lake, monkeypatch):
    """Otherwise it would grow with each commit for a week."""
    seen = []
    monkeypatch.setattr(checkpoints, "COLLECTION_CHECKPOINT_INTERVAL", 1)
    monkeypatch.setattr(checkpoints, "_SOONEST", 1)
    monkeypatch.setattr(collection, "write_checkpoint", lambda *given: seen.append(given[2]))
    store = lake.map()
    lake.put(store, a=1)
    lake.put(store, a=2)
    store.cut_log(60.0)
    lake.put(store, a=3)

    assert seen == [None, 60.0]


def test_delta_readers_see_what_a_cut_left(lake, monkeypatch):
    """A map that is cut as it grows: few files and entries, and the newest rows by any reader of Delta tables."""
    monkeypatch.setattr(checkpoints, "_SOONEST", 5)
    store = lake.map(buckets=1)
    for n in range(200):
        lake.put(store, **{f"k{n % 7}": n})
        store.cut_log(-1.0)
    rows = DeltaTable(store.log.folder.url).to_pyarrow_table().to_pylist()
    newest = {row["key"]: row["value"] for row in sorted(rows, key=lambda row: row["_v"])}

    assert newest == lake.content(lake.map()) == {f"k{n % 7}": n for n in range(193, 200)}
    assert len(entries(store)) < 15
    assert len(list(Path(store.log.folder.url).rglob("*.parquet"))) < 90


def test_a_commit_begun_before_a_cut_does_not_fill_its_gap(lake):
    """A process that was stopped between its look and its commit would otherwise commit what nobody reads."""
    store = worn(lake)
    slow = lake.map()
    lake.content(slow)
    lake.put(store, k=8)
    write_checkpoint(store.log.folder)
    lake.put(store, k=9)
    store.cut_log(-1.0)

    with slow.log.lock:
        assert not slow.log.publish(Actions())
    lake.put(slow, z=1)
    assert lake.content(store)["z"] == 1


def test_a_checkpoint_that_is_replaced_while_it_is_read_is_no_damage(lake, interruption):
    """Its successor is there, and is read instead."""
    store = worn(lake)
    write_checkpoint(store.log.folder)
    lake.put(store, k=8)

    def replaced():
        write_checkpoint(store.log.folder)
        lake.put(store, k=9)
        store.cut_log(-1.0)

    hook = interruption("read", "checkpoint.parquet", replaced)
    hook.armed = True

    assert lake.content(lake.map(hook=hook))["k"] == 9
    assert not hook.armed
