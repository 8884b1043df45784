"""Where the state of a job stands in each storage, and which storages keep none."""

from __future__ import annotations

import os
import pickle
import socket
from pathlib import Path

import pytest

import dstream as ds
from dstream.errors import IllegalStateError, UnsupportedError
from dstream.storage import Settings, open_storage
from tests.state.epochs import JOB


def test_state_files_hold_what_was_written(files):
    """Whole, or a part; at the end of the file there is less."""
    files.write("step/1-a", b"0123456789")

    assert files.read("step/1-a", 0, 10) == b"0123456789"
    assert files.read("step/1-a", 3, 4) == b"3456"
    assert files.read("step/1-a", 8, 10) == b"89"
    assert [file.name for file in files.found()] == ["step/1-a"]


def test_state_files_that_are_gone_are_not_found(files):
    """Removing them again is no error."""
    files.write("step/1-a", b"0123456789")
    for _ in range(2):
        files.remove("step/1-a")

    with pytest.raises(FileNotFoundError):
        files.read("step/1-a", 0, 1)
    assert list(files.found()) == []


def test_state_files_of_a_folder_travel(lake, tmp_path):
    """Tasks in other processes write and read the same."""
    pickle.loads(pickle.dumps(lake)).write("step/1-a", b"0123")

    assert lake.read("step/1-a", 0, 4) == b"0123"
    assert (tmp_path / "lake" / "jobs" / JOB / "state" / "step" / "1-a").read_bytes() == b"0123"


def test_state_files_in_memory_stay_in_their_process():
    """All handles of one storage share them; what would take them elsewhere says where state can be kept."""
    files = open_storage("memory:shared", Settings()).state_files(JOB)
    files.write("step/1-a", b"0123")

    assert open_storage("memory:shared", Settings()).state_files(JOB).read("step/1-a", 0, 4) == b"0123"
    with pytest.raises(UnsupportedError, match=r"in the memory of this process.*JobConfig\(files_at="):
        pickle.dumps(files)


@pytest.mark.parametrize("url", ["memory:", "lake"])
def test_state_files_need_pickles(url, tmp_path):
    """A storage that loads none keeps no state."""
    storage = open_storage(url if url == "memory:" else str(tmp_path / url), Settings(pickle="never"))

    with pytest.raises(TypeError, match="has to be pickled, and the storage was connected with pickle='never'"):
        storage.state_files(JOB)


def test_state_files_of_others_load_plain_types_alone(tmp_path):
    """In a folder that others can write to, a pickle may run anything."""
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake").chmod(0o777)
    files = open_storage(str(tmp_path / "lake"), Settings()).state_files(JOB)

    assert files.load(files.dump({"a": (1, None)})) == {"a": (1, None)}
    with pytest.raises(TypeError, match="socket:socket is not loaded"):
        files.load(pickle.dumps(socket.socket))


def test_state_files_behind_a_link_are_refused(tmp_path):
    """It may lead anywhere."""
    (tmp_path / "lake" / "jobs").mkdir(parents=True)
    os.symlink(tmp_path, tmp_path / "lake" / "jobs" / JOB)

    with pytest.raises(IllegalStateError, match="symbolic link"):
        open_storage(str(tmp_path / "lake"), Settings()).state_files(JOB)


def test_state_files_of_a_part_of_a_path_are_refused(tmp_path):
    """The id of a job leads nowhere else."""
    with pytest.raises(ValueError, match="is no name of a record"):
        open_storage(str(tmp_path / "lake"), Settings()).state_files("../other")


def test_state_files_in_a_folder_are_no_collections(tmp_path):
    """They are passed over where collections are listed and removed."""
    path = Path(tmp_path / "lake")
    with ds.connect(engine="local", storage=path) as ctx:
        files = ctx.running_storage().state_files(JOB)
        files.write("step/1-a", b"0123")
        ctx.get_list("names").append("Ada")
        ctx.vacuum(0)

        assert [name for _, name in ctx.collections()] == ["names"]
        assert files.read("step/1-a", 0, 4) == b"0123"
