"""`window_fixed`, `window_sliding`, `chunked` and `pairwise`: tuples of neighbours."""

from __future__ import annotations

import itertools
import threading
from typing import Any

import pytest
from more_itertools import chunked, sliding_window

import dstream as ds
from collectors import joining, to_list
from dstream import IntStream, Stream
from dstream.connectors.memory import Range
from dstream.engine.compiler import gatherers as compiled_gatherers
from dstream.errors import SerializationError
from dstream.gatherers import window_fixed, window_sliding
from dstream.testing import Parts

CUTS = [
    Parts([]),
    Parts([], [1], []),
    Parts([1], [2], [], [3], [4]),
    Parts([], [1, 2, 3], [], [], [None], [5, 6, 7, 8], [9], []),
]


def slid(items: list[Any], n: int) -> list[tuple[Any, ...]]:
    """Say in plain Python what `window_sliding` gives."""
    return list(sliding_window(items, n)) or [tuple(items)] * bool(items)


@pytest.mark.parametrize("parts", CUTS, ids=repr)
def test_windows_that_slide_cross_short_and_empty_partitions(engine, parts):
    """Each item begins a window as long as `n` - 1 others follow, wherever these stand."""
    items = list(itertools.chain.from_iterable(parts.parts))
    stream = engine.context.read(parts)

    assert stream.gather(window_sliding(3)).to_list() == slid(items, 3)
    assert stream.pairwise().to_list() == list(itertools.pairwise(items))


@pytest.mark.parametrize("parts", CUTS, ids=repr)
@pytest.mark.parametrize("n", [2, 3])
def test_fixed_windows_cross_short_and_empty_partitions(engine, parts, n):
    """A window begins at every n-th item of the whole stream; the last one may be short."""
    items = list(itertools.chain.from_iterable(parts.parts))

    assert engine.context.read(parts).gather(window_fixed(n)).to_list() == list(map(tuple, chunked(items, n)))


@pytest.mark.parametrize("n", [1, 4, 2**70])
def test_windows_of_one_item_and_of_more_than_all(engine, n):
    """A stream shorter than `n` gives one short window; no number is too large."""
    stream = engine.stream("abcd", 3)

    assert stream.gather(window_sliding(n)).to_list() == slid(list("abcd"), min(n, 9))
    assert stream.chunked(n).to_list() == list(map(tuple, chunked("abcd", min(n, 9))))


@pytest.mark.parametrize(("count", "n"), [(0, 2), (1, 3), (2, 9), (7, 1), (7, 3), (7, 7)])
def test_windows_of_a_range_need_no_job_before(engine, count, n):
    """Where nothing of the user's makes the items, each partition reads on into the next ones."""
    numbers = engine.context.read(Range(0, count, partitions=3)).map(float)
    expected = slid(list(map(float, range(count))), n)

    assert numbers.gather(window_sliding(n)).to_list() == expected
    assert numbers.pairwise().to_list() == list(itertools.pairwise(map(float, range(count))))


def test_windows_of_windows(engine):
    """What a first gatherer gave is gathered again, in other partitions than it stood in."""
    stream = engine.stream(range(9), 4).chunked(2).gather(window_sliding(2)).filter(lambda pair: len(pair[1]) == 2)

    assert stream.chunked(2).to_list() == [(((0, 1), (2, 3)), ((2, 3), (4, 5))), (((4, 5), (6, 7)),)]


def test_windows_of_an_unordered_stream_hold_every_item_once(engine):
    """Without an order the windows are some windows, and nothing is lost."""
    windows = engine.stream(range(10), 3).unordered().chunked(3).to_list()

    assert sorted(itertools.chain.from_iterable(windows)) == list(range(10))


def test_windows_of_numeric_streams(local_context):
    """`IntStream` and `DoubleStream` give streams of tuples."""
    assert IntStream.of(1, 2, 3).pairwise().map(sum).to_list() == [3, 5]
    assert ds.DoubleStream.of(1.0, 2.0, 3.0).chunked(2).to_list() == [(1.0, 2.0), (3.0,)]


def test_windows_of_an_endless_stream_come_one_by_one(default_engine):
    """The first window is there without the end having been seen, on one partition without another job."""
    numbers = Stream.iterate(0, lambda n: n + 1)

    assert numbers.gather(window_sliding(3)).find_first().get() == (0, 1, 2)
    assert numbers.chunked(2).limit(2).to_list() == [(0, 1), (2, 3)]


@pytest.mark.parametrize(("gatherer", "read"), [(window_sliding(3), 3), (window_fixed(2), 2)])
def test_windows_read_no_more_than_they_need(local_context, gatherer, read):
    """`find_first` of the windows reads the items of the first one."""
    source = Parts(range(10))
    local_context.read(source).gather(gatherer).find_first()

    assert source.items_read == read


def test_windows_run_functions_before_them_once(spark_context):
    """The job that learns the sizes leaves the items, which are read again: no item is made twice."""
    source = Parts([1, 2], [], [3], [4, 5])
    seen: list[int] = []

    assert spark_context.read(source).peek(seen.append).gather(window_sliding(2)).count() == 4
    assert (seen, source.items_read) == ([1, 2, 3, 4, 5], 5)


