"""`reduce` in its three forms."""

from __future__ import annotations

import operator

import pytest

from dstream import Optional
from dstream.errors import NullElementError


def test_reduce_of_items_is_an_optional(engine):
    """Without an identity the result may be missing: an `Optional`, empty for no items."""
    numbers = engine.stream([5, 3, 4], 5)

    assert (numbers.reduce(max), engine.stream([7], 2).reduce(max)) == (Optional.of(5), Optional.of(7))
    assert engine.stream([], 3).reduce(max).is_empty()


@pytest.mark.parametrize("partitions", [1, 2, 8])
def test_reduce_folds_the_identity_in_once_at_the_front(engine, partitions):
    """`reduce(identity, op)` is `functools.reduce(op, items, identity)`, however the items are divided."""
    assert engine.stream("abc", partitions).reduce("<", operator.add) == "<abc"


def test_reduce_of_nothing_is_the_identity(engine):
    """The identity alone, the operator not called; also in the form with a combiner."""
    nothing = engine.stream([], 3)

    assert (nothing.reduce(7, operator.floordiv), nothing.reduce([], operator.add, operator.add)) == (7, [])


def test_reduce_with_a_combiner_changes_the_type(engine):
    """The accumulator takes an item of another type than the result; the combiner joins partial results."""
    words = engine.stream(["a", "bb", "ccc"], 5)

    assert words.reduce(0, lambda total, word: total + len(word), operator.add) == 6


def test_reduce_with_a_mutable_identity_shares_it_with_nobody(engine):
    """Each partition starts from a copy, and the caller's own object stays as it is."""
    identity = []
    letters = engine.stream("abcd", 3).reduce(identity, lambda held, c: held.append(c) or held, operator.iadd)

    assert (letters, identity) == (["a", "b", "c", "d"], [])


def test_reduce_keeps_order_for_an_operator_that_does_not_commute(engine):
    """Partial results are combined from left to right."""
    assert (
        engine.stream("whale", 3).reduce(lambda left, right: f"({left}{right})").get().replace("(", "").replace(")", "")
        == "whale"
    )


def test_reduce_to_none_is_refused_in_an_optional(engine):
    """An `Optional` cannot hold None, so a None result is a `NullElementError`."""
    with pytest.raises(NullElementError, match="reduce"):
        engine.stream([1, 2], 1).reduce(lambda left, right: None)


def test_reduce_may_fold_none_items(engine):
    """With an identity None is an item as any other, and a result."""
    assert engine.stream([1, None, 3], 2).reduce(0, lambda held, item: item or held) == 3
    assert engine.stream([1, None], 1).reduce(0, lambda held, item: item) is None
