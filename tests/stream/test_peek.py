"""`peek`: an action that sees the items that pass."""

from __future__ import annotations

import os

import pytest

from dstream import Stream


def test_peek_runs_in_the_callers_process_before_the_result_is_there(engine):
    """The action sees each item once, in encounter order; it may change the caller's variables."""
    seen = []
    result = engine.stream([3, None, 1], 2).peek(lambda item: seen.append((item, os.getpid()))).to_list()

    assert (result, seen) == ([3, None, 1], [(item, os.getpid()) for item in [3, None, 1]])


def test_peek_sees_what_passed_its_own_step(engine):
    """A step before it may keep items from it; a step after it may not."""
    before, after = [], []
    stream = engine.stream([1, 2, 3, 4], 2).peek(before.append).filter(lambda n: n % 2 == 0).peek(after.append)

    assert (stream.count(), before, after) == (2, [1, 2, 3, 4], [2, 4])


def test_peek_sees_the_items_before_a_shuffle(engine):
    """The action runs as well if the items are sorted, made distinct, grouped later."""
    seen = []
    stream = engine.stream([3, 1, 3, 2], 3).peek(seen.append)

    assert (stream.distinct().sorted().skip(1).to_list(), seen) == ([2, 3], [3, 1, 3, 2])


def test_peek_after_a_shuffle_runs_before_a_short_circuit_returns(engine):
    """`find_first` behind `sorted` and `peek` has shown the action the item that it found."""
    seen = []
    found = engine.stream([3, 1, 2], 3).sorted().peek(seen.append).find_first().get()

    assert (found, seen[:1]) == (1, [1])


def test_peek_before_a_short_circuit_sees_the_first_item(engine):
    """What `find_first` found has passed the steps before, and their actions have run."""
    seen = []
    found = engine.stream([3, 1, 2], 3).peek(seen.append).find_first().get()

    assert (found, seen[0]) == (3, 3)


def test_peek_runs_for_each_partition_that_is_worked_on(engine):
    """`for_each_partition` makes the items pass too."""
    seen = []
    engine.stream([1, 2, 3], 2).peek(seen.append).for_each_partition(lambda items: list(items))

    assert seen == [1, 2, 3]


def test_peek_does_not_run_before_a_terminal_operation(engine):
    """Building a stream runs nothing; nothing to see means no call."""
    seen = []
    engine.stream([1], 1).peek(seen.append).sorted()
    engine.stream([], 2).peek(seen.append).to_list()

    assert seen == []


def test_peek_of_an_infinite_stream_ends_with_it(default_engine):
    """The action sees no more than the endless stream was asked for."""
    seen = []
    Stream.iterate(0, lambda n: n + 1).peek(seen.append).limit(3).to_list()

    assert seen == [0, 1, 2]


def test_peek_that_fails_names_its_step_and_the_item(engine):
    """The exception of the action is the caller's own, with notes."""
    with pytest.raises(ZeroDivisionError) as caught:
        engine.stream([1, 0], 2).peek(lambda n: 1 // n).to_list()

    assert "on the item 0\n" in caught.value.__notes__[1]
