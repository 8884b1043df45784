"""Values of a class that has other fields by now: matched by name, filled in by defaults, or refused."""

from __future__ import annotations

import dataclasses
from collections import namedtuple
from dataclasses import dataclass, field, make_dataclass

import pytest

import dstream as ds
from dstream.schema.classes import ChangedClassError
from dstream.spi.store import Options
from dstream.storage.codec.collection import Codec
from dstream.storage.codec.description import described_codec
from dstream.storage.codec.pickles import Pickles
from dstream.storage.codec.values import ValueEncoding

TRUSTED = Pickles("trusted", ())


@dataclass
class Person:
    first: str
    last: str


Pair = namedtuple("Pair", ["first", "last"])
ADA = {Person: Person("Ada", "Lovelace"), Pair: Pair("Ada", "Lovelace")}


def stored(value):
    """Return the types, columns and bytes of a value."""
    codec = Codec.of("map", "m", Options(key_type=str), TRUSTED).decided_by(["k"], [value])
    return codec.to_json(), codec.value_columns([value]), codec.encode_value(value)


def changed_class(kind, fields, defaults=()):
    """Return a class of another program, under the same name."""
    if kind is Pair:
        made = namedtuple("Pair", fields, defaults=defaults, module=__name__)
    else:
        plain = len(fields) - len(defaults)
        each = [*fields[:plain], *((name, object, value) for name, value in zip(fields[plain:], defaults, strict=True))]
        made = make_dataclass("Person", each, namespace={"__module__": __name__})
    return made


def read(found, columns, data):
    """Return a value from its column and from its bytes, which must agree."""
    codec = described_codec(found, "map", "m", Options(), TRUSTED)
    (of_column,), of_bytes = codec.values_from(*columns), codec.decode_value(data)
    assert of_column == of_bytes
    return of_column


@pytest.mark.parametrize("kind", ADA)
@pytest.mark.parametrize(
    ("fields", "defaults", "expected"),
    [
        (["last", "first"], (), ("Lovelace", "Ada")),
        (["first", "last", "mail"], ("",), ("Ada", "Lovelace", "")),
        (["mail", "last", "first"], ("none", "", ""), ("none", "Lovelace", "Ada")),
    ],
)
def test_fields_are_matched_by_name(kind, fields, defaults, expected, monkeypatch):
    """Whatever their order, and with the defaults of new ones."""
    written = stored(ADA[kind])
    changed = changed_class(kind, fields, defaults)
    monkeypatch.setitem(globals(), kind.__name__, changed)

    assert read(*written) == changed(*expected)


@pytest.mark.parametrize("kind", ADA)
@pytest.mark.parametrize(
    ("fields", "advice"),
    [(["first"], "keep last in the class"), (["first", "last", "mail"], "give mail a default in the class")],
)
def test_a_field_is_neither_dropped_nor_made_up(kind, fields, advice, monkeypatch):
    """The error names both lists, and says what to do."""
    types, columns, data = stored(ADA[kind])
    monkeypatch.setitem(globals(), kind.__name__, changed_class(kind, fields))
    codec = described_codec(types, "map", "m", Options(), TRUSTED)

    for reading in (lambda: codec.values_from(*columns), lambda: codec.decode_value(data)):
        with pytest.raises(TypeError, match=rf"\(first, last\) are stored; {advice}"):
            reading()


@pytest.mark.parametrize("kind", ADA)
@pytest.mark.parametrize("fields", [["last", "first"], ["first", "last", "mail"], ["first"]])
def test_a_value_of_a_changed_class_goes_beside_the_column(kind, fields, monkeypatch):
    """By position its fields would take the names of others; each program reads what its class can hold."""
    types, _, _ = stored(ADA[kind])
    changed = changed_class(kind, fields)
    monkeypatch.setitem(globals(), kind.__name__, changed)
    value = changed(*fields)
    codec = described_codec(types, "map", "m", Options(), TRUSTED)
    columns, data = codec.value_columns([value, None]), codec.encode_value(value)

    assert (columns[0].null_count, columns[1].null_count) == (2, 1)
    assert codec.values_from(*columns) == [value, None]
    monkeypatch.setitem(globals(), kind.__name__, kind)
    if set(fields) == {"first", "last"}:
        assert ValueEncoding(TRUSTED).decode(data) == kind("first", "last")
    else:
        with pytest.raises(ChangedClassError):
            ValueEncoding(TRUSTED).decode(data)


