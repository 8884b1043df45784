"""The lake in S3, as moto plays it."""

from __future__ import annotations

import itertools
import os
import threading

import pytest

from dstream.delta import collection_log, vacuum
from dstream.delta.checkpoints import write_checkpoint
from dstream.errors import CollectionDestroyedError, IllegalStateError, SetupError
from dstream.filesystem.object_folder import ObjectFolder
from dstream.spi.store import Options, Splice
from dstream.storage import Settings, open_storage
from tests.storage.lake.writing import written


@pytest.fixture
def url(s3_url):
    """A folder in a bucket of its own."""
    return s3_url


def _map(url, **options):
    return open_storage(url, Settings()).create("map", "m", Options(**options))


def test_s3_keeps_a_map_and_a_list(url):
    """What one handle writes, another reads; names, journal and destroy are there too."""
    storage = open_storage(url, Settings())
    assert storage.names() == []
    store, items = _map(url, journal=True), storage.create("list", "l", Options())
    store.update(["a", "b"], lambda old: [1, 2])
    store.update(["a"], lambda old: [old[0] + 1])
    items.extend([1, None, 3])
    items.edit(lambda view: Splice(1, 2, ["x"]))

    assert _map(url).get_many(["a", "b", "c"]) == [2, 2, None]
    assert [event.new_value for event in _map(url).journal(0)] == [1, 2, 2]
    assert storage.open("list", "l", Options()).read(0, 9) == [1, "x", 3]
    assert storage.names() == [("list", "l"), ("map", "m")]
    _map(url).destroy()
    with pytest.raises(CollectionDestroyedError):
        store.get_many(["a"])


def test_s3_loses_no_increment(url):
    """Three handles count at the same time; put-if-absent decides who was first."""

    def count(store):
        for _ in range(10):
            store.update(["n"], lambda old: [(old[0] or 0) + 1])

    threads = [threading.Thread(target=count, args=(_map(url),)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert _map(url).get_many(["n"]) == [30]


def test_s3_job_compaction_checkpoint_and_vacuum(url):
    """A job's files become visible at once; a checkpoint is written and read; what was folded goes."""
    from dstream.delta.checkpoints import write_checkpoint

    store = _map(url, buckets=2)
    job = store.begin("job")
    receipts = written(job.writer, ((f"k{n}", n) for n in range(3000)))
    assert store.size() == 0
    job.commit(receipts)
    store.update(["k0"], lambda old: [None])
    store.compact()
    write_checkpoint(store.log.folder)
    store.vacuum(0)

    reopened = _map(url)
    assert reopened.begin("job").is_done
    assert reopened.size() == 2999
    assert dict(entry for split in reopened.splits(2) for entry in split.read()) == {f"k{n}": n for n in range(1, 3000)}


def test_s3_files_are_read_up_to_the_first_that_is_missing(url):
    """In order, though many requests are on their way at a time."""
    folder = ObjectFolder.opened(url)
    for number in [*range(70), 71]:
        folder.create(f"log/{number}", b"%d" % number)

    assert list(folder.read_run(f"log/{number}" for number in itertools.count())) == [b"%d" % n for n in range(70)]
    assert list(folder.read_run(["log/71", "log/70", "log/69"])) == [b"71"]


def test_s3_damage_of_an_entry_is_named_when_a_checkpoint_is_due(url):
    """What cannot be read is not summed up."""
    from dstream.delta.checkpoints import read_checkpoint, write_checkpoint

    store = _map(url)
    store.update(["a"], lambda old: [1])
    store.log.folder.replace(f"_delta_log/{store.log.version:020d}.json", b"{")

    with pytest.raises(IllegalStateError, match="map 'm' is damaged"):
        write_checkpoint(store.log.folder)
    assert read_checkpoint(store.log.folder) is None


def test_s3_large_file_is_read_in_parts(url, monkeypatch):
    """A file that is too large for one request is read as pyarrow asks for it."""
    from dstream.filesystem import object_folder

    monkeypatch.setattr(object_folder, "_READ_WHOLE", 1000)
    items = open_storage(url, Settings()).create("list", "l", Options())
    items.extend(os.urandom(20).hex() for _ in range(20_000))

    assert len(items.read(0, 20_000)) == items.size() == 20_000
    assert len(items.read(12_345, 12_347)) == 2


def test_s3_without_obstore_says_what_to_install(url, monkeypatch):
    """The package is an extra."""
    monkeypatch.setitem(__import__("sys").modules, "obstore.store", None)

    with pytest.raises(SetupError, match=r"pip install 'dstream-spark\[object-store\]'"):
        open_storage("s3://another-bucket", Settings())


def test_s3_keeps_the_state_of_a_job(url):
    """Files are written whole and read in parts; what is not there is said to be missing."""
    files = open_storage(url, Settings(pickle="trusted")).state_files("0123456789ab-01234567")
    files.write("step/1-a", b"0123456789")

    assert files.read("step/1-a", 3, 4) == b"3456"
    assert files.read("step/1-a", 8, 10) == b"89"
    assert [file.name for file in files.found()] == ["step/1-a"]
    files.remove("step/1-a")
    with pytest.raises(FileNotFoundError):
        files.read("step/1-a", 0, 1)


def test_s3_a_handle_that_slept_through_a_cut_loses_nothing(url, monkeypatch):
    """No file there says which commit was the last, so the next number looks free; a commit below would be lost."""
    monkeypatch.setattr(vacuum, "_SHORTEST", -10.0)
    monkeypatch.setattr(collection_log, "_LOOK_EVERY", 0.0)
    sleeper, other = _map(url), _map(url)
    sleeper.update(["a"], lambda old: [1])
    for n in range(6):
        other.update(["b"], lambda old, n=n: [n])
    write_checkpoint(other.log.folder)
    other.update(["c"], lambda old: [3])
    assert other.cut_log(-1.0) > 5
    sleeper.update(["d"], lambda old: [4])

    assert _map(url).get_many(["a", "b", "c", "d"]) == [1, 5, 3, 4]
