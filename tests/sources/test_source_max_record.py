"""`max_record=`: how long a line and a row may be, decompressed; `test_source_contract` measures what more costs."""

from __future__ import annotations

import gzip
import itertools
import tracemalloc
from typing import Any

import pytest

from dstream.errors import SourceError
from sources import csv_rows, json_lines, text_files

SOURCES: dict[str, Any] = {"text": text_files, "json": json_lines, "csv": csv_rows}
LONG = " ".join(["lorem"] * 20)
"""119 characters."""
LINES: dict[str, tuple[list[str], list[Any]]] = {
    # Lines of which one is longer than 100 bytes, and the items of the others.
    "text": (["a", "b" * 100, LONG, "", "c"], ["a", "b" * 100, 3, "", "c"]),
    "json": (["1", '"' + "b" * 98 + '"', f'["{LONG}"]', "", "4"], [1, "b" * 98, 3, 4]),
    "csv": (["a,b", "1," + "b" * 98, f"{LONG},3", "", "4,"], [{"a": "1", "b": "b" * 98}, 3, {"a": "4", "b": None}]),
}


def past(path: Any, format: str, parallelism: int = 1, **options: Any) -> list[Any]:
    """Read a file, with the number of each bad record in its place."""
    splits = SOURCES[format](path, **options).splits(parallelism)
    bad = itertools.chain.from_iterable(split.read_past(lambda misread: [misread.record().line]) for split in splits)
    return list(bad)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("block", [7, 50, 150, 1 << 18])
@pytest.mark.parametrize("format", SOURCES)
def test_a_longer_line_is_a_bad_record(tmp_path, monkeypatch, format, block, end):
    """Whatever is read at a time, and however lines end: those around it are read, and numbered as before."""
    monkeypatch.setattr("dstream.connectors.files.lines.BLOCK", block)
    lines, items = LINES[format]
    (tmp_path / "a.txt").write_bytes(end.join(lines).encode())

    assert past(tmp_path, format, max_record=100) == items
    assert past(tmp_path, format) == past(tmp_path, format, max_record=119 + 10)
    with pytest.raises(SourceError, match=r"a\.txt, line 3 has more than max_record=100 bytes: .*lorem"):
        [list(split.read()) for split in SOURCES[format](tmp_path, max_record=100).splits(1)]


@pytest.mark.parametrize("format", ["text", "json"])
def test_tasks_share_a_longer_line(tmp_path, tiny_splits, format):
    """The one in whose range it begins tells of it, and the others look no further than their own range."""
    lines, items = LINES[format]
    (tmp_path / "a.txt").write_text("\n".join(lines))

    assert len(SOURCES[format](tmp_path).splits(9)) > 9
    assert past(tmp_path, format, 9, max_record=100) == items


def test_a_longer_line_at_the_end_and_lines_in_columns(tmp_path, read):
    """Lines that are read as bytes end at the same one."""
    (tmp_path / "a.txt").write_text("a\n" * 9 + LONG)
    [split] = text_files(tmp_path, max_record=100).splits(1)
    blocks = split.read_blocks()

    assert list(next(blocks)) == ["a"] * 9
    with pytest.raises(SourceError, match=r"a\.txt, line 10 has more than max_record=100 bytes"):
        list(blocks)
    assert past(tmp_path, "text", max_record=100) == ["a"] * 9 + [10]


@pytest.mark.parametrize(("format", "lines"), [("text", LINES["text"][0]), ("csv", LINES["csv"][0])])
def test_a_longer_line_of_utf_16_ends_the_run(tmp_path, format, lines):
    """Characters are counted, and no line is looked for behind it."""
    (tmp_path / "a.txt").write_text("\n".join(lines), encoding="utf-16")

    with pytest.raises(SourceError, match=r"a\.txt, line 3 has more than max_record=100 characters"):
        past(tmp_path, format, encoding="utf-16", max_record=100)


def test_a_longer_line_of_csv_with_a_quote_ends_the_run(tmp_path):
    """It may close or open a field: the rows behind it would be others. Without quotes it does not matter."""
    (tmp_path / "a.csv").write_text(f'a,b\n1,2\n{LONG},"\n5,6\n7,"8"\n')
    source = csv_rows(tmp_path, max_record=100, on_bad="skip")
    [split] = source.splits(1)
    rows = split.read_past(lambda misread: [])

    assert next(rows) == {"a": "1", "b": "2"}
    with pytest.raises(SourceError, match=r"a\.csv, line 3 has more than max_record=100 bytes and a quote"):
        next(rows)
    assert past(tmp_path, "csv", max_record=100, quotechar=None)[1:] == [
        3,
        {"a": "5", "b": "6"},
        {"a": "7", "b": '"8"'},
    ]


