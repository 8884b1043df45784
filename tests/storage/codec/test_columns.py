"""Keys and values as columns: a typed one, and an escape for what does not fit."""

from __future__ import annotations

from collections import namedtuple
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dstream.errors import NullElementError, UnstableKeyError
from dstream.spi.store import Options
from dstream.storage.codec.collection import Codec
from dstream.storage.codec.pickles import Pickles
from tests.storage.codec.samples import NAN, Color, Loose, Mood, Order, Place, Plain, Point, Spot, shown
from tests.storage.codec.samples import keys as every_key

TRUSTED = Pickles("trusted")
VALUES = [
    *(True, 1, 2**63, 1.5, -0.0, NAN, "a", "\ud800", b"x", date(1, 1, 1), date.max, datetime.min, datetime.max),
    *(datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 1, 1, fold=1), timedelta(-1, 1, 1), timedelta.max),
    *(Decimal("1.10"), Decimal("-0E+3"), Decimal("sNaN"), UUID(int=7), [], [1], [1, None], [[]], [[1], []], [1, "a"]),
    *(
        [Decimal(1)],
        [Spot(1.0, 2.0)],
        Spot(1.0, 2.0),
        Spot(1, 2),
        Order(1, Decimal("1.0"), ["x"]),
        Loose(1),
        Loose("a"),
    ),
    *(Order(1, Decimal(1), [], "note"), Point(1, 2.0), Point(1, "a"), Point(None, []), {"a": 1}, (1, 2), Color.RED),
    *(Plain(1), [Plain(2)], {1, 2}, [Order(1, Decimal(2))]),
]


def codec(kind="map", key=None, value=None, **options):
    """Return a codec of declared types."""
    return Codec.of(kind, "m", Options(key_type=key, value_type=value, **options), TRUSTED)


@pytest.mark.parametrize("first", [None, *VALUES], ids=repr)
@pytest.mark.parametrize("kind", ["map", "list"])
def test_value_columns_keep_every_value(kind, first):
    """Whatever type the first value decided, all values come back exactly, and None stays None."""
    made = codec(kind).decided_by(["k"], [first])
    values = [first, *VALUES, None, first]
    column, escape = made.value_columns(values)

    assert [column.type, escape.type] == [field.type for field in made.value_schema()]
    assert repr(made.values_from(column, escape)) == repr(values)
    assert repr(made.values_from(pa.chunked_array([column]), pa.chunked_array([escape]))) == repr(values)
    assert repr(made.values_from(column[3:9], escape[3:9])) == repr(values[3:9])
    assert repr(list(map(made.decode_value, map(made.encode_value, values)))) == repr(values)


@pytest.mark.parametrize("first", VALUES, ids=repr)
def test_value_columns_of_one_type_use_no_escape(first):
    """What fits stands in the typed column alone."""
    made = codec().decided_by(["k"], [first])
    column, escape = made.value_columns([first, None])

    if made.value.fits(first) and made.value.arrow:
        assert (column.null_count, escape.null_count) == (1, 2)
    else:
        assert (column.null_count, escape.null_count) == (2, 1)


def test_value_columns_none_is_absent_in_a_map_and_an_item_in_a_list():
    """In a map None is null in both columns; in a list it stands in the escape."""
    assert [array.null_count for array in codec("map", value=int).value_columns([1, None])] == [1, 2]
    assert [array.null_count for array in codec("list", value=int).value_columns([1, None])] == [1, 1]
    assert [array.null_count for array in codec("list", value=int | None).value_columns([None])] == [1, 0]


def test_value_columns_without_values():
    """No rows are fine."""
    for made in (codec(), codec(value=int), codec(value=Order), codec(value=list[int])):
        assert made.values_from(*made.value_columns([])) == []


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        ("a", pa.string_view()),
        ("a", pa.large_string()),
        ("a", pa.dictionary(pa.int32(), pa.string())),
        (b"a", pa.binary_view()),
        (UUID(int=7), pa.binary()),
        (timedelta(1, 2, 3), pa.int64()),
        (datetime(2024, 1, 1, 1, 2, 3, 4), pa.timestamp("us", "UTC")),
        (datetime(2024, 1, 1, 1, 2, 3, 4), pa.timestamp("ns")),
        ([1, 2], pa.large_list(pa.int64())),
        (1, pa.int32()),
    ],
    ids=str,
)
def test_values_from_takes_columns_of_other_tools(value, stored):
    """What another tool has rewritten in a type of its own is read all the same."""
    made = codec().decided_by(["k"], [value])
    column, escape = made.value_columns([value, None])

    assert made.values_from(column.cast(stored), escape) == [value, None]


