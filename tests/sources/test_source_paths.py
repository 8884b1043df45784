"""What may stand for a path, and what is said of that which may not."""

from __future__ import annotations

import io
import os

import pytest

from sources import csv_rows, json_lines, parquet_rows, text_files

MAKERS = [text_files, csv_rows, json_lines, parquet_rows]


@pytest.mark.parametrize("maker", MAKERS)
def test_an_open_file_is_refused_at_the_call(maker, tmp_path):
    """Its lines would be taken for paths; the workers open files themselves."""
    (tmp_path / "a.txt").write_text("line\n")
    with open(tmp_path / "a.txt") as text, open(tmp_path / "a.txt", "rb") as raw:
        for file in (text, raw, io.StringIO("line\n")):
            for given in (file, [file]):
                with pytest.raises(TypeError, match=r"give the name of the file.*ctx\.stream\(file\)"):
                    maker(given)


@pytest.mark.parametrize("maker", MAKERS)
def test_bytes_are_refused_as_a_path(maker):
    """Not as a list of ints, which they are too."""
    for given in (b"a.txt", [b"a.txt"], bytearray(b"a.txt")):
        with pytest.raises(TypeError, match=r"not (bytes|bytearray): os\.fsdecode\(path\) makes a str of it"):
            maker(given)


def test_paths_lists_of_them_and_entries_of_a_folder_are_taken(tmp_path):
    """Whatever has a path."""
    file = tmp_path / "a.txt"
    file.write_text("line\n")
    with os.scandir(tmp_path) as entries:
        (entry,) = entries

    for given in (file, str(file), [file], (str(file),), tmp_path.glob("*.txt"), entry):
        assert [line for split in text_files(given).splits(1) for line in split.read()] == ["line"]
