"""Loops in the caller: how sources are divided for them, and how many partitions run at once."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from dstream.engine.batches import dumps_items
from dstream.engine.spark import looping
from dstream.engine.spark.flow import Splits
from dstream.engine.spark.looping import waves
from dstream.engine.spark.lowering import Lowering, reads_only, streams
from dstream.engine.spark.rows import ITEMS, Row
from dstream.plan import Filter, Limit, Map, Node, Parallel, Read, Sorted, rewrite
from sources import Items

CLUSTER = SimpleNamespace(cores=2, counting=lambda: None)


def pieces(root: Node, *, in_small_pieces: bool) -> int:
    """Return into how many pieces a plan is divided."""
    return Lowering(root, CLUSTER, {}, in_small_pieces).lower(root).count_partitions()


@pytest.mark.parametrize(
    ("source", "expected"),
    [(Items(range(100)), 10), (Items(list(range(100))), 10), (Items(range(100), 3), 3), (Items(range(5)), 2)],
)
def test_a_loop_divides_what_the_caller_holds(monkeypatch, source, expected):
    """Into pieces of a few items, unless the user said into how many; all else in as many as there are cores."""
    monkeypatch.setattr(streams, "_ITEMS_OF_A_SMALL_PIECE", 10)
    root = rewrite(Map(Read(source), str))

    assert pieces(root, in_small_pieces=True) == expected
    assert pieces(root, in_small_pieces=False) == (source.partitions or 2)


def test_parallel_decides_for_loops_too(monkeypatch):
    """What the user asked for stays."""
    monkeypatch.setattr(streams, "_ITEMS_OF_A_SMALL_PIECE", 10)

    assert pieces(rewrite(Parallel(Read(Items(range(100))), 4)), in_small_pieces=True) == 4


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


class FakeRun:
    """A run whose pieces give one row of some bytes each, and which keeps the sizes of its waves."""

    def __init__(self, count: int, size: int) -> None:
        self.cluster = SimpleNamespace(cores=8)
        self.sizes: list[int] = []
        self._pieces, self._size = range(count), size

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        return None

    def lower(self, node):
        return SimpleNamespace(segments=[Splits(self._pieces)])

    def rows(self, wave):
        self.sizes.append(len(wave))
        return [Row(0, piece, 0, ITEMS, 1, dumps_items([piece]) + bytes(self._size)) for piece in wave]


@pytest.mark.parametrize(
    ("size", "expected"), [(10, [4, 16, 44, 36]), (100, [4, 10] + [10] * 8 + [6]), (5000, [4] + [1] * 96)]
)
def test_the_size_of_a_wave_follows_from_that_of_the_last(monkeypatch, size, expected):
    """Four times as many pieces as before, as long as they fit together; one in any case."""
    monkeypatch.setattr(looping, "_WAVE_BYTES", 1200)
    monkeypatch.setattr(looping, "piece_rows", lambda wave, sink, first, cluster: wave)
    run = FakeRun(100, size)

    assert list(waves(run, None, None)) == list(range(100))
    assert run.sizes == expected


def test_a_wave_runs_only_when_it_is_asked_for(monkeypatch):
    """Who leaves a loop early runs no more."""
    monkeypatch.setattr(looping, "piece_rows", lambda wave, sink, first, cluster: wave)
    run = FakeRun(100, 10)
    items = waves(run, None, None)

    assert [next(items) for _ in range(4)] == [0, 1, 2, 3]
    assert run.sizes == [4]