@pytest.mark.parametrize(
    ("key_type", "keys", "stored"),
    [
        (int, [1.0, True, 2, Decimal(3), -0.0], [1, 1, 2, 3, 0]),
        (float, [1, True, 0.5, Fraction(1, 4), -0.0, 0], [1.0, 1.0, 0.5, 0.25, 0.0, 0.0]),
        (float, [-0.0, 2.0], [0.0, 2.0]),
        (bool, [1, 0.0, True], [True, False, True]),
        (str, [Mood.GLAD, "a"], ["glad", "a"]),
        (Decimal, [1, 0.25, Decimal("1.50"), 100], ["1", "0.25", "1.5", "100"]),
        (datetime, [datetime(2024, 1, 1, fold=1)], [datetime(2024, 1, 1)]),
        (Spot, [Spot(1, True), Spot(0.5, -0.0)], [{"x": 1.0, "y": 1.0}, {"x": 0.5, "y": 0.0}]),
    ],
    ids=str,
)
def test_key_columns_hold_one_form_of_equal_keys(key_type, keys, stored):
    """A key that equals one of the key type is that one, so that a search in the column finds it."""
    column, escape = codec(key=key_type).key_columns(keys)

    assert repr(column.to_pylist()) == repr(stored)
    assert escape.null_count == len(keys)


def test_key_columns_of_floats_have_one_nan():
    """All NaN are one key: one bit pattern, also where all keys are floats."""
    column, _ = codec(key=float).key_columns([NAN, -NAN, float("nan")])

    assert len({bytes(pa.array([found]).buffers()[1]) for found in column}) == 1


@pytest.mark.parametrize("key_type", [None, int, float, bool, str, Decimal, date, datetime, Place, Spot, tuple, object])
@settings(max_examples=150, deadline=None)
@given(found=st.lists(every_key, max_size=4))
def test_key_columns_and_key_bytes_agree(key_type, found):
    """A key comes back in one form, from columns as from bytes, whatever the key type is; nothing is lost."""
    made = codec(key=key_type, value=int)
    made = made.decided_by(found, [1]) if found else made
    from_columns = made.keys_from(*made.key_columns(found))
    from_bytes = [made.decode_key(made.encode_key(key)) for key in found]

    assert list(map(shown, from_columns)) == list(map(shown, from_bytes))
    assert list(map(made.encode_key, from_bytes)) == list(map(made.encode_key, found))


Pair = namedtuple("Pair", "left right")


def test_decode_key_gives_the_form_of_the_key_type():
    """A map of named tuples gives named tuples, one of enum members gives members."""
    for key_type, key, found in [
        (Mood, "glad", Mood.GLAD),
        (float, 2, 2.0),
        (bool, 1, True),
        (int, 2.5, 2.5),
        (Spot, Spot(1, 2), Spot(1.0, 2.0)),
    ]:
        made = codec(key=key_type)
        assert repr(made.decode_key(made.encode_key(key))) == repr(found)

    made = codec().decided_by([Pair(1, "a")], [1])
    assert repr(made.decode_key(made.encode_key((True, "a")))) == "Pair(left=1, right='a')"


def test_key_columns_refuse_what_is_no_key():
    """None and types without a stable encoding are refused by the name of the collection."""
    for made in (codec(), codec(key=int), codec(key=str)):
        with pytest.raises(NullElementError, match="map 'm'"):
            made.key_columns([1, None])
        with pytest.raises(UnstableKeyError, match=r"map 'm'.*list"):
            made.key_columns([[1]])
        with pytest.raises(NullElementError, match="map 'm'"):
            made.encode_key(None)
