"""How many items of the caller's a plan reads, without reading any: few run here without an estimate."""

from __future__ import annotations

import math

import pytest

import dstream as ds
from dstream import IntStream, Stream
from dstream.base.memory import Bound
from dstream.connectors.memory import Items
from dstream.engine.auto.placement import MOST_ITEMS, held_items
from dstream.operators.rows.caches import CachedItems
from dstream.plan import Cache, CacheContent, Read, Table, rewrite
from dstream.plan.walk import nothing_kept, recalled, topological
from dstream.stream.objects import read
from sources import text_files

MANY = range(MOST_ITEMS + 1)
FILES = read(text_files("*.txt"), "files", None)


class Failing(list):
    """A list that cannot say how long it is."""

    def __len__(self):
        raise OSError("no answer")


class Feed:
    """An iterator that says how many items are left."""

    def __iter__(self):
        return self

    def __next__(self):
        raise StopIteration

    def __len__(self):
        return 0


def held(stream):
    """Return how many items of the caller's the plan of a stream reads."""
    return held_of(stream._node)


def held_of(node, found=nothing_kept):
    """Return how many items of the caller's a plan reads."""
    return held_items(topological(recalled(rewrite(node), found)))


def numbers(count):
    """Return a stream of `count` numbers."""
    return Stream.from_iterable(range(count))


def test_held_items_are_counted():
    """The number is that of the source."""
    assert held(numbers(MOST_ITEMS)) == MOST_ITEMS
    assert held(Stream.of("a")) == 1


@pytest.mark.parametrize(
    "stream",
    [
        Stream.empty(),
        Stream.of(1).sequential(),
        Stream.of(1).parallel(),
        IntStream.range(5, 1),
        Stream.from_iterable({1, 2}),
        Stream.iterate(1, abs).map(str).peek(print).limit(MOST_ITEMS),
        Stream.generate(str).limit(1),
        Stream.from_iterable(iter("abc")).limit(2).limit(10**9),
        Stream.from_iterable(MANY).map(str).limit(3),
        Stream.iterate(1, abs).limit(10**6).limit(3),
        Stream.from_iterable(range(10**30)).limit(3),
        numbers(9).flat_map(range).sorted().join(numbers(9), on=abs),
    ],
    ids=repr,
)
def test_held_items_of_few_sources_are_few(stream):
    """Steps may add items, which do not count; a `limit` counts where no item is left out before it."""
    assert held(stream) <= MOST_ITEMS


@pytest.mark.parametrize(
    "stream",
    [
        FILES.limit(1),
        numbers(1).join(FILES, on=str),
        Stream.iterate(1, abs),
        Stream.iterate(1, abs).filter(bool).limit(1),
        Stream.from_iterable(iter("a")),
        Stream.from_iterable(Feed()),
        Stream.from_iterable(Failing("a")),
        Stream.of(1).parallel(2),
        numbers(3000) + numbers(3000).filter(bool),
        numbers(3000).union(numbers(3000)),
        Stream.from_iterable(MANY).filter(bool).limit(1),
    ],
    ids=repr,
)
def test_held_items_of_the_others_are_many(stream):
    """Items that workers read, uncounted ones, plans with partitions, and sources that are too large together."""
    assert held(stream) > MOST_ITEMS


def test_held_items_counts_a_source_as_often_as_it_is_read():
    """A stream that is added to itself 2,000 times is too much, whatever the number is."""
    stream = Stream.of(1)
    for _ in range(2000):
        stream = stream + stream

    assert held(stream) > MOST_ITEMS


def test_held_items_asks_the_storage_of_a_collection(tmp_path):
    """Items in memory count; a collection that was destroyed fails where it is read, and workers read a folder."""
    with ds.connect(engine="local", storage="memory:") as ctx, ds.connect(engine="local", storage=tmp_path) as other:
        names = ctx.get_list("names")
        names.extend(["Ada", "Grace"])
        assert held(names.stream()) == 2
        assert held(other.get_map("names").stream()) == math.inf
        names.destroy()
        assert held(names.stream()) <= MOST_ITEMS


def test_held_items_reads_the_first_records_of_local_files_here(tmp_path):
    """The first records are read sooner than Spark starts; a whole file, or one behind a filter, is left to workers."""
    path = tmp_path / "words.txt"
    path.write_text("call\nme\nIshmael\n")
    lines = read(text_files(str(path)), "files", None)

    assert held(lines.map(str).limit(2)) == 2
    assert held(lines) == math.inf
    assert held(lines.filter(str).limit(2)) > MOST_ITEMS


def test_held_items_of_tables_are_unknown():
    """A DataFrame is on Spark."""
    assert held_of(Table([])) == math.inf


def test_held_items_are_those_of_a_cache_instead_of_its_source():
    """Cached items count; without them, those of the source."""
    cache = Cache(Read(Items(MANY)))
    few = CacheContent(CachedItems([1, 2], Bound(1000)), True, 2)

    assert held_of(cache, lambda node: few) == 2
    assert held_of(cache) > MOST_ITEMS


def test_held_items_counts_a_page_as_far_as_it_is_read():
    """A limit behind a skip ends what is read of the source, wherever the user wrote it."""
    assert held(Stream.of(*MANY).skip(2).limit(3)) == 5
    assert held(Stream.of(*MANY).filter(bool).skip(2).limit(3)) > MOST_ITEMS


def test_held_items_does_not_count_a_limit_behind_a_step_that_may_leave_items_out():
    """The number of items that fail is unknown."""
    assert held(Stream.of(*MANY).map(abs).limit(3)) <= MOST_ITEMS
    assert held(Stream.of(*MANY).map(abs).ignore(ValueError).limit(3)) > MOST_ITEMS


def test_held_items_reads_no_iterator():
    """An item that is read would stay in memory, and may arrive late."""
    items = iter("abc")
    held(Stream.from_iterable(items).limit(1))

    assert next(items) == "a"
