"""Bad records: `on_bad=`, `into=`, and the methods that stand behind a source, on both engines."""

from __future__ import annotations

import io
import json
import pathlib
import re
import tempfile
import uuid
from dataclasses import dataclass

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dstream import BadRecord, Stream
from dstream.errors import IllegalStateError, SourceError
from reducers import to_ilist
from sources import avro_records, csv_rows, json_lines, parquet_rows, text_files


@dataclass(frozen=True)
class Visit:
    user: str
    ms: int


@pytest.fixture
def lines(tmp_path):
    """Write lines into `a.txt` and give its path."""

    def write(*lines):
        (tmp_path / "a.txt").write_bytes(b"".join(line + b"\n" for line in lines))
        return tmp_path / "a.txt"

    return write


@pytest.fixture
def bad():
    """Give the name of a list that nobody else writes to."""
    return f"bad-{uuid.uuid4()}"


VISITS = b"user,ms", b"ada,12", b"bob,1.0", b"cid", b"dee,7"


def test_bad_rows_are_skipped_and_counted(engine, lines, capfd):
    """One line says how many there were, and at which call."""
    visits = engine.context.read(csv_rows(lines(*VISITS), Visit, on_bad="skip"))

    assert visits.to_list() == [Visit("ada", 12), Visit("dee", 7)]
    said = [line for line in capfd.readouterr().err.splitlines() if "failed" in line]
    assert len(said) == 1
    assert "on_bad='skip'" in said[0]
    assert said[0].endswith("2 items failed with SourceError and were ignored")


def test_lines_behind_a_bad_byte_between_two_line_ends_stay(engine, lines, bad):
    r"""Without its bad byte, a line after "\r" would be none, and all that follow would be taken for bad ones."""
    path = lines(b"a\r\xff", b"b", b"c\r\xfe\r", b"d")

    assert engine.context.read(text_files(path, into=to_ilist(bad))).to_list() == ["a", "b", "c", "d"]
    assert [letter.item.line for letter in engine.context.get_list(bad)] == [2, 5]


def test_dead_letters_of_a_source_name_file_line_and_text(engine, lines, bad):
    """They are committed once, and the run goes on."""
    path = lines(*VISITS)
    source = csv_rows(path, Visit, into=to_ilist(bad))

    assert engine.context.read(source).count() == 2
    letters = list(engine.context.get_list(bad))
    assert [letter.item for letter in letters] == [BadRecord(str(path), 3, "bob,1.0"), BadRecord(str(path), 4, "cid")]
    assert "line 3: column ms: expected an int such as 12, got '1.0'" in letters[0].message
    assert (letters[0].error, letters[0].step.startswith("read(csv_rows(")) == ("SourceError", True)


@pytest.mark.parametrize("damage", [b"\xff", b"\0"])
@pytest.mark.parametrize("kind", [None, Visit])
def test_blank_lines_around_damaged_ones_are_no_rows(local_context, lines, bad, damage, kind):
    """They are skipped, whatever stands near them; only the damaged lines are bad."""
    path = lines(b"user,ms", b"ada,1", b"", damage + b",3", b"", b"", b"dee,7", damage, b"")
    rows = local_context.read(csv_rows(path, kind=kind, into=to_ilist(bad))).to_list()

    assert [row if kind is None else vars(row) for row in rows] == [
        {"user": "ada", "ms": "1" if kind is None else 1},
        {"user": "dee", "ms": "7" if kind is None else 7},
    ]
    assert [letter.item.line for letter in local_context.get_list(bad)] == [4, 8]


def test_methods_stand_behind_a_source(engine, lines):
    """They see the parser's exception, or the `SourceError` that says where."""
    visits = engine.context.read(json_lines(lines(b'{"user": "a", "ms": 1}', b"{", b'{"user": "b"}'), Visit))

    assert visits.ignore(ValueError).map(lambda visit: visit.ms).to_list() == [1]
    lost = visits.resolve(json.JSONDecodeError, lambda bad, error: Visit(bad.text, bad.line)).ignore(SourceError)
    assert lost.to_list() == [Visit("a", 1), Visit("{", 2)]
    with pytest.raises(SourceError, match=r"a\.txt, line 2 is not JSON") as caught:
        visits.ignore(KeyError).count()
    assert any("What to do: correct the record" in note for note in caught.value.__notes__)


