"""Which plans `engine="auto"` runs in the caller's process; `place` looks at the plan alone, and reads nothing."""

from __future__ import annotations

import re

import pytest

import dstream as ds
from dstream import IntStream, Stream
from dstream.connectors.memory import Items
from dstream.plan import Cache, CacheContent, Concat, Read, Table, rewrite
from dstream.plan.properties import MOST_ITEMS, place
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


def placed(stream):
    """Return where the plan of a stream runs."""
    return place(rewrite(stream._node))


def numbers(count):
    """Return a stream of so many numbers."""
    return Stream.from_iterable(range(count))


def test_place_draws_the_line_at_the_bound():
    """As many items as the bound run here, one more on Spark; the reason names the number."""
    here, there = placed(numbers(MOST_ITEMS)), placed(numbers(MOST_ITEMS + 1))

    assert (here.is_here, here.reason) == (True, "runs in this process: 4,096 items from the caller")
    assert (there.is_here, there.reason) == (False, "runs on Spark: more than 4,096 items from the caller")
    assert placed(Stream.of("a")).reason == "runs in this process: 1 item from the caller"


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
def test_place_runs_a_few_items_of_the_caller_here(stream):
    """What steps make of them does not count; a `limit` does where nothing is left out before it."""
    assert placed(stream).is_here


@pytest.mark.parametrize(
    ("stream", "reason"),
    [
        (FILES.limit(1), "files is read by workers"),
        (numbers(1).join(FILES, on=str), "files is read by workers"),
        (Stream.iterate(1, abs), r"Stream.iterate\(1, abs\) has no end"),
        (Stream.iterate(1, abs).filter(bool).limit(1), r"Stream.iterate\(1, abs\) has no end"),
        (Stream.from_iterable(iter("a")), "nobody knows how many items .*iterator.* has"),
        (Stream.from_iterable(Feed()), "nobody knows how many items .*Feed.* has"),
        (Stream.from_iterable(Failing("a")), "nobody knows how many items .* has"),
        (Stream.of(1).parallel(2), r"\.parallel\(2\) asks for 2 partitions"),
        (Stream.of(1).configure({"a": "b"}), "its settings are those of Spark"),
        (numbers(3000) + numbers(3000).filter(bool), "more than 4,096 items from the caller"),
        (numbers(3000).union(numbers(3000)), "more than 4,096 items from the caller"),
        (Stream.from_iterable(MANY).filter(bool).limit(1), "more than 4,096 items from the caller"),
    ],
    ids=lambda given: "" if isinstance(given, str) else repr(given),
)
def test_place_leaves_the_others_to_spark(stream, reason):
    """What workers read, what nobody can count, what asks for Spark itself, what is too much together."""
    placement = placed(stream)

    assert not placement.is_here
    assert re.fullmatch(f"runs on Spark: {reason}", placement.reason)


def test_place_counts_a_source_as_often_as_it_is_read():
    """A stream that is added to itself 2,000 times is too much, whatever the number is."""
    stream = Stream.of(1)
    for _ in range(2000):
        stream = stream + stream

    assert not placed(stream).is_here


def test_place_asks_the_storage_of_a_collection(tmp_path):
    """What is in memory counts, and what is gone fails where it is read; a folder is read by workers."""
    with ds.connect(engine="local", storage="memory:") as ctx, ds.connect(engine="local", storage=tmp_path) as other:
        names = ctx.get_list("names")
        names.extend(["Ada", "Grace"])
        assert placed(names.stream()).reason == "runs in this process: 2 items from the caller"
        assert not placed(other.get_map("names").stream()).is_here
        names.destroy()
        assert placed(names.stream()).is_here


def test_place_reads_the_first_records_of_local_files_here(tmp_path):
    """They are read sooner than Spark starts; all of a file, and what a filter may look for, belong to workers."""
    path = tmp_path / "words.txt"
    path.write_text("call\nme\nIshmael\n")
    lines = read(text_files(str(path)), "files", None)

    assert placed(lines.map(str).limit(2)).reason == "runs in this process: 2 items from the caller"
    assert not placed(lines).is_here
    assert not placed(lines.filter(str).limit(2)).is_here


def test_place_leaves_tables_to_spark():
    """A DataFrame is there."""
    assert place(rewrite(Table([]))).reason == "runs on Spark: from_df(list) is there"


def test_place_asks_what_is_kept_instead_of_where_it_came_from():
    """Kept here, its own items count; kept elsewhere, the plan goes there; nowhere, those of the source count."""
    cache = rewrite(Cache(Read(Items(MANY))))

    def reason(cached):
        return place(cache, {cache: cached}.get).reason

    assert reason(CacheContent([1, 2], True, 2)) == "runs in this process: 2 items from the caller"
    assert reason(CacheContent([1, 2], True, MOST_ITEMS + 1)) == "runs on Spark: more than 4,096 items from the caller"
    assert reason(CacheContent(object(), True)) == "runs on Spark: .cache() keeps its items there"
    assert reason(None) == place(cache).reason == "runs on Spark: more than 4,096 items from the caller"


def test_place_asks_once_what_is_kept():
    """Another thread may keep the items, or lose them, meanwhile."""
    answers = [CacheContent([1], True, 1)]
    cache = Cache(Read(Items(MANY)))

    assert place(rewrite(Concat((cache, cache))), lambda node: answers.pop()).is_here


def test_place_counts_a_page_as_far_as_it_is_read():
    """A limit behind a skip ends what is read of the source, wherever the user wrote it."""
    assert placed(Stream.of(*MANY).skip(2).limit(3)).reason == "runs in this process: 5 items from the caller"
    assert not placed(Stream.of(*MANY).filter(bool).skip(2).limit(3)).is_here


def test_place_does_not_count_a_limit_behind_a_step_that_may_leave_items_out():
    """Nobody knows how many items fail."""
    assert placed(Stream.of(*MANY).map(abs).limit(3)).is_here
    assert not placed(Stream.of(*MANY).map(abs).ignore(ValueError).limit(3)).is_here


def test_place_reads_no_iterator():
    """What is pulled from it would be kept in memory, and may be waited for."""
    items = iter("abc")
    placed(Stream.from_iterable(items).limit(1))

    assert next(items) == "a"
