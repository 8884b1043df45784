"""Calls of dstream's around functions of the user's give in the loop what they give when called."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from dstream.engine.compiler.evaluation import read_op
from dstream.engine.physical.vertices import ONE_BY_ONE
from dstream.explain.routes import route_of
from dstream.failures import failure
from dstream.operators.rows.loops import run_branches, run_chain
from dstream.plan.operations.elementwise import Chain
from dstream.plan.rewrite import rewrite
from dstream.plan.steps import Op, StepEvaluation
from dstream.stream.objects import Stream
from dstream.values import Entry

Ship = namedtuple("Ship", "name crew")  # a tuple of two that is no entry


class Reversed(tuple[Any, ...]):
    """Gives its members from the last one to the first one."""

    __slots__ = ()

    def __iter__(self) -> Any:
        return reversed(tuple(self[place] for place in range(len(self))))


class Asked:
    """Counts how often its truth is asked."""

    def __init__(self, *, answer: bool) -> None:
        self.answer, self.times = answer, 0

    def __bool__(self) -> bool:
        self.times += 1
        return self.answer


CALLS: list[tuple[str, Callable[[Stream[Any]], Stream[Any]]]] = [
    ("keys", lambda stream: stream.keys()),
    ("values", lambda stream: stream.values()),
    ("swap", lambda stream: stream.swap()),
    ("map_values", lambda stream: stream.map_values(lambda value: (value, value + 1))),
    ("map_values of a comparison", lambda stream: stream.map_values(lambda value: 0 < value + 1 < 5)),
    ("filter_values", lambda stream: stream.filter_values(lambda value: value > 1)),
    ("filter_values with and", lambda stream: stream.filter_values(lambda value: value > 0 and value != 3 and value)),
    ("key_by", lambda stream: stream.key_by(lambda item: item[0])),
    ("starmap of two", lambda stream: stream.starmap(lambda one, other: (other, one + other))),
    ("starmap of three", lambda stream: stream.starmap(lambda one, other, third: (third, one + other))),
    ("starmap with a default", lambda stream: stream.starmap(lambda one, other=5: (other, one))),
]

ITEMS: list[Any] = [
    *(Entry(1, 2), (1, 2), (2, 0), (3, 3), (1, 2, 3), (), (1,), [1, 2], [1, 2, 3], "ab", None, 5, {1: 2, 3: 4}),
    *(Ship(1, 2), Reversed((1, 2)), ("a", "b"), Entry("a", None), ((1, 2), (3, 4)), Entry(Entry(1, 2), 3.5)),
]


def _op(call: Callable[[Stream[Any]], Stream[Any]]) -> Op:
    """Return the step of a call, with its expression."""
    core = rewrite(call(Stream.of(1))._node)
    assert isinstance(core, Chain)
    (op,) = core.ops
    read = read_op(op).op
    assert read.evaluation.is_inlined, "these tests are about calls that are read"
    return read


def _outcome(op: Op, item: Any) -> tuple[Any, ...]:
    try:
        return "gives", [(type(each), repr(each)) for each in run_chain([op], [item])]
    except Exception as error:
        known = failure(error)
        assert known is not None
        return "fails", type(error), str(error), known.step.label, repr(known.item)


@pytest.mark.parametrize("call", [call for _, call in CALLS], ids=[name for name, _ in CALLS])
def test_a_call_around_a_function_gives_the_same_inlined(call: Callable[[Stream[Any]], Stream[Any]]) -> None:
    """For entries, pairs, what only looks like one, and what is none."""
    op = _op(call)
    for item in ITEMS:
        assert _outcome(op, item) == _outcome(replace(op, evaluation=StepEvaluation()), item)


def test_a_call_around_a_function_is_not_made_for_pairs() -> None:
    """The loop has what it gives; anything else is left to the call."""
    op = _op(lambda stream: stream.map_values(lambda value: value + 1))
    called: list[Any] = []

    class Noting(type(op.fn)):  # type: ignore[misc]  # the class of the step is known when the test runs
        def __call__(self, item: Any) -> Any:
            called.append(item)
            return super().__call__(item)

    op = replace(op, fn=Noting(lambda value: value + 1))
    assert list(run_chain([op], [(1, 2), Entry(3, 4), Ship(5, 6)])) == [Entry(1, 3), Entry(3, 5), Entry(5, 7)]
    assert called == [Ship(5, 6)]


def test_a_predicate_of_values_is_asked_for_its_truth_as_often_as_when_called() -> None:
    """What `and` gives is asked again by whoever tests it."""
    op = _op(lambda stream: stream.filter_values(lambda value: value and value))
    times = []
    for each in (op, replace(op, evaluation=StepEvaluation())):
        asked = Asked(answer=False)
        list(run_chain([each], [(1, asked)]))
        times.append(asked.times)
    assert times == [2, 2]


def test_the_second_of_a_comparison_of_three_is_evaluated_once_of_a_value() -> None:
    """Also where it is made of the value of an entry."""

    class Counted:
        made = 0

        def __add__(self, other: int) -> int:
            Counted.made += other
            return other

    op = _op(lambda stream: stream.map_values(lambda value: 0 < value + 1 < 5))
    assert list(run_chain([op], [(1, Counted())])) == [Entry(1, True)]
    assert Counted.made == 1


def test_calls_around_functions_are_inlined_in_branches() -> None:
    """Each branch calls its own function for what is no pair."""
    taken: list[Any] = []
    values = _op(lambda stream: stream.map_values(lambda value: value * 2))
    swapped = _op(lambda stream: stream.swap())
    found = list(run_branches([[swapped], [values]], [(1, 2), Ship(3, 4)], [taken.append]))
    assert [found, taken] == [[Entry(2, 1), Entry(4, 3)], [Entry(1, 4), Entry(3, 8)]]


def test_the_line_of_the_function_is_in_the_traceback() -> None:
    """As if it had been called."""
    op = _op(lambda stream: stream.map_values(lambda value: 1 // value))
    with pytest.raises(ZeroDivisionError) as caught:
        list(run_chain([op], [(1, 0)]))
    assert caught.traceback[-1].path.name == "test_inlined_entries.py"
    assert caught.traceback[-1].frame.code.name == "<lambda>"


def _in_a_loop(value: int) -> int:
    while value < 0:
        value += 1
    return value


def test_the_route_of_a_call_around_a_function_is_that_of_the_function() -> None:
    """With the reason of the function if it is called."""
    core = rewrite(Stream.of((1, 2)).map_values(_in_a_loop).starmap(print)._node)
    assert isinstance(core, Chain)
    assert [_route(op) for op in core.ops] == [
        "Python: has a loop",
        "Python: takes an item apart for what is no lambda or def",
    ]
    assert _route(replace(_op(lambda stream: stream.swap()), evaluation=StepEvaluation())) == "inlined"


def _route(op: Op) -> str:
    decided = read_op(op).decided
    assert decided is not None
    return route_of(decided, ONE_BY_ONE).name
