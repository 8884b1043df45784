"""What keys and values are: made of hints, of values, and of what was stored."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, NewType, Optional, TypedDict, TypeVar, Union
from uuid import UUID
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from dstream.schema.type_inference import infer_stored, stored_type
from dstream.storage.codec.description import type_from_json
from dstream.storage.codec.pickles import Pickles
from tests.storage.codec.samples import Color, Labelled, Loose, Order, Place, Plain, Point, Rights, Spot

if TYPE_CHECKING:
    from nowhere import Missing

TRUSTED = Pickles("trusted")
SAMPLES = "tests.storage.codec.samples"
Id = NewType("Id", int)
T = TypeVar("T")


@dataclass
class Node:
    """Refers to itself."""

    value: int
    next: Node | None = None


@dataclass
class Vague:
    """One annotation exists only for type checkers."""

    known: int
    missing: Missing


class Crew(TypedDict):
    captain: str
    sailors: int


class Pair(NamedTuple):
    left: int
    right: float


HINTS = [
    (bool, "bool", pa.bool_()),
    (int, "int", pa.int64()),
    (float, "float", pa.float64()),
    (str, "str", pa.string()),
    (bytes, "bytes", pa.binary()),
    (date, "date", pa.date32()),
    (datetime, "datetime", pa.timestamp("us")),
    (timedelta, "timedelta", pa.duration("us")),
    (Decimal, "Decimal", pa.string()),
    (UUID, "UUID", pa.binary(16)),
    (list[float], "list[float]", pa.list_(pa.float64())),
    (list[list[str]], "list[list[str]]", pa.list_(pa.list_(pa.string()))),
    (list[int | None], "list[int | None]", pa.list_(pa.int64())),
    (Optional[int], "int | None", pa.int64()),  # noqa: UP045
    (Id, "int", pa.int64()),
    (Annotated[str, "doc"], "str", pa.string()),
    (Spot, f"{SAMPLES}:Spot", pa.struct([("x", pa.float64()), ("y", pa.float64())])),
    (Pair, f"{__name__}:Pair", pa.struct([("left", pa.int64()), ("right", pa.float64())])),
    (list[Loose], f"list[{SAMPLES}:Loose]", pa.list_(pa.struct([("x", pa.int64())]))),
    (
        Order,
        f"{SAMPLES}:Order",
        pa.struct(
            [("id", pa.int64()), ("total", pa.string()), ("lines", pa.list_(pa.string())), ("note", pa.string())]
        ),
    ),
    (time, "time", pa.time64("us")),
    (Color, f"{SAMPLES}:Color", pa.int64()),
    (Fraction, "Fraction", pa.string()),
    (tuple[int, ...], "tuple[int, ...]", pa.list_(pa.int64())),
    (frozenset[str], "frozenset[str]", pa.list_(pa.string())),
    (dict[str, list[int]], "dict[str, list[int]]", pa.map_(pa.string(), pa.list_(pa.int64()))),
    (Crew, f"{__name__}:Crew", pa.struct([("captain", pa.string()), ("sailors", pa.int64())])),
    (Node, f"{__name__}:Node", pa.struct([("value", pa.int64()), ("next", pa.binary())])),
    *((hint, name, None) for hint, name in [(dict, "dict"), (list, "list"), (tuple, "tuple"), (set, "set")]),
    *((hint, name, None) for hint, name in [(Any, "object"), (object, "object"), (Plain, f"{SAMPLES}:Plain")]),
    (Union[int, str], "int | str", None),  # noqa: UP007
    (list[dict], "list[dict]", None),
    (Callable[[int], str], "Callable", None),
]


@pytest.mark.parametrize(("hint", "name", "arrow"), HINTS, ids=str)
def test_of_knows_name_and_column_of_a_hint(hint, name, arrow):
    """Each hint has the name that a user would write, and the column that other tools read."""
    found = stored_type(hint)

    assert name in found.name
    assert found.arrow == arrow


@pytest.mark.parametrize(("hint", "name", "arrow"), HINTS, ids=str)
def test_types_survive_json_and_pickle(hint, name, arrow):
    """What is stored gives the same type again, with its class; so does what travels."""
    found = stored_type(hint)
    read = type_from_json(json.loads(json.dumps(found.to_json())), TRUSTED)

    assert read == found
    assert hash(read) == hash(found)
    assert (read.name, read.arrow) == (found.name, arrow)
    assert pickle.loads(pickle.dumps(found)) == found


@pytest.mark.parametrize("hint", [3, "int", None, T, [int], ...], ids=repr)
def test_of_refuses_what_is_no_type(hint):
    """A value in the place of a type is a TypeError that shows it."""
    with pytest.raises(TypeError, match="is no type"):
        stored_type(hint)


@pytest.mark.parametrize(
    ("value", "name"),
    [
        *((True, "bool"), (1, "int"), (1.0, "float"), ([1, 2], "list[int]"), ([1, None], "list[int | None]")),
        *(([1, 2.0], "list"), ([], "list"), ([[1]], "list[list[int]]"), ({}, "dict"), ((1,), "tuple")),
        *((Order(1, Decimal(1)), f"{SAMPLES}:Order"), ([Spot(1.0, 2.0)], f"list[{SAMPLES}:Spot]")),
    ],
    ids=repr,
)
def test_infer_knows_the_type_of_a_value(value, name):
    """The type of a value is as exact as a column needs it."""
    assert infer_stored(value).name == name


def test_infer_looks_into_fields_without_a_concrete_type():
    """What is annotated with Any has the type that the first instance shows."""
    arrow = infer_stored(Point(1, "a")).arrow

    assert arrow == pa.struct([("x", pa.int64()), ("y", pa.string())])
    assert infer_stored(Vague(1, 2.0)).arrow == pa.struct([("known", pa.int64()), ("missing", pa.float64())])


def test_open_types_are_refined_by_a_value():
    """A declared class with a field of Any waits for an instance; another value closes it as it is."""
    declared = stored_type(Point)

    assert declared.is_open
    assert declared.refined([Point(1, 2)]).arrow is not None
    assert not declared.refined(["other"]).closed().is_open
    assert type_from_json(declared.to_json(), TRUSTED).is_open


FITS = [
    (int, [0, 2**63 - 1, -(2**63)], [True, 1.0, "1", 2**63, None]),
    (bool, [True], [1, None]),
    (float, [1.0, float("nan")], [1, None]),
    (str, ["", "ä", "\0"], ["\ud800", b"", Color.RED]),
    (bytes, [b""], ["", bytearray()]),
    (date, [date.min, date.max], [datetime(2024, 1, 1)]),
    (datetime, [datetime.min, datetime.max], [date.min, datetime(2024, 1, 1, tzinfo=UTC), datetime(1, 1, 1, fold=1)]),
    (timedelta, [timedelta(-106751991), timedelta(106751990)], [timedelta.max, timedelta.min, 1]),
    (Decimal, [Decimal("1.10"), Decimal("sNaN"), Decimal("1E+999")], [1, 1.0]),
    (list[int], [[], [1]], [[1.0], (1,), [None], [2**63], None]),
    (list[int | None], [[None, 1]], [["a"]]),
    (int | None, [None, 1], [1.0]),
    (Spot, [Spot(1.0, 2.0)], [Spot(1, 2.0), (1.0, 2.0), Loose(1), Spot(None, 1.0)]),
    (Order, [Order(1, Decimal(1)), Order(1, Decimal(1), [], "a")], [Order(None, Decimal(1)), Order(1, 1)]),
    (dict[str, int], [{}, {"a": 1}], [[], {1: 1}, {"a": None}, {"a": 1.0}, None]),
    (dict[str, int | None], [{"b": None, "a": 1}], [{None: 1}]),
    (tuple[int, ...], [(), (1, 2)], [[1], (1.0,), (None,)]),
    (set[str], [set(), {"a"}], [frozenset({"a"}), {1}]),
    (time, [time(1, 2, 3, 4)], [time(1, tzinfo=UTC), time(1, fold=1)]),
    (Color, [Color.RED], ["red", Color.RED.value]),
    (Crew, [{"captain": "Ahab", "sailors": 3}], [{"sailors": 3, "captain": "Ahab"}, {"captain": "Ahab"}, {}]),
    (int | str, [1, "a"], [1.0, None]),
    (object, [1, None, []], []),
]


@pytest.mark.parametrize(("hint", "good", "bad"), FITS, ids=str)
def test_fits_is_exact(hint, good, bad):
    """A value fits if a column gives it back unchanged: a bool is no int."""
    found = stored_type(hint)

    assert [value for value in good if not found.fits(value)] == []
    assert [value for value in bad if found.fits(value)] == []


@pytest.mark.parametrize(("hint", "good", "bad"), FITS, ids=str)
def test_columns_refuse_what_does_not_fit(hint, good, bad):
    """A column is made of what fits, and comes back; with anything else there is none."""
    found = stored_type(hint)
    if found.arrow is None:
        assert found.to_array(good) is None
        return

    assert repr(found.from_array(found.to_array([*good, None]))) == repr([*good, None])
    for value in bad:
        assert value is None or found.to_array([*good, value]) is None


def test_is_immutable_says_what_may_be_handed_out():
    """Plain values and frozen records of them need no copy; lists and other dataclasses do."""
    assert all(stored_type(hint).is_immutable for hint in (int, str, UUID, Decimal, int | None, Spot, Pair, Labelled))
    assert not any(
        stored_type(hint).is_immutable for hint in (list[int], Loose, Order, Place, Point, dict, tuple, Plain)
    )


def test_types_of_one_class_with_other_fields_differ():
    """Equality looks at the fields; the class itself does not matter."""
    stored = stored_type(Spot).to_json()
    other = {**stored, "fields": [["x", "int"], ["y", "float"]]}

    assert type_from_json(stored, Pickles("never")) == stored_type(Spot)
    assert type_from_json(other, TRUSTED) != stored_type(Spot)


def test_types_of_a_lost_class_have_no_hint():
    """A class that is not found leaves the type as it is, without a hint, until a value is decoded."""
    stored = {"record": "shop:Order", "fields": [["id", "int"]]}
    found = type_from_json(stored, TRUSTED)

    assert (found.name, found.hint) == ("shop:Order", None)
    assert found.arrow == pa.struct([("id", pa.int64())])
    assert not found.fits(Order(1, Decimal(1)))
    assert type_from_json({"list": stored}, TRUSTED).hint is None


def test_records_that_are_more_than_their_fields_have_no_column():
    """A class that says itself how it is copied is left to pickle."""

    class Base:
        def __reduce__(self):
            return Own, (2,)

    @dataclass
    class Own(Base):
        x: int

    @dataclass
    class Mixed(dict):
        x: int

    assert [stored_type(kind).arrow for kind in (Own, Mixed, Rights)] == [None, None, None]


BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        (
            [datetime(2024, 7, 1, tzinfo=BERLIN), datetime(2024, 10, 27, 2, 30, tzinfo=BERLIN, fold=1)],
            [datetime(2024, 3, 31, 2, 30, tzinfo=BERLIN), datetime(2024, 7, 1, tzinfo=BERLIN, fold=1)],
        ),
        ([datetime(2024, 7, 1, tzinfo=UTC)], [datetime(2024, 7, 1, tzinfo=UTC, fold=1), datetime(2024, 7, 1)]),
    ],
    ids=["Berlin", "UTC"],
)
def test_columns_of_one_zone_return_moments_with_their_fold(good, bad):
    """Hours that do not exist, and a fold that means nothing, do not fit: a column would change them."""
    found = infer_stored(good[0])

    assert repr(found.from_array(found.to_array(good))) == repr(good)
    assert [value for value in bad if found.fits(value) or found.to_array([value]) is not None] == []
