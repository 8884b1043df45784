"""A vacuum whose clock is ahead, and writers that it takes for dead: one of them gives way, and nothing is lost."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from deltalake import DeltaTable

from dstream.delta import checkpoints, vacuum
from dstream.errors import IllegalStateError
from dstream.spi.store import Options, Splice
from tests.storage.lake.writing import written


@pytest.fixture(autouse=True)
def ahead(monkeypatch):
    """Set the clock of every vacuum 25 hours ahead."""
    monkeypatch.setattr(vacuum, "time", SimpleNamespace(time=lambda: time.time() + 25 * 3600))


def _job(store):
    job = store.begin(None)
    job.commit(written(job.writer, [("new", 1)]))


CHANGES = {
    "put": lambda store, items: store.update(["new"], lambda old: [1]),
    "job": lambda store, items: _job(store),
    "compact": lambda store, items: store.compact(),
    "extend": lambda store, items: items.extend([9]),
    "compact list": lambda store, items: items.compact(),
}


def _filled(lake, hook=None):
    """Return a map and a list of some small files each."""
    storage = lake.storage(hook)
    store, items = storage.create("map", "m", Options(buckets=1)), storage.create("list", "l", Options())
    for n in range(3):
        lake.put(store, a=n, **{f"k{n}": n})
        items.extend([n])
    return store, items


@pytest.mark.parametrize("checkpoint", [False, True])
@pytest.mark.parametrize("change", CHANGES)
def test_suspended_writer_is_told_that_its_files_are_gone(lake, interruption, change, checkpoint):
    """Between its data files and its log entry: nothing is changed, and the same again works."""

    def vacuumed():
        for one in (lake.map(), lake.list()):
            assert one.vacuum(0) >= 0
            if checkpoint:
                checkpoints.write_checkpoint(one.log.folder)
                store.log._reset(), items.log._reset()

    hook = interruption("create", "_delta_log/", vacuumed)
    store, items = _filled(lake, hook)
    before = (lake.content(store), lake.items(items))
    hook.armed = True
    with pytest.raises(IllegalStateError, match=r"(map|list) '.': nothing was changed, since .*removed before.*again"):
        CHANGES[change](store, items)

    assert not hook.armed
    assert (lake.content(lake.map()), lake.items(lake.list())) == before == (lake.content(store), lake.items(items))
    CHANGES[change](store, items)
    assert lake.content(lake.map()) == lake.content(store)
    assert lake.items(lake.list()) == lake.items(items)


def test_suspended_edit_is_made_again(lake, interruption):
    """A splice is written for the newest state of the list, so it is written again."""
    hook = interruption("create", "_delta_log/", lambda: lake.list().vacuum(0))
    _, items = _filled(lake, hook)
    hook.armed = True
    items.edit(lambda view: Splice(0, 1, ["x"]))

    assert not hook.armed
    assert lake.items(lake.list()) == ["x", 1, 2]


def test_writer_that_commits_under_a_vacuum_keeps_its_files(lake, interruption):
    """The vacuum has listed them as orphans, and meets the commit when it says so."""
    store, _ = _filled(lake)
    job, orphan = store.begin("job"), Path(store.log.folder.url) / f"{0:032x}.parquet"
    receipts = written(job.writer, [("new", 1)])
    orphan.write_bytes(b"left behind")
    hook = interruption("create", "_delta_log/", lambda: job.commit(receipts))
    vacuuming = lake.map(hook)
    hook.armed = True

    assert vacuuming.vacuum(0) == 1
    assert not orphan.exists()
    assert lake.content(lake.map()) == {"a": 2, "k0": 0, "k1": 1, "k2": 2, "new": 1}


def test_job_whose_files_anybody_has_removed_is_refused(lake):
    """Another program may know nothing of commits that are to come."""
    store = lake.map()
    lake.put(store, a=1)
    job = store.begin("job")
    receipts = written(job.writer, [("b", 2)])
    (Path(store.log.folder.url) / receipts[0][2][3]).unlink()

    with pytest.raises(IllegalStateError, match="removed before it could be committed"):
        job.commit(receipts)
    assert lake.content(lake.map()) == {"a": 1}
    assert not lake.map().begin("job").is_done


def test_job_that_merges_again_is_told_that_its_files_are_gone(lake):
    """What tasks have written is read once more after a conflict; that it is gone is no damage of the collection."""
    store = lake.map(journal=True)
    job = store.begin("job", merge=max)
    receipts = written(job.writer, [("a", 1)])
    lake.put(lake.map(), a=2)
    lake.map().vacuum(0)

    with pytest.raises(IllegalStateError, match=r"nothing was changed, since .*removed before.*again"):
        job.commit(receipts)
    assert lake.content(lake.map()) == {"a": 2}


def test_orphans_of_a_destroyed_collection_go_without_a_commit(lake):
    """Nobody commits to it any more."""
    old = lake.map()
    lake.put(old, a=1)
    old.destroy()
    (Path(old.log.folder.url) / f"{0:032x}.parquet").write_bytes(b"left behind")

    assert lake.map().vacuum(0) == 2
    assert lake.files(old) == set()


def test_condemned_files_disturb_no_other_reader(lake):
    """The commit of a vacuum is one that changes nothing."""
    store = lake.map(buckets=1)
    lake.put(store, a=1)
    (Path(store.log.folder.url) / f"{0:032x}.parquet").write_bytes(b"left behind")
    assert store.vacuum(0) == 1
    assert store.vacuum(0) == 0
    table = DeltaTable(store.log.folder.url)

    assert (table.version(), len(table.history())) == (1, 2)
    assert table.to_pyarrow_table().column("value").to_pylist() == [1]
    assert lake.content(lake.map()) == {"a": 1}
