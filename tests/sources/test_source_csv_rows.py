"""`csv_rows`: rows as dictionaries, strict."""

from __future__ import annotations

import csv
import pathlib
import sys
import tempfile
from dataclasses import dataclass
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dstream.connectors.files.sources import fail_at_once
from dstream.connectors.files.splits import Part
from dstream.errors import SourceError
from dstream.filesystem import access
from dstream.filesystem.access import File
from dstream.spi.source import Source
from sources import csv_rows


@pytest.fixture
def write(tmp_path):
    """Write `a.csv` and give its path."""

    def write_csv(content):
        (tmp_path / "a.csv").write_bytes(content)
        return tmp_path / "a.csv"

    return write_csv


def error_of(source):
    """Read a source and give the words of its error."""
    with pytest.raises(SourceError) as caught:
        [list(split.read()) for split in source.splits(1)]
    return str(caught.value)


def test_csv_rows_reads_dictionaries(write, read):
    """Quoted delimiters, quotes and line ends are part of a field; blank lines are skipped."""
    source = csv_rows(write(b'\nid,text\r\n1,"a, ""b"""\r\n\r\n2,"x\ny\r\nz"\r\n3,'))

    assert isinstance(source, Source)
    assert (source.ordered, source.bounded, source.in_caller) == (True, True, False)
    assert read(source) == [{"id": "1", "text": 'a, "b"'}, {"id": "2", "text": "x\ny\r\nz"}, {"id": "3", "text": None}]


def test_csv_rows_takes_the_usual_dialects(write, read):
    """Another delimiter, another quote, no quotes, a byte order mark."""
    assert read(csv_rows(write(b"a;b\n'1;2';3\n"), delimiter=";", quotechar="'")) == [{"a": "1;2", "b": "3"}]
    assert read(csv_rows(write(b'a\tb\n"1\t2\n'), delimiter="\t", quotechar=None)) == [{"a": '"1', "b": "2"}]
    assert read(csv_rows(write("\ufeffa\n1\n".encode()), encoding="utf-8-sig")) == [{"a": "1"}]


def test_csv_rows_takes_fieldnames_for_files_without_a_header(write, read):
    """The first line is a row then."""
    assert read(csv_rows(write(b"1,2\n"), fieldnames=iter(["a", "b"]))) == [{"a": "1", "b": "2"}]


def test_csv_rows_reads_a_header_in_each_file(tmp_path, read):
    """Headers may differ; small files share a split and keep their order."""
    (tmp_path / "b.csv").write_text("y\n2\n")
    (tmp_path / "a.csv").write_text("x\n1\n")
    (tmp_path / "c.csv").write_text("")
    source = csv_rows(tmp_path / "*.csv")

    assert len(source.splits(8)) == 1
    assert read(source) == [{"x": "1"}, {"y": "2"}]


def test_csv_rows_never_cuts_a_file(write, tiny_splits, read):
    """A quoted field may hold a line end anywhere."""
    source = csv_rows(write(b'a\n"1\n2\n3\n4\n5"\n'))

    assert len(source.splits(9)) == 1
    assert read(source) == [{"a": "1\n2\n3\n4\n5"}]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"a,b\n1,2\n3\n", "line 3: 1 field, but there are 2 names (a, b)"),
        (b"a\n1,2\n", "line 2: 2 fields, but there is 1 name (a)"),
        (b'a,b\n"x\ny",2\n1,2,3\n', "line 4: 3 fields, but there are 2 names (a, b)"),
        (b"a,b,a\n1,2,3\n", "line 1: the header holds 'a' more than once"),
        (b"a,b\n1,2\0\n", "line 2 holds a NUL character"),
        (b'a,b\n1,"2\n', "line 2: unexpected end of data: a quote is never closed"),
        (b'a,b\n1,"2"3\n', "line 2: ',' expected after '\"': a quote in a quoted field is written twice: 1,\"2\"3"),
        (b'a,b\n"1"x,2\n', "line 2: ',' expected after '\"': a quote in a quoted field is written twice"),
        (b"a,b\n1,2\n\xff,3\n", "line 3, byte 8: b'\\xff' is not utf-8"),
    ],
)
def test_csv_rows_names_what_is_wrong(write, content, words):
    """Path and line, never a row that was filled up or cut."""
    path = write(content)

    message = error_of(csv_rows(path))

    assert message.startswith(str(path))
    assert words in message


