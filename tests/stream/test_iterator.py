"""`iter(stream)`, `iterator()`, `partitions()`: items one after another."""

from __future__ import annotations

from dstream import Stream


def test_iterator_gives_the_items_in_order(engine):
    """A `for` loop and `iterator()` see every item, None too, in encounter order."""
    stream = engine.stream([2, None, 1], 4)

    assert ([item for item in stream], list(stream.iterator())) == ([2, None, 1], [2, None, 1])  # noqa: C416


def test_iterator_of_nothing_ends_at_once(engine):
    """No items, no turns of the loop."""
    assert next(iter(engine.stream([], 2)), "end") == "end"


def test_iterator_may_be_left_early(engine):
    """An iterator that is dropped after some items does no harm, and the stream may be used again."""
    stream = engine.stream(range(100), 8)
    iterator = iter(stream.sorted(reverse=True))

    assert (next(iterator), next(iterator)) == (99, 98)
    del iterator
    assert stream.find_first().get() == 0


def test_partitions_in_order_are_the_stream(engine):
    """One iterator for each partition, in encounter order; they may be read in any order."""
    parts = engine.stream("abcde", 3).map(str.upper).partitions()
    backwards = [list(part) for part in reversed(parts)]

    assert [item for part in reversed(backwards) for item in part] == ["A", "B", "C", "D", "E"]
    assert len(parts) == (3 if engine.name == "spark" else 1)


def test_partitions_of_sorted_and_concatenated_streams_are_in_order(engine):
    """Also behind a shuffle the partitions follow one another."""
    stream = engine.stream([3, 1, 2], 3).sorted() + engine.stream([5], 1)

    assert [item for part in stream.partitions() for item in part] == [1, 2, 3, 5]


def test_partitions_of_a_limited_stream_hold_its_items(engine):
    """The partitions of `limit` hold no more than the limit."""
    parts = engine.stream(range(10), 4).limit(4).partitions()

    assert [item for part in parts for item in part] == [0, 1, 2, 3]


def test_iterator_of_an_unordered_infinite_stream_gives_items(default_engine):
    """The items of `generate` come one after another."""
    ticks = iter(Stream.generate(lambda: "tick"))

    assert [next(ticks), next(ticks)] == ["tick", "tick"]
