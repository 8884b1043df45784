"""Graphs on both engines, where a decision stands before, or nothing stands there at all."""

from __future__ import annotations

import pytest

import dstream as ds
from dstream.engine.spark.port.classic import ClassicPort
from dstream.engine.spark.run import graphs
from dstream.gatherers import fold, window_sliding
from dstream.stream import Stream
from dstream.testing import Parts

BEFORE = {
    "sorted": lambda s: s.sorted(),
    "drop_while": lambda s: s.drop_while(lambda n: False),
    "distinct": lambda s: s.distinct(),
    "cache": lambda s: s.cache(),
    "windows": lambda s: s.map(abs).gather(window_sliding(1)).map(lambda window: window[0]),
    "partition_by": lambda s: s.partition_by(1),
}


@pytest.mark.on_spark("name")
@pytest.mark.parametrize("name", BEFORE)
def test_partitions_by_key_behind_a_decision(engine, name):
    """Whatever has to be found out before the items can be sent."""
    found = BEFORE[name](engine.stream([3, 1, 2], 2)).partition_by(3).map(lambda n: n * 10).to_list()

    assert sorted(found) == [10, 20, 30]


def test_one_task_runs_where_there_is_nothing_to_read(engine):
    """A result of nothing is there all the same."""
    nothing = engine.context.read(Parts([]))
    total = fold(int, lambda total, n: total + n)

    assert nothing.gather(total).sequential().to_list() == [0]
    assert (nothing + nothing).gather(total).sequential().to_list() == [0]


def test_what_comes_first_is_computed_first(engine):
    """Two cached parts of a concat: the steps before the first one see its items before those of the second."""
    seen = []
    first, second = (engine.stream(part, 1).peek(seen.append).cache() for part in ([1, 2], [3, 4]))

    assert ((first + second).to_list(), seen) == ([1, 2, 3, 4], [1, 2, 3, 4])


def test_what_was_kept_here_is_a_source_on_spark(spark_context):
    """As any other: an infinite stream may follow it."""
    with ds.connect(engine="auto", master="local[2]") as context:
        kept = context.stream([0, 1, 2, 3]).cache()
        assert kept.count() == 4
        endless = kept + Stream.iterate(1, lambda n: n + 1)

        assert endless.parallel(2).distinct().limit(6).to_list() == [0, 1, 2, 3, 4, 5]


def test_partitions_hand_on_what_peek_saw(engine):
    """Also of partitions that a shuffle to fewer ones left behind."""
    seen = []
    stream = engine.stream([0, 1, 2, 3], 4).peek(seen.append).gather(fold(int, lambda total, n: total + n))

    assert [list(items) for items in stream.partitions()] == [[6]]
    assert sorted(seen) == [0, 1, 2, 3]


def test_many_shuffles_in_a_row_are_planned_in_parts(spark_context, monkeypatch):
    """Spark plans by recursion: after some stages their rows are kept, and each is computed once."""
    pinned, pin = [], ClassicPort.pinned
    monkeypatch.setattr(graphs, "_DEEPEST", 2)
    monkeypatch.setattr(ClassicPort, "pinned", lambda port, frame: pinned.append(frame) or pin(port, frame))
    seen = []
    stream = spark_context.stream([3, 1, 3, 2], 3).peek(seen.append).unordered()
    for _ in range(6):
        stream = stream.distinct()

    assert sorted(stream.to_list()) == [1, 2, 3]
    assert (seen, len(pinned)) == ([3, 1, 3, 2], 3)
