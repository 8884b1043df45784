"""A lake in a folder that the workers of a cluster do not share: the worker says so, whatever it does there."""

from __future__ import annotations

import pickle
import shutil
import socket

import pytest

from dstream.errors import SetupError
from dstream.spi.store import Options
from dstream.storage import Settings, open_storage
from dstream.storage.base import named_folders as folders

MESSAGE = rf"(map 'm'|list 'l').*the worker on {socket.gethostname()} does not see the storage in .*/lake: "


@pytest.fixture
def lake(tmp_path):
    """The folder of a lake with a map and a list."""
    storage = open_storage(str(tmp_path / "lake"), Settings())
    storage.create("map", "m", Options()).update(["a"], lambda old: [1])
    storage.create("list", "l", Options()).extend([1])
    return tmp_path / "lake"


@pytest.fixture
def worker(monkeypatch):
    """Be a worker from now on, which has looked at nothing yet."""

    def become():
        monkeypatch.setattr(folders, "_seen_here", set())
        monkeypatch.setattr(folders, "inside_a_worker", lambda: True)

    return become


def tasks(lake):
    """Return what tasks do in a lake, pickled by the driver: they read and write maps and lists."""
    storage = open_storage(str(lake), Settings())
    store, items = storage.open("map", "m", Options()), storage.open("list", "l", Options())
    splits = [store.splits(1)[0], items.splits(1)[0]]
    writers = [store.begin("job").writer, items.begin("job").writer]
    return pickle.dumps((splits, writers))


def attempts(pickled):
    """Give each of the tasks as a call."""
    (read_map, read_list), (write_map, write_list) = pickle.loads(pickled)
    yield lambda: list(read_map.read())
    yield lambda: list(read_list.read())
    yield lambda: list(write_map.write_bucket(write_map.bucket_of("b"), iter([("b", 2)])))
    yield lambda: list(write_list.write(iter([2])))


@pytest.mark.parametrize("is_there", [False, True], ids=["no folder", "another one"])
def test_unshared_folders_are_named_by_the_worker(lake, worker, is_there):
    """Neither a vacuum nor a clock is to blame, and nothing is written that nobody would find."""
    pickled = tasks(lake)
    shutil.rmtree(lake)
    if is_there:
        lake.mkdir()
    worker()

    for attempt in attempts(pickled):
        with pytest.raises(SetupError, match=MESSAGE):
            attempt()
    assert not is_there or list(lake.iterdir()) == []


def test_shared_folders_are_read_and_written(lake, worker):
    """A worker that sees the storage looks once."""
    pickled = tasks(lake)
    worker()

    results = [attempt() for attempt in attempts(pickled)]

    assert results[:2] == [[("a", 1)], [1]]
    assert list(map(len, results[2:])) == [1, 1]
    assert folders._seen_here == {str(lake)}
