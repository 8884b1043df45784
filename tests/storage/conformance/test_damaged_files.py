"""Files of a storage that were cut or that lost a bit: what is read is whole, or an error that says so.

Each storage that keeps its collections in files takes part. SQLite has no checksums, so a lost bit may be another value
there; but no list is shorter than it was.
"""

from __future__ import annotations

import contextlib
import random
import shutil
from pathlib import Path

import pytest

from dstream.errors import DStreamError
from dstream.spi.store import Options
from dstream.storage import Settings, open_storage

URLS = {"lake": "{}/lake", "sqlite": "sqlite:{}/data.db"}
ITEMS = [f"item {n}" for n in range(300)]
ENTRIES = {f"key {n}": n for n in range(40)}
UNREADABLE = "unreadable"
START = 2
"""One byte is an empty database for SQLite, as is none."""


class Copies:
    """A storage with a list and a map, and damaged copies of it."""

    def __init__(self, url: str, folder: Path) -> None:
        self._url, self._folder, self._copy = url, folder / "whole", folder / "copy"
        self._folder.mkdir()
        with contextlib.closing(self._open(self._folder)) as storage:
            storage.create("list", "l", Options()).extend(ITEMS)
            entries = storage.create("map", "m", Options(buckets=2))
            entries.update(list(ENTRIES), lambda old: list(ENTRIES.values()))
        self.files = {path: path.read_bytes() for path in self._folder.rglob("*") if path.is_file()}

    def _open(self, folder: Path):
        return open_storage(self._url.format(folder), Settings(pickle="trusted"))

    def read(self, damaged: Path, data: bytes):
        """Return the items, at once and in splits, and the entries, with their sizes; or that there is an error."""
        shutil.copytree(self._folder, self._copy)
        (self._copy / damaged.relative_to(self._folder)).write_bytes(data)
        try:
            with contextlib.closing(self._open(self._copy)) as storage:
                items, entries = (storage.create(kind, kind[0], Options()) for kind in ("list", "map"))
                parts = [item for split in items.splits(3) for item in split.read()]
                pairs = dict(pair for split in entries.splits(3) for pair in split.read())
                return [(items.size(), items.read(0, 1000), parts), (entries.size(), pairs)]
        except DStreamError:
            return UNREADABLE
        finally:
            shutil.rmtree(self._copy)


@pytest.fixture(params=URLS)
def copies(request, tmp_path):
    """Each storage that is made of files."""
    return Copies(URLS[request.param], tmp_path)


WHOLE = [(len(ITEMS), ITEMS, ITEMS), (len(ENTRIES), ENTRIES)]


def test_damaged_files_that_were_cut_are_no_shorter_collections(copies):
    """Wherever a file ends too early, all is read, or an error is raised."""
    cuts = random.Random(1)
    for path, data in copies.files.items():
        places = {len(data) - 1, *(cuts.randrange(START, len(data)) for _ in range(max(3, len(data) // 400)))}
        for place in sorted(places):
            assert copies.read(path, data[:place]) in (WHOLE, UNREADABLE), f"{path} cut at {place}"


def _flipped(data: bytes, random_bits: random.Random) -> bytes:
    at = random_bits.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << random_bits.randrange(8)]) + data[at + 1 :]


def test_damaged_files_that_lost_a_bit_are_seen_by_their_checksums(copies, request):
    """Where files have checksums, a bit changes nothing that is read; elsewhere it shortens no list."""
    bits = random.Random(2)
    for path, data in copies.files.items():
        for _ in range(max(2, len(data) // 400)):
            found = copies.read(path, _flipped(data, bits))
            if "sqlite" in request.node.name and found != UNREADABLE:
                assert [len(found[0][1]), len(found[0][2])] == [len(ITEMS)] * 2
            else:
                assert found in (WHOLE, UNREADABLE), path


def test_damaged_files_of_sqlite_are_found_by_vacuum(tmp_path):
    """The whole structure is checked there, also what no reader has touched."""
    copies = Copies(URLS["sqlite"], tmp_path)
    [path], [data] = copies.files, copies.files.values()
    at = data.rindex(b"item 150")
    path.write_bytes(data[: at - at % 4096] + bytes(8) + data[at - at % 4096 + 8 :])  # the header of a page

    with pytest.raises(DStreamError, match="is damaged"):
        copies._open(tmp_path / "whole").vacuum(0)
