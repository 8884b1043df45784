"""Expressions that loops evaluate in the place of calls."""

from __future__ import annotations

import operator
import sys
from dataclasses import replace

import pytest

from dstream.expressions import Expression
from dstream.expressions.reader import read
from dstream.failures import failure
from dstream.operators.rows import loops
from dstream.operators.rows.loops import run_branches, run_chain
from dstream.plan.steps import StepEvaluation


class Seen:
    """Keeps what is asked of it."""

    def __init__(self, *answers: object) -> None:
        self.asked: list[str] = []
        self.answers = list(answers)

    def __bool__(self) -> bool:
        self.asked.append("bool")
        return True

    @property
    def size(self) -> int:
        self.asked.append("size")
        return 3

    @property
    def answer(self) -> object:
        """Return, or raise, the next answer."""
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            try:
                raise LookupError("before")
            except LookupError:
                raise answer  # noqa: B904
        return answer


@pytest.fixture
def inlined(op):
    """Make a step whose function is read."""

    def make(action, fn, kind=None, position=1):
        made = op(action, fn, kind, position)
        expression = read(fn)
        assert isinstance(expression, Expression), expression
        return replace(made, evaluation=StepEvaluation(expression, is_inlined=True))

    return make


def test_an_inlined_function_is_not_called(inlined):
    """The code that runs is that of the loop."""
    step = inlined("map", lambda n: n + 1)

    assert list(run_chain([replace(step, fn=lambda n: "called")], [1, 2])) == [2, 3]


def test_an_inlined_comparison_of_three_evaluates_the_second_once(inlined):
    """As Python does."""
    seen = Seen()

    assert list(run_chain([inlined("map", lambda x: 0 < x.size < 5)], [seen])) == [True]
    assert seen.asked == ["size"]


def test_an_inlined_filter_asks_for_truth_as_often_as_a_called_one(inlined, op):
    """Once for `and`, and once for the result."""
    for expected in (["bool", "bool"], ["bool", "bool"]):
        called, read_ = Seen(), Seen()
        list(run_chain([op("filter", lambda x: x or 1)], [called]))
        list(run_chain([inlined("filter", lambda x: x or 1)], [read_]))
        assert called.asked == read_.asked == expected


def _either(x):
    return x or 1


def _kept(x):
    either = x or 1
    return 2 if either else 3


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: 2 if _either(x) else 3,
        lambda x: 2 if operator.not_(x or 1) else 3,
        lambda x: 2 if not (x or x.size) else 3,
        lambda x: (x and x) or x,
        _kept,
    ],
)
@pytest.mark.parametrize("action", ["map", "filter"])
def test_an_inlined_function_asks_for_truth_as_often_as_a_called_one(fn, action, inlined, op):
    """What a function returns, or a variable has, is asked again."""
    called, read_ = Seen(), Seen()
    list(run_chain([op(action, fn)], [called]))
    list(run_chain([inlined(action, fn)], [read_]))
    assert called.asked == read_.asked
    assert called.asked


def test_an_inlined_failure_has_the_line_of_the_function(inlined):
    """And the step and the item; what it came from is what it came from in the function."""

    def halved(n):
        half = 1 / n
        return half + 1

    with pytest.raises(ZeroDivisionError) as caught:
        list(run_chain([inlined("map", lambda n: n - 1), inlined("map", halved, position=2)], [3, 1]))
    names = [entry.name for entry in caught.traceback]

    assert names[-1] == "halved"
    assert caught.traceback[-1].lineno == halved.__code__.co_firstlineno
    assert (failure(caught.value).step.position, failure(caught.value).item) == (2, 0)
    assert caught.value.__context__ is None


def test_a_failure_that_does_not_come_again_counts(inlined):
    """With what it came from: the function, called again, gives something, or fails otherwise."""
    for second in (1, KeyError("other")):
        first = ValueError("first")
        steps = [inlined("map", lambda x: x.answer)]
        try:
            raise OSError("around the run")
        except OSError:
            with pytest.raises(ValueError, match="first") as caught:
                list(run_chain(steps, [Seen(first, second)]))

        assert isinstance(caught.value.__context__, LookupError)
        assert failure(caught.value).step.position == 1


def test_a_failure_on_an_iterator_is_that_of_the_first_time(inlined):
    """The second time it is used up, and adding its rest fails otherwise."""
    op = inlined("map", lambda numbers: sum(numbers))
    with pytest.raises(TypeError, match="'int' and 'str'"):
        list(run_chain([op], [iter([1, "a", 2.0, "b"])]))


