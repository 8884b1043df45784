"""Steps: how a node names itself when it fails."""

from __future__ import annotations

import functools

import pytest

from dstream.failures import annotate, failure, naming
from dstream.plan import Step, Where
from dstream.plan.steps import shown_function

STEP = Step(".map(parse)", Where("a.py", 7), 2, 5)


class Scale:
    """A function that is an object."""

    def __call__(self, n):
        return n


def test_a_step_reads_as_a_sentence():
    """Its number of how many, the call, the place."""
    assert str(STEP) == "step 2 of 5: .map(parse) at a.py:7"
    assert str(Step(".distinct()", None, 1, 1)) == "step 1 of 1: .distinct()"


def test_a_guarded_function_names_step_and_item_once():
    """However often the exception passes the step, it is noted once."""
    with pytest.raises(ZeroDivisionError) as caught, naming(STEP):
        STEP.guard(STEP.guard(lambda n: 1 // n))(0)

    assert caught.value.__notes__ == ["in step 2 of 5: .map(parse) at a.py:7", "on the item 0"]


def test_a_second_step_is_noted_too():
    """An exception that passes a pipeline inside of another names both steps; the outer one is the failure's."""
    outer, error = Step(".flat_map(inner)", None, 1, 1), ValueError("bad")
    annotate(error, STEP, "x" * 1000)
    annotate(error, outer, 3)

    assert (len(error.__notes__), failure(error).step, failure(error).item) == (4, outer, 3)
    assert len(error.__notes__[1]) < 230


def test_an_item_whose_repr_fails_is_noted_all_the_same():
    """Noting a failure never fails itself."""

    class Broken:
        def __repr__(self):
            raise OSError

    error = ValueError("bad")
    annotate(error, STEP, Broken())
    assert "Broken" in error.__notes__[1]


def test_functions_are_shown_as_their_user_wrote_them():
    """By name, wherever they were defined."""

    def local():
        pass

    functions = [len, str.upper, local, lambda: 0, functools.partial(local), Scale()]
    shown = [shown_function(fn) for fn in functions]

    assert shown == ["len", "str.upper", "local", "lambda", "partial(local)", "Scale"]
