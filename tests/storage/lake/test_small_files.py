"""What is done at once for small files: how much their rows take, their checksums, and how they are written."""

from __future__ import annotations

import errno
import os
from contextlib import nullcontext

import pyarrow as pa
import pytest

from dstream.filesystem.checksums import _BLOCK, BlockSums, sums_of
from dstream.filesystem.local import LocalFolder
from dstream.storage.lake.tables import takes_more


def test_a_part_of_many_rows_takes_its_own_share():
    """Not what the buffers hold that it shares with the others."""
    whole = pa.RecordBatch.from_arrays([pa.array(range(1000), pa.int64())], names=["n"])

    assert (takes_more(whole, 7999), takes_more(whole, 8000)) == (True, False)
    assert (takes_more(whole[10:12], 15), takes_more(whole[10:12], 16)) == (True, False)


@pytest.mark.parametrize("size", [0, 1, 1000, _BLOCK - 1, _BLOCK, _BLOCK + 1, 2 * _BLOCK])
def test_small_files_have_the_same_checksums(size):
    """They are made at once, and checked as those of larger ones are."""
    data = bytes(range(256)) * (size // 256 + 1)
    sums = BlockSums()
    sums.add(data[:size])

    assert sums_of(data[:size]) == sums_of(pa.py_buffer(data[:size])) == sums.text()


@pytest.mark.parametrize("fails", [None, "write", "fsync"])
def test_small_files_are_whole_or_not_there(tmp_path, monkeypatch, fails):
    """Also in a folder that has yet to be made, and where the disk takes a part of them at a time."""
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:2]))
    if fails is not None:
        monkeypatch.setattr(os, fails, _full)
    folder = LocalFolder(str(tmp_path / "lake"), durable=True)

    with pytest.raises(OSError, match="No space") if fails else nullcontext():
        folder.write("a/b.parquet", b"rows!")
    assert list(folder.paths("a")) == ([] if fails else ["a/b.parquet"])
    assert fails or folder.read("a/b.parquet") == b"rows!"


def _full(*_):
    raise OSError(errno.ENOSPC, "No space left on device")


def test_small_file_of_somebody_else_stays(tmp_path):
    """A name that is taken is refused, and nothing is removed."""
    folder = LocalFolder(str(tmp_path))
    folder.write("b.parquet", b"first")

    with pytest.raises(FileExistsError):
        folder.write("b.parquet", b"second")
    assert folder.read("b.parquet") == b"first"
