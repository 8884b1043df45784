"""`source_from`, `stream_source_from`: functions instead of classes."""

from __future__ import annotations

import functools

import pytest

from dstream.errors import SourceError
from dstream.failures.attribution import given_to
from dstream.spi import Source, StreamSource
from dstream.spi.source import Timestamped
from sources import source_from, stream_source_from


def squares(part):
    """Give the squares of some numbers."""
    yield from (n * n for n in part)


def test_each_part_is_read(engine):
    """In order, by workers; the parts are given, or made when the run starts."""
    assert engine.context.read(source_from([range(3), range(3, 5), range(0)], squares)).to_list() == [0, 1, 4, 9, 16]
    made = source_from(lambda parallelism: [[parallelism * 0 + n] for n in range(3)], squares)
    assert engine.context.read(made).map(abs).to_list() == [0, 1, 4]


def test_it_is_a_source(read):
    """With or without an order, and read as often as somebody asks."""
    source = source_from(iter([[1], [2]]), squares, ordered=False)

    assert isinstance(source, Source)
    assert (source.ordered, source.bounded, source.in_caller) == (False, True, False)
    assert read(source) == read(source) == [1, 4]
    assert [repr(source), repr(source_from([1], squares, name="mine"))] == [
        "source_from(squares)",
        "source_from('mine')",
    ]


def test_parts_are_asked_for_lazily(local_context):
    """As are their items."""
    asked = []

    def parts(parallelism):
        for part in range(5):
            asked.append(part)
            yield [part]

    assert local_context.read(source_from(parts, squares)).find_first().get() == 0
    assert asked == [0]


def test_an_exception_of_the_function_is_the_users(local_context):
    """As it is, with the step and the part."""

    def broken(part):
        yield 1 // part

    with pytest.raises(ZeroDivisionError) as raised:
        local_context.read(source_from([1, 0], broken)).to_list()
    said = "\n".join(raised.value.__notes__)
    assert "read(source_from(" in said
    assert ", when broken was given 0\n" in said


@pytest.mark.parametrize("made", [range(3), [1, 2], (1, 2)])
def test_a_sequence_is_read_as_it_is(made):
    """Nothing stands around its iterator, so that numbers may become columns; one that is made anew is its own."""
    [split] = source_from([None], lambda part: made).splits(1)

    assert type(split.read()) is type(iter(made))
    assert list(split.read()) == list(made)


def test_an_exception_names_the_range(local_context):
    """The partition, and both offsets."""
    source = feed(read=lambda partition, start, stop: 1 // 0)
    with pytest.raises(ZeroDivisionError) as raised:
        list(source.split("one", 1, 3).read())
    assert given_to(raised.value) == "when lambda was given 'one', 1, 3"


def test_what_is_no_iterable_is_named(local_context):
    """Of the parts, and of the items."""
    with pytest.raises(SourceError, match=r"source_from\(len\): len must give several items, not 1"):
        local_context.read(source_from([[1]], len)).to_list()
    with pytest.raises(SourceError, match=r"source_from\(abs, squares\): abs must give several items, not 2"):
        list(source_from(abs, squares).splits(2))


FEED = ["a", "b", "c", "d"]


def feed(**changes):
    """A source of a feed, of which two partitions can be read."""
    functions = {
        "begin": lambda: {"one": 1},
        "reach": lambda offsets, most: {
            name: min(4, (offsets.get(name) or 0) + (most or 9)) for name in ("one", "two")
        },
        "read": lambda partition, start, stop: [f"{partition}{each}" for each in FEED[start or 0 : stop]],
    }
    return stream_source_from(**{**functions, **changes})


def test_ranges_are_read(follow):
    """Also of a partition that came up later."""
    job = follow(feed())

    assert isinstance(job.source, StreamSource)
    assert [job.news(2), job.news(), job.news()] == [
        ["oneb", "onec", "twoa", "twob"],
        ["oned", "twoc", "twod"],
        [],
    ]


def test_items_may_have_a_time():
    """If a function gives it."""
    assert not isinstance(feed(), Timestamped)
    assert feed(timestamp=len).timestamp("abc") == 3


DEEP = functools.reduce(lambda inner, _: [inner], range(100_000), 0)


@pytest.mark.parametrize(
    "found", [None, {1: 2}, {"a": {1}}, {"a": (1, 2)}, {"a": object()}, {"a": float("nan")}, {"a": DEEP}]
)
def test_offsets_are_plain(found):
    """What JSON would change is refused before it is kept."""
    with pytest.raises(SourceError, match=r"must give offsets by names|the offset of 'a' is not as JSON has it"):
        feed(begin=lambda: found).begin()


async def later(part):
    """Give nothing yet."""


def test_wrong_arguments_are_refused_at_the_call():
    """Before anything runs."""
    with pytest.raises(TypeError, match="splits must be several parts or a function that gives them, not str"):
        source_from("abc", squares)
    with pytest.raises(TypeError, match="read must give a result, and an async function"):
        source_from([1], later)
    with pytest.raises(ValueError, match="name must not be empty"):
        feed(name="")
