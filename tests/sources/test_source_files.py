"""`files`: whole files, read by a function."""

from __future__ import annotations

import gzip
import json
import pickle

import fsspec
import pytest

from dstream.errors import SourceError
from sources import files


@pytest.fixture
def folder(tmp_path):
    """Write some files below a folder whose name holds a bracket."""
    (tmp_path / "in[1]" / "deep").mkdir(parents=True)
    (tmp_path / "in[1]" / "a.json").write_text("[1, 2]")
    (tmp_path / "in[1]" / "b.json.gz").write_bytes(gzip.compress(b"[3]"))
    (tmp_path / "in[1]" / "deep" / "c.json").write_text("[4]")
    return tmp_path / "in[1]"


def loaded(path, open_file):
    """Give the items of a file."""
    yield from json.load(open_file)


def test_files_are_pairs_of_path_and_bytes(folder, read):
    """In the order of their paths, decompressed."""
    assert read(files(folder)) == [(f"{folder}/a.json", b"[1, 2]"), (f"{folder}/b.json.gz", b"[3]")]


def test_files_give_the_items_of_a_function(folder, read):
    """Below a folder, those that match."""
    assert read(files(folder, read=loaded)) == [1, 2, 3]
    assert read(files(folder, glob="**/*.json", read=loaded)) == [1, 2, 4]
    assert read(files(folder, glob="*.json", read=lambda path, open_file: None)) == []


def test_files_are_read_from_any_url(read):
    """As by the other sources of files."""
    with fsspec.open("memory://whole/a.bin", "wb") as out:
        out.write(b"\x00\xff")

    assert read(files("memory://whole", glob="*.bin")) == [("memory:///whole/a.bin", b"\x00\xff")]


def test_files_are_closed_and_lazy(folder):
    """The function is asked for no more items than are wanted."""
    opened = []

    def numbers(path, open_file):
        opened.append(open_file)
        yield from (1, 2)

    items = files(folder, read=numbers).splits(1)[0].read()
    assert (next(items), len(opened), opened[0].closed) == (1, 1, False)
    assert list(items) == [2, 1, 2]
    assert [each.closed for each in opened] == [True, True]


def test_exceptions_of_the_function_arrive_as_they_are(folder):
    """They are no fault of the file; one that decompressing raises is."""
    with pytest.raises(ZeroDivisionError):
        [*files(folder, read=lambda path, open_file: 1 / 0).splits(1)[0].read()]
    with pytest.raises(pickle.UnpicklingError):
        [*files(folder, read=lambda path, open_file: [pickle.load(open_file)]).splits(1)[0].read()]
    torn = folder / "b.json.gz"
    torn.write_bytes(torn.read_bytes()[:-9])
    with pytest.raises(SourceError, match=r"b\.json\.gz: it is torn"):
        [*files(torn, read=loaded).splits(1)[0].read()]


def test_files_refuse_what_is_wrong(folder):
    """A text is no list of items; the rest is said at the call."""
    with pytest.raises(TypeError, match=r"read gave a str for .*a\.json"):
        [*files(folder, read=lambda path, open_file: "text").splits(1)[0].read()]
    with pytest.raises(TypeError, match="read must be a function of a path and an open file, not int"):
        files(folder, read=5)
    with pytest.raises(TypeError, match="glob must be a str, not int"):
        files(folder, glob=5)
    assert repr(files("a", glob="*.x", read=loaded)) == "files('a', glob='*.x', read=loaded)"
