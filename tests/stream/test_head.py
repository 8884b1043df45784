"""`head` and `show` print tables of the first items."""

from __future__ import annotations

import dataclasses
import io
import sys
from typing import NamedTuple

import pytest

from dstream import Entry, IntStream, Stream


@dataclasses.dataclass
class Order:
    who: str
    total: float | None
    secret: str = dataclasses.field(default="hidden", repr=False)


class Place(NamedTuple):
    row: int
    seat: str


class Broken:
    def __repr__(self):
        raise ZeroDivisionError


class Loud:
    def __repr__(self):
        return "\x1b[31mred\r\tline 1\nline 2"


@pytest.fixture
def printed(capsys, local_context):
    """Print the head of some items; return the lines, without the title."""

    def run(items, n=10, way="head"):
        getattr(local_context.stream(items), way)(n)
        return capsys.readouterr().out.splitlines()[1:]

    return run


def test_head_prints_the_first_items(engine, capsys):
    """The title is the chain, the last line says that there are more."""
    engine.stream([3, 1, 2], partitions=3).sorted().map(str).head(2)

    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith(".sorted().map(str)")
    assert lines[1:] == ["item", "────", "'1'", "'2'", "(the first 2 items; there are more)"]


@pytest.mark.parametrize(
    ("items", "header", "first"),
    [
        ([Order("Ada", None), Order("Bob", 2.5)], "who     total", "'Ada'   None"),
        ([Place(1, "A")], "row   seat", "1     'A'"),
        ([Entry("whale", 3)], "key       value", "'whale'   3"),
        ([(1, "x"), (2, "y")], "0   1", "1   'x'"),
        ([(1,), (1, 2)], "item", "(1,)"),
        ([{"b": 1}, {"a": None}], "b   a", "1"),
        ([{1: "x", "1": "y"}], "1     '1'", "'x'   'y'"),
        ([{}, {}], "item", "{}"),
        ([1, (1, 2)], "item", "1"),
        ([()], "item", "()"),
        ([Order("Ada", 1), Place(1, "A")], "item", "Order(who='Ada', total=1)"),
        (["None", None], "item", "'None'"),
    ],
)
def test_head_finds_the_columns(printed, items, header, first):
    """Items of one shape are divided, others stand in one column; values are written as Python does."""
    lines = printed(items)

    assert (lines[0], lines[2]) == (header, first)


def test_head_leaves_absent_keys_blank(printed):
    """A key that is missing can be told from one that is None."""
    assert printed([{"b": 1}, {"a": None, "b": ""}])[2:4] == ["1", "''   None"]


def test_head_leaves_a_field_blank_that_was_never_set(printed):
    """Looking at an item is no error."""
    order = Order("Ada", 1)
    del order.total

    assert printed([order])[0::2][:2] == ["who     total", "'Ada'"]


def test_head_of_no_items(printed):
    """An empty stream is no error, and no table."""
    assert printed([]) == ["(no items)"]
    assert printed([1], 0) == ["(the first 0 items; there are more)"]
    assert printed([1], 1)[-1] == "(1 item)"


def test_head_shows_data_as_it_is(printed):
    """Markup, emoji codes and control codes in data do nothing; a repr that fails is named."""
    lines = printed(["[red]x[/red] :smile:", Broken(), Loud()])

    assert lines[2:5] == [
        "'[red]x[/red] :smile:'",
        "<Broken, whose repr fails with ZeroDivisionError>",
        r"\x1b[31mred\r\tline 1 line 2",
    ]


def test_head_reads_markup_in_names_as_it_is(printed):
    """Keys are data too."""
    assert printed([{"[bold]a": 1}])[0] == "[bold]a"


def test_head_cuts_values_to_one_line(printed):
    """A cut shows."""
    (line,) = printed(["x" * 500])[2:-1]

    assert line == f"'{'x' * 56}..."


