"""The codec of a collection: how it is decided, stored, and what it refuses."""

from __future__ import annotations

import json
import pickle
from dataclasses import dataclass, make_dataclass
from decimal import Decimal

import cloudpickle
import numpy
import pyarrow as pa
import pytest

from dstream.errors import NullElementError, UnstableKeyError, UnsupportedError
from dstream.spi.store import Options
from dstream.storage.codec.collection import Codec
from dstream.storage.codec.description import described_codec
from dstream.storage.codec.pickles import Pickles
from tests.keys.specimens import Day, Id, Moment, Money, Mood, Number, Octets, Real, Rights, Size, Text
from tests.storage.codec.samples import Closing, Color, Loose, Order, Plain, Point, Spot

TRUSTED, RESTRICTED, NEVER = Pickles("trusted"), Pickles("restricted"), Pickles("never")


def codec(kind="map", key=None, value=None, pickles=TRUSTED, **options):
    """Return a codec of declared types."""
    return Codec.of(kind, "m", Options(key_type=key, value_type=value, **options), pickles)


def stored(made, pickles=TRUSTED, **options):
    """Return the codec that another process finds."""
    return described_codec(json.loads(json.dumps(made.to_json())), made.kind, "m", Options(**options), pickles)


def test_of_leaves_open_what_is_not_declared():
    """Types that nobody has named are decided by the first key and value."""
    made = codec(value=float)

    assert not made.is_decided
    decided = made.decided_by(["a", 1], [1, 2])
    assert decided.is_decided
    assert (decided.key.name, decided.value.name) == ("str", "float")
    assert codec("list").decided_by([], [1]).is_decided
    assert made.decided_by([], []) is made
    assert decided.decided_by([1], ["a"]) is decided


@pytest.mark.parametrize(
    ("key", "name"),
    [
        *((Text("a"), "str"), (numpy.str_("a"), "str"), (Number(1), "int"), (numpy.int8(1), "int"), (True, "bool")),
        *((numpy.bool_(True), "bool"), (Real(0.5), "float"), (numpy.float32(0.5), "float"), (Octets(b"a"), "bytes")),
        *((Day(2024, 1, 1), "date"), (Moment(2024, 1, 1), "datetime"), (Money(1), "Decimal"), (Id(int=1), "UUID")),
    ],
    ids=lambda found: type(found).__name__,
)
def test_decided_by_takes_the_plain_type_of_a_key(key, name):
    """A key of a subclass or of numpy comes back as the plain value that it equals, and has its column."""
    decided = codec().decided_by([key], [1])
    column, escape = decided.key_columns([key])

    assert decided.key.name == name
    assert (column.null_count, escape.null_count) == (0, 1)
    assert type(decided.keys_from(column, escape)[0]).__name__ == name


def test_decided_by_keeps_the_class_of_an_enum():
    """Members of an enum come back as members, also where they equal a text."""
    decided = codec().decided_by([Mood.GLAD], [1])

    assert decided.keys_from(*decided.key_columns([Mood.GLAD, "n", "other"])) == [Mood.GLAD, Mood.GLAD, "other"]


@pytest.mark.parametrize(("member", "value"), [(Color.RED, 1), (Rights.READ, 1), (Size.ONE, "ONE")], ids=str)
def test_decided_by_an_enum_leaves_other_keys_what_they_are(member, value):
    """The value of a member that it does not equal is another key, and no member."""
    decided = codec().decided_by([member], [1])
    found = decided.keys_from(*decided.key_columns([member, value]))

    assert [(type(key), key) for key in found] == [(type(member), member), (type(value), value)]


def test_decided_by_passes_over_what_says_nothing():
    """None and an empty list say less than what comes after them."""
    assert codec("list").decided_by([], [None, [], [1]]).value.name == "list[int]"
    assert codec("list").decided_by([], [[]]).value.name == "list"
    assert not codec("list").decided_by([], [None]).is_decided


def test_decided_by_looks_into_open_fields_unless_strict():
    """The first instance decides fields of Any; a strict map keeps what was declared."""
    made = codec(key=str, value=Point)
    strict = codec(key=str, value=Point, strict=True)

    assert not made.is_decided
    assert made.decided_by(["k"], [Point(1, 2)]).value.arrow is not None
    assert stored(made).decided_by(["k"], [Point(1, 2)]).value.arrow is not None
    assert strict.is_decided
    strict.checked("k", Point([], {}))


