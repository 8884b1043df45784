"""Mistakes in files: missing, torn, of another kind."""

from __future__ import annotations

import gzip
import os
from contextlib import contextmanager

from dstream.errors import SourceError
from sources import csv_rows, json_lines, parquet_rows, text_files
from tests.mistakes.mistake import LOCAL, mistake


@mistake(SourceError, r"missing\.txt", r"path|check")
def a_file_that_is_not_there(desk):
    """A path leads nowhere."""
    desk.ctx.read(text_files(str(desk.folder / "missing.txt"))).count()  # here


@mistake(SourceError, r"\*\.log", r"path|pattern|match")
def a_pattern_that_matches_nothing(desk):
    """A pattern matches no file."""
    desk.ctx.read(text_files(str(desk.folder / "*.log"))).to_list()  # here


@mistake(SourceError, r"torn\.gz", r"torn|damaged|again|complete")
def a_torn_file(desk):
    """A compressed file ends too early."""
    whole = gzip.compress(b"line\n" * 10_000)
    (desk.folder / "torn.gz").write_bytes(whole[: len(whole) // 2])
    desk.ctx.read(text_files(str(desk.folder / "torn.gz"))).count()  # here


@mistake(SourceError, r"latin\.txt.*utf-8|utf-8.*latin\.txt", r"encoding=")
def a_file_in_another_encoding(desk):
    """A file is not UTF-8."""
    (desk.folder / "latin.txt").write_bytes("caf\xe9\n".encode("latin-1"))
    desk.ctx.read(text_files(str(desk.folder / "latin.txt"))).to_list()  # here


@mistake(SourceError, r"bad\.jsonl.*line 2|bad\.jsonl:2", r"JSON|skip|on_error|bad")
def a_line_that_is_no_json(desk):
    """One line of a file is no JSON."""
    (desk.folder / "bad.jsonl").write_text('{"a": 1}\n{"a": \n')
    desk.ctx.read(json_lines(str(desk.folder / "bad.jsonl"))).to_list()  # here


@mistake(SourceError, r"bad\.csv", r"field|column|quote|row")
def a_row_with_too_many_fields(desk):
    """A row of a CSV file has more fields than the header."""
    (desk.folder / "bad.csv").write_text("a,b\n1,2,3\n")
    desk.ctx.read(csv_rows(str(desk.folder / "bad.csv"))).to_list()  # here


@mistake(SourceError, r"fake\.parquet", r"Parquet")
def a_file_that_is_no_parquet(desk):
    """A file has the wrong ending."""
    (desk.folder / "fake.parquet").write_text("no columns here")
    desk.ctx.read(parquet_rows(str(desk.folder / "fake.parquet"))).to_list()  # here


@contextmanager
def nobody():
    """Change the user of this process to one that owns nothing, if it is root, which may read everything."""
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(65_534)
    try:
        yield
    finally:
        if is_root:
            os.seteuid(0)


@mistake(SourceError, r"mine\.txt: this process may not read it", r"read", engines=LOCAL)
def a_file_without_permission(desk):
    """A file belongs to someone else."""
    for name in ("ours.txt", "mine.txt"):
        (desk.folder / name).write_text("line\n")
    desk.ctx.read(text_files(str(desk.folder / "ours.txt"))).count()  # what this loads, nobody could load
    os.chmod(desk.folder / "mine.txt", 0)
    lines = desk.ctx.read(text_files(str(desk.folder / "mine.txt")))
    with nobody():
        lines.count()  # here