@pytest.mark.parametrize("parts", CUTS, ids=repr)
@pytest.mark.parametrize("n", [1, 2, 4])
def test_windows_that_are_only_reduced_are_those_of_the_stream(engine, parts, n):
    """Each once and in order, whatever reduces them, behind steps that leave some out or make more of them."""
    windows = engine.context.read(parts).map(str).gather(window_sliding(n))
    expected = slid(list(map(str, itertools.chain.from_iterable(parts.parts))), n)

    assert windows.collect(to_list()) == expected
    assert windows.map("".join).parallel(2).map(len).unordered().map(str).collect(joining(",")) == ",".join(
        str(len("".join(window))) for window in expected
    )
    assert windows.filter(lambda window: "3" in window).flat_map(list).count() == sum(
        len(window) for window in expected if "3" in window
    )
    assert windows.reduce((), lambda left, right: left + right) == tuple(itertools.chain.from_iterable(expected))
    assert windows.max() == ds.Optional.of_nullable(max(expected, default=None))


def test_what_fails_across_a_border_names_its_step_and_item(engine):
    """As inside of a partition: the window that the function failed on."""
    pairs = engine.stream(range(8), 4).map(abs).pairwise().map(lambda pair: 1 // (pair[0] - 3))
    with pytest.raises(ZeroDivisionError) as caught:
        pairs.collect(to_list())

    assert (ds.failure(caught.value).step.label, ds.failure(caught.value).item) == (".map(lambda)", (3, 4))


def test_an_item_at_a_border_that_cannot_travel_is_named(spark_context):
    """The items at the ends of a partition meet in one task; one that cannot be pickled says which it is."""
    with pytest.raises(SerializationError, match="cannot travel between processes: lock "):
        spark_context.stream(range(8), 4).map(lambda n: threading.Lock()).pairwise().count()


def test_failures_before_windows_are_noted(spark_context, capsys):
    """Items that are left out before the windows are counted, although the windows leave their task at once."""
    inverses = spark_context.stream(range(8), 4).map(lambda n: 1 // (n % 5)).ignore(ZeroDivisionError)

    assert inverses.pairwise().count() == 5
    assert "2 items failed with ZeroDivisionError" in capsys.readouterr().err


def test_what_looks_at_windows_sees_them_in_order(spark_context):
    """A `peek` behind the windows sees those across borders between the others."""
    seen: list[Any] = []

    assert spark_context.stream(range(6), 3).map(abs).pairwise().peek(seen.append).count() == 5
    assert seen == list(itertools.pairwise(range(6)))


def test_what_fails_behind_windows_is_noted_in_order(spark_context):
    """Failures that are ignored behind the windows, across borders too."""
    pairs = spark_context.stream(range(6), 3).map(abs).pairwise().map(lambda pair: 1 // (pair[0] % 2))

    assert pairs.ignore(ZeroDivisionError).collect(to_list()) == [1, 1]


def test_windows_of_a_range_that_is_looked_at_show_each_item_once(spark_context):
    """A `peek` before keeps partitions from reading ahead."""
    seen: list[int] = []
    numbers = spark_context.read(Range(0, 6, partitions=3)).peek(seen.append)

    assert numbers.pairwise().count() == 5
    assert seen == [0, 1, 2, 3, 4, 5]


def test_windows_that_begin_nowhere_in_a_partition_keep_its_peeks(spark_context):
    """A partition whose items all belong to a window of another one still shows them to `peek`."""
    seen: list[int] = []
    spark_context.read(Parts([1], [2], [3, 4, 5])).peek(seen.append).chunked(5).to_list()

    assert seen == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(("gatherer", "size"), [(window_sliding(3), 3000), (window_fixed(3), 300)])
def test_windows_of_large_items_run_in_one_task(spark_context, monkeypatch, gatherer, size):
    """If what neighbours need is too large for every task, one task takes all items: the same windows.

    Too large is what one partition tells, or what all of them tell together.
    """
    items = [bytes([n]) * size for n in range(12)]
    stream = spark_context.stream(items, 4).gather(gatherer)
    in_parallel = stream.to_list()
    monkeypatch.setattr(compiled_gatherers, "_LARGEST_ALONE", 1000)
    monkeypatch.setattr(compiled_gatherers, "_LARGEST_TOGETHER", 2000)

    assert stream.to_list() == in_parallel == spark_context.stream(items, 1).gather(gatherer).to_list()
    assert len(stream.partitions()) == 1


@pytest.mark.parametrize("make", [window_fixed, window_sliding, Stream.of(1).chunked])
@pytest.mark.parametrize(("n", "error"), [(0, ValueError), (-2, ValueError), ("3", TypeError), (True, TypeError)])
def test_windows_refuse_a_size_at_the_call(make, n, error):
    """A window has at least one item, and says so at the factory."""
    with pytest.raises(error, match=r"^n must be "):
        make(n)
