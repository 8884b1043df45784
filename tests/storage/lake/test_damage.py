"""Files that are torn, missing or another program's: one clear error, and nothing is taken for what it is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from dstream.delta import checkpoints
from dstream.errors import EngineError, IllegalStateError, SetupError
from dstream.spi.store import Splice
from dstream.storage import Settings, open_storage
from dstream.storage.lake.catalog import _quoted

TORN = [b"", b'{"add": {"pa', b"\xff\xfe", b"[1]"]


def _folder(store):
    return Path(store.log.folder.url)


@pytest.mark.parametrize("data", TORN, ids=repr)
def test_damage_of_a_log_entry_is_named(lake, data):
    """A commit of which nothing or half is there is not taken for an empty one."""
    store = lake.map()
    for n in range(3):
        lake.put(store, k=n)
    (_folder(store) / "_delta_log" / f"{1:020d}.json").write_bytes(data)

    with pytest.raises(IllegalStateError, match=r"map 'm' is damaged: .*0001\.json"):
        lake.map()


@pytest.mark.parametrize("torn", ["_last_checkpoint", "checkpoint.parquet"])
def test_damage_of_a_checkpoint_costs_time_only(lake, torn):
    """The log is whole, so it is read from the start."""
    store = lake.map()
    lake.put(store, a=1)
    checkpoints.write_checkpoint(store.log.folder)
    [path] = (_folder(store) / "_delta_log").glob(f"*{torn}")
    path.write_bytes(path.read_bytes()[:9])

    assert lake.content(lake.map()) == {"a": 1}
    path.write_bytes(b"")
    assert lake.content(lake.map()) == {"a": 1}


def test_damage_that_leaves_no_start_is_not_an_empty_collection(lake):
    """Without a checkpoint and without the first commit, nothing may be written over what is there."""
    store = lake.map()
    lake.put(store, a=1)
    checkpoints.write_checkpoint(store.log.folder)
    log = _folder(store) / "_delta_log"
    (log / "_last_checkpoint").write_bytes(b"{")
    (log / f"{0:020d}.checkpoint.parquet").unlink()
    (log / f"{0:020d}.json").unlink()

    with pytest.raises(IllegalStateError, match="map 'm' is damaged"):
        lake.put(lake.map(), b=2)


READS = {
    "get": lambda lake, store: store.get_many(["a"]),
    "size": lambda lake, store: store.size(),
    "stream": lambda lake, store: lake.content(store),
    "compact": lambda lake, store: store.compact(),
}


@pytest.mark.parametrize("read", READS)
def test_damage_of_a_data_file_names_the_collection_and_the_file(lake, read):
    """What pyarrow says about half a file comes with the names."""
    store = lake.map(buckets=1)
    lake.put(store, a=1)
    lake.put(store, a=2)
    for path in _folder(store).glob("*.parquet"):
        path.write_bytes(path.read_bytes()[:100])

    with pytest.raises(IllegalStateError, match=r"map 'm' is damaged: its file .*\.parquet"):
        READS[read](lake, lake.map())


def test_damage_of_the_registry_is_named(lake):
    """Files of other programs are no collections; a torn description is an error that names it."""
    lake.put(lake.map(), a=1)
    for stray in ("names/.DS_Store", "names/map/m/.nfs0001", "names/map/m/00000001.json~"):
        (lake.path / stray).write_bytes(b"stray")

    assert lake.storage().names() == [("map", "m")]
    assert lake.content(lake.map()) == {"a": 1}
    (lake.path / "names/map/m/00000002.json").write_bytes(b"{")
    with pytest.raises(IllegalStateError, match=r"is damaged: .*00000002\.json"):
        lake.storage().names()


def test_damage_of_names_is_no_collision():
    """Two long names with one beginning and one CRC-32 are two collections."""
    assert _quoted("x" * 150 + "plumless") != _quoted("x" * 150 + "buckeroo")


def test_storage_in_a_file_is_refused(tmp_path):
    """A path that is a file is no storage, and not an empty one."""
    (tmp_path / "file").write_text("x")
    with pytest.raises(SetupError, match="file is a file"):
        open_storage(str(tmp_path / "file"), Settings())


def test_full_disk_is_named_also_when_closing_fails(lake, monkeypatch):
    """The file's own buffer fails once more when it is closed; the first error counts."""
    items = lake.list()
    items.extend([1])
    monkeypatch.setattr("builtins.open", lambda *_, **__: _Full())

    with pytest.raises(EngineError, match=r"list 'l': writing .*No space"):
        items.extend(range(2000))


class _Full:
    closed = False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        raise OSError(28, "No space left on device")

    def write(self, _):
        raise OSError(28, "No space left on device")

    def tell(self):
        return 0

    def flush(self):
        pass


def test_failing_registry_names_the_storage(lake):
    """A collection that cannot be made is an error that says where."""

    def refuse(operation, path):
        if operation == "create":
            raise OSError(28, "No space left on device", path)

    with pytest.raises(EngineError, match=r"the storage .*names/map/m/00000001\.json failed: .*No space"):
        lake.map(refuse)


@pytest.mark.parametrize(
    "change", [lambda view: Splice(0, 1, [view.read(0, 1)]), lambda view: view.read(0, 2) and None]
)
def test_missing_file_of_a_list_is_named_by_edits_too(lake, change):
    """Also where the edit reads the list itself."""
    items = lake.list()
    items.extend([1, 2])
    [path] = _folder(items).glob("*.parquet")
    path.unlink()

    with pytest.raises(IllegalStateError, match=r"list 'l' is damaged: its file .*\.parquet is missing"):
        lake.list().edit(change)
