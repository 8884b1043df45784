"""`epochs()`: epochs that a test cuts."""

from __future__ import annotations

import pytest

from dstream.errors import IllegalStateError
from dstream.testing.epochs import epochs
from reducers import to_ilist, to_imap
from tests.jobs.unbounded.streams import pipeline_of
from tests.jobs.unbounded.summing import FrameSums, Lagging
from tests.jobs.unbounded.timed_plans import summing_plan


def test_each_cut_is_one_epoch():
    """What sinks get is that of the epoch; an empty one gives nothing."""
    by_hand = epochs()
    numbers = by_hand.source("numbers", partitions=2)
    by_hand.of(pipeline_of(numbers, to_ilist("out"), to_imap("map", str, lambda n: n)))

    assert by_hand.cut({numbers: {0: [1], 1: [2]}}) == {"write_to": [1, 2], "write_to-2": [("1", 1), ("2", 2)]}
    assert by_hand.cut() == {"write_to": [], "write_to-2": []}
    assert by_hand.cut({numbers: [3]}) == {"write_to": [3], "write_to-2": [("3", 3)]}


def test_replay_gives_the_same():
    """All epochs run again from the start, with the same borders."""
    by_hand = epochs()
    numbers = by_hand.source("numbers")
    by_hand.of(pipeline_of(numbers, to_ilist("out")))
    first = [by_hand.cut({numbers: [1, 2]}), by_hand.cut(), by_hand.cut({numbers: [3]})]

    assert by_hand.replay() == first == [{"write_to": [1, 2]}, {"write_to": []}, {"write_to": [3]}]


def test_a_pipeline_is_needed():
    """The message says how it is given."""
    with pytest.raises(IllegalStateError, match=r"epochs\(\)\.of\(pipeline\) takes one"):
        epochs().cut()


@pytest.fixture
def sums():
    """Sums by frames of ten, of two partitions whose watermarks are their greatest timestamps."""
    by_hand = epochs()
    numbers = by_hand.source("numbers", partitions=2)
    by_hand.of(summing_plan(numbers, Lagging, FrameSums()))
    return lambda given=None, now=None, **more: by_hand.cut({numbers: given or {}}, now, **more)["sink"], by_hand


def test_a_frame_closes_when_all_partitions_have_passed_it(sums):
    """In the very epoch in which the slower one does."""
    cut, by_hand = sums

    assert cut({0: [2, 4], 1: [6]}) == []
    assert cut({0: [12]}) == []
    assert (by_hand.clock, cut({1: [10]})) == (6, [(10, 12)])
    assert cut({0: [21], 1: [25]}) == [(20, 22)]
    assert by_hand.replay() == [{"sink": []}, {"sink": []}, {"sink": [(10, 12)]}, {"sink": [(20, 22)]}]


def test_late_items_are_counted(sums):
    """They are dropped where they are, by the watermark at the start of the epoch."""
    cut, by_hand = sums
    cut({0: [30], 1: [40]})

    assert (cut({0: [5, 35]}), by_hand.late) == ([], {"sums": 1})


def test_an_idle_partition_holds_nobody_back(sums):
    """After its timeout; the clock is that of the test."""
    cut, _ = sums
    assert cut({0: [2, 14]}, now=0) == []
    assert cut({0: [16]}, now=59) == []
    assert cut({0: [18]}, now=60) == [(10, 2)]
    assert cut({1: [12], 0: [20]}, now=61) == []


def test_all_partitions_idle_let_time_go_to_the_greatest(sums):
    """What the slower one has is on time up to there."""
    cut, _ = sums
    cut({0: [2, 14], 1: [4]}, now=0)

    assert cut(now=59) == []
    assert cut(now=60) == [(10, 6)]


def test_an_end_closes_all_frames(sums):
    """In order of their ends in each shard."""
    cut, _ = sums
    cut({0: [2, 14]})

    assert sorted(cut({1: [26]}, is_end=True)) == [(10, 2), (20, 14), (30, 26)]
