"""Loops in the caller: how sources are divided for them, and how many partitions run at once."""

from __future__ import annotations

from contextlib import contextmanager
from types import SimpleNamespace

import pytest

import dstream as ds
from dstream.engine.compiler import compiled
from dstream.engine.compiler.ends import reads_only
from dstream.engine.physical.graph import Each, Pulled
from dstream.engine.spark.run import execution as facts
from dstream.engine.spark.run import execution as looping
from dstream.engine.spark.run.execution import waves
from dstream.engine.spark.run.graphs import SparkGraphRun
from dstream.engine.spark.run.segments import SplitSegment
from dstream.engine.spark.run.stage_runner import RunOptions, StageRunner
from dstream.engine.tasks.rows import ITEMS, Row
from dstream.operators.rows.batches import dumps_items
from dstream.operators.rows.caches import Caches
from dstream.plan import Filter, Limit, Map, Parallel, Partitions, Read, Sorted, rewrite
from reducers import to_ilist
from sources import Items

RUNNER = SimpleNamespace(
    backend=SimpleNamespace(
        cores=2,
        setting=lambda name: "10m",
        broadcast_limit=2**20,
        column_mode="auto",
        caches=Caches(),
        worker_memory=2**29,
    ),
    options=RunOptions(),
    counting=lambda: None,
)


def pieces(root, *, in_small_pieces: bool) -> int:
    """Return into how many pieces a plan is divided."""
    plan = rewrite(Partitions(root))
    known = facts.facts_of(plan, RUNNER, in_small_pieces=in_small_pieces)
    graph, _ = compiled(plan, known)
    assert isinstance(graph.ending, Each)
    return SparkGraphRun(graph, known, RUNNER).flow(graph.ending.inputs).count_partitions()


@pytest.mark.parametrize(
    ("source", "expected"),
    [(Items(range(100)), 10), (Items(list(range(100))), 10), (Items(range(100), 3), 3), (Items(range(5)), 2)],
)
def test_a_loop_divides_what_the_caller_holds(monkeypatch, source, expected):
    """Into pieces of a few items, unless the user said into how many; all else in as many as there are cores."""
    monkeypatch.setattr(facts, "_ITEMS_OF_A_SMALL_PIECE", 10)
    root = Map(Read(source), str)

    assert pieces(root, in_small_pieces=True) == expected
    assert pieces(root, in_small_pieces=False) == (source.partitions or 2)


def test_parallel_decides_for_loops_too(monkeypatch):
    """What the user asked for stays."""
    monkeypatch.setattr(facts, "_ITEMS_OF_A_SMALL_PIECE", 10)

    assert pieces(Parallel(Read(Items(range(100))), 4), in_small_pieces=True) == 4


@pytest.mark.parametrize(
    ("root", "expected"),
    [
        (Filter(Map(Read(Items([1])), abs), bool), True),
        (Sorted(Read(Items([1]))), False),
        (Limit(Read(Items([1])), 1), False),
    ],
)
def test_only_plans_of_one_stage_are_divided_for_a_loop(root, expected):
    """More pieces before a shuffle would be more work, and a limit reads few of them."""
    assert reads_only(rewrite(root)) is expected


ALL = Pulled((), None, 0, True)


class FakeRun:
    """A run whose pieces give one row of some bytes each, and which keeps the sizes of its waves."""

    def __init__(self, count: int, size: int) -> None:
        self.runner = SimpleNamespace(backend=SimpleNamespace(cores=8))
        self.sizes: list[int] = []
        self._pieces, self._size = range(count), size

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        return None

    def flow(self, items):
        return SimpleNamespace(segments=[SplitSegment(self._pieces)])

    @contextmanager
    def in_parts(self, wave):
        self.sizes.append(len(wave))
        rows = [Row(0, piece, 0, ITEMS, 1, dumps_items([piece]) + bytes(self._size)) for piece in wave]
        yield sum(len(row.payload) for row in rows), iter(rows)


