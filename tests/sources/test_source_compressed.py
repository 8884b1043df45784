"""Compressed files: whole, complete, and never silently short."""

from __future__ import annotations

import bz2
import gzip
import lzma

import pyarrow
import pytest

from dstream.errors import SourceError
from sources import text_files


def zstd(content):
    """Compress as one Zstandard frame."""
    return pyarrow.compress(content, codec="zstd", asbytes=True)


CODECS = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, ".zst": zstd, ".zstd": zstd}
each_codec = pytest.mark.parametrize("ending", CODECS)


@each_codec
def test_compressed_files_are_read_whole(tmp_path, read, monkeypatch, ending):
    """One part for the file, however many tasks could run."""
    monkeypatch.setattr("sources.file_access.SMALLEST_SPLIT", 1)
    lines = [f"line {n}" for n in range(50_000)]
    (tmp_path / f"a{ending.upper()}").write_bytes(CODECS[ending]("\r\n".join(lines).encode()))
    source = text_files(tmp_path)

    assert len(source.splits(8)) == 1
    assert read(source, 8) == lines


@each_codec
def test_compressed_files_of_several_members_are_read_to_the_end(tmp_path, read, ending):
    """As `cat a.gz b.gz` makes them; a line may run from one into the next, and one may be empty."""
    members = [b"1\n2", b"", b"3\n", b"4\n" * 100_000]
    (tmp_path / f"a{ending}").write_bytes(b"".join(map(CODECS[ending], members)))

    assert read(text_files(tmp_path)) == ["1", "23", *["4"] * 100_000]


@each_codec
@pytest.mark.parametrize("cut", [1, 2, 10])
@pytest.mark.parametrize("before", [b"", b"1\n"])
def test_compressed_files_that_are_torn_are_errors(tmp_path, ending, cut, before):
    """In the first member as in a later one."""
    pack = CODECS[ending]
    (tmp_path / f"a{ending}").write_bytes((pack(before) if before else b"") + pack(b"2\n" * 1_000)[:-cut])
    [split] = text_files(tmp_path).splits(1)

    with pytest.raises(SourceError, match=f"a{ending}: it is torn: the compressed data end too early") as caught:
        list(split.read())
    assert caught.value.__cause__ is not None


@each_codec
def test_compressed_files_that_are_something_else_are_errors(tmp_path, ending):
    """A wrong name is not read as garbage."""
    (tmp_path / f"a{ending}").write_bytes(b"this is plain text\n" * 10)
    [split] = text_files(tmp_path).splits(1)

    with pytest.raises(SourceError, match=f"cannot read .*a{ending}: "):
        list(split.read())


@each_codec
def test_compressed_files_that_are_empty_have_no_lines(tmp_path, read, ending):
    """No bytes at all, or a member that holds none."""
    (tmp_path / f"a{ending}").write_bytes(b"")
    (tmp_path / f"b{ending}").write_bytes(CODECS[ending](b""))

    assert read(text_files(tmp_path)) == []


def test_compressed_files_of_wide_encodings_work(tmp_path, read):
    """Decompressing and decoding from the start go together."""
    (tmp_path / "a.gz").write_bytes(gzip.compress("1\r\n2".encode("utf-16")))

    assert read(text_files(tmp_path, encoding="utf-16")) == ["1", "2"]


def test_compressed_files_may_be_remote(read):
    """The name in the URL decides."""
    import fsspec

    fsspec.filesystem("memory").pipe("/packed/a.zst", zstd(b"1\n") + zstd(b"2\n"))

    assert read(text_files("memory://packed/a.zst")) == ["1", "2"]
