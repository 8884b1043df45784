"""How items become bytes: texts and JSON, in encodings, and what is refused."""

from __future__ import annotations

import enum
import io
import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import pytest

from dstream.connectors.base import TextLines
from dstream.connectors.files.formats import NO_LIMIT, JsonLines, LineFormat
from dstream.errors import UnsupportedError
from dstream.schema.encoders import plain
from dstream.values import Entry
from reducers import to_files
from sources import csv_rows, json_lines, parquet_rows, text_files


class Level(enum.IntEnum):
    """A number with a name."""

    HIGH = 3


class Port(str):
    """A text that `str` says more of, as it does of members of `(str, Enum)`."""

    def __str__(self) -> str:
        return f"Port({super().__str__()})"


class Point(NamedTuple):
    """A tuple with names."""

    x: int
    y: int


@dataclass
class Ship:
    """With a tuple inside, and a field that no call gives."""

    name: str
    at: Point
    crew: list[str] = field(default_factory=list)


@pytest.mark.parametrize(
    ("form", "read"), [("text", text_files), ("json", json_lines), ("csv", csv_rows), ("parquet", parquet_rows)]
)
def test_nothing_that_was_written_is_read_as_nothing(ctx, tmp_path, form, read):
    """What a stream without items leaves behind is a result like any other."""
    columns = {"columns": ["a"]} if form == "csv" else {}
    ctx.stream([], 2).collect(to_files(tmp_path / "out", format=form, **columns))
    found = ctx.read(read(str(tmp_path / "out")))

    assert (found.to_list(), found.count(), found.map(str).sorted().to_list()) == ([], 0, [])


@pytest.mark.parametrize("text", ["a\nb", "a\r", "\n"])
def test_a_text_with_a_line_break_is_refused(local_context, tmp_path, text):
    """It would be read as two items; the item is named, and nothing is written."""
    with pytest.raises(ValueError, match="the text of an item has a line break") as raised:
        local_context.stream(["fine", text, "fine"]).collect(to_files(tmp_path / "out"))

    assert f"on the item {text!r}" in "\n".join(raised.value.__notes__)
    assert [path for path in (tmp_path / "out").rglob("*") if path.is_file()] == []


def test_other_line_ends_stay_in_a_text(local_context, tmp_path):
    """As `text_files` reads them."""
    lines = ["a\u2028b\x85\x0b", "", " "]
    local_context.stream(lines).collect(to_files(tmp_path / "out"))

    assert local_context.read(text_files(tmp_path / "out")).to_list() == lines


@pytest.mark.parametrize("encoding", ["utf-8", "UTF8", "utf-8-sig", "utf-16", "utf-16-le"])
def test_a_text_that_begins_as_a_byte_order_mark_stays(local_context, tmp_path, encoding):
    """At the start of a file, whose own mark readers drop, as behind it, and in the header of CSV."""
    texts, rows = ["\ufeffa", "\ufeff", "b"], [{"\ufeffname": "\ufeffa"}]
    local_context.stream(texts).collect(to_files(tmp_path / "text", encoding=encoding))
    local_context.stream(rows).collect(to_files(tmp_path / "csv", format="csv", encoding=encoding))

    assert local_context.read(text_files(tmp_path / "text", encoding=encoding)).to_list() == texts
    assert local_context.read(csv_rows(tmp_path / "csv", encoding=encoding)).to_list() == rows


def test_what_is_no_text_is_refused(local_context, tmp_path):
    """A function that forgets to return names its item."""
    with pytest.raises(TypeError, match="to_string must give a str, not NoneType") as raised:
        local_context.stream([7]).collect(to_files(tmp_path / "out", to_string=lambda n: None))

    assert "on the item 7" in "\n".join(raised.value.__notes__)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "latin-1", "iso2022_jp_2"])
def test_encodings_are_those_of_open(local_context, tmp_path, encoding):
    """One byte order mark for each file, however many pieces it was written in."""
    lines = [f"é {n}" for n in range(2000)]
    [path] = local_context.stream(lines).collect(to_files(tmp_path / "out", encoding=encoding))

    assert Path(path).read_text(encoding=encoding) == "".join(f"{line}\n" for line in lines)


def test_a_character_that_the_encoding_has_not(local_context, tmp_path):
    """In a text it is an error that names the item; JSON has escapes."""
    items = ["a", "b€", "\ud800"]
    with pytest.raises(UnicodeEncodeError) as raised:
        local_context.stream(items).collect(to_files(tmp_path / "out", encoding="latin-1"))
    assert "on the item 'b€'" in "\n".join(raised.value.__notes__)
    local_context.stream(items).collect(to_files(tmp_path / "json", format="json", encoding="latin-1"))

    assert local_context.read(json_lines(tmp_path / "json", encoding="latin-1")).to_list() == items


@pytest.mark.parametrize("encoding", ["shift_jis", "cp932", "euc_jp", "cp950"])
def test_a_character_that_would_be_read_as_another_is_refused(local_context, tmp_path, encoding):
    """The yen sign of Shift JIS is a backslash to readers; JSON has escapes for it."""
    sign = "\xa3" if encoding == "cp932" else "\u203e"
    rows, sink = [{"a": "b"}, {"a": sign}], {"encoding": encoding}
    local_context.stream(rows).collect(to_files(tmp_path / "json", format="json", **sink))
    for format, items in {"text": ["b", sign], "csv": rows}.items():
        with pytest.raises(UnicodeEncodeError, match="its bytes are read as another character") as raised:
            local_context.stream(items).collect(to_files(tmp_path / format, format=format, **sink))
        assert f"on the item {items[1]!r}" in "\n".join(raised.value.__notes__)

    assert local_context.read(json_lines(tmp_path / "json", encoding=encoding)).to_list() == rows


