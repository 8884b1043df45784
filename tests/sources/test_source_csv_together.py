"""Rows of CSV that are made together: what one would see if each was made alone, and where bad ones stand."""

from __future__ import annotations

import datetime
import enum
import itertools
from dataclasses import dataclass
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dstream.errors import SourceError
from dstream.schema.factories import maker_of_many_rows, maker_of_rows
from dstream.schema.record_decoders import TEXTS, form_of
from sources import csv_rows


class Colour(enum.Enum):
    """A kind whose members are written as their values."""

    RED = "red"
    BLUE = "blue"


@dataclass
class Order:
    """One field of each way to read a column."""

    id: int
    name: str
    amount: float
    price: Decimal | None
    day: datetime.date | None
    note: str | None
    size: int | None
    colour: Colour
    paid: bool = False


NAMES = ("note", "id", "other", "name", "amount", "price", "day", "size", "colour")
NUMBERS = st.sampled_from(["1", "-2", "+3", "٣", "1_0", " 1", "1 ", "\u20031", "x", "1.5", "nan", "1e3", ""])
TEXT = st.sampled_from(["a", "", " b", "1"])
ROWS = st.lists(
    st.tuples(
        TEXT,
        st.one_of(st.just("7"), NUMBERS),
        TEXT,
        st.sampled_from(["a", "b", "b", ""]),
        st.one_of(st.just("1.5"), NUMBERS),
        st.sampled_from(["", "1.50", "2", "x"]),
        st.sampled_from(["2026-01-31", "2026-01-31", "", "2026-02-31"]),
        st.one_of(st.just(""), NUMBERS),
        st.sampled_from(["red", "blue", "green"]),
    ).flatmap(lambda row: st.sampled_from([row, row, row, row[:-1], (*row, "")])),
    max_size=4,
)


@pytest.fixture
def write(tmp_path):
    """Write `a.csv` and give its path."""

    def write_csv(content):
        (tmp_path / "a.csv").write_text(content, newline="")
        return tmp_path / "a.csv"

    return write_csv


@given(ROWS)
def test_rows_made_together_are_those_made_one_by_one(rows):
    """As far as they go; nothing that is refused alone is taken together."""
    form = form_of(Order, TEXTS)
    alone = maker_of_rows(form, NAMES, empty_is_none=True)

    together = maker_of_many_rows(form, NAMES, alone)([list(row) for row in rows])

    assert repr(together) == repr([alone(row) for row in rows[: len(together)]])  # NaN is not itself.


def test_rows_that_fit_are_made_together():
    """All of them, with numbers of each sign, and fields that are empty."""
    form = form_of(Order, TEXTS)
    row = ["", "-1", "", "a", "+1.5", "", "2026-01-31", "", "red"]

    made = maker_of_many_rows(form, NAMES, maker_of_rows(form, NAMES, empty_is_none=True))([row, row])

    assert made == [Order(-1, "a", 1.5, None, datetime.date(2026, 1, 31), None, None, Colour.RED)] * 2


GOOD = ["", "-1", "", "a", "+1.5", "", "2026-01-31", "2", "red"]


@pytest.mark.parametrize("place", [NAMES.index("id"), NAMES.index("amount"), NAMES.index("size")])
@pytest.mark.parametrize("number", ["1_0", " 1", "1 ", "\u20031", "1\n", "x"])
def test_numbers_that_only_python_reads_are_left_to_the_forms(place, number):
    """Underscores and spaces in any column of numbers, also where a field may be empty."""
    form = form_of(Order, TEXTS)
    alone = maker_of_rows(form, NAMES, empty_is_none=True)
    bad = [*GOOD[:place], number, *GOOD[place + 1 :]]

    assert maker_of_many_rows(form, NAMES, alone)([bad, GOOD]) == []


@pytest.mark.parametrize("rows", [[[*GOOD, ""]] * 2, [GOOD[:-1]] * 2, [GOOD, [*GOOD, ""]]])
def test_rows_of_another_length_are_left_to_the_forms(rows):
    """One of them, or all of them."""
    form = form_of(Order, TEXTS)
    alone = maker_of_rows(form, NAMES, empty_is_none=True)

    assert maker_of_many_rows(form, NAMES, alone)(rows) == []


@dataclass
class Visit:
    """A kind that refuses some values, and keeps what it was made of."""

    name: str
    age: int

    def __post_init__(self):
        made.append(self.age)
        if self.age < 0:
            raise ValueError("age must not be negative")


made: list[int] = []


@pytest.mark.parametrize("bad", ['"x\ny",z', "x,1,2", "x,-1", '"x"y,1', "x", ",3"])
def test_bad_rows_name_their_lines_behind_rows_of_several_lines(write, bad):
    """Items in front come first; one that is refused keeps its line, also behind blank lines and long rows."""
    path = write(f'name,age\n"a\nb",1\n\nc,2\n{bad}\n"d\n\ne",3\nf,-4\n')
    (split,) = csv_rows(path, Visit).splits(1)
    past = list(split.read_past(lambda misread: [misread.record().line]))

    assert past == [Visit("a\nb", 1), Visit("c", 2), 6, Visit("d\n\ne", 3), 10 + bad.count("\n")]
    items = split.read()
    assert list(itertools.islice(items, 2)) == past[:2]
    with pytest.raises(SourceError, match=r"a\.csv, line 6"):
        next(items)


def test_lines_are_counted_across_many_rows(write):
    """A bad row far behind the first rows that are read together, some of which hold line ends."""
    rows = [f'"a\n{number}",{number}' if number % 3 == 0 else f"a,{number}" for number in range(1_000)]
    path = write("name,age\n" + "\n".join([*rows, "b,x", *rows, "c,y"]) + "\n")
    (split,) = csv_rows(path, Visit).splits(1)

    found = list(split.read_past(lambda misread: [misread.record().line]))

    assert [each for each in found if isinstance(each, int)] == [1 + 1_334 + 1, 1 + 2 * (1_334 + 1)]
    assert len(found) == 2_002


def test_items_in_front_of_one_that_is_refused_are_made_once(write):
    """The constructor may count."""
    made.clear()
    (split,) = csv_rows(write("name,age\na,1\nb,2\nc,-3\nd,4\n"), Visit).splits(1)

    list(split.read_past(lambda misread: []))

    assert (made.count(1), made.count(2), made.count(4)) == (1, 1, 1)


def test_rows_come_in_lists_unless_paths_stand_beside_them(write):
    """An engine takes a list where it would ask for one item after another."""
    path = write("name\n" + "a\n" * 300)
    (split,), (pairs,) = csv_rows(path).splits(1), csv_rows(path, with_path=True).splits(1)

    assert [item for block in split.read_blocks() for item in block] == list(split.read()) == [{"name": "a"}] * 300
    assert max(map(len, split.read_blocks())) > 1
    assert not hasattr(pairs, "read_blocks")


def test_functions_that_make_items_are_written_once_a_file(write, monkeypatch):
    """However many rows are made one by one."""
    calls = []

    def counted(*arguments, **named):
        calls.append(arguments)
        return maker_of_rows(*arguments, **named)

    monkeypatch.setattr("dstream.connectors.files.csv.maker_of_rows", counted)
    (split,) = csv_rows(write("name,age\n" + '"",1\na,2\n\n' * 500), Visit).splits(1)

    assert len(list(split.read())) == 1_000
    assert len(calls) == 2
