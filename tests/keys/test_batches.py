"""Many keys at once: the same answers as one by one."""

from __future__ import annotations

import enum
import pickle
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dstream.errors import UnstableKeyError
from dstream.keys import are_canonical, canonical, canonical_all, stable_hash, stable_hashes
from dstream.keys.hashing import hash_without_seed
from tests.keys.specimens import KEYS, NUMBERS, Pair, Place, Size, Spot, Text, Town

NAN = float("nan")


@dataclass(frozen=True)
class Empty:
    pass


@dataclass(frozen=True)
class Partly:
    """Compares by its number, and hashes by nothing but its kind."""

    number: Any
    kind: Any = field(default="", hash=True, compare=True)
    note: Any = field(default=None, compare=False)


@dataclass(frozen=True, eq=False)
class Wider(Place):
    """Inherits equality and hash of two fields, and has a third."""

    extra: Any = None


class Mode(enum.Flag):
    A = 1
    B = 2


leaves = st.one_of(
    st.none(),
    st.sampled_from([0, 1, True, 1.0, -0.0, 0.0, NAN, float("nan"), "a", b"a", Text("a"), Size.ONE, Mode.A | Mode.B]),
    st.sampled_from([Decimal("NaN"), Decimal("0.5"), 0.5, 1j, complex(NAN, 1), int, range(2), Empty(), 2**70, -1, -2]),
)


def nested(parts):
    """Return containers of keys."""
    return st.one_of(
        st.lists(parts, max_size=3).map(tuple),
        st.frozensets(parts, max_size=2),
        st.builds(Pair, parts, parts),
        st.builds(Place, parts, parts),
        st.builds(Town, parts, parts),
        st.builds(Spot, parts),
        st.builds(Partly, parts, parts, parts),
        st.builds(Wider, parts, parts, parts),
    )


keys = st.recursive(leaves, nested, max_leaves=6)
batches = st.one_of(
    st.lists(keys, max_size=6),
    st.lists(leaves, max_size=6),
    st.lists(st.tuples(leaves, leaves), max_size=6),
    st.lists(st.builds(Place, leaves, leaves), max_size=6),
    st.lists(st.tuples(st.tuples(leaves), st.sampled_from("ab")), max_size=6),
)


@settings(max_examples=400, deadline=None)
@given(batches)
def test_a_batch_of_keys_becomes_what_each_of_them_becomes(batch):
    """The same groups in a dict, keys of the same types, and the same objects where nothing has to change."""
    one_by_one, at_once = list(map(canonical, batch)), canonical_all(batch)

    assert [(type(key), repr(key)) for key in at_once] == [(type(key), repr(key)) for key in one_by_one]
    places = {key: place for place, key in enumerate(one_by_one)}
    assert [places.get(key) for key in at_once] == [places[key] for key in one_by_one]
    if are_canonical(batch):
        assert all(key is found for key, found in zip(batch, one_by_one, strict=True))


@settings(max_examples=400, deadline=None)
@given(batches)
def test_a_batch_of_keys_has_the_hashes_of_each_of_them(batch):
    """Routing does not depend on what else is in a batch."""
    found = list(map(canonical, batch))

    assert stable_hashes(found) == list(map(stable_hash, found))


@settings(max_examples=400, deadline=None)
@given(st.lists(keys, min_size=2, max_size=4))
def test_keys_that_are_one_have_one_hash(batch):
    """What a dict takes as one key is routed to one target, also after a way through pickle."""
    found = canonical_all(batch)
    traveled = canonical_all(pickle.loads(pickle.dumps(found)))
    hashes = {}

    for key, number in zip(found + traveled, stable_hashes(found) + stable_hashes(traveled), strict=True):
        assert hashes.setdefault(key, number) == number
    assert len(hashes) == len(set(found))


def test_specimens_are_as_many_keys_as_they_should_be():
    """Subclasses, enums and numpy: a dict of canonical keys has one place for each."""
    found = canonical_all(KEYS)

    assert len(set(found)) == len(set(zip(found, NUMBERS, strict=True))) == len(set(NUMBERS))
    assert len(set(zip(NUMBERS, stable_hashes(found), strict=True))) == len(set(NUMBERS))


def test_plain_batches_are_not_copied():
    """Texts, tuples, dataclasses and floats without a NaN are the list itself."""
    for batch in (
        ["a", None],
        [("a", 1), (2, "b")],
        [Place("a", 1)],
        [1.5],
        [((1,), "a")],
        [Size.ONE],
        [("a", 1), "b"],
    ):
        canonical_all(batch)
        assert canonical_all(batch) is batch


@pytest.mark.parametrize("key", [[1], object(), Decimal("sNaN")], ids=lambda key: type(key).__name__)
@pytest.mark.parametrize("wrap", [lambda key: key, lambda key: (1, key), lambda key: Place("a", (key,))])
def test_a_batch_with_a_key_that_is_none_is_refused(key, wrap):
    """The message is that of one key."""
    canonical_all([Decimal(1), Decimal(2)])
    with pytest.raises(UnstableKeyError, match="cannot be a key"):
        canonical_all([wrap(1), wrap(key)])


def test_specimens_are_as_many_keys_without_the_seed():
    """Equal keys have one hash there, too."""
    hash_without_seed(True)
    try:
        found = canonical_all(KEYS)
        assert len(set(zip(NUMBERS, stable_hashes(found), strict=True))) == len(set(NUMBERS))
        assert stable_hashes(found) == list(map(stable_hash, found))
    finally:
        hash_without_seed(False)