@pytest.mark.parametrize("hint", [list, list[int], dict, set, Order, Loose], ids=str)
def test_of_refuses_key_types_without_a_hash(hint):
    """A type that can be no key is refused when it is named."""
    with pytest.raises(UnstableKeyError, match="cannot be a key_type"):
        codec(key=hint)


def test_of_refuses_options_that_make_no_sense():
    """A list has no keys, and a value is no type."""
    with pytest.raises(TypeError, match="list 'm' has no keys"):
        codec("list", key=str)
    with pytest.raises(TypeError, match="3 is no type"):
        codec(value=3)


def test_checked_refuses_none_in_maps():
    """A map holds no None; a list does."""
    with pytest.raises(NullElementError, match="map 'm': None cannot be a key"):
        codec().checked(None, 1)
    with pytest.raises(NullElementError, match="cache 'm': None cannot be the value of 'k'"):
        codec("cache").checked("k", None)
    codec("list").checked(None, None)


def test_checked_refuses_other_types_if_strict():
    """Key, value, type and collection are named; without `strict` everything is taken."""
    strict = codec(key=str, value=int, strict=True)
    strict.checked("k", 1)
    codec(key=str, value=int).checked(1, "a")

    with pytest.raises(TypeError, match=r"map 'm' is strict: its keys are str, and 1 of type int"):
        strict.checked(1, 1)
    with pytest.raises(TypeError, match=r"map 'm'.* values are int, and the value of 'k', True of type bool"):
        strict.checked("k", True)
    with pytest.raises(TypeError, match=r"list 'm'.* values are int, and the value, None of type NoneType"):
        codec("list", value=int, strict=True).checked(None, None)


def test_json_gives_the_same_codec():
    """What is stored is found again, with and without options."""
    made = codec(key=str, value=Order, strict=True)

    assert stored(made) == made
    assert stored(made, key_type=str, value_type=Order, strict=True) == made
    assert not stored(codec()).is_decided
    assert stored(codec(), value_type=int).value.name == "int"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"key_type": int}, r"map 'm' exists with key_type=str; it was asked for with key_type=int"),
        ({"value_type": list[int]}, r"value_type=float; .*value_type=list\[int\]"),
        ({"strict": True}, "strict=False; .*strict=True"),
    ],
    ids=str,
)
def test_from_json_refuses_contradictions(options, message):
    """Both sides are named."""
    with pytest.raises(ValueError, match=message):
        stored(codec(key=str, value=float), **options)


def test_codec_travels_with_its_classes():
    """Tasks get the codec with classes that only the caller's process knows."""
    here = make_dataclass("Here", [("x", int)], namespace={"__module__": "__main__"})
    made = codec().decided_by(["k"], [here(1)])
    copy = pickle.loads(cloudpickle.dumps(made))

    assert pickle.loads(pickle.dumps(codec(value=Order))) == codec(value=Order)
    assert copy.decode_value(made.encode_value(here(5))).x == 5
    assert made.encode_value(here(5))[:1] != b"\xc1"


@dataclass
class Gone:
    x: int


@pytest.mark.parametrize("value", [Gone(1), [Gone(1)]], ids=repr)
def test_lost_classes_are_named_when_a_value_is_decoded(value, monkeypatch):
    """Opening works without the class; a value says which one is missing, and what to do."""
    made = codec(key=str).decided_by(["k"], [value])
    columns, data = made.value_columns([value]), made.encode_value(value)
    monkeypatch.delitem(globals(), "Gone")
    found = stored(made)

    for read in (lambda: found.values_from(*columns), lambda: found.decode_value(data)):
        with pytest.raises(TypeError, match=r"map 'm': .*test_codec:Gone.*value_type="):
            read()


def test_changed_classes_are_named_when_a_value_is_decoded(monkeypatch):
    """Other fields than those stored are no silent mixture."""
    made = codec(key=str).decided_by(["k"], [Gone(1)])
    columns, data = made.value_columns([Gone(1)]), made.encode_value(Gone(1))
    changed = make_dataclass("Gone", [("y", int)], namespace={"__module__": __name__})
    monkeypatch.setitem(globals(), "Gone", changed)
    found = stored(made)

    for read in (lambda: found.values_from(*columns), lambda: found.decode_value(data)):
        with pytest.raises(TypeError, match=r"map 'm': .*Gone has the fields \(y\), but \(x\) are stored"):
            read()