def test_what_does_not_fit_a_class_is_a_value_error_for_methods(local_context, lines, bad, capsys):
    """No class of ours, which nobody can import, is shown to functions, in dead letters or on stderr."""
    path = lines(b'{"user": "a", "ms": "x"}')
    visits = local_context.read(json_lines(path, Visit))

    told = visits.resolve(ValueError, lambda bad, error: Visit(f"{type(error).__name__}: {error}", 0)).to_list()
    assert told == [Visit("ValueError: field ms: expected int, got str 'x'", 0)]
    assert visits.on_error(ValueError, into=to_ilist(bad)).count() == 0
    assert [letter.error for letter in local_context.get_list(bad)] == ["ValueError"]
    assert "1 item failed with ValueError and was sent to" in capsys.readouterr().err


@pytest.mark.parametrize("with_path", [False, True])
@pytest.mark.parametrize("make", [csv_rows, json_lines, parquet_rows])
def test_a_bad_record_is_told_without_another_item_and_without_names_of_ours(engine, tmp_path, make, with_path):
    """The item before it is not to blame, and what makes items is no function of the user's."""
    path = tmp_path / "visits"
    match make.__name__:
        case "csv_rows":
            path.write_text("user,ms\nada,12\nbob,1.5\n")
        case "json_lines":
            path.write_text('{"user": "ada", "ms": 12}\n{"user": "bob", "ms": 1.5}\n')
        case _:
            pyarrow.parquet.write_table(pyarrow.table({"user": ["ada", "bob"], "ms": [12, None]}), path)

    with pytest.raises(SourceError) as caught:
        engine.context.read(make(path, Visit, with_path=with_path)).to_list()

    notes = "\n".join(caught.value.__notes__)
    assert re.match("What happened: the source could not be read(, on a Spark worker)?\n", notes), notes
    assert "on the item" not in notes
    assert "What to do: correct the record" in notes


@pytest.mark.parametrize("make", [parquet_rows, avro_records])
def test_a_file_of_another_format_is_told_as_no_record(local_context, tmp_path, make):
    """What skips bad records does not help there, and where a library has failed says nothing to the user."""
    (tmp_path / "other").write_bytes(b"no such format")

    with pytest.raises(SourceError, match=r"cannot read .*other") as caught:
        local_context.read(make(tmp_path / "other", on_bad="skip")).to_list()

    notes = "\n".join(caught.value.__notes__)
    assert re.match("What happened: the source could not be read(, on a Spark worker)?\n", notes), notes
    assert "What to do: check that what it reads is there and complete" in notes


def test_on_error_stands_behind_a_source(engine, lines, bad):
    """The letter says what was raised, and where the record stands."""
    read = engine.context.read(text_files(lines(b"a", b"caf\xe9", b"b")))

    assert read.on_error(UnicodeDecodeError, into=to_ilist(bad)).map(str.upper).to_list() == ["A", "B"]
    (letter,) = engine.context.get_list(bad)
    assert (letter.item.line, letter.item.text, letter.error) == (2, "caf\\xe9", "UnicodeDecodeError")


def test_letters_of_several_tasks_have_the_lines_of_the_file(engine, lines, bad, tiny_splits):
    """In its order, once each."""
    path = lines(*[b"x%d" % n if n % 3 == 0 else b"%d" % n for n in range(1, 10)])

    assert engine.context.read(json_lines(path, into=to_ilist(bad))).to_list() == [1, 2, 4, 5, 7, 8]
    assert [(letter.item.line, letter.item.text) for letter in engine.context.get_list(bad)] == [
        (3, "x3"),
        (6, "x6"),
        (9, "x9"),
    ]


