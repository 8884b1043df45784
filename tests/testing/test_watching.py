"""`watch`: what a function was called with, in whichever process that was."""

from __future__ import annotations

import gc
import threading
from pathlib import Path

import pytest

from dstream import failure
from dstream.errors import SerializationError
from dstream.testing import Parts, watch


def test_calls_are_remembered_on_both_engines(engine):
    """Arguments and results come back in the order of the partitions."""
    spy = watch(lambda n: n * 10)

    assert engine.context.read(Parts([1, 2], [], [3])).map(spy).to_list() == [10, 20, 30]
    assert (spy.saw, spy.returned, spy.calls) == ([1, 2, 3], [10, 20, 30], 3)


def test_calls_inside_another_function_are_remembered(engine):
    """A watched function may be captured, not only be a step itself."""
    spy = watch(str.upper)

    engine.stream("ab").filter(lambda letter: spy(letter) == "A").to_list()

    assert spy.saw == ["a", "b"]


def test_several_arguments_are_a_tuple():
    """So are keyword arguments, behind the others."""
    spy = watch(max)

    spy(1, 2)
    spy(3, 4, key=abs)

    assert spy.saw == [(1, 2), (3, 4, abs)]


def test_arguments_are_those_before_the_call():
    """What the function changes later does not change what it saw."""
    spy = watch(list.append)

    spy([1], 2)

    assert spy.saw == [([1], 2)]


def test_a_call_that_raises_is_seen_and_returned_nothing(engine):
    """The exception goes on its way, with the step and the item."""
    spy = watch(lambda n: 1 // n)

    with pytest.raises(ZeroDivisionError) as caught:
        engine.context.read(Parts([1, 0])).map(spy).to_list()

    assert failure(caught.value).item == 0
    assert (spy.saw, spy.returned) == ([1, 0], [1])


def test_the_step_has_the_name_of_the_function(local_context):
    """Messages name the function, not the one who watches it."""

    def parse(text):
        return text

    assert ".map(parse)" in repr(local_context.stream("a").map(watch(parse)))


def test_the_last_attempt_of_a_task_counts(monkeypatch):
    """A task that Spark ran again has its calls once."""
    spy = watch(abs)
    for task in ("00000004-00000001-0000", "00000004-00000001-0001", "00000004-00000000-0000"):
        monkeypatch.setattr("dstream.testing.functions.task_name", lambda task=task: task)
        spy(int(task[-1]))

    assert spy.saw == [0, 1]


def test_what_cannot_be_remembered_is_refused():
    """A lock cannot be kept; the message says so."""
    with pytest.raises(SerializationError, match=r"watch\(\) cannot remember <unlocked"):
        watch(id)(threading.Lock())


def test_nothing_is_left_behind():
    """The folder of the calls goes with the function."""
    spy = watch(abs)
    spy(1)
    folder = Path(spy._folder)
    assert folder.exists()

    del spy
    gc.collect()

    assert not folder.exists()
