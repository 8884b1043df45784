"""`Stream.builder()`: a stream from items that come one at a time."""

from __future__ import annotations

import pytest

from dstream import DoubleStream, IntStream, LongStream, Stream
from dstream.errors import IllegalStateError


def test_builder_gives_what_was_added_in_order(default_engine):
    """`add` chains, `accept` returns nothing, None is an item."""
    builder = Stream.builder()
    accepted = builder.add(1).add(None).accept(2)

    assert (accepted, builder.build().to_list()) == (None, [1, None, 2])


def test_builder_of_nothing_builds_an_empty_stream(default_engine):
    """A builder that was given nothing builds a stream of nothing."""
    assert Stream.builder().build().to_list() == []


@pytest.mark.parametrize("call", [lambda b: b.build(), lambda b: b.add(1), lambda b: b.accept(1)])
def test_builder_is_closed_by_build(call):
    """After `build`, each of its methods is an `IllegalStateError`."""
    builder = Stream.builder().add(1)
    builder.build()

    with pytest.raises(IllegalStateError):
        call(builder)


@pytest.mark.parametrize("kind", [IntStream, LongStream, DoubleStream])
def test_builder_of_numbers_builds_a_stream_of_its_kind(default_engine, kind):
    """Each type of stream has a builder of its own."""
    built = kind.builder().add(1).add(2).build()

    assert (type(built), built.sum()) == (kind, 3)


@pytest.mark.parametrize(("kind", "wrong"), [(IntStream, 1.5), (LongStream, "1"), (DoubleStream, None)])
def test_builder_of_numbers_refuses_what_is_none_of_its_kind(kind, wrong):
    """A wrong number is refused by the call that adds it."""
    with pytest.raises(TypeError):
        kind.builder().accept(wrong)
