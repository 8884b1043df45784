"""The log: what is not a commit is ignored, checkpoints shorten it, foreign tables are refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from deltalake import DeltaTable

from dstream.delta import checkpoints
from dstream.delta.collection_log import CollectionLog
from dstream.errors import CollectionDestroyedError, UnsupportedError
from dstream.spi.store import Options
from tests.storage.lake.writing import written


def _log_folder(store):
    return Path(store.log.folder.url) / "_delta_log"


def test_log_ignores_what_a_killed_writer_left(lake):
    """Half a temporary file, and a data file without a commit, are nothing."""
    store = lake.map()
    lake.put(store, a=1)
    (_log_folder(store) / ".tmp_0123").write_bytes(b'{"add": {"pa')
    (_log_folder(store).parent / "orphan.parquet").write_bytes(b"PAR1")
    (lake.path / "names/map/m/.tmp_4567").write_bytes(b"{")

    assert lake.content(lake.map()) == {"a": 1}
    assert lake.storage().names() == [("map", "m")]
    lake.put(store, b=2)
    assert lake.content(lake.map()) == {"a": 1, "b": 2}


def test_log_opens_from_a_checkpoint(lake):
    """Entries, finished jobs and types are there, and the commits before the checkpoint are not read."""
    store = lake.map(buckets=2)
    for n in range(5):
        lake.put(store, **{f"k{n}": n})
    job = store.begin("job")
    job.commit(written(job.writer, [("j", 9)]))
    checkpoints.write_checkpoint(store.log.folder)
    lake.put(store, k0=None)
    read = []
    CollectionLog(_Watching(store.log.folder, read), "map 'm'", ("_b", "_v")).refresh()

    assert lake.content(lake.map()) == {"k1": 1, "k2": 2, "k3": 3, "k4": 4, "j": 9}
    assert lake.map().begin("job").is_done
    assert [path for path in read if path.endswith(".json")] == [f"_delta_log/{store.log.version:020d}.json"]


class _Watching:
    def __init__(self, folder, read):
        self._folder, self._read = folder, read

    def read(self, path):
        self._read.append(path)
        return self._folder.read(path)

    def __getattr__(self, name):
        return getattr(self._folder, name)


def test_log_is_checkpointed_now_and_then(lake, monkeypatch):
    """After some commits the one who makes the last of them writes a checkpoint."""
    monkeypatch.setattr(checkpoints, "COLLECTION_CHECKPOINT_INTERVAL", 10)
    store = lake.map()
    for n in range(12):
        lake.put(store, k=n)

    assert json.loads((_log_folder(store) / "_last_checkpoint").read_text())["version"] == 10
    assert lake.map().get_many(["k"]) == [11]


@pytest.mark.parametrize(
    ("version", "rows", "is_cut", "is_due"),
    [
        (0, 0, True, False),
        (200, 5, False, False),
        (1000, 5, False, True),
        (150, 5, True, False),
        (200, 5000, True, True),
        (200, 5001, True, False),
        (300, 5001, True, True),
        (900, 10**9, True, False),
        (1000, 10**9, True, True),
    ],
)
def test_log_that_is_cut_is_checkpointed_sooner(lake, version, rows, is_cut, is_due):
    """After 100 commits, unless the checkpoint before, here of commit 100, has many rows; after 1,000 in any case."""
    store = lake.map()
    lake.put(store, k=1)
    (_log_folder(store) / "_last_checkpoint").write_text(json.dumps({"version": 100, "size": rows}))

    assert checkpoints.is_due(store.log.folder, version, is_cut) == is_due


@pytest.mark.parametrize("pointer", [None, "{}", "torn", '{"version": 100}'])
def test_log_without_a_pointer_to_read_is_checkpointed(lake, pointer):
    """The first time, and after another program's or a torn one."""
    store = lake.map()
    lake.put(store, k=1)
    if pointer is not None:
        (_log_folder(store) / "_last_checkpoint").write_text(pointer)

    assert checkpoints.is_due(store.log.folder, 100, True)


