"""`of`, `empty`, `iterate`, `from_iterable` of the streams of numbers."""

from __future__ import annotations

import numpy
import pytest

from dstream import DoubleStream, IntStream, LongStream


def test_of_numbers_gives_numbers_of_its_kind(default_engine):
    """`DoubleStream.of` makes floats of ints, `IntStream.of` ints of bools."""
    doubles = [repr(n) for n in DoubleStream.of(1, 2.5).to_list()]

    assert (doubles, [repr(n) for n in IntStream.of(True, 2).to_list()]) == (["1.0", "2.5"], ["1", "2"])


@pytest.mark.parametrize("kind", [IntStream, LongStream, DoubleStream])
def test_empty_numbers_have_no_items(local_context, kind):
    """`empty()` gives nothing."""
    assert (kind.empty().to_list(), kind.of().count()) == ([], 0)


@pytest.mark.parametrize(
    ("kind", "number"),
    [
        (IntStream, 1.0),
        (LongStream, "1"),
        (DoubleStream, "1"),
        (DoubleStream, numpy.complex128(1 + 2j)),
        (IntStream, None),
    ],
)
def test_of_numbers_refuses_another_kind_at_the_call(kind, number):
    """What is no number of this kind is a `TypeError` at the call, which names it."""
    with pytest.raises(TypeError, match="needed here"):
        kind.of(1, number)


def test_iterate_of_doubles_makes_floats_of_ints(default_engine):
    """The seed and what `next` gives become floats."""
    assert repr(DoubleStream.iterate(1, lambda n: n / 2).limit(3).to_list()) == "[1.0, 0.5, 0.25]"


def test_from_iterable_of_ints_checks_each_item(default_engine):
    """An item that is no int is a `TypeError` when it is read, which names it."""
    with pytest.raises(TypeError, match=r"2\.5"):
        IntStream.from_iterable([1, 2.5], partitions=2).sum()