@dataclass
class Sale:
    id: int
    name: str


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"id;name\n1;Ada\n", "line 1: the header is one column, 'id;name': delimiter=';' reads 2 columns"),
        (b"id;name\n1;2,5\n", "line 1: the header is one column, 'id;name': delimiter=';' reads 2 columns"),
        (b'id;name\n1;"Ada"\n2;Bo\n3\n', "line 1: the header is one column, 'id;name': delimiter=';' reads 2 columns"),
        (b"id\tname\n1\tAda\n", r"line 1: the header is one column, 'id\\tname': delimiter='\\t' reads 2 columns"),
        (b"id|name\n1|Ada\n", r"line 1: the header is one column, 'id\|name': delimiter='\|' reads 2 columns"),
        (b'"id";"name"\n"1";"Ada"\n', "line 1: ',' expected after '\"': delimiter=';' gives 2 fields"),
    ],
)
@pytest.mark.parametrize("kind", [None, Sale])
def test_csv_rows_names_the_delimiter_that_is_meant(write, content, words, kind):
    """Before one column comes out, or every row is left out as a bad one."""
    if kind is not None and b'"id"' not in content:
        words = "line 1: there is no column id, name; there are .*: delimiter=.* gives id, name"
    with pytest.raises(SourceError, match=words):
        list(csv_rows(write(content), kind=kind, on_bad="skip").splits(1)[0].read_past(lambda misread: ()))


def test_csv_rows_names_the_delimiter_of_rows_behind_fieldnames(write):
    """A row that does not fit the names, but would by another delimiter."""
    message = error_of(csv_rows(write(b"1;Ada\n"), fieldnames=["id", "name"]))

    assert "line 1: 1 field, but there are 2 names (id, name): delimiter=';' gives 2 fields: 1;Ada" in message


@pytest.mark.parametrize(
    ("content", "column", "values"),
    [
        (b'"id;name"\n1;Ada\n', "id;name", ["1;Ada"]),
        (b"what (a; b)\nfree\na; b; c\n\nothers\n", "what (a; b)", ["free", "a; b; c", "others"]),
        (b"a;b\n", "a;b", []),
        (b"a;\n1;\n", "a;", ["1;"]),
        (b"text\na;b\n", "text", ["a;b"]),
    ],
)
def test_csv_rows_reads_a_column_that_holds_other_delimiters(write, read, content, column, values):
    """One whose name is in quotes, or whose values show no such columns."""
    assert read(csv_rows(write(content))) == [{column: value} for value in values]


@pytest.mark.parametrize("names", [None, ["a", "b"]])
@pytest.mark.parametrize(
    ("encoding", "mark"), [("utf-8", ""), ("utf-8", "\ufeff"), ("utf-16", ""), ("utf-16-le", "\ufeff")]
)
@pytest.mark.parametrize("line", ["sep=;\n", "SEP=;\r\n"])
def test_csv_rows_knows_the_line_of_excel_that_names_the_delimiter(write, read, names, encoding, mark, line):
    """The delimiter in use is named, or another one; lines count from it."""
    content = mark + line + ("a;b\n" if names is None else "") + "1;2\n"
    path = write(content.encode(encoding))

    assert read(csv_rows(path, encoding=encoding, delimiter=";", fieldnames=names)) == [{"a": "1", "b": "2"}]
    assert "line 1: " in (message := error_of(csv_rows(path, encoding=encoding, fieldnames=names)))
    assert f"'{line.strip()}' names the delimiter of the file, as for Excel: delimiter=';' reads it" in message
    path.write_text(f"{content}3\n", encoding)
    assert f"line {4 - bool(names)}: 1 field" in error_of(
        csv_rows(path, encoding=encoding, delimiter=";", fieldnames=names)
    )


