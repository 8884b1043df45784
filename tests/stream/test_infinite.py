"""Infinite streams: what needs their end is refused instead of running forever."""

from __future__ import annotations

import pytest

from collectors import to_list
from dstream import IntStream, Stream
from dstream.errors import IllegalStateError

NUMBERS = Stream.iterate(0, lambda n: n + 1)


@pytest.mark.parametrize(
    "call",
    [
        lambda s: s.to_list(),
        lambda s: s.count(),
        lambda s: s.reduce(max),
        lambda s: s.collect(to_list()),
        lambda s: s.max(),
        lambda s: s.to_array(),
        lambda s: s.for_each_partition(list),
        lambda s: s.map_to_int(int).sum(),
        lambda s: (Stream.of(1) + s).skip(3).filter(bool).distinct().to_list(),
    ],
)
def test_operations_that_need_every_item_refuse_an_infinite_stream(call):
    """The refusal is an `IllegalStateError` that says what to do."""
    with pytest.raises(IllegalStateError, match="limit"):
        call(NUMBERS)


def test_an_infinite_stream_cannot_be_sorted():
    """Sorting needs every item, also if a limit comes later."""
    with pytest.raises(IllegalStateError, match="cannot be sorted"):
        IntStream.generate(lambda: 1).sorted().limit(3).to_list()


def test_an_infinite_stream_with_an_end_is_finite(local_context):
    """`limit` and `take_while` end it; what comes after may need every item."""
    numbers = Stream.concat(local_context.stream([9]), NUMBERS)

    assert numbers.limit(4).sorted().to_list() == [0, 1, 2, 9]
    assert numbers.skip(1).take_while(lambda n: n < 3).max().get() == 2