def test_a_failure_behind_a_function_calls_it_no_second_time(inlined):
    """What was converted, or iterated over, was given once."""
    for action, kind in (("map", int), ("flat_map", None)):
        seen = Seen(1.5, 2)
        with pytest.raises(TypeError):
            list(run_chain([inlined(action, lambda x: x.answer, kind), inlined("map", lambda x: x)], [seen]))
        assert seen.answers == [2]


def test_inlined_steps_of_branches_name_themselves(inlined, op):
    """Each branch has its own items."""
    taken: list[object] = []
    first = [inlined("flat_map", lambda n: (n, n + 1)), inlined("filter", lambda n: n > 1)]
    second = [inlined("map", lambda n: 6 / (n - 3), position=3)]
    with pytest.raises(ZeroDivisionError) as caught:
        list(run_branches([second, first], [1, 2, 3], [taken.append]))

    assert taken == [2, 2, 3, 3, 4]
    assert (failure(caught.value).step.position, failure(caught.value).item) == (3, 3)
    assert caught.traceback[-1].name == "<lambda>"


def test_stop_iteration_in_an_expression_does_not_end_the_items(inlined):
    """It is an error, as from a function."""
    with pytest.raises(RuntimeError) as caught:
        list(run_chain([inlined("map", lambda x: x.answer)], [Seen(StopIteration(), StopIteration())]))

    assert isinstance(caught.value.__cause__, StopIteration)


def test_one_loop_serves_all_constants(inlined):
    """A plan that runs with other numbers compiles nothing."""
    list(run_chain([inlined("filter", lambda n, least=-1000: n > least)], [1]))
    before = loops._loop.cache_info().misses
    results = [list(run_chain([inlined("filter", lambda n, least=most: n > least)], range(9))) for most in (5, 6.5, -1)]

    assert results == [[6, 7, 8], [7, 8], list(range(9))]
    assert loops._loop.cache_info().misses == before


def test_nothing_is_inlined_while_somebody_watches_calls(inlined):
    """A profiler on a worker counts them."""
    calls: list[str] = []
    step = inlined("map", lambda n: n + 1)
    before = sys.getprofile()
    sys.setprofile(lambda frame, event, argument: calls.append(frame.f_code.co_name) if event == "call" else None)
    try:
        items = list(run_chain([step], [1, 2]))
    finally:
        sys.setprofile(before)

    assert items == [2, 3]
    assert calls.count("<lambda>") == 2


_BEFORE = """
def loop(items, ops, functions):
 f0, f1, = functions
 t = None
 try:
  for v0 in items:
   v0 = f0(v0)
   if not f1(v0): continue
   yield v0
 except Exception as error:
  blame(error, ops, locals(), 6)
  raise
"""
"""The loop of a `map` and a `filter` before functions were read."""


def _instructions(run):
    """Count the instructions of Python that a function runs, in its second run: Python 3.12 begins to tell in it."""
    count = 0

    def trace(frame, event, argument):
        nonlocal count
        frame.f_trace_opcodes = True
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    for _ in range(2):
        count = 0
        sys.settrace(trace)
        try:
            run()
        finally:
            sys.settrace(before)
    return count


def test_what_is_not_read_costs_what_it_cost(op):
    """In instructions of Python, against the loop of before; the first results alone are looked into."""
    names: dict[str, object] = {}
    exec(_BEFORE, names)
    ops = [op("map", lambda n: [n]), op("filter", lambda n: [n])]
    loop = names["loop"]
    list(run_chain(ops, []))  # The source of a loop is written once.
    before = _instructions(lambda: list(loop(range(20_000), ops, [each.fn for each in ops])))
    now = _instructions(lambda: list(run_chain(ops, list(range(20_000)))))

    assert now <= 1.03 * before


def test_what_is_read_costs_less(inlined, op):
    """Loops that call run three times the instructions for such functions."""
    functions = (lambda n: n * 3 + 1), (lambda n: n % 7 < 3)
    shape, values = loops._shaped([inlined("map", functions[0]), inlined("filter", functions[1])])
    ops = [op("map", functions[0]), op("filter", functions[1])]
    list(run_chain(ops, []))
    called = _instructions(lambda: list(run_chain(ops, list(range(500)))))
    loop = loops._loop(shape)

    assert _instructions(lambda: list(loop([(range(500), values)], ops))) < 0.75 * called
