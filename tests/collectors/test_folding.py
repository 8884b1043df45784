import operator

import pytest

from collectors import pick_any, reducing
from dstream.values import Optional


def first_of(left, right):
    """Return the left one."""
    return left


def test_reducing_gives_an_optional():
    """Empty of nothing; one item is its own result."""
    assert reducing(operator.mul).collect([2, 3, 4]) == Optional.of(24)
    assert reducing(operator.mul).collect([2]) == Optional.of(2)
    assert reducing(operator.mul).collect([]) == Optional.empty()


def test_reducing_to_none_gives_an_empty_optional():
    """A None is a value while folding, and an absent one at the end."""
    assert reducing(first_of).collect([None, 1]) == Optional.empty()
    assert reducing(max).collect([0]) == Optional.of(0)


def test_reducing_with_an_identity():
    """Nothing gives the identity; otherwise it stands at the front."""
    assert reducing("", operator.add).collect(["a", "b"]) == "ab"
    assert reducing("none", operator.add).collect([]) == "none"
    assert reducing(None, first_of).collect([1]) is None


def test_the_identity_is_folded_in_once():
    """Also if it is none, and however many parts there were."""
    collector = reducing(100, operator.add)
    parts = [collector.accumulated(collector.supplier(), part) for part in ([1], [], [2, 3])]

    assert collector.finisher(collector.combined(collector.combined(parts[0], parts[1]), parts[2])) == 106


def test_reducing_with_a_mapper():
    """Each item goes through the function first, the identity does not."""
    assert reducing("<", str, operator.add).collect([1, 2]) == "<12"


def test_reducing_has_three_forms():
    """Other numbers of arguments, and what cannot be called, are refused at the call."""
    with pytest.raises(TypeError, match=r"reducing\(\) takes op, or identity and op.* not 0 arguments"):
        reducing()
    with pytest.raises(TypeError, match="op must be a function, not int"):
        reducing(0)
    with pytest.raises(TypeError, match="fn must be a function, not int"):
        reducing(0, 1, operator.add)


def test_pick_any_passes_over_none():
    """Some item that is not None, if there is one."""
    assert pick_any().collect([None, 2, 3]) == Optional.of(2)
    assert pick_any().collect([None]) == Optional.empty()
    assert pick_any().collect([]) == Optional.empty()


def test_pick_any_looks_no_further():
    """The rest of an endless iterator is left alone."""
    assert pick_any().collect(iter(int, 1)) == Optional.of(0)
