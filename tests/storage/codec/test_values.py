"""Values as bytes: exactly the same types come back, at any depth."""

from __future__ import annotations

import collections
import math
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, time, timedelta, timezone
from decimal import Decimal
from zoneinfo import ZoneInfo

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dstream.storage.codec.pickles import Pickles
from dstream.storage.codec.values import ValueEncoding
from tests.storage.codec.samples import ZONE, Color, Order, Place, Plain, Point, Rights, Spot

ALLOWED = (Order, Place, Point, Spot, Color)
TRUSTED = ValueEncoding(Pickles("trusted"))
NEVER = ValueEncoding(Pickles("never", ALLOWED))

_hashable = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False),
    st.text(st.characters(exclude_categories=[]), max_size=4),
    st.binary(max_size=4),
    st.dates(),
    st.datetimes(timezones=st.sampled_from([None, UTC, ZONE, ZoneInfo("Europe/Berlin")]), allow_imaginary=False),
    st.times(timezones=st.sampled_from([None, UTC])),
    st.timedeltas(),
    st.decimals(allow_nan=False),
    st.uuids(),
    st.complex_numbers(allow_nan=False),
    st.sampled_from([Color.RED, Spot(1.0, 2.0)]),
)


def _nested(parts):
    return st.one_of(
        st.lists(parts, max_size=3),
        st.lists(parts, max_size=3).map(tuple),
        st.sets(_hashable, max_size=3),
        st.frozensets(_hashable, max_size=3),
        st.dictionaries(_hashable | st.tuples(_hashable, _hashable), parts, max_size=3),
        st.builds(Point, parts, parts),
        st.builds(Place, parts, parts),
        st.builds(Order, st.integers(), st.decimals(allow_nan=False), st.lists(st.text(max_size=2), max_size=2)),
    )


def shape(value):
    """Return the types of a value and of all its parts; sets and keys without their order."""
    if isinstance(value, dict):
        return type(value), [(shape(key), shape(part)) for key, part in value.items()]
    if isinstance(value, set | frozenset):
        return type(value), sorted(map(repr, map(shape, value)))
    if isinstance(value, list | tuple):
        return type(value), [shape(part) for part in value]
    fields = list(map(shape, vars(value).values())) if isinstance(value, Place | Order) else []
    return type(value), fields, repr(value) if not fields else ""


@settings(max_examples=1000, deadline=None)
@given(st.recursive(_hashable, _nested, max_leaves=8))
def test_values_come_back_with_all_types_and_without_a_pickle(value):
    """Nested values of plain types and allowed classes are the same after a round trip where no pickle is allowed."""
    data = NEVER.encode(value)
    found = NEVER.decode(data)

    assert found == value
    assert shape(found) == shape(value)
    assert data


@pytest.mark.parametrize(
    "value",
    [
        *(math.nan, -0.0, math.inf, 2**63, 2**64, -(2**63) - 1, Decimal("NaN"), Decimal("sNaN12"), Decimal("1.10")),
        *("\ud800", {"\ud800": "\udfff"}, {1: 1, "1": 2, (1,): 3, None: 4, b"1": 5}, [], (), set(), frozenset(), {}),
        *(datetime.min, datetime.max, datetime(2024, 11, 3, 1, 30, tzinfo=ZoneInfo("America/New_York"), fold=1)),
        *(time.min, time(1, 2, 3, 4, tzinfo=ZONE, fold=1), timedelta.min, timedelta.max, datetime(2024, 1, 1, fold=1)),
        *(datetime(2024, 1, 1, tzinfo=timezone(timedelta(seconds=-1))), [True, 1, 1.0], (1, [(2,), {3}])),
    ],
    ids=repr,
)
def test_values_at_the_edges_come_back_exactly(value):
    """Extremes of each type, and what compares equal though it differs, keep their exact form."""
    found = NEVER.decode(NEVER.encode(value))

    assert shape(found) == shape(value)
    assert getattr(found, "fold", 0) == getattr(value, "fold", 0)


