"""What a file source says when a file cannot be read."""

from __future__ import annotations

import itertools
import os

import pytest

import dstream as ds
from dstream.errors import SourceError
from sources import csv_rows, files, parquet_rows, text_files


def first_error(source, parallelism=1):
    """Read a source up to its error; give that and the items before it."""
    items = []
    with pytest.raises(SourceError) as caught:
        items.extend(itertools.chain.from_iterable(split.read() for split in source.splits(parallelism)))
    assert caught.value.__cause__ is not None
    return str(caught.value), items


def test_undecodable_bytes_are_named_with_their_place(tmp_path):
    """File, line, offset, bytes, encoding and what to do; the lines before are given first."""
    path = tmp_path / "a.txt"
    path.write_bytes(b"one\r\ntwo\rca\xe9f\nlast\n")

    message, lines = first_error(text_files(path))

    assert message == (
        f"{path}, line 3, byte 11: b'\\xe9' is not utf-8 (invalid continuation byte). "
        "Say how the file was written, for example encoding='cp1252'."
    )
    assert lines == ["one", "two"]


def test_undecodable_bytes_have_the_line_of_the_whole_file(tmp_path, tiny_splits):
    """Also in a split that starts in its middle, and with a byte order mark at its start."""
    path = tmp_path / "a.txt"
    path.write_bytes("\ufeff".encode() + b"1\n2\n3\n4\r5\r6\n7\n8\n\xff\n")

    message, lines = first_error(text_files(path, encoding="utf-8-sig"), parallelism=8)

    assert f"{path}, line 9, byte 19: b'\\xff' is not utf-8-sig" in message
    assert lines == ["1", "2", "3", "4", "5", "6", "7", "8"]


def test_undecodable_bytes_right_behind_a_mark_have_their_own_offset(tmp_path):
    """The mark counts among the bytes of the file."""
    (tmp_path / "a.txt").write_bytes("\ufeff".encode() + b"a\xff")

    assert "line 1, byte 4: b'\\xff'" in first_error(text_files(tmp_path, encoding="utf-8-sig"))[0]


@pytest.mark.parametrize("block", [3, 4, 5, 1_000])
def test_undecodable_bytes_in_a_whole_file_have_their_place_too(tmp_path, monkeypatch, block):
    """UTF-16 is decoded in blocks from the start; a lone surrogate stands in line 3."""
    monkeypatch.setattr("dstream.connectors.files.lines.BLOCK", block)
    (tmp_path / "a.txt").write_bytes("1\n2\n".encode("utf-16-le") + b"x\0\x00\xdc" + "y\n".encode("utf-16-le"))

    message, lines = first_error(text_files(tmp_path, encoding="utf-16-le"))

    assert "line 3, byte 10: b'\\x00\\xdc' is not utf-16-le (illegal encoding)" in message
    assert lines == ["1", "2"]


def test_undecodable_bytes_of_a_stateful_encoding_have_their_place(tmp_path):
    """The state at the bad byte is the one of all bytes before it."""
    (tmp_path / "a.txt").write_bytes("あ\nい".encode("iso2022_jp") + b"\n\xff\n")

    message, lines = first_error(text_files(tmp_path, encoding="iso2022_jp"))

    assert "line 3, byte 18: b'\\xff' is not iso2022_jp" in message
    assert lines == ["あ", "い"]


def test_a_file_that_ends_inside_a_character_is_an_error(tmp_path):
    """An odd byte at the end of UTF-16 is not dropped in silence."""
    (tmp_path / "a.txt").write_bytes("1\n2".encode("utf-16-le") + b"x")

    assert (
        "line 2, byte 6: b'x' is not utf-16-le (truncated data)"
        in first_error(text_files(tmp_path, encoding="utf-16-le"))[0]
    )


def test_undecodable_bytes_of_a_compressed_file_are_counted_decompressed(tmp_path):
    """The offset is one of the content."""
    import gzip

    (tmp_path / "a.gz").write_bytes(gzip.compress(b"a\n\xff\n"))

    assert "line 2, decompressed byte 2: b'\\xff'" in first_error(text_files(tmp_path))[0]


def test_a_file_that_vanished_is_named(tmp_path):
    """Between finding the files and reading them."""
    path = tmp_path / "a.txt"
    path.write_text("1")
    [split] = text_files(path).splits(1)
    path.unlink()

    with pytest.raises(SourceError, match=f"cannot read {path}: there is no such file") as caught:
        list(split.read())
    assert isinstance(caught.value.__cause__, FileNotFoundError)


def test_a_file_that_shrank_is_named(tmp_path):
    """Lines that were there when the files were found must not be missing in silence."""
    path = tmp_path / "a.txt"
    path.write_text("1\n2\n3\n")
    [split] = text_files(path).splits(1)
    path.write_text("1\n")

    with pytest.raises(SourceError, match=f"{path} shrank from 6 to 2 bytes after it was found"):
        list(split.read())


def test_a_file_that_shrinks_while_it_is_read_is_named(tmp_path, monkeypatch):
    """Also behind the first block."""
    monkeypatch.setattr("dstream.connectors.files.lines.BLOCK", 2)
    path = tmp_path / "a.txt"
    path.write_text("1\n" * 100_000)
    [lines] = [split.read() for split in text_files(path).splits(1)]
    next(lines)
    path.write_text("")

    with pytest.raises(SourceError, match=f"{path} shrank to .* bytes while it was read"):
        list(lines)


def test_whatever_a_remote_file_system_raises_is_a_source_error(tmp_path, monkeypatch):
    """Client libraries raise errors of their own."""

    def refuse(file):
        raise RuntimeError("token expired")

    (tmp_path / "a.txt").write_text("1")
    monkeypatch.setattr("dstream.filesystem.access._open", refuse)

    assert "a.txt: RuntimeError: token expired" in first_error(text_files(tmp_path))[0]


@pytest.mark.parametrize(
    "url", ["ftp://ada:correct-horse@127.0.0.1:1/a.txt", "zip://*.txt::ftp://ada:correct-horse@127.0.0.1:1/a"]
)
def test_the_password_of_a_url_is_hidden(url):
    """In what is said when it cannot be read, in all that led to it, and in how the stream is described."""
    stream = ds.connect(engine="local", progress=False).read(text_files(url))

    with pytest.raises(SourceError, match=r"ada:\*\*\*@127") as caught:
        stream.to_list()
    error: BaseException | None = caught.value
    while error is not None:
        assert "correct-horse" not in f"{error} {error!r} {getattr(error, '__notes__', '')}"
        error = error.__cause__ or error.__context__
    assert "correct-horse" not in f"{stream!r} {stream.explain()} {text_files(url)!r}"


@pytest.mark.parametrize("make", [text_files, csv_rows, files])
def test_a_file_that_tells_no_size_is_read(make):
    """As those of `/proc`, which have no bytes by their entry, and where nobody may look for the end."""
    path = "/proc/self/comm"
    if not os.path.exists(path):
        pytest.skip("there are no such files on this system")
    options = {"fieldnames": ["name"]} if make is csv_rows else {}

    assert len([item for split in make(path, **options).splits(1) for item in split.read()]) == 1


def test_parquet_from_a_pipe_is_refused(tmp_path):
    """It is not waited for: the file is read from its end."""
    os.mkfifo(tmp_path / "a")

    with pytest.raises(
        SourceError, match=r"cannot read .*/a: it is a pipe or a device, and Parquet is read from its end"
    ):
        parquet_rows(tmp_path / "a").splits(1)
