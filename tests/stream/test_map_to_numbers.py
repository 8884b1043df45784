"""`map_to_int`, `map_to_long`, `map_to_double`: streams of numbers from streams of objects."""

from __future__ import annotations

import numpy
import pytest

from dstream import DoubleStream, IntStream, LongStream
from dstream.errors import DStreamError


def test_map_to_numbers_gives_the_streams_of_numbers(local_context):
    """Each method has the stream type of its name."""
    words = local_context.stream("ab")
    kinds = [type(s) for s in (words.map_to_int(ord), words.map_to_long(ord), words.map_to_double(ord))]

    assert kinds == [IntStream, LongStream, DoubleStream]


def test_map_to_int_takes_bools_and_numpy_ints(engine):
    """What is an int in Python becomes a plain int."""
    numbers = engine.stream([True, numpy.int64(7), 10**30], 2).map_to_int(lambda n: n)

    assert repr(numbers.to_list()) == "[1, 7, 1000000000000000000000000000000]"


def test_map_to_double_makes_floats_of_ints(engine):
    """An int result becomes a float."""
    assert repr(engine.stream(["a", "bb"], 2).map_to_double(len).to_list()) == "[1.0, 2.0]"


@pytest.mark.parametrize("method", ["map_to_int", "map_to_long"])
def test_map_to_int_refuses_a_float_and_names_the_item(engine, method):
    """A result that is no int is a `TypeError` that names result and item; nothing is rounded."""
    with pytest.raises(TypeError, match=r"1\.5") as caught:
        getattr(engine.stream(["3", "1.5"], 2), method)(lambda text: 3 if text == "3" else float(text)).sum()

    assert "on the item '1.5'\n" in caught.value.__notes__[1]
    assert f"lambda gave something that .{method}() does not take" in caught.value.__notes__[0]


@pytest.mark.parametrize("result", [None, "1", b"1", numpy.complex128(1 + 2j)])
def test_map_to_double_refuses_what_is_no_number(local_context, result):
    """A text is no number, nor is None; the error is Python's own `TypeError`."""
    with pytest.raises(TypeError, match="number is needed") as caught:
        local_context.stream(["item"]).map_to_double(lambda _: result).sum()

    assert not isinstance(caught.value, DStreamError)


def test_numeric_steps_check_their_results(default_engine):
    """`map`, `flat_map` and `map_multi` of a stream of ints refuse what is no int."""
    numbers = IntStream.range(0, 2)

    for stream in (numbers.map(str), numbers.flat_map(lambda n: [0.5]), numbers.map_multi(lambda n, emit: emit("x"))):
        with pytest.raises(TypeError, match="an int is needed here"):
            stream.sum()


def test_map_to_another_kind_of_number(default_engine):
    """Numbers become numbers of another kind: ints of doubles by a function, doubles of ints."""
    halves = IntStream.range_closed(1, 3).map_to_double(lambda n: n / 2)

    assert (halves.to_list(), halves.map_to_int(round).to_list()) == ([0.5, 1.0, 1.5], [0, 1, 2])
