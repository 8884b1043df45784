"""`json_lines(path, kind)`: objects that become dataclasses, named tuples and typed dictionaries."""

from __future__ import annotations

import collections
import dataclasses
import datetime
import decimal
import enum
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, NotRequired, TypedDict

import pytest

from dstream.errors import SourceError
from dstream.values.fields import has_default
from sources import json_lines


class Color(enum.Enum):
    """By its values."""

    RED = "r"
    BLUE = 2


class Point(NamedTuple):
    """With a default."""

    x: float
    y: float = 0.0


class Note(TypedDict):
    """With a key that need not be there."""

    text: str
    by: NotRequired[str]


@dataclass(frozen=True)
class Order:
    """One field of most kinds."""

    id: int
    amount: decimal.Decimal
    day: datetime.date | None
    at: Point
    color: Color = Color.RED
    notes: Sequence[Note] = ()
    tags: frozenset[str] = frozenset()
    pair: tuple[int, str] | None = None
    more: dict[str, Any] = field(default_factory=dict)
    size: Literal["s", 1] = "s"
    parts: list[Order] = field(default_factory=list)
    total: int = field(init=False, default=0)


@dataclass
class Small:
    """Refuses what is negative."""

    n: int

    def __post_init__(self) -> None:
        if self.n < 0:
            raise ValueError("negative")


@pytest.fixture
def written(tmp_path):
    """Write lines into a file, and return its path."""

    def write(*lines):
        path = tmp_path / "a.jsonl"
        path.write_text("".join(f"{line}\n" for line in lines))
        return path

    return write


def test_objects_become_instances(written, engine):
    """By the names of their fields; what has a default may be missing, and what the kind has not is left out."""
    path = written('{"id": 1, "amount": 0.1, "day": null, "at": {"x": 1}, "extra": [1]}')

    [found] = engine.context.read(json_lines(path, Order)).to_list()
    assert found == Order(1, decimal.Decimal("0.1"), None, Point(1.0))
    assert type(found.at.x) is float


def test_values_are_converted_by_their_annotations(written, read):
    """Dates, enumerations, sets, tuples and the class itself, as deep as they stand."""
    path = written(
        '{"id": 1, "amount": "12.50", "day": "2026-01-31", "at": {"x": 1.5, "y": 2}, "color": 2, "size": 1,'
        '"tags": ["a"],'
        '"notes": [{"text": "t", "x": 1}], "pair": [1, "b"], "more": {"k": [null]},'
        '"parts": [{"id": 2, "amount": 3, "day": null, "at": {"x": 0}}]}'
    )
    part = Order(2, decimal.Decimal(3), None, Point(0.0))
    day, note = datetime.date(2026, 1, 31), Note(text="t")

    assert read(json_lines(path, kind=Order)) == [
        Order(
            1,
            decimal.Decimal("12.50"),
            day,
            Point(1.5, 2.0),
            Color.BLUE,
            [note],
            frozenset("a"),
            (1, "b"),
            {"k": [None]},
            1,
            [part],
        )
    ]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ('"id": "1"', "field id: expected int, got str '1'"),
        ('"id": true', "field id: expected int, got bool True"),
        ('"id": 1.0', "field id: expected int, got float 1.0"),
        ('"day": "31.1."', "field day: expected a date such as '2026-01-31' or null, got str '31.1.'"),
        ('"at": {}', "field at.x: it is missing, and has no default"),
        ('"at": [1]', "field at: expected Point, got array [1]"),
        ('"color": "green"', "field color: expected one of 'r', 2, got str 'green'"),
        ('"size": true', "field size: expected one of 's', 1, got bool True"),
        ('"notes": [{"text": "a"}, {"text": 3}]', "field notes[1].text: expected str, got int 3"),
        ('"tags": "abc"', "field tags: expected array, got str 'abc'"),
        ('"pair": [1]', "field pair: expected array of 2 or null, got array [1]"),
        ('"pair": [1, 2]', "field pair[1]: expected str, got int 2"),
        ('"more": []', "field more: expected object, got array []"),
        ('"amount": "x"', "field amount: expected a number, or a text with one, got str 'x'"),
        ('"at": {"x": 1' + "0" * 400 + "}", "is too large for a float"),
    ],
)
def test_a_field_that_does_not_fit_is_named(written, read, changed, said):
    """With file, line and value; the last of equal names counts, as in `json.loads`."""
    path = written("", '{"id": 1, "amount": 1, "day": null, "at": {"x": 1}, ' + changed + "}")

    with pytest.raises(SourceError) as raised:
        read(json_lines(path, Order))
    assert str(raised.value).startswith(f"{path}, line 2: field ")
    assert said in str(raised.value)


def test_a_missing_field_is_named(written, read):
    """A field that may be null may not be missing."""
    path = written('{"id": 1, "amount": 1, "at": {"x": 1}}')

    with pytest.raises(SourceError, match=r"line 1: field day: it is missing, and has no default: \{"):
        read(json_lines(path, Order))


