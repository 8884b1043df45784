"""The runner of graphs in this process: what it copies, holds, closes and cancels."""

from __future__ import annotations

import datetime
import functools
import itertools
import operator
import os
import re
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import dstream as ds
from collectors import counting, grouping_by
from dstream import errors
from dstream.engine.inprocess import InProcessEngine, graphs
from dstream.plan import Collect, ToList, called, rewrite
from dstream.plan.capture_checks import has_immutable_captures, holds_state
from reducers import to_ilist


@pytest.fixture
def ctx(inprocess_context):
    """The context that every test here asks."""
    return inprocess_context


class Pulled:
    """An endless iterator that counts what was asked of it."""

    def __init__(self):
        self.number = 0

    def __iter__(self):
        return self

    def __next__(self):
        self.number += 1
        return self.number


def test_a_source_is_read_as_far_as_items_are_asked_for(ctx):
    """A limit, the first item, and a loop that is left end an endless source, of which few chunks were pulled."""
    for end in (
        lambda stream: stream.limit(3).to_list(),
        lambda stream: stream.find_first().get(),
        lambda stream: list(itertools.islice(stream, 3)),
        lambda stream: stream.take_while(lambda n: n < 4).to_list(),
    ):
        pulled = Pulled()
        end(ctx.stream(pulled).map(lambda n: n))
        assert pulled.number < 1000


def test_splits_are_asked_for_one_after_another(ctx):
    """The next one is made when the one before it is used up, also where one task reads all."""
    made = []

    class Source:
        ordered, bounded, in_caller = True, True, False

        def splits(self, parallelism):
            for number in range(5):
                made.append(number)
                yield Split(number)

    assert ctx.read(Source()).limit(2).to_list() == [0, 0]
    assert made == [0]


class Split:
    """Two items."""

    def __init__(self, number):
        self.number = number

    def read(self):
        return iter([self.number] * 2)


def test_a_function_that_holds_what_may_change_is_copied(ctx):
    """As on a worker: a list outside of it stays as it is. One that holds nothing of the kind runs as it is."""
    seen = []
    offset = 2

    assert ctx.stream([1, 2]).map(lambda n: seen.append(n) or len(seen)).to_list() == [1, 2]
    assert seen == []
    assert not has_immutable_captures(rewrite(ToList(ctx.stream([1]).map(lambda n: seen)._node)))
    assert has_immutable_captures(rewrite(ToList(ctx.stream([1]).map(lambda n: n + offset).sorted(abs)._node)))


class Tagged(tuple):
    """A tuple with attributes."""


class TaggedDate(datetime.date):
    """A date with attributes."""


def assigning():
    """Return functions and objects that change with their calls."""
    number = 0

    def with_nonlocal(item):
        nonlocal number
        number += item
        return number

    def with_global(item):
        global COUNT
        COUNT = item
        return item

    part = functools.partial(max, 1)
    part.seen = []
    seen, tagged, day = [], Tagged(), TaggedDate(2020, 1, 1)
    tagged.seen = day.seen = []
    return {
        "nonlocal": with_nonlocal,
        "nonlocal inside": lambda item: [with_nonlocal(each) for each in item],
        "global": with_global,
        "global inside": lambda item: functools.reduce(lambda one, two: with_global(two), item),
        "argument of a method": operator.methodcaller("send", []),
        "named argument of a method": operator.methodcaller("send", to=[]),
        "method of a list": seen.append,
        "method of an iterator": iter(seen).__next__,
        "method of a generator": (each for each in seen).send,
        "attribute of a partial": part,
        "attribute of a tuple": lambda item: tagged,
        "attribute of a date": lambda item: day,
    }


@pytest.mark.parametrize("name", assigning())
def test_a_function_that_changes_with_its_calls_is_copied(name):
    """Variables that it assigns to, and objects with attributes of their own, would keep the change."""
    assert holds_state(assigning()[name])


def test_a_function_whose_captures_never_change_is_shared():
    """Its own variables are made with each call."""

    def counting(item):
        number = 0
        return [number := number + each for each in item], lambda: number

    day, part = datetime.date(2020, 1, 1), functools.partial(max, 1)
    calls = [operator.methodcaller("strip", "a"), operator.methodcaller("split", sep="a"), operator.itemgetter(1, "a")]
    calls += [str.split, int.__add__, ", ".join, re.compile("a").findall, int.from_bytes, len, operator.attrgetter("a")]

    assert not any(map(holds_state, [counting, lambda item: (day, part, (1, 2)), *calls]))


def test_items_of_the_caller_are_copied(ctx):
    """A function that changes an item changes its own."""
    items = [[1], [2]]

    assert ctx.stream(items).map(lambda item: item + [9] if item.append(0) is None else []).to_list() == [
        [1, 0, 9],
        [2, 0, 9],
    ]
    assert items == [[1], [2]]


