"""Checkpoints whose pointer is an old one, or wrong: the newest whole checkpoint of the log counts."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as parquet
import pytest

from dstream.delta import collection_log
from dstream.delta.checkpoints import read_checkpoint, write_checkpoint
from dstream.errors import IllegalStateError
from dstream.filesystem.local import LocalFolder

pytestmark = pytest.mark.usefixtures("without_pauses")


def _log(store):
    return Path(store.log.folder.url) / "_delta_log"


def _checkpoint(store):
    """Return the path of the newest checkpoint."""
    return max(_log(store).glob("*.checkpoint.parquet"))


def _cut_behind_two(lake, late=("_last_checkpoint",)):
    """Return a map whose log was cut behind its second checkpoint, and then some files of the first written back."""
    store = lake.map(buckets=1)
    for n in range(5):
        lake.put(store, k=n, **{f"k{n}": n})
    write_checkpoint(store.log.folder)
    first = {path.name: path.read_bytes() for path in _log(store).glob("*checkpoint*")}
    for n in range(5, 10):
        lake.put(store, k=n)
    write_checkpoint(store.log.folder)
    lake.put(store, k=10)
    store.cut_log(-1.0)
    for name, data in first.items():
        if name.endswith(late):
            (_log(store) / name).write_bytes(data)
    return store


LATE = [("_last_checkpoint",), ("_last_checkpoint", ".parquet")]
CONTENT = {"k": 10} | {f"k{n}": n for n in range(5)}


@pytest.mark.parametrize("late", LATE, ids=["pointer", "both"])
def test_late_pointer_does_not_hide_the_newer_checkpoint(lake, late):
    """A writer was delayed while another one summed up more commits and cut the log."""
    _cut_behind_two(lake, late)

    assert lake.content(lake.map()) == CONTENT
    lake.put(lake.map(), last=1)
    assert lake.content(lake.map()) == CONTENT | {"last": 1}


@pytest.mark.parametrize("late", LATE, ids=["pointer", "both"])
def test_late_pointer_is_replaced_by_the_next_checkpoint(lake, late):
    """Which is made of the newer one, not of that which the pointer names."""
    store = _cut_behind_two(lake, late)
    write_checkpoint(store.log.folder)

    assert json.loads((_log(store) / "_last_checkpoint").read_text())["version"] == store.log.version
    assert read_checkpoint(store.log.folder).version == store.log.version
    assert lake.content(lake.map()) == CONTENT


@pytest.mark.parametrize("content", [None, b"{", b'{"version": 7, "parts": 2}'])
def test_missing_or_foreign_pointer_does_not_hide_a_checkpoint(lake, content):
    """The log is listed where it has no start."""
    store = _cut_behind_two(lake)
    (_log(store) / "_last_checkpoint").unlink()
    if content is not None:
        (_log(store) / "_last_checkpoint").write_bytes(content)

    assert lake.content(lake.map()) == CONTENT


def test_checkpoint_with_the_pointer_of_another_writer_is_read(lake):
    """Two processes summed up the same commits into different bytes, and each wrote one of the two files."""
    store = _cut_behind_two(lake, late=())
    pointer = json.loads((_log(store) / "_last_checkpoint").read_text())
    (_log(store) / "_last_checkpoint").write_text(json.dumps(pointer | {"crc32": pointer["crc32"] ^ 1}))

    assert lake.content(lake.map()) == CONTENT


def test_pointer_is_not_moved_back(lake, interruption):
    """A writer sees before its last step that another one was faster."""
    store = lake.map()
    lake.put(store, a=1)

    def summed_up():
        lake.put(store, a=2)
        write_checkpoint(store.log.folder)

    hook = interruption("replace", "checkpoint.parquet", summed_up)
    slow = lake.map(hook)
    hook.armed = True
    write_checkpoint(slow.log.folder)

    assert not hook.armed
    assert json.loads((_log(store) / "_last_checkpoint").read_text())["version"] == 1


def test_pointer_to_a_checkpoint_that_never_was_is_replaced(lake):
    """It is wrong, not newer."""
    store = _cut_behind_two(lake)
    (_log(store) / "_last_checkpoint").write_text('{"version": 1000}')
    assert lake.content(lake.map()) == CONTENT
    write_checkpoint(store.log.folder)

    assert json.loads((_log(store) / "_last_checkpoint").read_text())["version"] == store.log.version


@pytest.mark.parametrize("late", [(), ("_last_checkpoint",)], ids=["covered", "late pointer"])
def test_flipped_checkpoint_of_a_cut_log_is_an_error(lake, late):
    """It is never read, whether the pointer has its checksum or not."""
    store = _cut_behind_two(lake, late)
    path = _checkpoint(store)
    whole = path.read_bytes()
    for at in [*range(0, len(whole), len(whole) // 40), *range(len(whole) - 8, len(whole))]:
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(IllegalStateError, match="no checkpoint and no start"):
            lake.map()


def test_checkpoint_of_another_version_or_collection_is_not_read(lake):
    """Also where it is whole."""
    store, other = _cut_behind_two(lake), lake.map(name="other")
    lake.put(other, b=1)
    path = _checkpoint(store)
    path.rename(path.with_name(f"{store.log.version:020}.checkpoint.parquet"))
    with pytest.raises(IllegalStateError, match="no checkpoint and no start"):
        lake.map()
    write_checkpoint(other.log.folder)
    (_log(store) / f"{0:020}.checkpoint.parquet").write_bytes(_checkpoint(other).read_bytes())
    with pytest.raises(IllegalStateError, match="no checkpoint and no start"):
        lake.map()


@pytest.mark.parametrize("pointer", [True, False])
def test_cut_log_without_a_checkpoint_is_an_error(lake, pointer):
    """It is not taken for a new collection."""
    store = _cut_behind_two(lake)
    for path in _log(store).glob("*checkpoint*" if not pointer else "*.parquet"):
        path.unlink()

    with pytest.raises(IllegalStateError, match="map 'm' is damaged"):
        lake.put(lake.map(), b=2)


def _rewritten(path):
    """Write the rows of a checkpoint as another program does, without a checksum."""
    parquet.write_table(parquet.read_table(path), path)


def test_checkpoint_without_a_checksum_is_read_where_the_log_was_cut(lake):
    """Other programs write none."""
    store = _cut_behind_two(lake)
    _rewritten(_checkpoint(store))

    assert lake.content(lake.map()) == CONTENT


def test_checkpoint_without_a_checksum_is_not_read_beside_the_whole_log(lake):
    """If the pointer does not name it: the commits have checksums."""
    store = lake.map()
    lake.put(store, a=1)
    write_checkpoint(store.log.folder)
    _rewritten(_checkpoint(store))
    (_log(store) / "_last_checkpoint").write_text('{"version": 7}')

    assert read_checkpoint(store.log.folder) is None
    assert lake.content(lake.map()) == {"a": 1}


def test_late_pointer_does_not_let_an_idle_handle_fill_a_gap(lake, monkeypatch):
    """On an object store the end of the log is where no next entry is found, and that one may have been cut."""
    monkeypatch.setattr(LocalFolder, "last_created", lambda *_: None)
    monkeypatch.setattr(collection_log, "_LISTED_AFTER", -1.0)
    idle = lake.map(buckets=1)
    lake.put(idle, old=0)
    lake.put(idle, old=None)
    store = _cut_behind_two(lake)
    pointer = _log(store) / "_last_checkpoint"
    pointer.write_text(json.dumps(json.loads(pointer.read_text()) | {"version": 0}))
    lake.put(idle, last=1)

    assert lake.content(lake.map()) == CONTENT | {"last": 1}


def test_late_name_of_the_last_commit_does_not_let_an_idle_handle_fill_a_gap(lake):
    """A writer was delayed between its commit and `_last_created`, while others cut the log."""
    idle = lake.map(buckets=1)
    lake.put(idle, old=0)
    lake.put(idle, old=None)
    seen = (_log(idle) / "_last_created").read_bytes()
    store = _cut_behind_two(lake, late=())
    (_log(store) / "_last_created").unlink()
    (_log(store) / "_last_created").write_bytes(seen)
    lake.put(idle, last=1)

    assert lake.content(lake.map()) == CONTENT | {"last": 1}


def test_wrong_pointer_is_no_gap(lake, monkeypatch):
    """It names a checkpoint that never was, and no commit is missing."""
    monkeypatch.setattr(LocalFolder, "last_created", lambda *_: None)
    monkeypatch.setattr(collection_log, "_LISTED_AFTER", 1e9)
    store = lake.map()
    lake.put(store, a=1)
    (_log(store) / "_last_checkpoint").write_text('{"version": 1000}')

    assert lake.content(store) == lake.content(lake.map()) == {"a": 1}
