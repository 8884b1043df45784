"""Files of a storage that only their user may read, and links that lead out of it.

Each storage that keeps its collections in files takes part.
"""

from __future__ import annotations

import contextlib
import os
import uuid
from pathlib import Path

import pytest

from dstream.errors import DStreamError
from dstream.spi.store import Options
from dstream.storage import Settings, open_storage

URLS = {"lake": "{}/lake", "sqlite": "sqlite:{}/data.db"}
PRIVATE = {"lake": ("records", "jobs"), "sqlite": ("data.db", "data.db-wal", "data.db-shm", "staged", "jobs")}
"""All below these names is of jobs; SQLite has one file for all."""


@pytest.fixture(params=URLS)
def kind(request):
    """Each storage that is made of files."""
    return request.param


def _opened(kind, folder):
    return contextlib.closing(open_storage(URLS[kind].format(folder), Settings(pickle="trusted")))


def _fill(storage):
    """Write a map, a record twice, the state of a job, and what a task stages."""
    store = storage.create("map", "m", Options(buckets=1))
    store.update(["a"], lambda old: [1])
    for version in (1, 2):
        storage.records.write("jobs/a/plan", b"password", version)
    storage.state_files("a").write(f"0/1-{uuid.uuid4().hex}", b"state")
    job = store.begin("job")
    list(job.writer.write_bucket(0, iter([("b", 2)])))
    return job


@pytest.mark.parametrize("mask", [0, 0o022, 0o077])
def test_private_files_are_those_of_jobs(kind, mask, tmp_path):
    """Records, plans and state are readable by nobody else, whatever the mask says; so are the folders of them."""
    before = os.umask(mask)
    try:
        with _opened(kind, tmp_path) as storage:
            _fill(storage)
            found = {path.relative_to(tmp_path): path.stat() for path in tmp_path.rglob("*")}
    finally:
        os.umask(before)

    private = {path: status.st_mode & 0o077 for path, status in found.items() if {*path.parts} & {*PRIVATE[kind]}}
    assert len(private) > 5
    assert set(private.values()) == {0}


def test_private_files_of_a_lake_are_not_its_collections(tmp_path):
    """Other users and programs may read the tables, as far as the mask lets them."""
    before = os.umask(0o022)
    try:
        with _opened("lake", tmp_path) as storage:
            _fill(storage)
    finally:
        os.umask(before)

    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "lake/data").rglob("*.parquet")} == {0o644}


def _list(storage):
    return storage.names()


def _list_records(storage):
    return storage.records.names()


def _vacuum(storage):
    return storage.vacuum(0)


LINKS = [
    ("lake", "names/map", _list),
    ("lake", "names/map/m", _list),
    ("lake", "names", _list),
    ("lake", "records", _list_records),
    ("lake", "records/jobs", _list_records),
    ("lake", "jobs", _fill),
    ("lake", "jobs/a", _fill),
    ("lake", "data", _fill),
    ("sqlite", "", _fill),
    ("sqlite", "staged", _fill),
    ("sqlite", "staged/1", _fill),
    ("sqlite", "", _vacuum),
    ("sqlite", "staged", _vacuum),
    ("sqlite", "jobs", _fill),
]


@pytest.mark.parametrize(("kind", "place", "action"), LINKS)
def test_links_in_a_storage_are_refused(kind, place, action, tmp_path):
    """A folder that is a link elsewhere is an error: nothing is hidden, written or removed behind it."""
    with _opened(kind, tmp_path) as storage:
        _fill(storage)
    link = tmp_path / {"lake": "lake", "sqlite": "data.db-files"}[kind] / place
    behind = tmp_path / "elsewhere"
    link.rename(behind)
    link.symlink_to(behind)
    there = sorted(behind.rglob("*"))

    with _opened(kind, tmp_path) as storage, pytest.raises(DStreamError, match=f"{link.name} is a symbolic link"):
        action(storage)
    assert sorted(behind.rglob("*")) == there


def test_links_to_nothing_hide_no_names(tmp_path):
    """A disk that is not mounted is no storage without maps."""
    with _opened("lake", tmp_path) as storage:
        _fill(storage)
    Path(tmp_path, "lake/names/map").rename(tmp_path / "moved")
    Path(tmp_path, "lake/names/map").symlink_to(tmp_path / "gone")

    with _opened("lake", tmp_path) as storage, pytest.raises(DStreamError, match="map is a symbolic link"):
        storage.names()
