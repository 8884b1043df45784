"""`Optional`: a value that may be absent."""

from __future__ import annotations

import pickle

import pytest

import dstream as ds
from dstream import Optional
from dstream.errors import NoSuchElementError, NullElementError

FULL, EMPTY = Optional.of(0), Optional.empty()


def test_presence_is_not_the_truth_of_the_value():
    """0 is present; the truth value of an `Optional` is its presence."""
    assert (FULL.is_present(), FULL.is_empty(), bool(FULL)) == (True, False, True)
    assert (EMPTY.is_present(), EMPTY.is_empty(), bool(EMPTY)) == (False, True, False)


def test_of_refuses_none_and_of_nullable_takes_it():
    """`of(None)` is a `NullElementError`, as Java's `NullPointerException`."""
    with pytest.raises(NullElementError):
        Optional.of(None)

    assert (Optional.of_nullable(None), Optional.of_nullable(0)) == (EMPTY, FULL)


@pytest.mark.parametrize("method", ["get", "or_else_throw"])
def test_an_empty_one_has_no_value(method):
    """Asking for it is a `NoSuchElementError` with Java's message."""
    assert getattr(FULL, method)() == 0
    with pytest.raises(NoSuchElementError, match=r"^No value present$"):
        getattr(EMPTY, method)()


def test_or_else_gives_the_other():
    """The other value, which may be None, or what a supplier makes, which runs only if needed."""
    assert (FULL.or_else(9), EMPTY.or_else(9), EMPTY.or_else(None)) == (0, 9, None)
    assert (FULL.or_else_get(lambda: 1 // 0), EMPTY.or_else_get(lambda: 9)) == (0, 9)


def test_or_else_throw_raises_what_the_supplier_makes():
    """The supplier runs only if there is no value."""
    assert FULL.or_else_throw(lambda: KeyError("k")) == 0
    with pytest.raises(KeyError, match="k"):
        EMPTY.or_else_throw(lambda: KeyError("k"))


def test_if_present_runs_the_action_on_the_value():
    """One of two actions runs; `if_present` does nothing for an empty one."""
    seen = []
    FULL.if_present(seen.append)
    EMPTY.if_present(seen.append)
    FULL.if_present_or_else(seen.append, lambda: seen.append("empty"))
    EMPTY.if_present_or_else(seen.append, lambda: seen.append("empty"))

    assert seen == [0, 0, "empty"]


def test_filter_keeps_a_value_that_satisfies_it():
    """An empty one stays empty and asks nothing."""
    assert (FULL.filter(lambda n: n == 0), FULL.filter(bool), EMPTY.filter(lambda n: 1 // 0)) == (FULL, EMPTY, EMPTY)


def test_map_to_none_is_empty():
    """A None result is an empty `Optional`; a false one is a value."""
    assert FULL.map(str) == Optional.of("0")
    assert (FULL.map(lambda n: None), FULL.map(bool).get(), EMPTY.map(lambda n: 1 // 0)) == (EMPTY, False, EMPTY)


def test_flat_map_needs_an_optional():
    """The function returns an `Optional` itself; anything else is a `TypeError`."""
    assert (FULL.flat_map(lambda n: Optional.of(n + 1)).get(), FULL.flat_map(lambda n: EMPTY)) == (1, EMPTY)
    assert EMPTY.flat_map(lambda n: 1 // 0) == EMPTY
    with pytest.raises(TypeError, match="Optional"):
        FULL.flat_map(lambda n: n)


def test_or_gives_the_other_optional():
    """The supplier runs only if this one is empty."""
    assert (FULL.or_(lambda: 1 // 0), EMPTY.or_(lambda: FULL)) == (FULL, FULL)


def test_stream_has_the_value_or_nothing(local_context):
    """A stream of one item or of none."""
    ds.set_default_context(local_context)
    try:
        assert (FULL.stream().to_list(), EMPTY.stream().to_list()) == ([0], [])
    finally:
        ds.set_default_context(None)


def test_equality_hash_and_text_are_those_of_the_value():
    """Two of them are equal if their values are; one is no other thing."""
    assert Optional.of(1) == Optional.of(1.0)
    assert (FULL == EMPTY, FULL == 0, len({Optional.of("a"), Optional.of("a"), EMPTY})) == (False, False, 2)
    assert (repr(Optional.of("a")), repr(EMPTY)) == ("Optional['a']", "Optional.empty")


def test_an_optional_travels():
    """It can be an item of a stream, so it can be pickled."""
    assert pickle.loads(pickle.dumps([FULL, EMPTY])) == [FULL, EMPTY]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Optional.empty().or_(lambda: 3), "or_() needs a function that returns an Optional, not int"),
        (lambda: Optional.of(1).flat_map(lambda n: n), "flat_map() needs a function that returns an Optional, not int"),
        (lambda: Optional.empty().or_else_throw(lambda: 5), "exceptions must derive from BaseException"),
    ],
)
def test_results_of_another_type_are_refused(call, words):
    """The message names the method whose function returned it."""
    with pytest.raises(TypeError) as caught:
        call()

    assert words in str(caught.value)


def test_or_else_throw_takes_what_raise_takes():
    """A supplier may return an exception or its class."""
    for supplier in (KeyError, lambda: KeyError, lambda: KeyError("a")):
        with pytest.raises(KeyError):
            Optional.empty().or_else_throw(supplier)