def test_short_circuits_see_no_later_bad_record(engine, lines):
    """What is not read is not counted either, and does not fail."""
    visits = engine.context.read(csv_rows(lines(*VISITS), Visit))

    assert visits.limit(1).to_list() == [Visit("ada", 12)]
    assert visits.find_first().get() == Visit("ada", 12)


def test_a_last_line_of_bad_bytes_alone_is_a_bad_record(tmp_path):
    """Nothing is left of it without them."""
    (tmp_path / "a.txt").write_bytes(b"a\n\xff")
    (split,) = text_files(tmp_path / "a.txt").splits(1)

    assert list(split.read_past(lambda misread: [(misread.record().line, misread.record().text)])) == [
        "a",
        (2, "\\xff"),
    ]


def test_pairs_with_the_path_and_what_is_resolved(engine, lines):
    """What `resolve` gives takes the place of the whole pair."""
    path = lines(b"1", b"x")
    pairs = engine.context.read(json_lines(path, with_path=True))

    assert pairs.resolve(ValueError, lambda bad, error: ("bad", bad.line)).to_list() == [(str(path), 1), ("bad", 2)]


def test_methods_refuse_a_source_without_records(engine):
    """Nothing of a list can be bad."""
    with pytest.raises(IllegalStateError, match="read records of files"):
        engine.context.stream([1]).ignore(ValueError)
    assert Stream.of("1", "x").map(int).ignore(ValueError).to_list() == [1]


@pytest.mark.parametrize("make", [text_files, json_lines, csv_rows, parquet_rows])
def test_options_are_checked_at_the_call(make):
    """By their names."""
    with pytest.raises(ValueError, match="on_bad must be 'fail' or 'skip', not 'drop'"):
        make("a", on_bad="drop")
    with pytest.raises(ValueError, match=r"or 'skip', not to_ilist\('bad'\); into=to_ilist\('bad'\) sends bad records"):
        make("a", on_bad=to_ilist("bad"))
    with pytest.raises(TypeError, match=r"into must be a reducer, such as to_ilist\(...\), not int"):
        make("a", into=5)
    with pytest.raises(ValueError, match="give one of the two"):
        make("a", on_bad="skip", into=to_ilist("bad"))
    with pytest.raises(TypeError, match="with_path must be True or False, not str"):
        make("a", with_path="yes")


PIECES = st.sampled_from([b'{"n": 1}', b"7", b"x", b"\xff", b"", b" ", b'"caf\xc3\xa9"', b"[", b'"\xe9"'])


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(PIECES, st.sampled_from([b"\n", b"\r\n", b"\r"]))), st.integers(1, 5), st.integers(1, 9))
def test_lines_have_their_numbers_wherever_a_file_is_cut(pieces, parallelism, block):
    """As one pass over the whole file counts them; good lines and bad ones are what Python says they are."""
    content = b"".join(piece + end for piece, end in pieces)
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        for name, size in {"splits.SMALLEST_SPLIT": 1, "splits.OPENING": 1, "lines.BLOCK": block}.items():
            patch.setattr(f"dstream.connectors.files.{name}", size)
        path = pathlib.Path(folder) / "a.txt"
        path.write_bytes(content)
        found = [
            item
            for split in json_lines(path).splits(parallelism)
            for item in split.read_past(lambda bad: [bad.record()])
        ]

    lines = io.StringIO(content.decode(errors="surrogateescape"), newline=None).read().split("\n")
    assert found == [each for number, line in enumerate(lines, 1) for each in parsed(str(path), number, line)]


def parsed(path, number, line):
    """Return what one line becomes, by the short way of Python."""
    if not line or line.isspace():
        return []
    try:
        line.encode()
        return [json.loads(line)]
    except ValueError:
        return [BadRecord(path, number, line.encode(errors="surrogateescape").decode(errors="backslashreplace"))]