@pytest.mark.parametrize("pickles", [RESTRICTED, NEVER], ids=["restricted", "never"])
def test_restricted_codecs_take_classes_that_are_their_fields(pickles):
    """A dataclass of plain fields and an enum need no word of the user, neither written nor read."""
    orders = [Order(1, Decimal(2))]
    made = codec(pickles=pickles).decided_by(["k"], [orders])
    found = stored(made, pickles)

    assert found.decode_value(made.encode_value(orders)) == orders
    assert found.values_from(*made.value_columns([orders])) == [orders]
    assert found.decode_value(made.encode_value([Color.RED])) == [Color.RED]


@pytest.mark.parametrize("pickles", [RESTRICTED, NEVER], ids=["restricted", "never"])
def test_restricted_codecs_need_other_classes_by_name(pickles):
    """A class that runs code of its own is refused when it is written, and when it is read; naming it is enough."""
    named = codec(key=str, value=list[Closing], pickles=pickles)
    values = [Closing("a")]
    data, columns = named.encode_value(values), named.value_columns([values])

    assert named.decode_value(data) == values
    for refused in (
        lambda: codec(pickles=pickles).decided_by(["k"], values),
        lambda: codec(value=int, pickles=pickles).encode_value(values),
        lambda: stored(named, pickles).decode_value(data),
        lambda: stored(named, pickles).values_from(*columns),
    ):
        with pytest.raises(TypeError, match=r"map 'm': .*value_type="):
            refused()
    assert stored(named, pickles, value_type=list[Closing]).decode_value(data) == values


@pytest.mark.parametrize("value", [1, Decimal(1), [Decimal(1)], (1,), {}], ids=repr)
def test_restricted_codecs_decide_plain_types(value):
    """Plain types need no name."""
    made = codec(pickles=NEVER).decided_by(["k"], [value])

    assert made.decode_value(made.encode_value(value)) == value


def test_never_refuses_what_needs_a_pickle():
    """The collection and the type are named."""
    with pytest.raises(TypeError, match=r"map 'm': .*Plain has to be pickled.*never"):
        codec(value=int, pickles=NEVER).value_columns([1, Plain(1)])


def test_schema_is_what_users_see():
    """A map has keys and values, a list values alone."""
    assert codec(key=str, value=Spot).schema() == pa.schema(
        [("key", pa.string()), ("value", pa.struct([("x", pa.float64()), ("y", pa.float64())]))]
    )
    assert codec("list", value=int).schema() == pa.schema([("value", pa.int64())])


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (codec(value=int), "map 'm'.*what a key is"),
        (codec(key=str), "map 'm'.*what a value is"),
        (codec(key=str, value=dict), "its values are dict"),
        (codec(key=tuple, value=int), "its keys are tuple"),
    ],
    ids=["key", "value", "dict", "tuple"],
)
def test_schema_is_refused_without_columns(made, message):
    """What has no column, or is not decided yet, is named."""
    for action in (made.schema, lambda: made.batch([], [])):
        with pytest.raises(UnsupportedError, match=message):
            action()


def test_batch_gives_entries_in_columns():
    """Keys stand in the form of the key type."""
    batch = codec(key=float, value=int).batch([1, True, 0.5], [1, 2, 3])

    assert batch.to_pydict() == {"key": [1.0, 1.0, 0.5], "value": [1, 2, 3]}
    assert codec("list", value=int).batch([], [1, None]).to_pydict() == {"value": [1, None]}


def test_batch_names_the_entry_that_does_not_fit():
    """Key, value and collection are named."""
    made = codec(key=str, value=int)

    with pytest.raises(TypeError, match=r"map 'm': the value of 'b' is 1.5 of type float, no int"):
        made.batch(["a", "b"], [1, 1.5])
    with pytest.raises(TypeError, match=r"map 'm': the key 7 of type int is no str"):
        made.batch(["a", 7], [1, 2])
    with pytest.raises(TypeError, match=r"list 'm': an item is 'x' of type str, no int"):
        codec("list", value=int).batch([], [1, "x"])
