"""A byte order mark at the start of a file is no part of its text."""

from __future__ import annotations

import codecs

import pytest

from dstream.errors import SourceError
from sources import csv_rows, json_lines, text_files


def read(source, parallelism=1):
    """Return the items of a source, read split by split."""
    return [item for split in source.splits(parallelism) for item in split.read()]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_the_mark_of_utf_8_is_dropped(tmp_path, encoding):
    """Spreadsheets write it; the first column would have a name that nobody can type."""
    file = tmp_path / "rows"
    file.write_bytes(codecs.BOM_UTF8 + b"name,age\nAda,36\n")
    assert read(csv_rows(file, encoding=encoding)) == [{"name": "Ada", "age": "36"}]
    assert read(text_files(file, encoding=encoding), 3) == ["name,age", "Ada,36"]

    file.write_bytes(codecs.BOM_UTF8 + b'{"a": 1}\n')
    assert read(json_lines(file)) == [{"a": 1}]


def test_only_the_first_mark_is_dropped(tmp_path):
    """Further on it is a character."""
    (tmp_path / "lines").write_bytes(codecs.BOM_UTF8 + b"a\n" + codecs.BOM_UTF8 + b"b\n")

    assert read(text_files(tmp_path / "lines"), 2) == ["a", "\ufeffb"]


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("make", [csv_rows, json_lines, text_files])
def test_the_mark_of_utf_16_is_told(tmp_path, make, encoding):
    """The error says which encoding to ask for; with it, the file is read."""
    (tmp_path / "wide.txt").write_bytes("\ufeff1\n2\n".encode(encoding))
    with pytest.raises(SourceError, match=r"wide\.txt begins with the byte order mark of UTF-16.*encoding='utf-16'"):
        read(make(tmp_path / "wide.txt"))

    assert read(text_files(tmp_path / "wide.txt", encoding="utf-16")) == ["1", "2"]
