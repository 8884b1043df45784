"""`boxed`, `as_long_stream`, `as_double_stream`: the same numbers under another type."""

from __future__ import annotations

from dstream import DoubleStream, IntStream, LongStream, Stream


def test_boxed_numbers_have_the_methods_of_objects(default_engine):
    """A boxed stream sorts by key."""
    boxed = IntStream.range(0, 4).boxed()

    assert (type(boxed), boxed.sorted(key=lambda n: -n).to_list()) == (Stream, [3, 2, 1, 0])


def test_as_long_stream_changes_the_type_only(local_context):
    """The ints stay as they are."""
    longs = local_context.stream([1, 2]).map_to_int(int).as_long_stream()

    assert (type(longs), longs.to_list()) == (LongStream, [1, 2])


def test_as_double_stream_makes_floats(default_engine):
    """Ints of both names become floats."""
    doubles = IntStream.of(1, 2).as_double_stream() + LongStream.of(3).as_double_stream()

    assert (type(doubles), repr(doubles.to_list())) == (DoubleStream, "[1.0, 2.0, 3.0]")
    assert type(doubles.boxed()) is Stream
