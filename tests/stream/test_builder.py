"""`Stream.builder()`: a stream from items that come one at a time."""

from __future__ import annotations

import pytest

from dstream import Stream
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
