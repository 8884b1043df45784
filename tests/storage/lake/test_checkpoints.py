"""Checkpoints: each says what the commits before it amount to, to us and to other readers."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from deltalake import DeltaTable
from hypothesis import given
from hypothesis import strategies as st

from dstream.delta import checkpoints
from dstream.delta.actions import PROTOCOL
from dstream.delta.checkpoints import CHECKPOINT, read_checkpoint, write_checkpoint
from dstream.filesystem.local import LocalFolder
from tests.storage.lake.conftest import Lake
from tests.storage.lake.writing import written


def _log(store):
    return Path(store.log.folder.url) / "_delta_log"


def _actions(store):
    """Return the actions of the newest checkpoint as JSON, in an order of their own."""
    version = json.loads((_log(store) / "_last_checkpoint").read_text())["version"]
    rows = parquet.read_table(_log(store) / f"{version:020d}.checkpoint.parquet").to_pylist()
    return version, sorted(json.dumps({kind: row[kind] for kind in row if row[kind]}, sort_keys=True) for row in rows)


def _without_entries(store):
    """Leave the checkpoint alone in the log."""
    for entry in _log(store).glob("*.json"):
        entry.unlink()


def _history(lake, **options):
    """Make a map with jobs, removed entries and a compaction."""
    store = lake.map(buckets=2, **options)
    job = store.begin("job")
    job.commit(written(job.writer, [(f"j{n}", n) for n in range(5)]))
    for n in range(8):
        lake.put(store, **{f"k{n % 3}": n})
    store.compact()
    lake.put(store, k1=None, last=1)
    return store


def test_checkpoint_alone_tells_delta_rs_everything(lake):
    """Files, transactions, configuration and protocol are those of the log, which is gone then."""
    store = _history(lake)
    table = DeltaTable(store.log.folder.url)
    known = (sorted(table.file_uris()), table.metadata().configuration, table.protocol(), table.version())
    content = lake.content(store)
    write_checkpoint(store.log.folder)
    _without_entries(store)

    table = DeltaTable(store.log.folder.url)
    assert (sorted(table.file_uris()), table.metadata().configuration, table.protocol(), table.version()) == known
    assert lake.content(lake.map()) == content
    assert lake.map().begin("job").is_done


def test_checkpoint_has_the_actions_of_the_one_by_delta_rs(lake):
    """Every field that we write is what delta-rs writes there, and it writes no other actions."""
    store = _history(lake)
    write_checkpoint(store.log.folder)
    _, ours = _actions(store)
    DeltaTable(store.log.folder.url).create_checkpoint()
    _, theirs = _actions(store)

    assert sorted(map(_same_fields, theirs)) == ours


def _same_fields(line):
    """Leave out what the lake does not write."""
    [(kind, action)] = json.loads(line).items()
    names = {field.name for field in CHECKPOINT.field(kind).type}
    return json.dumps({kind: {name: value for name, value in action.items() if name in names}}, sort_keys=True)


@given(st.lists(st.sampled_from(["put", "remove", "compact", "job", "clear", "checkpoint"]), max_size=25))
def test_checkpoint_on_a_checkpoint_says_what_the_whole_log_says(tmp_path_factory, steps):
    """However often the log was summed up before, by whomever."""
    lake = Lake(tmp_path_factory.mktemp("lake") / "lake")
    store = lake.map(buckets=2, key_type=str, value_type=int)
    for number, step in enumerate(steps):
        _take(lake, store, step, number)
    lake.put(store, end=1)
    write_checkpoint(store.log.folder)
    in_parts = _actions(store)
    (_log(store) / "_last_checkpoint").unlink()
    write_checkpoint(store.log.folder)

    assert _actions(store) == in_parts


def _take(lake, store, step, number):
    if step == "put":
        lake.put(store, **{f"k{number % 4}": number, f"l{number % 5}": number})
    elif step == "remove":
        lake.put(store, **{f"k{number % 4}": None})
    elif step == "job":
        job = store.begin(f"job-{number % 3}")
        if not job.is_done:
            job.commit(written(job.writer, [("j", number)]))
    elif step == "checkpoint":
        write_checkpoint(store.log.folder)
    else:
        getattr(store, step)()


def test_checkpoint_stands_on_one_of_delta_rs(lake):
    """What it holds beside our fields is left out; the entries before it are not read."""
    store = _history(lake)
    DeltaTable(store.log.folder.url).create_checkpoint()
    _without_entries(store)
    lake.put(store, more=2)
    content = lake.content(store)
    write_checkpoint(store.log.folder)

    assert _actions(store)[0] == store.log.version
    assert lake.content(lake.map()) == content
    assert sorted(DeltaTable(store.log.folder.url).file_uris()) == sorted(
        f"{store.log.folder.url}/{file.path}" for file in store.log.files()
    )


def test_checkpoint_has_the_newest_description_only(lake):
    """A commit may describe the collection anew; nothing else is said of what it is."""
    store = _history(lake)
    write_checkpoint(store.log.folder)
    metadata = {**store.log.metadata, "description": "new"}
    entry = _log(store) / f"{store.log.version + 1:020d}.json"
    lines = [{"commitInfo": {"engineInfo": "another program"}}, {"metaData": metadata}, {"protocol": PROTOCOL}]
    entry.write_text("\n".join(map(json.dumps, lines)))
    write_checkpoint(store.log.folder)

    actions = [next(iter(json.loads(line).items())) for line in _actions(store)[1]]
    assert [action["description"] for kind, action in actions if kind == "metaData"] == ["new"]
    assert [action for kind, action in actions if kind == "protocol"] == [PROTOCOL]


@pytest.mark.parametrize(("kept_for", "removed"), [(7 * 24 * 3600 * 1000, 9), (-60_000, 0)])
def test_checkpoint_names_removed_files_for_a_week(lake, monkeypatch, kept_for, removed):
    """A vacuum by another program does not take them from its readers."""
    monkeypatch.setattr(checkpoints, "REMOVED_FOR", kept_for)
    store = lake.map(buckets=1)
    for n in range(9):
        lake.put(store, k=n)
    store.compact()
    write_checkpoint(store.log.folder)
    lake.put(store, k=9)
    write_checkpoint(store.log.folder)

    assert sum(line.startswith('{"remove"') for line in _actions(store)[1]) == removed


def test_checkpoint_is_made_anew_where_the_one_before_is_torn(lake, caplog):
    """From the log, which is whole."""
    store = _history(lake)
    write_checkpoint(store.log.folder)
    [path] = _log(store).glob("*.checkpoint.parquet")
    path.write_bytes(path.read_bytes()[:100])
    lake.put(store, more=1)
    write_checkpoint(store.log.folder)
    _without_entries(store)

    assert "torn" in caplog.text
    assert lake.content(lake.map()) == lake.content(store)


def test_checkpoint_is_not_written_where_nothing_is_new(lake):
    """Neither of an empty log nor twice of the same."""
    store = lake.map()
    write_checkpoint(store.log.folder)
    assert list(_log(store).glob("*checkpoint*")) == []
    lake.put(store, a=1)
    write_checkpoint(store.log.folder)
    times = [path.stat().st_mtime_ns for path in _log(store).glob("*checkpoint*")]
    write_checkpoint(store.log.folder)

    assert [path.stat().st_mtime_ns for path in _log(store).glob("*checkpoint*")] == times
    assert len(times) == 2


def test_checkpoint_of_fields_in_another_order_is_read(lake):
    """A field that another program leaves out is null; what it has besides is not read."""
    store = _history(lake)
    write_checkpoint(store.log.folder)
    [path] = _log(store).glob("*.checkpoint.parquet")
    rows = parquet.read_table(path)
    columns = [_backwards(rows.column(name).combine_chunks()) for name in rows.column_names]
    parquet.write_table(pa.table(columns[::-1], rows.column_names[::-1]), path)
    (_log(store) / "_last_checkpoint").write_text(json.dumps({"version": store.log.version, "size": rows.num_rows}))

    assert read_checkpoint(store.log.folder) is not None
    _without_entries(store)
    assert lake.content(lake.map()) == lake.content(store)


def _backwards(column):
    fields = [field for field in column.type if field.name not in ("tags", "extendedFileMetadata")][::-1]
    arrays = [pa.compute.struct_field(column, field.name) for field in fields]
    return pa.StructArray.from_arrays(
        [*arrays, pa.nulls(len(column))], [*(field.name for field in fields), "new"], mask=column.is_null()
    )


@pytest.mark.parametrize("durable", [False, True])
def test_folder_replaces_a_file_whole(tmp_path, durable):
    """The new content is there, and nothing else."""
    folder = LocalFolder(str(tmp_path), durable)
    folder.replace("log/pointer", b"old")
    folder.replace("log/pointer", b"new")

    assert (tmp_path / "log/pointer").read_bytes() == b"new"
    assert [path.name for path in (tmp_path / "log").iterdir()] == ["pointer"]