def test_log_destroyed_before_its_checkpoint_stays_so(lake):
    """That a collection was destroyed is known from a checkpoint too; its name is free."""
    store = lake.map()
    lake.put(store, a=1)
    store.destroy()
    checkpoints.write_checkpoint(store.log.folder)
    old = CollectionLog(store.log.folder, "map 'm'", ("_b", "_v"))

    with pytest.raises(CollectionDestroyedError):
        old.refresh()
    assert lake.storage().names() == []
    assert lake.storage().open("map", "m", Options()) is None
    assert lake.content(lake.map()) == {}


@pytest.mark.parametrize(
    "protocol", [{"minReaderVersion": 3, "minWriterVersion": 7}, {"minReaderVersion": 1, "minWriterVersion": 4}]
)
def test_log_of_another_protocol_is_refused(lake, protocol):
    """A table that another program has upgraded is neither read nor written."""
    store = lake.map()
    lake.put(store, a=1)
    entry = _log_folder(store) / f"{1:020d}.json"
    _write_as_another_program(entry, {"protocol": protocol})

    for attempt in (lambda: store.get_many(["a"]), lambda: lake.put(store, a=2), lake.map):
        with pytest.raises(UnsupportedError, match="Delta protocol"):
            attempt()


def _write_as_another_program(entry, action):
    entry.write_text("\n".join(map(json.dumps, [{"commitInfo": {"engineInfo": "another program"}}, action])))


def test_log_with_files_of_another_program_is_refused(lake):
    """Rows that delta-rs has appended have no `_v` that the lake gave them."""
    store = lake.map()
    lake.put(store, a=1)
    entry = _log_folder(store) / f"{1:020d}.json"
    add = {"path": "x.parquet", "partitionValues": {}, "size": 1, "modificationTime": 0, "dataChange": True}
    _write_as_another_program(entry, {"add": add})

    with pytest.raises(UnsupportedError, match=r"x\.parquet"):
        store.get_many(["a"])


def test_log_is_what_delta_rs_expects(lake):
    """Version, protocol, partition columns and configuration, as delta-rs reads them."""
    store = lake.map(name="named", journal=True)
    lake.put(store, a=1)
    table = DeltaTable(store.log.folder.url)

    assert (table.version(), table.protocol().min_reader_version, table.protocol().min_writer_version) == (0, 1, 2)
    assert table.metadata().partition_columns == ["_b", "_v"]
    assert json.loads(table.metadata().configuration["dstream.options"])["journal"] is True
    assert [field.name for field in table.schema().fields][:4] == ["key", "_pk", "value", "_pv"]


def test_names_that_look_alike_are_different_collections(lake):
    """Case, dots, slashes and length of a name make no two collections one, on any file system."""
    names = ["a", "A", "a~c3", "../a", ".", "a/b", "ä", "x" * 400, "x" * 401, " "]
    for number, name in enumerate(names):
        lake.put(lake.map(name=name), n=number)

    assert [lake.map(name=name).get_many(["n"])[0] for name in names] == list(range(len(names)))
    assert lake.storage().names() == sorted(("map", name) for name in names)
    folders = [path.name for path in (lake.path / "names/map").iterdir()]
    assert len({folder.lower() for folder in folders}) == len(names)


def test_nothing_is_made_before_the_first_collection(lake):
    """Opening and looking leave no trace."""
    storage = lake.storage()

    assert storage.names() == []
    assert storage.open("map", "m", Options()) is None
    assert not lake.path.exists()


@pytest.mark.parametrize(("asked", "expected"), [("create", {}), ("open", None)])
def test_collection_that_is_destroyed_while_it_is_opened(lake, asked, expected):
    """Between finding the name and reading the log: the next collection of the name, or None."""
    lake.put(lake.map(), a=1)
    looks = []

    def destroy(operation, path):
        if operation == "exists" and path.endswith(f"{1:020d}.json"):
            looks.append(path)
            if len(looks) == 2:
                lake.map().destroy()

    found = getattr(lake.storage(destroy), asked)("map", "m", Options())

    assert len(looks) >= 2
    assert (found and lake.content(found)) == expected