def test_what_cannot_travel_is_refused(ctx):
    """In the words of Spark: no plan begins to fail only because its data grow."""
    lock = threading.Lock()

    with pytest.raises(errors.SerializationError, match="captures the variable 'lock'"):
        ctx.stream([1]).map(lambda n: lock).to_list()


def test_rows_between_tasks_go_to_files_beyond_a_bound(ctx, monkeypatch, tmp_path):
    """They are removed at the end, also of a run that fails."""
    monkeypatch.setattr(graphs, "_IN_MEMORY", 100)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    folders = []
    stream = ctx.stream(range(20_000), 4).parallel(4)

    shown = stream.sorted(reverse=True).peek(lambda n: folders.append(os.listdir(tmp_path)) if n == 0 else None)
    assert shown.to_list()[:2] == [19_999, 19_998]
    groups = stream.collect(grouping_by(lambda n: n % 5_000, counting()))
    assert (len(groups), set(groups.values())) == (5_000, {4})
    with pytest.raises(ZeroDivisionError):
        stream.distinct().map(lambda n: 1 // (n - 19_999)).sorted().to_list()
    assert any(folders)
    assert os.listdir(tmp_path) == []


def test_a_run_is_cancelled_between_two_items(ctx):
    """From another thread, also while a source without an end is read."""
    begun = threading.Event()
    stream = ctx.stream(itertools.count()).peek(lambda n: begun.set()).filter(lambda n: n < 0)
    running = ctx.running_engine().submit(rewrite(Collect(stream.limit(1)._node, counting(), step=called("collect"))))

    running.start()
    assert begun.wait(10)
    running.cancel()
    with pytest.raises(errors.CancelledError):
        running.result()


def test_runs_of_several_threads_do_not_meet(ctx):
    """Each has its own services, tables and rows."""

    def total(number):
        left = ctx.stream([(n % 7, n) for n in range(200)], 3).parallel(3)
        return sum(value[1] for _, value in left.join([(n, number) for n in range(7)]).to_list())

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(total, range(8))) == [200 * number for number in range(8)]


def test_a_fork_that_leaves_a_loop_ends_nothing_of_its_parent(ctx, monkeypatch, tmp_path):
    """The files of its rows stay for the parent."""
    monkeypatch.setattr(graphs, "_IN_MEMORY", 0)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    loop = iter(ctx.stream(range(10_000), 3).parallel(3).sorted(reverse=True))

    assert next(loop) == 9_999
    child = os.fork()
    if child == 0:
        try:
            loop.close()
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert sum(1 for _ in loop) == 9_999


def test_partitions_are_read_apart(ctx):
    """In any order, also behind what moves items; notes are delivered at the end of the last one, once."""
    parts = ctx.stream(range(10), 3).parallel(3).sorted(reverse=True).partitions()

    assert [item for part in reversed(parts) for item in [*part][::-1]] == [*range(10)]
    dead = to_ilist("dead of partitions")
    guarded = ctx.stream(range(4), 2).parallel(2).map(lambda n: 1 // (n - 2)).on_error(ZeroDivisionError, into=dead)
    first, second = guarded.partitions()
    assert [*second] == [1]
    assert "dead of partitions" not in [each.name for each in ctx.collections()]
    assert [*first] == [-1, -1]
    assert [letter.item for letter in ctx.get_list("dead of partitions")] == [2]


def test_a_loop_delivers_its_notes_once(ctx):
    """At its end, and where the caller leaves it."""
    dead = to_ilist("dead of loops")
    guarded = ctx.stream(range(4)).map(lambda n: 1 // (n - 1)).on_error(ZeroDivisionError, into=dead)

    assert list(guarded) == [-1, 1, 0]
    assert next(iter(guarded)) == -1
    assert [letter.item for letter in ctx.get_list("dead of loops")] == [1]


def test_what_is_of_spark_is_refused(ctx):
    """DataFrames are Spark's."""
    with pytest.raises(errors.UnsupportedError, match="Spark"):
        ctx.stream([{"n": 1}]).to_df()
    with pytest.raises(errors.UnsupportedError, match="Spark"):
        InProcessEngine(2**28).data_frame([], None)


def test_another_engine_of_the_context_reads_what_is_kept(ctx):
    """The items of a `cache()` are computed once, and are copies for each reader."""
    seen = []
    kept = ctx.stream([[1], [2]], 2).peek(seen.append).cache()

    assert kept.map(lambda item: item + [9]).to_list() == [[1, 9], [2, 9]]
    assert kept.to_list() == [[1], [2]]
    assert seen == [[1], [2]]


def test_it_says_how_it_is_called():
    """A context on it has a name of its own, and tasks are counted for whoever plans them."""
    engine = InProcessEngine(2**28)

    assert (engine.name, engine.cores(), engine.is_lost()) == ("inprocess", 1, False)
    assert isinstance(ds.connect(engine="local").stream([1]).count(), int)
