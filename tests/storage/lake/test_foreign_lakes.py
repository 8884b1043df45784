"""A lake that somebody else has prepared: nothing outside of it is read, written or removed."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
from pathlib import Path

import pytest

from dstream.delta.checkpoints import write_checkpoint
from dstream.delta.vacuum import STAGED_FOR
from dstream.errors import DStreamError, IllegalStateError
from dstream.spi.store import Options
from dstream.storage import Settings, open_storage

PATHS = [
    "../other/{}",
    "/{}",
    "{root}/other/{}",
    "..%2Fother%2F{}",
    "..\\other\\{}",
    "x/../../other/{}",
    "./{}",
    "_delta_log/{}",
    "{}\n",
    "file:///{root}/other/{}",
    "a.parquet",
    "{}.json",
]


def _aged(folder):
    for path in [folder, *folder.rglob("*")]:
        os.utime(path, (time.time() - 2 * STAGED_FOR,) * 2, follow_symlinks=False)


@pytest.fixture
def other(lake):
    """A folder beside the lake, whose files are of the names that the lake makes; it must stay as it is."""
    store = lake.list(name="theirs")
    store.extend([1])
    folder = lake.path.parent / "other"
    shutil.copytree(Path(store.location), folder)
    (folder / "precious.txt").write_text("precious")
    _aged(folder)
    before = _tree(folder)
    yield folder
    assert _tree(folder) == before


def _tree(folder):
    return {str(path): path.read_bytes() if path.is_file() else b"" for path in sorted(folder.rglob("*"))}


def _description(lake, **changes):
    path = lake.path / "names/map/m/00000001.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def _open(lake):
    return open_storage(str(lake.path), Settings(pickle="never")).open("map", "m", Options())


@pytest.mark.parametrize(
    "identity", ["../../other", "/etc", "..", "", "A" * 32, "a" * 31, "a" * 33, "a" * 32 + "\n", 5, None, ["a"]]
)
def test_an_identity_is_32_hex_digits(lake, other, identity):
    """It becomes a path; whatever else stands there is refused before anything is looked for."""
    lake.map()
    _description(lake, id=identity if identity != "/etc" else str(other))

    for attempt in (lambda: _open(lake).vacuum(0), lake.storage().names, lake.map):
        with pytest.raises(IllegalStateError, match=r"is damaged: .*00000001\.json"):
            attempt()


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("by", ["log", "checkpoint"])
def test_a_file_stays_inside_of_its_collection(lake, other, path, by):
    """A commit or a checkpoint may name files that the lake would make, and no others."""
    store = lake.map(buckets=1)
    lake.put(store, a=1)
    name = next(iter(other.glob("*.parquet"))).name
    entry = Path(store.location, "_delta_log", f"{0:020d}.json")
    lines = [json.loads(line) for line in entry.read_text().splitlines()]
    for line in lines:
        for action in line.values():
            if "path" in action:
                action["path"] = path.replace("{root}", str(lake.path.parent)).replace("{}", name)
    entry.write_text("\n".join(map(json.dumps, lines)))
    if by == "checkpoint":
        with contextlib.suppress(DStreamError):
            write_checkpoint(store.log.folder)

    for attempt in (lambda: lake.content(_open(lake)), lambda: _open(lake).vacuum(0), lambda: _open(lake).compact()):
        with pytest.raises(DStreamError, match="map 'm'"):
            attempt()


def test_a_removal_of_a_file_outside_is_refused(lake, other):
    """A path in a remove action is no less a path."""
    store = lake.map(buckets=1)
    lake.put(store, a=1)
    entry = Path(store.location, "_delta_log", f"{1:020d}.json")
    entry.write_text(json.dumps({"remove": {"path": "../../other/precious.txt", "dataChange": True}}))

    with pytest.raises(IllegalStateError, match="map 'm' is damaged"):
        _open(lake).vacuum(0)


FOLDERS = ["data", "data/{id}", "data/{id}/_delta_log", "names", "names/map", "names/map/m"]


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_folder_that_is_a_link_is_refused(lake, other, folder):
    """Neither is read, nor is anything written or removed behind it."""
    store = lake.map(buckets=1)
    lake.put(store, a=1)
    place = lake.path / folder.format(id=store.description.identity)
    behind = other.parent / "behind"
    shutil.move(place, behind)
    place.symlink_to(behind)
    _aged(behind)
    before = _tree(behind)

    for attempt in (
        lambda: lake.content(_open(lake)),
        lambda: _open(lake).vacuum(0),
        lambda: lake.put(lake.map(), b=2),
        lambda: open_storage(str(lake.path), Settings()).create("map", "n", Options()).update(["a"], lambda _: [1]),
    ):
        with contextlib.suppress(DStreamError):
            attempt()
            assert folder.endswith(("/m", "{id}", "_log"))  # of another collection
    with pytest.raises(DStreamError, match=r"is a symbolic link"):
        lake.content(_open(lake))
    assert _tree(behind) == before


@pytest.mark.parametrize("pattern", ["names/map/m/*.json", "data/*/_delta_log/*0.json", "data/*/*.parquet"])
def test_a_file_that_is_a_link_is_refused(lake, pattern):
    """A link to a file is no file of the lake."""
    lake.put(lake.map(buckets=1), a=1)
    [path] = lake.path.glob(pattern)
    path.rename(lake.path.parent / "behind")
    path.symlink_to(lake.path.parent / "behind")

    with pytest.raises(DStreamError, match=r"no file of the lake|is a symbolic link"):
        lake.content(_open(lake))


@pytest.mark.parametrize("pattern", ["names/map/m/*.json", "data/*/_delta_log/*0.json", "data/*/*.parquet"])
def test_a_pipe_is_no_file(lake, pattern):
    """To open one would wait for a writer for ever."""
    lake.put(lake.map(buckets=1), a=1)
    [path] = lake.path.glob(pattern)
    path.unlink()
    os.mkfifo(path)

    with pytest.raises(DStreamError, match="no file of the lake"):
        lake.content(_open(lake))


def test_the_folder_of_the_storage_may_be_a_link(lake):
    """Its user has named it."""
    lake.put(lake.map(), a=1)
    link = lake.path.parent / "link"
    link.symlink_to(lake.path)

    assert lake.content(open_storage(str(link), Settings()).open("map", "m", Options())) == {"a": 1}


def test_vacuum_removes_only_what_this_library_makes(lake):
    """Files of users and other programs stay, how old they are may be."""
    store = lake.map(buckets=1)
    lake.put(store, a=1)
    folder = Path(store.location)
    theirs = ["notes.txt", "part-0.parquet", "_delta_log/.tmp_mine", "sub/" + "a" * 32 + ".parquet", ".hidden"]
    (folder / "sub").mkdir()
    for name in [*theirs, "b" * 32 + ".parquet", f"{'c' * 32}-{'d' * 32}.parquet", "_delta_log/.tmp_" + "e" * 32]:
        (folder / name).write_bytes(b"x")
    _aged(folder)

    assert store.vacuum(0) == 3
    assert all((folder / name).exists() for name in theirs)


def test_names_that_share_an_identity_do_not_share_a_handle(lake):
    """A list that points to the files of a map is an error, and no map."""
    lake.put(lake.map(), a=1)
    (lake.path / "names/list/l").mkdir(parents=True)
    data = json.loads((lake.path / "names/map/m/00000001.json").read_text())
    shape = {"buckets": None, "journal": None, "ttl": None, "max_idle": None}
    wrong = {**data, "kind": "list", "name": "l", "options": shape}
    del wrong["path"]
    (lake.path / "names/list/l/00000001.json").write_text(json.dumps(wrong))
    storage = lake.storage()
    storage.open("map", "m", Options())

    with pytest.raises(DStreamError, match="list 'l'"):
        storage.open("list", "l", Options()).read(0, 9)


@pytest.mark.parametrize("change", [{"kind": "list"}, {"name": "other"}, {"kind": "bag"}, {"name": 5}])
def test_a_description_is_that_of_its_folder(lake, change):
    """What stands under the name of a map describes that map."""
    lake.map()
    _description(lake, **change)

    for attempt in (lambda: _open(lake), lake.storage().names):
        with pytest.raises(IllegalStateError, match="is damaged"):
            attempt()


@pytest.mark.parametrize("pattern", ["names/map/m/*.json", "data/*/_delta_log/*0.json"])
def test_a_file_of_any_size_is_not_read_whole(lake, pattern):
    """A file with a hole in it costs its author nothing."""
    lake.put(lake.map(buckets=1), a=1)
    [path] = lake.path.glob(pattern)
    os.truncate(path, 1 << 40)

    with pytest.raises(DStreamError, match="too large"):
        lake.content(_open(lake))