def test_rows_of_many_characters_are_made_apart(tmp_path, monkeypatch):
    """Those of several lines too, wherever the blocks end: rows and their lines are the same as together."""
    monkeypatch.setattr("dstream.connectors.files.csv_lines._CHARACTERS", 40)
    monkeypatch.setattr("dstream.connectors.files.lines.BLOCK", 30)
    rows = [f'{n},"{"x" * (n % 5)}\ny"' if n % 3 else f"{n},{'z' * n}" for n in range(1, 61)]
    bad = [*rows[:31], "1,2,3", *rows[31:]]
    (tmp_path / "a.csv").write_text("a,b\n" + "\n".join(bad))

    found = past(tmp_path, "csv", max_record=70)

    line = 2 + sum(1 + row.count("\n") for row in rows[:31])
    values = [{"a": row.partition(",")[0], "b": row.partition(",")[2].strip('"')} for row in rows]
    assert found == [*values[:31], line, *(values[31:])]


def test_a_row_of_several_lines_that_is_too_large_ends_the_run(tmp_path, monkeypatch):
    """As behind a quote that nothing closes; the rows before are given."""
    monkeypatch.setattr("dstream.connectors.files.csv_lines._CHARACTERS", 40)
    monkeypatch.setattr("dstream.connectors.files.lines.BLOCK", 30)
    (tmp_path / "a.csv").write_text("a,b\n1,2\n3,4\n" + '5,"' + "x\n" * 100)
    [split] = csv_rows(tmp_path, max_record=60).splits(1)
    rows = split.read()

    assert list(itertools.islice(rows, 2)) == [{"a": "1", "b": "2"}, {"a": "3", "b": "4"}]
    with pytest.raises(SourceError, match=r"a\.csv, line 4 begins a record of more than max_record=60 characters"):
        next(rows)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_row_of_too_many_fields_is_bad(tmp_path, monkeypatch, encoding):
    """Delimiters within quotes are none, in a line in the middle of a field neither."""
    monkeypatch.setattr("dstream.connectors.files.csv_lines._FIELDS", 10)
    many = "," * 12
    lines = ["a,b", "1,2", many, f'"{many}",3', f'"x\n{many}\ny","{many}"', "4,5"]
    (tmp_path / "a.csv").write_text("\n".join(lines), encoding=encoding)

    rows = [{"a": "1", "b": "2"}, 3, {"a": many, "b": "3"}, {"a": f"x\n{many}\ny", "b": many}, {"a": "4", "b": "5"}]
    assert past(tmp_path, "csv", encoding=encoding) == rows
    for content, line in ((f'a,b\n1,"2"{many}', 2), (many, 1)):
        (tmp_path / "a.csv").write_text(content)
        with pytest.raises(SourceError, match=rf"a\.csv, line {line} has more than 10 fields"):
            past(tmp_path, "csv")


def test_a_row_of_many_fields_takes_a_bounded_amount(tmp_path):
    """One of 6 MB took 170 MB."""
    (tmp_path / "a.csv").write_text("a,b\n1,2\n" + "12," * 2_000_000 + "\n3,4\n")
    tracemalloc.start()
    try:
        assert past(tmp_path, "csv") == [{"a": "1", "b": "2"}, 3, {"a": "3", "b": "4"}]
        assert tracemalloc.get_traced_memory()[1] < 50_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("format", SOURCES)
def test_long_lines_that_follow_one_another_are_not_held_together(tmp_path, format):
    """Each is a record of its own: 40 of 1 MB take a few MB."""
    (tmp_path / "a.txt").write_text("1\n" + f'"{"x" * 1_000_000}"\n' * 40)
    tracemalloc.start()
    try:
        [split] = SOURCES[format](tmp_path, max_record=1_500_000).splits(1)
        assert sum(1 for _ in split.read()) == 40 + (format != "csv")
        assert tracemalloc.get_traced_memory()[1] < 16_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("format", SOURCES)
def test_max_record_is_checked_and_shown(format):
    """At the call."""
    with pytest.raises(ValueError, match="max_record must be at least 1"):
        SOURCES[format]("a", max_record=0)
    assert repr(SOURCES[format]("a", max_record=100)).endswith("('a', max_record=100)")
    assert "max_record" not in repr(SOURCES[format]("a"))


@pytest.mark.parametrize("with_path", [False, True])
@pytest.mark.parametrize("format", SOURCES)
def test_nothing_behind_a_longer_line_is_read_where_it_ends_the_run(tmp_path, format, with_path):
    """Neither for its quotes: that the rest of the file is torn is not noticed. The lines before are given."""
    data = gzip.compress(b"1\n" * 3 + b"2" * 1_000_000, compresslevel=0)
    (tmp_path / "a.gz").write_bytes(data[:700_000])
    [split] = SOURCES[format](tmp_path, max_record=100, with_path=with_path).splits(1)
    items = split.read()

    assert len(list(itertools.islice(items, 2))) == 2
    with pytest.raises(SourceError, match=r"a\.gz, line 4 has more than max_record=100 bytes: 222"):
        list(items)
