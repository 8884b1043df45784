"""Compressed files: whole, complete, and never silently short."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib

import pyarrow
import pytest

from dstream.errors import SourceError
from sources import files, text_files


def zstd(content):
    """Compress as one Zstandard frame."""
    return pyarrow.compress(content, codec="zstd", asbytes=True)


CODECS = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, ".zst": zstd, ".zstd": zstd}
each_codec = pytest.mark.parametrize("ending", CODECS)


@each_codec
def test_compressed_files_are_read_whole(tmp_path, read, monkeypatch, ending):
    """One part for the file, however many tasks could run."""
    monkeypatch.setattr("dstream.connectors.files.splits.SMALLEST_SPLIT", 1)
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
@pytest.mark.parametrize("cut", [1, 10])
def test_a_later_member_that_is_torn_is_an_error(tmp_path, ending, cut):
    """As the first one is."""
    pack = CODECS[ending]
    (tmp_path / f"a{ending}").write_bytes(pack(b"1\n") + pack(b"2\n" * 1_000)[:-cut])
    [split] = text_files(tmp_path).splits(1)

    with pytest.raises(SourceError, match=f"a{ending}: it is torn: the compressed data end too early") as caught:
        list(split.read())
    assert caught.value.__cause__ is not None


@each_codec
def test_compressed_files_that_are_something_else_are_errors(tmp_path, ending):
    """A wrong name is not read as garbage."""
    (tmp_path / f"a{ending}").write_bytes(b"this is plain text\n" * 10)
    [split] = text_files(tmp_path).splits(1)

    with pytest.raises(SourceError, match=f"a{ending} is a text, and its name ends in {ending}: give it another name"):
        list(split.read())


@each_codec
@pytest.mark.parametrize("behind", [b"\0\0\0\0more"])
def test_what_stands_behind_a_member_and_is_none_is_an_error(tmp_path, ending, behind):
    """Such as a second member whose first bytes are damaged: its lines are not left out."""
    (tmp_path / f"a{ending}").write_bytes(CODECS[ending](b"1\n") + behind)
    [split] = text_files(tmp_path).splits(1)

    with pytest.raises(SourceError, match=f"cannot read .*a{ending}: "):
        list(split.read())


@pytest.mark.parametrize("ending", [".gz", ".bz2", ".xz"])
def test_zeros_behind_a_member_are_no_end(tmp_path, read, ending):
    """The format of xz allows them between members, and tapes leave them at the end."""
    pack, zeros = CODECS[ending], b"\0" * 20_000
    (tmp_path / f"a{ending}").write_bytes(pack(b"1\n") + zeros + pack(b"2\n") + zeros)

    assert read(text_files(tmp_path)) == ["1", "2"]


@pytest.mark.parametrize("ending", [".gz", ".bz2", ".xz"])
def test_a_compressed_file_can_be_read_from_anywhere(tmp_path, read, ending):
    """As those want who read Parquet or a table of contents in it."""
    members = [bytes(range(256)) * 100, b"end"]
    (tmp_path / f"a{ending}").write_bytes(b"".join(map(CODECS[ending], members)))

    def ends(path, file):
        return [file.seek(-3, 2), file.read(), file.seek(255), file.read(2), file.seek(1, 1), file.read(1)]

    assert read(files(tmp_path, glob="*", read=ends)) == [25_600, b"end", 255, b"\xff\0", 258, b"\x02"]


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


def test_xz_takes_a_bounded_amount_of_memory(tmp_path, read):
    """Its header says how large the dictionary is: 384 MiB, where 192 MiB are taken."""
    data = lzma.compress(b"1\n")
    for size, is_taken in ((31, True), (33, False)):
        header = data[12:16] + bytes([size]) + data[17:20]
        (tmp_path / "a.xz").write_bytes(data[:12] + header + zlib.crc32(header).to_bytes(4, "little") + data[24:])
        if is_taken:
            assert read(text_files(tmp_path)) == ["1"]
            continue
        with pytest.raises(
            SourceError, match=r"a\.xz: to decompress it takes more than 256 MiB of memory: compress it"
        ):
            read(text_files(tmp_path))
