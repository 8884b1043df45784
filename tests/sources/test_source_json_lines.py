"""`json_lines`: one JSON value a line."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import dataclass
from fractions import Fraction

import pytest

from dstream.errors import SourceError
from dstream.spi.source import Source
from dstream.values import BadRecord
from sources import json_lines


def test_json_lines_reads_one_value_a_line(tmp_path, read):
    """Any JSON value; blank lines are skipped, and the last line needs no end."""
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"a": "\xc3\xa9"}\r\n\n  \t\n[1]\nnull\n"x"\n2.5')

    source = json_lines(path)

    assert isinstance(source, Source)
    assert (source.ordered, source.bounded, source.in_caller) == (True, True, False)
    assert read(source) == [{"a": "é"}, [1], None, "x", 2.5]


def test_json_lines_takes_what_json_loads_takes(tmp_path, read):
    """NaN and Infinity too, and separators that only look like line ends."""
    (tmp_path / "a").write_text('NaN\n-Infinity\n"a\u2028b\x85c"\n', encoding="utf-8")

    nan, infinity, text = read(json_lines(tmp_path))

    assert math.isnan(nan)
    assert (infinity, text) == (-math.inf, "a\u2028b\x85c")


@pytest.mark.parametrize("line", ["\u3000", " \xa0", "\x85", "\f", "\u2028"])
def test_json_lines_refuses_white_space_that_json_does_not_have(tmp_path, line):
    """It is no blank line: something was written there."""
    (tmp_path / "a").write_text(f"1\n \t\n{line}\n2\n", encoding="utf-8")
    [split] = json_lines(tmp_path).splits(1)

    assert list(split.read_past(lambda misread: [misread.record()])) == [1, BadRecord(f"{tmp_path}/a", 3, line), 2]


def test_json_lines_cuts_files_by_bytes(tmp_path, read, tiny_splits):
    """No value is torn, doubled or lost, for every parallelism."""
    values = [{"n": n, "text": "é" * n} for n in range(20)]
    (tmp_path / "a").write_text("\n".join(map(json.dumps, values)))

    assert all(read(json_lines(tmp_path), parallelism) == values for parallelism in range(1, 30))


def test_json_lines_names_the_bad_line(tmp_path):
    """Path, line in the whole file and the text, cut at 200 characters; values before come first."""
    path = tmp_path / "a"
    path.write_text("1\n\n2\r" + "x" * 500 + "\n3\n")
    [split] = json_lines(path).splits(1)
    values = split.read()

    assert [next(values), next(values)] == [1, 2]
    with pytest.raises(SourceError, match=f"{path}, line 4 is not JSON .*: {'x' * 200}\\.\\.\\.$") as caught:
        next(values)
    assert isinstance(caught.value.__cause__, json.JSONDecodeError)


def test_json_lines_counts_the_lines_before_its_split(tmp_path, tiny_splits):
    """The line number is one of the file, not of the split."""
    (tmp_path / "a").write_text("1\n2\r3\r\n4\n5\n6\n7\nbad\n")

    with pytest.raises(SourceError, match=r"line 8 is not JSON .*: bad$"):
        [list(split.read()) for split in json_lines(tmp_path).splits(9)]


def test_json_lines_reads_compressed_and_wide_files(tmp_path, read):
    """As `text_files` does."""
    import gzip

    (tmp_path / "a.gz").write_bytes(gzip.compress("1\n2\n".encode("utf-16")))

    assert read(json_lines(tmp_path, encoding="utf-16")) == [1, 2]


def test_json_lines_refuses_an_unknown_encoding_at_the_call():
    """Before anything runs."""
    with pytest.raises(LookupError, match="unknown encoding: nonsense"):
        json_lines("a", encoding="nonsense")


@pytest.mark.parametrize(
    ("text", "is_begun"), [("[\n1]", True), ('{"n":\n1}', True), ('1\n{"n"', False), ("{x}", False)]
)
def test_json_lines_says_how_a_value_of_several_lines_is_read(tmp_path, text, is_begun):
    """Where the first line of a file begins one."""
    (tmp_path / "a").write_text(text)

    with pytest.raises(SourceError, match="is not JSON") as caught:
        [list(split.read()) for split in json_lines(tmp_path).splits(1)]
    assert ("files(path, read=lambda path, file: [json.load(file)])" in str(caught.value)) == is_begun


def test_lines_are_parsed_together_up_to_one_that_is_bad(tmp_path):
    """Values come in lists; those in front of a bad line are given first, and those behind it keep their lines."""
    path = tmp_path / "a"
    path.write_text("".join(f'{{"n": {n}}} \n' if n != 200 else '{"n": 200} 1\n' for n in range(500)))
    [split], [pairs] = json_lines(path).splits(1), json_lines(path, with_path=True).splits(1)
    past = list(split.read_past(lambda misread: [misread.record().line]))
    blocks = split.read_blocks()

    assert past == [{"n": n} if n != 200 else 201 for n in range(500)]
    assert [len(next(blocks)), len(next(blocks))] == [128, 72]
    with pytest.raises(SourceError, match="line 201"):
        next(blocks)
    assert not hasattr(pairs, "read_blocks")


@dataclass
class _Ratio:
    n: Fraction


@pytest.mark.parametrize(("kinds", "line"), [((), "[%s]"), ((_Ratio,), '{"n": "%s"}')])
def test_json_lines_names_the_limit_of_digits(tmp_path, kinds, line):
    """An int of more digits than Python reads, as a number and within a string: the message names the limit."""
    (tmp_path / "a").write_text(line % ("1" * 5000))
    [split] = json_lines(tmp_path, *kinds).splits(1)

    with pytest.raises(SourceError, match=rf"\(Exceeds the limit \({sys.get_int_max_str_digits()} digits\)"):
        list(split.read())
