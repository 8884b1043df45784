"""Which epochs are expected to be small, so that one task takes them."""

from __future__ import annotations

import gc
import operator
from itertools import pairwise
from typing import Any

import pytest

from dstream import Pipeline
from dstream.jobs.unbounded import epoch_runner as one_epoch
from dstream.jobs.unbounded.rate_control import RefreshedSides, SmallEpochs
from dstream.operators.state.items import ItemsByKey
from dstream.testing.unbounded import epochs
from reducers import to_ilist
from sources import Items


@pytest.fixture
def expected(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """What was expected of each epoch."""
    found: list[bool] = []
    plan = one_epoch.epoch_plan

    def recording(is_open: Any, epoch: Any) -> Any:
        found.append(epoch.is_small)
        return plan(is_open, epoch)

    monkeypatch.setattr(one_epoch, "epoch_plan", recording)
    return found


def test_an_epoch_is_expected_to_be_as_the_one_before(expected: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    """The first one may be anything; time counts as well as items, and nothing is few items, too."""
    by_hand, pipeline = epochs(), Pipeline()
    numbers = by_hand.source("numbers")
    pipeline.read_from(numbers).map(abs).write_to(to_ilist("out"))
    by_hand.of(pipeline)
    for count in (5000, 5001, 0, 5):
        by_hand.cut({numbers: range(count)})
    monkeypatch.setattr(one_epoch, "_QUICK", 0.0)
    by_hand.cut({numbers: [1]})
    by_hand.cut({numbers: [1]})

    assert expected == [False, True, False, True, True, False]


def runs_of(small: SmallEpochs, count: int, *, is_slow_in_one_task: bool) -> list[int]:
    """Run so many epochs of few items, and return which of them one task took."""
    found = []
    for number in range(count):
        in_one_task = small.begin(may_be=True)
        found += [number] * in_one_task
        small.end(has_few=True, is_quick=not (in_one_task and is_slow_in_one_task))
    return found


def test_one_task_that_took_long_is_tried_again_less_and_less_often() -> None:
    """Divided, the epochs are quick: their functions wait, in several tasks at once. One that is quick is believed."""
    small = SmallEpochs()
    slow = runs_of(small, 300, is_slow_in_one_task=True)
    assert [later - earlier for earlier, later in pairwise(slow)] == [2, 3, 5, 9, 17, 33, 65, 65, 65]
    (first, *others) = runs_of(small, 100, is_slow_in_one_task=False)
    assert others == list(range(first + 1, 100))

    assert runs_of(small, 6, is_slow_in_one_task=True) == [0, 2, 5]


def test_an_epoch_that_may_not_be_small_says_nothing_of_one_task() -> None:
    """It is divided, and how long it takes is no reason to divide others."""
    small = SmallEpochs()
    for _ in range(3):
        small.end(has_few=True, is_quick=True)
        assert not small.begin(may_be=False)
        small.end(has_few=True, is_quick=False)

    assert runs_of(small, 6, is_slow_in_one_task=True) == [1, 3]


def test_an_epoch_that_reads_the_side_of_a_join_is_not_small(expected: list[bool]) -> None:
    """Nobody knows how large that is."""
    by_hand, pipeline = epochs(), Pipeline()
    letters = by_hand.source("letters")
    names = pipeline.read_from(Items("ab"))
    joined = pipeline.read_from(letters).inner_hash_join(names, (str, str), operator.add, refresh_every=10)
    joined.write_to(to_ilist("out"))
    by_hand.of(pipeline)
    for now in (0.0, 1.0, 10.0, 11.0):
        assert by_hand.cut({letters: ["a"]}, now=now) == {"write_to": ["aa"]}

    assert expected == [False, True, False, True]


def _input_left(state: list[int], key: int, number: int) -> int:
    """Return how many shards have input that is still there."""
    return sum(type(each) is ItemsByKey for each in gc.get_objects())


def test_the_input_of_a_shard_goes_when_it_was_applied() -> None:
    """Otherwise its objects are there until the end of the epoch, and start collections of garbage."""
    by_hand, pipeline = epochs(), Pipeline()
    numbers = by_hand.source("numbers")
    stage = pipeline.read_from(numbers).grouping_key(lambda number: number % 100)
    stage.map_stateful(list, _input_left).write_to(to_ilist("out"))
    by_hand.of(pipeline)
    left = by_hand.cut({numbers: range(100)})["write_to"]

    assert left == sorted(left, reverse=True)
    assert [left[0] - each for each in sorted(set(left), reverse=True)] == [*range(8)]


def test_a_side_is_due_when_its_time_is_over() -> None:
    """Whether it is asked or not; reading it begins a new time."""
    sides = RefreshedSides({1: 5.0, 2: 7.0})
    assert sides.are_due(0.0)
    first = sides.at(0.0)
    assert not sides.are_due(4.9)
    assert sides.are_due(5.0)
    second = sides.at(5.0)

    assert (first[1] is second[1], first[2] is second[2]) == (False, True)
    assert sides.are_due(7.0)
