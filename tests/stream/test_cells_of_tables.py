"""What tables of items show of times, numbers, joins and dead letters, in streams and in collections alike."""

from __future__ import annotations

import datetime
import decimal
import uuid

import pytest

import dstream as ds
from dstream import DeadLetter, Entry, Stream
from dstream.values.bad_records import BadRecord
from dstream.values.tables import Rows, html_table

MOMENT = datetime.datetime(2026, 3, 1, 1, 0, 1, tzinfo=datetime.UTC)


class Odd(decimal.Decimal):
    def __str__(self) -> str:
        raise ZeroDivisionError


@pytest.fixture
def ctx():
    """A context with collections in memory."""
    with ds.connect(engine="local", storage="memory:") as context:
        yield context


def lines_of(capsys, shown):
    """Return the lines that are printed, without the rule and trailing spaces."""
    shown()
    return [line for line in capsys.readouterr().out.splitlines() if not line.startswith("─")]


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        (MOMENT, "2026-03-01 01:00:01+00:00"),
        (datetime.date(2026, 3, 1), "2026-03-01"),
        (datetime.time(1, 30), "01:30:00"),
        (datetime.timedelta(hours=1), "1:00:00"),
        (decimal.Decimal("13895.21"), "13895.21"),
        (uuid.UUID(int=7), "00000000-0000-0000-0000-000000000007"),
        ("2026", "'2026'"),
        (Odd("1.5"), "Decimal('1.5')"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_reads_better_as_a_text_is_one(capsys, ctx, value, cell):
    """In a table of a stream, with whole values or not, of a list, and in a notebook; a text has its quotes."""
    values = ctx.get_list("values")
    values.append(value)
    for shown in (Stream.of(value).head, Stream.of(value).show, values.head, values.show):
        assert lines_of(capsys, shown)[-2].split("   ")[-1].strip().startswith(cell)
    assert f"<td>{cell.replace(chr(39), '&#x27;').replace('<', '&lt;')}" in html_table("", Rows(["v"], [[value]]))


def test_both_sides_of_a_join_are_columns(capsys):
    """However long the left one is."""
    left = Stream.of(("a", "x" * 90)).key_by(lambda pair: pair[0])
    joined = left.join(Stream.of(("a", 7)).key_by(lambda pair: pair[0]))
    *_, columns, row, _ = lines_of(capsys, joined.map(lambda e: Entry(e.key, (e.value[0][1], e.value[1][1]))).head)

    assert (columns.split(), row.split()[-1]) == (["key", "value.0", "value.1"], "7")


def test_tuples_of_other_sizes_stay_in_one_column(capsys):
    """They are no sides of one join."""
    lines = lines_of(capsys, Stream.of(Entry("a", (1, 2)), Entry("b", (1, 2, 3))).head)

    assert lines[1].split() == ["key", "value"]


LETTERS = [
    DeadLetter(BadRecord(path, line, text), "ValueError", f"{path}, line {line}: no number", "csv_rows(...)", "a.py:1")
    for path, line, text in (("/data/orders.csv", 7, "12,x"), (f"/{'long/' * 20}orders.csv", 8, "13,y"))
]


def test_dead_letters_of_files_are_shown_as_path_line_text_and_message(capsys, ctx):
    """In this order, a long path by its end, in streams and lists alike."""
    bad = ctx.get_list("bad")
    bad.extend(LETTERS)
    for shown in (bad.stream().head, bad.head):
        _, columns, first, second, note = lines_of(capsys, shown)
        assert columns.split()[-4:] == ["path", "line", "text", "message"]
        assert first.split()[-5:] == ["/data/orders.csv", "7", "'12,x'", "no", "number"]
        assert second.split()[-5:] == ["...g/long/long/long/orders.csv", "8", "'13,y'", "no", "number"]
        assert note == "(2 items; 3 more columns: error, step, where)"


def test_dead_letters_of_steps_are_shown_as_item_and_message(capsys):
    """With whole values each part is there."""
    letter = DeadLetter(3, "ValueError", "no number", ".map(parse)", "a.py:1")
    letters = Stream.generate(lambda: letter).limit(1)
    assert lines_of(capsys, letters.head)[1:3] == ["item   message", "3      no number"]
    _, columns, row, _ = lines_of(capsys, letters.show)

    assert columns.split() == ["item", "message", "error", "step", "where"]
    assert row.split() == ["3", "no", "number", "ValueError", ".map(parse)", "a.py:1"]


@pytest.mark.parametrize("kind", ["map", "list", "set", "cache", "queue", "counter"])
def test_every_collection_shows_whole_values(capsys, ctx, kind):
    """As `head` shows one line for each."""
    made = getattr(ctx, f"get_{kind}")("m", **({"ttl": 900} if kind == "cache" else {}))
    text = "a" * 90
    fill = {"map": "update", "cache": "update", "list": "append", "set": "add", "queue": "put", "counter": "add"}[kind]
    getattr(made, fill)({"counter": 1, "map": {"k": text}, "cache": {"k": text}}.get(kind, text))
    made.show(3)

    assert capsys.readouterr().out.count(text) == (kind != "counter")
