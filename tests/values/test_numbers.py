"""Which values count as ints and floats in a stream of numbers."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy
import pytest

from dstream.values.numbers import exact_float, exact_int


@pytest.mark.parametrize(
    ("value", "number"),
    [(3, "3"), (True, "1"), (numpy.int8(3), "3"), (2**70, str(2**70)), (numpy.uint64(2**63), str(2**63))],
)
def test_ints_are_what_can_be_an_index(value, number):
    """A plain int comes out, whatever kind it was."""
    assert (repr(exact_int(value)), type(exact_int(value))) == (number, int)


@pytest.mark.parametrize("value", [1.0, "1", None, Decimal(1), Fraction(1), numpy.float64(1), [1]], ids=repr)
def test_nothing_is_rounded_to_an_int(value):
    """A value of another type is a `TypeError` that names type and value."""
    with pytest.raises(TypeError, match=f"an int is needed here, not {type(value).__name__}"):
        exact_int(value)


@pytest.mark.parametrize("value", [1, 1.0, True, Decimal(1), Fraction(1), numpy.int64(1), numpy.float32(1)], ids=repr)
def test_floats_are_made_of_numbers(value):
    """Every kind of real number becomes a float."""
    assert (repr(exact_float(value)), type(exact_float(value))) == ("1.0", float)


@pytest.mark.parametrize("value", ["1", b"1", None, 1j, [1.0], numpy.complex128(1), numpy.complex64(1 + 2j)], ids=repr)
def test_floats_are_not_read_from_texts(value):
    """Strings and complex numbers are refused by a `TypeError`, though `float` takes some of them."""
    with pytest.raises(TypeError):
        exact_float(value)
