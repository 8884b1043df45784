"""Expressions are values: equal if they say the same, and walked from the outside in."""

from __future__ import annotations

import pickle

import pytest

from dstream.expressions import Applied, Argument, Choice, Constant, Expression, Together
from dstream.expressions.tree import substituted

_ITEM = Argument(0)


@pytest.mark.parametrize(
    ("left", "right"), [(1, 1.0), (1, True), (0.0, -0.0), ((1,), (1.0,)), ("1", 1), (None, 0), (b"a", "a")]
)
def test_constants_of_other_types_or_signs_differ(left: object, right: object) -> None:
    """Python calls some of them equal, and gives other results for them."""
    assert Constant(left) != Constant(right)


@pytest.mark.parametrize("value", [1, 1.5, float("nan"), True, "a", b"a", None, (1, ("a",))])
def test_a_constant_comes_back_equal(value: object) -> None:
    """Workers get what the driver read, NaN included."""
    assert pickle.loads(pickle.dumps(Constant(value))) == Constant(value)


def test_a_walk_gives_what_is_inside_in_the_order_of_evaluation() -> None:
    """A condition comes before what it chooses between."""
    less = Applied("<", (_ITEM, Constant(1)))
    pair = Together((_ITEM, Constant(2)))
    found: list[Expression] = list(Choice(less, pair, Constant(3)).walk())
    assert found == [Choice(less, pair, Constant(3)), less, _ITEM, Constant(1), pair, _ITEM, Constant(2), Constant(3)]


def test_what_is_evaluated_once_stays_one_object_behind_a_function() -> None:
    """The middle of `a < b < c`, which stands in it twice; what is equal to it is evaluated by itself."""
    middle = Applied("+", (_ITEM, Constant(1)))
    chained = Applied("and", (Applied("<", (Constant(0), middle)), Applied("<", (middle, Constant(9)))))
    found = substituted(chained, {0: Constant(5)})

    assert isinstance(found, Applied)
    (_, one), (other, _) = (each.operands for each in found.operands if isinstance(each, Applied))
    assert one is other
    assert one == Applied("+", (Constant(5), Constant(1)))