def test_a_line_that_is_no_object_is_named(written, read):
    """And one that is not JSON, as ever."""
    with pytest.raises(SourceError, match=r"line 2: expected Small, got array \[1\]: \[1\]"):
        read(json_lines(written('{"n": 1}', "[1]"), Small))
    with pytest.raises(SourceError, match="line 1 is not JSON"):
        read(json_lines(written("{"), Small))


def test_what_the_class_refuses_is_named(written, read):
    """Its exception is the cause."""
    path = written('{"n": -1}')

    with pytest.raises(SourceError, match=r"line 1: Small cannot be made of it \(ValueError: negative\)") as raised:
        read(json_lines(path, Small))
    assert isinstance(raised.value.__cause__, ValueError)


def test_named_tuples_without_types_take_anything(written, read):
    """As do fields that may be anything."""
    pair = collections.namedtuple("pair", "a b", defaults=[None])

    assert read(json_lines(written('{"a": [1]}', '{"a": NaN, "b": 2}'), pair))[0] == ([1], None)
    assert math.isnan(read(json_lines(written('{"a": NaN}'), pair))[0].a)


@pytest.mark.parametrize("line", ["5", "[]", '"text"', "null"])
def test_what_is_no_object_becomes_no_kind_without_fields(written, read, line):
    """Also where no field of the kind would be looked for in it."""
    made = dataclasses.make_dataclass("Nothing", [])

    assert read(json_lines(written("{}", '{"more": 1}'), made)) == [made(), made()]
    with pytest.raises(SourceError, match="line 2: expected Nothing"):
        read(json_lines(written("{}", line), made))


def test_a_kind_that_is_none_is_refused_at_the_call():
    """Also one with a field that nothing becomes; the field is named."""

    @dataclass
    class Odd:
        f: complex

    Odd.__annotations__["f"] = complex
    with pytest.raises(
        TypeError,
        match=r"kind must be a dataclass, .*, an attrs class or a pydantic model, not <class 'int'>",
    ):
        json_lines("a", int)
    with pytest.raises(TypeError, match="the field f of Odd: nothing that stands in a file becomes a complex"):
        json_lines("a", Odd)
    with pytest.raises(TypeError, match="kind must be"):
        json_lines("a", kind="Order")


def test_the_call_is_shown():
    """With the kind."""
    assert repr(json_lines("a", "b", kind=Order)) == "json_lines('a', 'b', kind=Order)"
    assert repr(json_lines("a", Order)) == "json_lines('a', kind=Order)"


@dataclass
class Price:
    """What a line becomes that has a decimal number."""

    amount: decimal.Decimal
    parts: list[decimal.Decimal] | None = None
    weight: float = 0.0


@pytest.mark.parametrize("text", ["1.1", "0.1234567890123456", "0.30000000000000004", "1e20", "-12.50", "1" * 30])
def test_a_number_becomes_a_decimal_with_all_its_digits(tmp_path, text):
    """Those are taken that a float holds, and ints."""
    (tmp_path / "a.jsonl").write_text(f'{{"amount": {text}}} \n')
    [split] = json_lines(tmp_path / "a.jsonl", Price).splits(1)

    assert list(split.read()) == [Price(decimal.Decimal(text))]


@pytest.mark.parametrize("text", ["1.100000000000000000001", "1e400", "1E-400"])
@pytest.mark.parametrize("field", ["amount", "weight"])
@pytest.mark.parametrize("end", ["", " "])
def test_a_number_that_a_float_does_not_hold_does_not_fit(tmp_path, text, field, end):
    """Nor in another field of such a line; a text keeps all digits."""
    (tmp_path / "a.jsonl").write_text(f'{{"amount": "1", "{field}": {text}}}{end}\n')
    (tmp_path / "b.jsonl").write_text(f'{{"amount": "{text}", "parts": ["0.5", 1]}}\n')
    [bad], [good] = (json_lines(tmp_path / name, Price).splits(1) for name in ("a.jsonl", "b.jsonl"))
    with pytest.raises(SourceError, match=f"a.jsonl, line 1: the number {re.escape(text)} is more than a float holds"):
        list(bad.read())

    assert list(good.read()) == [Price(decimal.Decimal(text), [decimal.Decimal("0.5"), decimal.Decimal(1)])]


def test_a_class_that_came_pickled_by_value_keeps_its_required_fields():
    """Such a class has an object of its own in the place of `dataclasses.MISSING`."""

    @dataclasses.dataclass
    class Order:
        number: int
        note: str = ""
        lines: list[str] = dataclasses.field(default_factory=list)

    for each in dataclasses.fields(Order):
        for name in ("default", "default_factory"):
            if getattr(each, name) is dataclasses.MISSING:
                setattr(each, name, type(dataclasses.MISSING)())

    assert [has_default(each) for each in dataclasses.fields(Order)] == [False, True, True]
