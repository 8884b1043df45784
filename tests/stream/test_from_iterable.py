"""`Stream.from_iterable`, `ctx.stream`: streams of what the caller holds."""

from __future__ import annotations

import pytest

from dstream import IntStream, Stream
from dstream.errors import UnsupportedError
from sources import imap, text_files, watch_files


def test_from_iterable_uses_the_default_context(default_engine):
    """The static factory reads any iterable, here a generator, on the default context."""
    assert Stream.from_iterable((n * n for n in range(4)), partitions=3).to_list() == [0, 1, 4, 9]


def test_from_iterable_reads_a_list_at_the_terminal_operation(engine):
    """An item that is appended after the stream was built is part of it."""
    items = [1, 2]
    stream = engine.stream(items, partitions=2).map(lambda n: n * 10)
    items.append(3)

    assert stream.to_list() == [10, 20, 30]


def test_from_iterable_cuts_into_as_many_partitions_as_asked_for(spark_context):
    """Four partitions of two items are two items and two empty partitions."""
    parts = [list(part) for part in spark_context.stream("ab", 4).partitions()]

    assert sorted(parts) == [[], [], ["a"], ["b"]]


def test_from_iterable_may_be_used_again(engine):
    """A stream runs as often as it is asked, a one-shot iterator behind it is read once."""
    stream = engine.stream(iter([1, 2, 3])).filter(lambda n: n > 1)

    assert (stream.to_list(), stream.count()) == ([2, 3], 2)


def test_from_iterable_of_a_set_has_no_order(local_context):
    """A set has no encounter order, so nothing is paid to keep one; its items are all there."""
    assert sorted(local_context.stream({3, 1, 2}).to_list()) == [1, 2, 3]


@pytest.mark.parametrize("iterable", [None, 5, object()])
def test_from_iterable_refuses_what_is_not_iterable(local_context, iterable):
    """What cannot be iterated over is a `TypeError` at the call."""
    with pytest.raises(TypeError):
        local_context.stream(iterable)


@pytest.mark.parametrize(
    ("partitions", "error"), [(0, ValueError), (-1, ValueError), ("2", TypeError), (1.5, TypeError)]
)
def test_from_iterable_refuses_a_wrong_number_of_partitions(local_context, partitions, error):
    """The number of partitions is an int of at least 1, checked at the call."""
    with pytest.raises(error, match="partitions"):
        local_context.stream([1], partitions)


def test_a_source_is_no_iterable(engine):
    """The error says what streams it."""
    context = engine.context
    for stream in (context.stream, Stream.from_iterable, IntStream.from_iterable):
        with pytest.raises(TypeError, match=r"a TextFiles is a source, not an iterable: ctx\.read\(\.\.\.\) streams"):
            stream(text_files("words.txt"))
        with pytest.raises(TypeError, match=r"is a source, not an iterable"):
            stream(imap("words"))
        with pytest.raises(UnsupportedError, match=r"has no end: pipeline\.read_from"):
            stream(watch_files("words"))
    with pytest.raises(TypeError, match=r"read\(\) takes a source, such as text_files\(\.\.\.\), not list: stream\("):
        context.read([1, 2])