def test_show_folds_whole_values(printed):
    """Nothing of a value is left out."""
    lines = printed(["x" * 500, Loud()], way="show")

    assert "".join(lines).count("x") == 500 + 1  # one in the escape code of the second item
    assert max(map(len, lines)) == 100
    assert lines[-3:-1] == [r"\x1b[31mred\r\tline 1", "line 2"]


def test_head_leaves_out_columns_that_do_not_fit(printed):
    """They are named below; `show` writes one line for each value instead."""
    wide = [{f"column {n}": n for n in range(30)}]

    assert (
        printed(wide)[-1] == "(1 item; 20 more columns: column 10, column 11, column 12, column 13, column 14, co...)"
    )
    assert [line.split() for line in printed(wide, way="show")[2:5:2]] == [
        ["0", "column", "0", "0"],
        ["0", "column", "1", "1"],
    ]


def test_head_reads_no_more_than_one_item_ahead(capsys):
    """An endless stream has a head."""
    seen = []
    Stream.iterate(1, lambda n: n + 1).peek(seen.append).head(3)

    assert seen == [1, 2, 3, 4]


def test_head_runs_few_partitions(engine, capsys):
    """As `limit` does: what stands behind the items is not computed."""
    ran = engine.stream(range(100), partitions=50).map(lambda n: 1 // (40 - n))
    ran.head(4)

    assert capsys.readouterr().out.endswith("there are more)\n")


@pytest.mark.parametrize(("n", "error"), [(-1, ValueError), ("2", TypeError), (1.5, TypeError), (None, TypeError)])
@pytest.mark.parametrize("way", ["head", "show"])
def test_head_refuses_a_wrong_number(way, n, error):
    """At the call, before anything runs."""
    with pytest.raises(error, match="n must"):
        getattr(Stream.of(1).map(lambda n: 1 / 0), way)(n)


def test_head_of_numbers(capsys):
    """Streams of numbers have it too."""
    IntStream.range(0, 3).head()

    assert capsys.readouterr().out.splitlines()[1:] == ["item", "────", "0", "1", "2", "(3 items)"]


class Terminal(io.StringIO):
    def __init__(self, encoding="utf-8"):
        super().__init__()
        self._encoding = encoding

    encoding = property(lambda self: self._encoding)

    def isatty(self):
        return True

    def write(self, text):
        text.encode(self._encoding)
        return super().write(text)


def test_head_fits_a_narrow_terminal(monkeypatch, local_context):
    """No line is wider, cuts show, and there are no control codes."""
    monkeypatch.setenv("COLUMNS", "30")
    monkeypatch.setattr(sys, "stdout", Terminal())
    local_context.stream([{"a": "x" * 50, "b": "日本語" * 9, "c": 3, "d": 4}]).head()

    lines = sys.stdout.getvalue().splitlines()
    assert max(map(len, lines)) <= 30
    assert lines[-2].count("…") == 2
    assert lines[-1] == "(1 item; 1 more column: d)"
    assert "\x1b" not in sys.stdout.getvalue()


def test_head_fits_a_terminal_that_knows_ascii_only(monkeypatch, local_context):
    """What it cannot write is escaped."""
    monkeypatch.setattr(sys, "stdout", Terminal("ascii"))
    local_context.stream([{"name": "Zoë"}]).head()

    assert r"'Zo\xeb'" in sys.stdout.getvalue()


def test_head_looks_the_same_wherever_it_is_no_terminal(monkeypatch, printed):
    """Neither the size of the window nor a wish for colours changes what goes to a file."""
    before = printed([{"a": "x" * 70, "b": "y" * 70}])
    for name, value in {"COLUMNS": "30", "FORCE_COLOR": "1", "TTY_COMPATIBLE": "1"}.items():
        monkeypatch.setenv(name, value)

    assert printed([{"a": "x" * 70, "b": "y" * 70}]) == before
    assert max(map(len, before)) <= 100
