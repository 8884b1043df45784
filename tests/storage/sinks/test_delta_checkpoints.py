"""Checkpoints of `to_files(format="delta")`: the pointer is a hint, and a commit is made whatever becomes of them."""

from __future__ import annotations

import json
import shutil

import deltalake
import pyarrow.parquet as parquet
import pytest

from dstream.errors import SinkError
from dstream.filesystem.output_folders import LocalOutput
from reducers import to_files


@pytest.fixture(autouse=True)
def _often(monkeypatch):
    """Write a checkpoint after each third commit."""
    monkeypatch.setattr("dstream.delta.shared_log.SHARED_CHECKPOINT_INTERVAL", 3)


@pytest.fixture
def table(local_context, tmp_path):
    """A table whose log was cut behind the checkpoint of commit 6, as other programs do; its last commit is 7."""
    folder = tmp_path / "table"
    for n in range(8):
        _add(local_context, folder, n)
    for version in range(6):
        _entry(folder, version).unlink()
    return folder


def _add(context, folder, n):
    """Commit a file with one row."""
    return context.stream([{"n": n}]).collect(to_files(folder, format="delta"))


def _numbers(folder):
    """Return the rows of the table by the log alone, as delta-rs reads it."""
    return sorted(deltalake.DeltaTable(str(folder)).to_pyarrow_table().column("n").to_pylist())


def _entry(folder, version):
    return folder / "_delta_log" / f"{version:020}.json"


def _checkpoint(folder, version):
    return folder / "_delta_log" / f"{version:020}.checkpoint.parquet"


def _pointer(folder):
    return folder / "_delta_log" / "_last_checkpoint"


@pytest.mark.parametrize("is_there", [True, False])
def test_late_pointer_does_not_hide_the_newer_checkpoint(local_context, table, is_there):
    """Whether the checkpoint that it names was removed or not: the next commit is the next version."""
    _pointer(table).write_text(json.dumps({"version": 3}))
    if not is_there:
        _checkpoint(table, 3).unlink()
    _add(local_context, table, 8)

    assert (_numbers(table), _entry(table, 8).exists()) == (list(range(9)), True)


@pytest.mark.parametrize("content", [None, "{", "[]"])
def test_missing_or_torn_pointer_does_not_hide_a_checkpoint(local_context, table, content):
    """The log is listed where it has no start."""
    _pointer(table).unlink()
    if content is not None:
        _pointer(table).write_text(content)
    _add(local_context, table, 8)

    assert _numbers(table) == list(range(9))


def test_checkpoint_with_the_pointer_of_another_writer_is_read(local_context, table):
    """It has a checksum of its own."""
    known = json.loads(_pointer(table).read_text())
    _pointer(table).write_text(json.dumps(known | {"crc32": known["crc32"] ^ 1}))
    _add(local_context, table, 8)

    assert _numbers(table) == list(range(9))


def test_flipped_checkpoint_of_a_cut_log_is_an_error(local_context, table):
    """It is never read: neither that which the pointer names, nor an older one without the commits behind it."""
    path = _checkpoint(table, 6)
    whole = path.read_bytes()
    for at in range(0, len(whole), len(whole) // 20):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(SinkError, match=r"damaged, since _delta_log/0*4\.json is gone, and there is no checkpoint"):
            _add(local_context, table, 8)
    _checkpoint(table, 3).unlink()
    with pytest.raises(SinkError, match="its first commit is gone, and there is no checkpoint that can be read"):
        _add(local_context, table, 8)


def test_flipped_checkpoint_beside_the_commits_costs_time_only(local_context, tmp_path):
    """They are read from the checkpoint before on, or from the first one."""
    for n in range(8):
        _add(local_context, tmp_path, n)
    for version in (6, 3):
        data = _checkpoint(tmp_path, version).read_bytes()
        _checkpoint(tmp_path, version).write_bytes(data[:100] + bytes([data[100] ^ 1]) + data[101:])
        _add(local_context, tmp_path, 14 - version)

    _pointer(tmp_path).unlink()
    for path in (tmp_path / "_delta_log").glob("*.parquet"):
        path.unlink()
    assert _numbers(tmp_path) == [*range(9), 11]


def test_checkpoint_of_another_program_is_read_where_the_log_was_cut(local_context, table):
    """It has no checksum; a pointer by dstream that is late has that of another one."""
    path = _checkpoint(table, 6)
    parquet.write_table(parquet.read_table(path), path)
    _pointer(table).write_text(json.dumps({"version": 3, "crc32": 1}))
    _add(local_context, table, 8)

    assert _numbers(table) == list(range(9))


def test_pointer_is_not_moved_back(local_context, tmp_path):
    """Another program summed up later commits meanwhile."""
    for n in range(3):
        _add(local_context, tmp_path, n)
    _pointer(tmp_path).parent.mkdir(exist_ok=True)
    _pointer(tmp_path).write_text(json.dumps({"version": 30}))
    _checkpoint(tmp_path, 30).write_bytes(b"")
    _add(local_context, tmp_path, 3)

    assert (json.loads(_pointer(tmp_path).read_text()), _checkpoint(tmp_path, 3).exists()) == ({"version": 30}, True)


def test_copy_of_a_table_is_read(local_context, table, tmp_path):
    """The checksum of a checkpoint does not depend on the folder."""
    copy = shutil.copytree(table, tmp_path / "copy")
    _add(local_context, copy, 8)

    assert json.loads(_pointer(copy).read_text())["version"] == 6
    assert len(deltalake.DeltaTable(str(copy)).file_uris()) == 9


@pytest.mark.parametrize("failing", ["checkpoint.parquet", "_last_checkpoint"])
def test_failing_checkpoint_does_not_fail_the_commit(local_context, tmp_path, monkeypatch, caplog, failing):
    """It is logged, the paths are returned, and the next checkpoint is made of the commits."""
    real = LocalOutput.replace

    def replace(place, path, data):
        if path.endswith(failing):
            raise SinkError("the disk is full")
        real(place, path, data)

    with monkeypatch.context() as patch:
        patch.setattr(LocalOutput, "replace", replace)
        paths = [_add(local_context, tmp_path, n) for n in range(4)]
    assert "could not be summed up after a commit: the disk is full" in caplog.text
    assert sorted(deltalake.DeltaTable(str(tmp_path)).file_uris()) == sorted(path for each in paths for path in each)
    for n in range(4, 7):
        _add(local_context, tmp_path, n)

    assert (json.loads(_pointer(tmp_path).read_text())["version"], _numbers(tmp_path)) == (6, list(range(7)))