def test_a_strict_collection_names_the_fields_that_it_takes(monkeypatch):
    """A class of the same name is no reason that a user could see."""
    codec = Codec.of("map", "m", Options(key_type=str, value_type=Person, strict=True), TRUSTED)
    changed = changed_class(Person, ["last", "first"])
    monkeypatch.setitem(globals(), "Person", changed)
    found = described_codec(codec.to_json(), "map", "m", Options(), TRUSTED)

    with pytest.raises(TypeError, match=r"Person with the fields \(first, last\), and the value"):
        found.checked("k", changed("a", "b"))


def test_a_default_runs_no_code_of_the_class(monkeypatch):
    """Builtin factories make a new object for each value; others would be called by whoever wrote the storage."""
    written = stored(ADA[Person])
    for factory, expected in ((list, []), (lambda: [1], None), (print, None)):
        fields = [("notes", list, field(default_factory=factory)), ("first", str, ""), ("last", str, "")]
        monkeypatch.setitem(globals(), "Person", make_dataclass("Person", fields, namespace={"__module__": __name__}))
        if expected is None:
            with pytest.raises(TypeError, match="give notes a default"):
                read(*written)
        else:
            assert read(*written).notes == expected
            assert read(*written).notes is not read(*written).notes


def test_streams_over_a_changed_class(tmp_path, monkeypatch):
    """Columns of a map give what its items do."""
    with ds.connect(storage=str(tmp_path)) as ctx:
        ctx.get_map("m").update({n: Person(str(n), "x") for n in range(3000)})
    changed = changed_class(Person, ["mail", "last", "first"], ("none", "", ""))
    monkeypatch.setitem(globals(), "Person", changed)
    with ds.connect(storage=str(tmp_path)) as ctx:
        people = ctx.get_map("m")
        people[3000] = changed("m", "y", "3000")
        found = people.stream().map(lambda entry: (entry.value.mail, entry.value.first)).to_set()
        assert found == {("none", str(n)) for n in range(3000)} | {("m", "3000")}
        assert dataclasses.astuple(people[7]) == ("none", "x", "7")


@dataclass(frozen=True)
class Key:
    a: int


def reopened(tmp_path, monkeypatch, *, compared):
    """Return a map of keys whose class has another field by now, and the class."""
    with ds.connect(storage=str(tmp_path), engine="local") as ctx:
        ctx.get_map("m").update({Key(n): n for n in range(3)})
    fields = [("a", int), ("b", int, field(default=0, compare=compared))]
    changed = make_dataclass("Key", fields, frozen=True, namespace={"__module__": __name__})
    monkeypatch.setitem(globals(), "Key", changed)
    return ds.connect(storage=str(tmp_path), engine="local").get_map("m"), changed


def test_keys_of_a_class_with_other_compared_fields_are_refused(tmp_path, monkeypatch):
    """A key that is filled in would not be found by what equals it."""
    people, changed = reopened(tmp_path, monkeypatch, compared=True)

    for each in (people.copy, lambda: people.get(changed(1)), lambda: people.put(changed(1), 7)):
        with pytest.raises(TypeError, match="has other compared fields than"):
            each()


def test_keys_may_have_a_new_field_that_is_not_compared(tmp_path, monkeypatch):
    """They equal those that are stored."""
    people, changed = reopened(tmp_path, monkeypatch, compared=False)

    assert people.copy() == {changed(n): n for n in range(3)}
    assert people.get(changed(1, 5)) == 1


def test_a_class_within_a_class_may_change(monkeypatch):
    """The outer class has the same fields as before, and its column holds the inner ones by name."""
    outer = make_dataclass("Outer", [("person", Person)], namespace={"__module__": __name__})
    monkeypatch.setitem(globals(), "Outer", outer)
    types, columns, data = stored(outer(ADA[Person]))
    changed = changed_class(Person, ["last", "first"])
    monkeypatch.setitem(globals(), "Person", changed)
    monkeypatch.setitem(outer.__annotations__, "person", changed)

    assert read(types, columns, data) == outer(changed("Lovelace", "Ada"))
    codec = described_codec(types, "map", "m", Options(), TRUSTED)
    assert codec.values_from(*codec.value_columns([outer(changed("a", "b"))])) == [outer(changed("a", "b"))]


def test_what_only_the_class_can_make_is_not_made_up(monkeypatch):
    """A field that `__post_init__` sets, or a descriptor gives, has no default that loading could know."""
    written = stored(ADA[Person])
    space = {"__module__": __name__, "__post_init__": lambda self: setattr(self, "full", self.first + self.last)}
    fields = [("first", str), ("last", str), ("full", str, field(init=False, default=""))]
    monkeypatch.setitem(globals(), "Person", make_dataclass("Person", fields, namespace=space))

    with pytest.raises(TypeError, match="give full a default"):
        read(*written)
