"""Which pickles a lake loads if nobody says so: decided when content is read, by every folder that is read."""

from __future__ import annotations

import os
import pickle
import re
import shutil
from pathlib import Path

import pytest

from dstream.filesystem.local import LocalFolder
from dstream.spi.store import Options
from dstream.storage import Settings, open_storage
from dstream.storage.base.named_folders import are_private


class Loaded:
    """Makes a folder when it is unpickled."""

    def __init__(self, folder):
        self._folder = folder

    def __reduce__(self):
        return (os.makedirs, (str(self._folder), 0o777, True))


@pytest.fixture
def loaded(tmp_path):
    """The folder that is there when the value of the lake was unpickled."""
    return tmp_path / "loaded"


@pytest.fixture
def theirs(tmp_path, loaded):
    """A lake whose one value does something when it is unpickled."""
    store = open_storage(str(tmp_path / "made"), Settings(pickle="trusted")).create("map", "m", Options())
    store.update(["a"], lambda old: [Loaded(loaded)])
    if loaded.exists():  # the handle has made itself a copy
        loaded.rmdir()
    return tmp_path / "made"


def status(user=1000, mode=0o755):
    """Return what a folder is like."""
    return os.stat_result((0o040000 | mode, 1, 1, 1, user, user, 0, 0, 0, 0))


@pytest.mark.parametrize(
    ("folders", "private"),
    [
        ([status()], True),
        ([status(), status(mode=0o700), None], True),
        ([status(user=1001)], False),
        ([status(user=0)], False),
        ([status(), status(mode=0o775)], False),
        ([status(), status(), status(mode=0o1777)], False),
        ([status(), status(user=1001), status()], False),
    ],
)
def test_folders_are_private_if_nobody_else_can_write_there(folders, private):
    """Each of them counts; one that is not there holds nothing."""
    assert are_private(folders, 1000) is private


def test_a_storage_that_another_made_meanwhile_is_not_trusted(theirs, loaded, tmp_path):
    """It is opened before it is there; whoever makes it then decides what it holds."""
    storage = open_storage(str(tmp_path / "shared"), Settings())
    theirs.rename(tmp_path / "shared")
    (tmp_path / "shared").chmod(0o777)

    with pytest.raises(TypeError, match=r"map 'm'.*pickle"):
        storage.open("map", "m", Options()).get_many(["a"])
    assert not loaded.exists()


@pytest.mark.parametrize("folder", ["names", "names/map", "names/map/m", "data", "data/{}", "data/{}/_delta_log"])
@pytest.mark.parametrize("make", ["all may write", "another's"])
def test_a_folder_inside_that_others_write_to_is_not_trusted(theirs, loaded, folder, make):
    """A private folder around it keeps nobody out who was let in."""
    [identity] = os.listdir(theirs / "data")
    place = theirs / folder.format(identity)
    if make == "all may write":
        place.chmod(0o777)
    elif os.getuid() != 0:
        pytest.skip("only root can give a folder to another user")
    else:
        os.chown(place, 12345, 12345)

    store = open_storage(str(theirs), Settings()).open("map", "m", Options())
    for read in (lambda: store.get_many(["a"]), lambda: list(store.splits(1)[0].read())):
        with pytest.raises(TypeError, match=r"map 'm'.*pickle"):
            read()
    assert not loaded.exists()


def test_a_folder_that_appears_behind_a_handle_is_looked_at(theirs, loaded, tmp_path):
    """The handle was there before the data; they are judged when they are read first, in tasks too."""
    url = str(tmp_path / "mine")
    store = open_storage(url, Settings()).create("map", "m", Options())
    [identity] = os.listdir(theirs / "data")
    place = tmp_path / "mine/data" / store.description.identity
    shutil.rmtree(place)
    (theirs / "data" / identity).rename(place)
    place.chmod(0o777)
    for entry in place.glob("_delta_log/*.json"):
        # The checksum has the identity in it, and only other programs leave it out.
        without = re.sub(rb'"crc32":"[0-9a-f]+",', b"", entry.read_bytes())
        entry.write_bytes(without.replace(b'"dstream":', b'"engineInfo":'))
    split = pickle.loads(pickle.dumps(store.splits(1)[0]))

    with pytest.raises(TypeError, match=r"map 'm'.*pickle"):
        list(split.read())
    assert not loaded.exists()


def test_a_private_lake_is_trusted(theirs, loaded):
    """Of one's own, everything is loaded; each folder is looked at once."""
    store = open_storage(str(theirs), Settings()).open("map", "m", Options())
    store.get_many(["a"])

    assert loaded.exists()


def test_folders_are_looked_at_once(theirs, monkeypatch):
    """Trust costs nothing per read."""
    looked = []
    folders = LocalFolder.folders
    monkeypatch.setattr(LocalFolder, "folders", lambda self, path: looked.append(path) or folders(self, path))
    store = open_storage(str(theirs), Settings(pickle="restricted")).open("map", "m", Options())
    store.update(["b"], lambda old: [1])
    before = len(looked)
    for n in range(20):
        store.update(["b"], lambda old, n=n: [n])
        store.size()

    assert len(looked) == before


def test_what_others_may_not_write_is_made_so(tmp_path):
    """Also for a user who lets all write to new files: what is in them may be a pickle."""
    before = os.umask(0)
    try:
        store = open_storage(str(tmp_path / "lake"), Settings()).create("map", "m", Options())
        store.update(["a"], lambda old: [1])
    finally:
        os.umask(before)

    assert [path for path in Path(tmp_path, "lake").rglob("*") if path.stat().st_mode & 0o022] == []
