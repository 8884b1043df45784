"""A file of another format than the one that is read is known by its first bytes, and the error says how to read it.

`test_source_contract` has the sources; here are names, what is within compressed files, and encodings.
"""

from __future__ import annotations

import gzip

import pytest

from dstream.errors import SourceError
from sources import text_files
from tests.sources.file_formats import FORMATS

each_format = pytest.mark.parametrize("format", FORMATS)


@pytest.mark.parametrize("ending", [".gz", ".bz2", ".xz", ".zst", ".ZSTD"])
@each_format
def test_a_name_of_a_compressed_file_is_compared_with_the_content(tmp_path, read, format, ending):
    """A file that is compressed otherwise, or is of another format, is misnamed."""
    data, words = FORMATS[format]
    (tmp_path / f"a{ending}").write_bytes(data)
    if ending.lower()[:4] in words:
        assert read(text_files(tmp_path)) in (["n", "1", "2"], [])
        return

    what = "cannot read" if format.startswith("utf") else f"a{ending} {words.partition('.*')[0]}.*its name ends in "
    with pytest.raises(SourceError, match=what):
        read(text_files(tmp_path))


@each_format
def test_what_a_compressed_file_holds_is_looked_at(tmp_path, read, format):
    """Another format within it, or the same once more."""
    data, words = FORMATS[format]
    (tmp_path / "a.gz").write_bytes(gzip.compress(data))
    words = words if format.startswith("utf") else words.partition(".*")[0].replace("is ", "holds ", 1)

    with pytest.raises(SourceError, match=f"a.gz {words}"):
        read(text_files(tmp_path))


@each_format
def test_a_task_that_reads_another_part_of_the_file_names_the_format(tmp_path, tiny_splits, format):
    """Where its bytes are not in the encoding."""
    data, words = FORMATS[format]
    (tmp_path / "a").write_bytes(data[:600] + b"\n\xff" * 20)
    last = text_files(tmp_path).splits(10)[-1]

    with pytest.raises(SourceError, match=f"a {words}"):
        list(last.read())


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize(
    "text", ["имя,год", "όνομα έτος", "שם שנה", "اسم سنة", "नाम वर्ष", "ชื่อ ปี", "Ābols ķ", "năm tuổi", "Σίγμα “1”"]
)
def test_utf_16_of_other_letters_is_known(tmp_path, read, text, encoding):
    """In Cyrillic and the like, bytes of UTF-16 are characters of UTF-8, too."""
    (tmp_path / "a.txt").write_text(f"{text}\n" * 90, encoding)

    for other in ("utf-8", "latin-1"):
        with pytest.raises(SourceError, match=f"a.txt looks like UTF-16 without.*encoding='{encoding}'"):
            read(text_files(tmp_path, encoding=other))
    assert read(text_files(tmp_path, encoding=encoding)) == [text] * 90


@pytest.mark.parametrize(
    "text",
    [
        *["PAR1,PAR2", "ORC", "PK", "BZh91", "Obj", "SQLite format 3", "ARROW1", "(µ/", "þ", "7z", "Rar!"],
        *[
            "a\0b",
            "a\0b\1c" * 9,
            "name\0value\0" * 9,
            "\0" * 600 + "a",
            "ab\0\0" * 9,
            "\x93NUMPY",
            "x" * 257 + "ustar  ",
        ],
    ],
)
def test_a_text_that_begins_alike_is_a_text(tmp_path, read, text):
    """Letters alone make no format."""
    (tmp_path / "a.txt").write_text(text, encoding="latin-1")

    assert read(text_files(tmp_path, encoding="latin-1")) == [text]


@pytest.mark.parametrize(
    ("data", "encoding", "advice"),
    [
        (b"\x8aimon", "utf-8", "for example encoding='cp1252'"),
        (b"caf\xe9", "utf-8", "for example encoding='cp1252'"),
        (b"caf\xe9", "ascii", "for example encoding='cp1252'"),
        ("é".encode(), "ascii", "for example encoding='utf-8'"),
        ("Ý".encode(), "cp1252", "for example encoding='utf-8'"),
        (b"\x81ber", "utf-8", "encoding='cp850' is that of DOS"),
        ("éàü".encode() + b"\n\xe9", "utf-8", "bytes of another encoding are in this file"),
    ],
)
def test_the_encoding_that_is_advised_takes_the_bytes(tmp_path, read, data, encoding, advice):
    """Latin-1 would take all, and make control characters of the letters of Windows."""
    (tmp_path / "a.txt").write_bytes(data)
    with pytest.raises(SourceError, match=advice):
        read(text_files(tmp_path, encoding=encoding))


@pytest.mark.parametrize("data", [b"\1\0\0\2\xff\xfe\xe9", b"a\0b\ncaf\xe9"])
def test_no_encoding_is_advised_where_the_first_bytes_hold_nuls(tmp_path, read, data):
    """Another one would take what is no text."""
    (tmp_path / "a.bin").write_bytes(data)

    with pytest.raises(SourceError, match="Its first bytes hold NULs") as caught:
        read(text_files(tmp_path))
    assert "encoding=" not in str(caught.value)