def test_csv_rows_reads_a_column_that_is_called_like_that_line(write, read):
    """In quotes, with more behind it, or not in the first line."""
    assert read(csv_rows(write(b'"sep=;"\n1\n'))) == [{"sep=;": "1"}]
    assert read(csv_rows(write(b"sep=;,b\n1,2\n"))) == [{"sep=;": "1", "b": "2"}]
    assert read(csv_rows(write(b"a\nsep=;\n"))) == [{"a": "sep=;"}]


def test_csv_rows_reads_a_pipe_once(write, monkeypatch):
    """Also where a byte of UTF-16 is bad: opened once more, a pipe waits for a writer without an end."""
    opened, really_open = [], access._open
    monkeypatch.setattr(access, "_open", lambda file: opened.append(file) or really_open(file))
    path = str(write("a\n1\n".encode("utf-16-le") + b"\0\xdc\n\0"))
    pipe = Part(File(path, path, size=None))

    with pytest.raises(SourceError, match=r"a.csv, line \d or behind it: b'.*' is not utf-16-le \(illegal encoding\)"):
        list(csv_rows(path, encoding="utf-16-le").format.items(pipe, fail_at_once))
    assert opened == [pipe.file]


def test_csv_rows_shows_its_dialect():
    """As it was written, where it is not the default."""
    assert repr(csv_rows("a", delimiter=";", quotechar=None)) == "csv_rows('a', delimiter=';', quotechar=None)"
    assert repr(csv_rows("a", delimiter=",", quotechar="'")) == "csv_rows('a', quotechar=\"'\")"


def test_csv_rows_reads_fields_beyond_the_limit_of_the_csv_module(write, read):
    """128 KiB is little for a text in a field."""
    assert read(csv_rows(write(b"a\n" + b"x" * 200_000))) == [{"a": "x" * 200_000}]


def test_csv_rows_refuses_bad_arguments_at_the_call():
    """Before anything runs."""
    with pytest.raises(TypeError, match="delimiter"):
        csv_rows("a", delimiter=";;")
    with pytest.raises(ValueError, match=r"delimiter must not be '\\n', which ends a line"):
        csv_rows("a", delimiter="\n")
    with pytest.raises(ValueError, match=r"quotechar must not be '\\r', which ends a line"):
        csv_rows("a", quotechar="\r")
    with pytest.raises(ValueError, match="delimiter and quotechar must be two characters, not ';' both"):
        csv_rows("a", delimiter=";", quotechar=";")
    with pytest.raises(ValueError, match="fieldnames holds 'a' more than once"):
        csv_rows("a", fieldnames=["a", "a"])
    with pytest.raises(TypeError, match=r"write fieldnames=\['ab'\]"):
        csv_rows("a", fieldnames="ab")
    with pytest.raises(ValueError, match="fieldnames is empty"):
        csv_rows("a", fieldnames=[])
    with pytest.raises(TypeError, match="fieldnames must hold names, not 1"):
        csv_rows("a", fieldnames=[1])
    with pytest.raises(LookupError, match="nonsense"):
        csv_rows("a", encoding="nonsense")


@settings(deadline=None)
@given(st.lists(st.tuples(st.text("a,\"'\n\r é"), st.text("a,\"'\n\r é", min_size=1)), max_size=6))
def test_csv_rows_reads_what_the_csv_module_writes(rows):
    """Whatever the fields hold; it writes an empty text as an empty field."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "a.csv"
        with open(path, "w", newline="", encoding="utf-8") as out:
            csv.writer(out).writerows([("x", "y"), *rows])
        read = [row for split in csv_rows(path).splits(2) for row in split.read()]

    assert read == [{"x": x or None, "y": y} for x, y in rows]


@dataclass
class _Whole:
    n: int


@dataclass
class _Ratio:
    n: Fraction


@pytest.mark.parametrize("kind", [_Whole, _Ratio])
def test_csv_rows_names_the_limit_of_digits(write, kind):
    """An int of more digits than Python reads is a valid int, so the message names the limit; others do not."""
    limit = f"(Exceeds the limit ({sys.get_int_max_str_digits()} digits) for integer string conversion"

    assert limit in error_of(csv_rows(write(b"n\n" + b"1" * 5000 + b"\n"), kind))
    assert "Exceeds" not in error_of(csv_rows(write(b"n\n1x\n"), kind))