def test_json_has_objects_for_what_has_fields():
    """Dataclasses and named tuples, as deep as they stand; other tuples are arrays."""
    ship = Ship("Pequod", Point(1, 2), ["Ahab"])

    assert plain({"of": [ship, (Level.HIGH, None)]}) == {
        "of": [{"name": "Pequod", "at": {"x": 1, "y": 2}, "crew": ["Ahab"]}, [3, None]]
    }
    assert type(plain(Level.HIGH)) is int


def test_a_key_of_json_is_the_text_that_it_is():
    """As a value is, and not the name that `str` gives of a member of an enumeration."""
    made = plain({Port("nantucket"): Port("nantucket")})

    assert json.dumps(made) == '{"nantucket": "nantucket"}'
    assert {type(text) for text in (*made, *made.values())} == {str}


def test_json_gives_back_what_was_written(engine, tmp_path):
    """With the class of the items, on both engines."""
    ships = [Ship(f"{n}\n", Point(n, -n)) for n in range(5)]
    engine.stream(ships, 2).collect(to_files(tmp_path / "out", format="json"))

    assert engine.context.read(json_lines(tmp_path / "out", Ship)).to_list() == ships


def test_numbers_stay_what_they_are():
    """Large ones, and those that are none."""
    [line] = JsonLines().lines([[2**70, math.inf, -0.0, 0.1]]).splitlines()

    assert line == "[1180591620717411303424, Infinity, -0.0, 0.1]"


class Shade(enum.Enum):
    """A member that is no text and no number."""

    DARK = (0, 0)


@pytest.mark.parametrize(
    ("item", "said"),
    [
        ({(1, 2): "a"}, r"a key of type tuple, \(1, 2\), cannot be stored in JSON"),
        ({1: "a", "1": "b"}, "a dict with two keys of one text"),
        ({"a": 1j}, "field 'a' of dict: complex cannot be stored in JSON"),
        ([iter([])], "^list_iterator cannot be stored in JSON"),
        (Ship, "the class Ship cannot be stored in JSON; write its name"),
        (Ship("Pequod", Point(1j, 2)), "field 'x' of Point: complex cannot be stored in JSON"),
        (Entry("a", {"b": [{None: 1}]}), "field 'value' of Entry: a key of type NoneType, None, cannot be stored"),
        ({"a": Shade.DARK}, "field 'a' of dict: Shade cannot be stored in JSON; take its .value or its .name"),
    ],
)
def test_what_json_has_not_is_refused(local_context, tmp_path, item, said):
    """Rather than changed; the item is named."""
    with pytest.raises(TypeError, match=said) as raised:
        local_context.stream([item]).collect(to_files(tmp_path / "out", format="json"))

    assert "on the item" in "\n".join(raised.value.__notes__)


def test_the_state_of_an_encoder_outlives_a_failure():
    """What JSON escapes does not begin the file again."""
    file = io.BytesIO()
    content = LineFormat(JsonLines(), ".jsonl", "utf-16", None).content(file, NO_LIMIT, 0, {})
    for item in "a", "\ud800", "b":
        content.write([item])

    assert [json.loads(line) for line in file.getvalue().decode("utf-16").splitlines()] == ["a", "\ud800", "b"]
    assert TextLines(str).lines([1, 2]) == "1\n2\n"


def test_wrong_arguments_are_refused_at_the_call(tmp_path):
    """Before anything runs."""
    for wrong, error, said in [
        ({"format": "docx"}, ValueError, "format must be one of text, json, csv, parquet, avro, delta, not 'docx'"),
        ({"format": "json", "to_string": repr}, TypeError, "to_string makes texts"),
        ({"to_string": "name"}, TypeError, "to_string must be a function, not str"),
        ({"encoding": "klingon"}, LookupError, "unknown encoding"),
        ({"compression": "rar"}, ValueError, "compression must be"),
        ({"on_existing": "overwrite"}, ValueError, "on_existing must be 'add' or 'refuse'"),
        ({"name": "_a"}, ValueError, "name must begin as no hidden file does"),
        ({"name": "a/b"}, ValueError, "name must begin"),
        ({"name": "\U0001f600" * 60}, ValueError, "200 bytes at most"),
        ({"job": ""}, ValueError, "job must not be empty"),
    ]:
        with pytest.raises(error, match=said):
            to_files(tmp_path, **wrong)
    for url, error, said in [
        ("https://host/out", UnsupportedError, "writes whole files, which https://host/out does not take"),
        ("zip://a::s3://bucket/b.zip", UnsupportedError, "writes whole files"),
        ("nowhere://bucket/out", ValueError, "fsspec knows no URLs of nowhere://"),
    ]:
        with pytest.raises(error, match=said):
            to_files(url)
    with pytest.raises(TypeError, match="folder must be a str, not int"):
        to_files(3)


def test_the_folder_is_that_of_the_call(tmp_path, monkeypatch):
    """Whoever commits may stand elsewhere."""
    monkeypatch.chdir(tmp_path)

    assert to_files("out").place.path == str(tmp_path / "out")
    assert to_files(f"file://{tmp_path}/out").place.path == str(tmp_path / "out")
    assert repr(to_files("out", format="json")) == "to_files('out', format='json')"