@pytest.mark.parametrize(
    ("size", "expected"), [(10, [4, 16, 44, 36]), (100, [4, 10] + [10] * 8 + [6]), (5000, [4] * 25)]
)
def test_the_size_of_a_wave_follows_from_that_of_the_last(monkeypatch, size, expected):
    """Four times as many pieces as before, as long as they fit together; as many as at first in any case."""
    monkeypatch.setattr(looping, "_WAVE_BYTES", 1200)
    monkeypatch.setattr(looping, "piece_rows", lambda wave, sink, first, runner: wave)
    run = FakeRun(100, size)

    assert list(waves(run, ALL)) == list(range(100))
    assert run.sizes == expected


def test_a_wave_runs_only_when_it_is_asked_for(monkeypatch):
    """Who leaves a loop early runs no more."""
    monkeypatch.setattr(looping, "piece_rows", lambda wave, sink, first, runner: wave)
    run = FakeRun(100, 10)
    items = waves(run, ALL)

    assert [next(items) for _ in range(4)] == [0, 1, 2, 3]
    assert run.sizes == [4]


@pytest.fixture
def fetched(monkeypatch):
    """How many bytes come to the caller with each job, in parts that are small."""
    monkeypatch.setattr(looping, "_HELD_BYTES", 4000)
    fetched, all_rows = [], StageRunner.rows

    def rows(runner, frame):
        seen = list(all_rows(runner, frame))
        fetched.append(sum(len(row.payload) for row in seen))
        return iter(seen)

    monkeypatch.setattr(StageRunner, "rows", rows)
    return fetched


@pytest.mark.parametrize("partitions", [1, 2, 5])
def test_a_loop_holds_little_of_large_partitions(spark_context, fetched, partitions):
    """A first part of each partition of a wave comes with the job, the rest of it row by row, all in order."""
    texts = spark_context.stream(range(3000), partitions).map(lambda n: f"{n:0100d}")

    assert list(texts) == [f"{n:0100d}" for n in range(3000)]
    assert fetched[0] < 4000 + 4 * 64 * 110
    assert max(fetched) <= 300 * 1024
    assert sum(fetched) > 300_000


def test_the_partitions_of_a_wave_share_what_comes_at_once(spark_context, fetched, monkeypatch):
    """Two partitions bring half of it each: two rows of some 34 KB together, and not the third of 107 KB."""
    monkeypatch.setattr(looping, "_HELD_BYTES", 40_000)

    assert len(list(spark_context.stream(range(3000), 2).map(lambda n: f"{n:0100d}"))) == 3000
    assert 60_000 < fetched[0] < 80_000


def test_small_partitions_come_at_once(spark_context, fetched):
    """What fits needs no second job."""
    assert list(spark_context.stream(range(100), 4)) == list(range(100))
    assert len(fetched) == 2


def test_what_a_loop_left_is_released(spark_context):
    """Whoever leaves a loop in the middle of a wave leaves nothing on the executors."""
    kept = spark_context.spark.sparkContext._jsc.getPersistentRDDs
    before = set(kept())
    items = iter(spark_context.stream(range(3000), 2).map(lambda n: f"{n:0100d}"))
    assert next(items) == "0" * 100
    assert set(kept()) - before
    items.close()

    assert set(kept()) <= before


def test_peek_and_dead_letters_of_large_partitions(spark_context, fetched, tmp_path):
    """What is beside the items of a wave is seen before the first of them, once."""
    seen: list[int] = []
    with ds.connect("local[2]", storage=str(tmp_path)) as ctx:
        quotients = ctx.stream(range(2000), 2).peek(seen.append).map(lambda n: 1000 // (n - 700))
        items = iter(quotients.on_error(ZeroDivisionError, into=to_ilist("letters")))
        first = next(items)

        assert seen == list(range(2000))
        assert [first, *items] == [1000 // (n - 700) for n in range(2000) if n != 700]
        assert seen == list(range(2000))
        assert [letter.item for letter in ctx.get_list("letters")] == [700]