@pytest.mark.parametrize(
    "value",
    [
        *(
            bytearray(b"x"),
            [bytearray(b"x")],
            {"a": (bytearray(b"x"),)},
            msgpack.ExtType(1, b"x"),
            [msgpack.Timestamp(1)],
        ),
        *(collections.Counter("aab"), collections.deque([1]), range(3), [Plain(1)], int, slice(1)),
        *(Rights.READ | Rights.WRITE, datetime(2024, 1, 1, tzinfo=timezone(timedelta(hours=1), "own"))),
        {"a": {"b": [{"c": bytearray(b"")}]}},
    ],
    ids=repr,
)
def test_values_of_other_types_are_pickled(value):
    """What msgpack does not know, or would change, is pickled as a whole."""
    data = TRUSTED.encode(value)

    assert data[:1] == b"\xc1"
    assert shape(TRUSTED.decode(data)) == shape(value)
    with pytest.raises(TypeError, match=r"has to be pickled.*never"):
        NEVER.encode(value)
    with pytest.raises(TypeError, match=r"is pickled.*never"):
        NEVER.decode(data)


def test_values_that_contain_themselves_are_kept():
    """A cycle is left to pickle."""
    cycle: list = [1]
    cycle.append(cycle)

    found = TRUSTED.decode(TRUSTED.encode(cycle))

    assert found[1] is found


@pytest.mark.parametrize("wrap", [lambda value: [value], lambda value: (value,), lambda value: {1: value}])
def test_values_are_kept_to_a_depth_and_refused_beyond(wrap):
    """What is nested a hundred times comes back; what is nested without end is a TypeError, not a crash."""
    deep: object = 1
    for _ in range(100):
        deep = wrap(deep)
    assert TRUSTED.decode(TRUSTED.encode(deep)) == deep

    for _ in range(100_000):  # Python 3.13 pickles some 10,000.
        deep = wrap(deep)
    with pytest.raises(TypeError, match="recursion"):
        TRUSTED.encode(deep)


@pytest.mark.parametrize("levels", [63, 64, 65, 200])
@pytest.mark.parametrize(
    "wrap", [lambda value: (value,), lambda value: frozenset({value}), lambda value: Spot(value, 1)]
)
def test_values_with_many_levels_of_extensions_come_back(wrap, levels):
    """In a thread too, whose stack has 8 MB: msgpack takes 40 kB of it for each extension."""
    deep: object = 1
    for _ in range(levels):
        deep = wrap(deep)

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(lambda: TRUSTED.decode(TRUSTED.encode(deep)) == deep).result()


def test_bytes_with_too_many_levels_of_extensions_are_refused():
    """They would end the process; the next value is read as before."""
    data = TRUSTED.encode((1,))
    for _ in range(400):
        data = msgpack.packb(msgpack.ExtType(1, b"\x91" + data))  # A tuple of it.

    with pytest.raises(ValueError, match="nested in more than 64"):
        TRUSTED.decode(data)
    assert TRUSTED.decode(TRUSTED.encode((1,))) == (1,)


def test_values_are_fresh_at_each_decode():
    """Changing what was handed out changes nothing."""
    data = TRUSTED.encode([[1]])
    TRUSTED.decode(data)[0].append(2)

    assert TRUSTED.decode(data) == [[1]]


def test_values_with_more_than_their_fields_are_pickled():
    """An attribute beside the fields is not lost."""
    order = Order(1, Decimal(1))
    order.extra = "more"  # type: ignore[attr-defined]

    assert vars(TRUSTED.decode(TRUSTED.encode(order))) == vars(order)
    with pytest.raises(TypeError, match="Order has to be pickled"):
        NEVER.encode(order)


def test_values_of_dataclasses_come_back_without_their_init():
    """Neither `__init__` nor `__post_init__` runs again."""
    order = Order.__new__(Order)
    vars(order).update(id="no int", total=None, lines=(), note=1)

    assert vars(NEVER.decode(NEVER.encode(order))) == vars(order)


def test_values_of_a_changed_class_are_refused():
    """A class with other fields than those stored is named, not filled wrongly."""
    data = NEVER.encode(Place("a")).replace(b"town", b"city")

    with pytest.raises(TypeError, match=r"has the fields \(town, street\), but \(city, street\) are stored; keep city"):
        NEVER.decode(data)


def test_values_of_a_lost_enum_member_are_refused():
    """A member that is gone is named."""
    data = NEVER.encode([Color.RED]).replace(b"RED", b"REX")

    with pytest.raises(TypeError, match=r"Color has no member 'REX'"):
        NEVER.decode(data)
