"""Steps: how a node names itself when it fails."""

from __future__ import annotations

import functools

import pytest

from dstream.failures import failure, naming
from dstream.plan import SourceLocation, Step
from dstream.values.user_functions import shown_function

STEP = Step(".map(parse)", SourceLocation("a.py", 7), 2, 5)


class Scale:
    """A function that is an object."""

    def __call__(self, n):
        return n


def test_a_step_reads_as_a_sentence():
    """Its number of how many, the call, the place."""
    assert str(STEP) == "step 2 of 5: .map(parse) at a.py:7"
    assert str(Step(".distinct()", None, 1, 1)) == "step 1 of 1: .distinct()"


def test_a_guarded_function_keeps_step_and_item():
    """The step nearest to the function is to blame, however many the exception passes."""
    outer = Step(".sorted()", None, 3, 5)
    with pytest.raises(ZeroDivisionError) as caught, naming(outer):
        STEP.guard(lambda n: 1 // n)(0)

    assert (failure(caught.value).step, failure(caught.value).item) == (STEP, 0)


def test_a_guarded_function_does_not_let_a_stop_iteration_out():
    """What iterates would take it for the end of the items."""
    with pytest.raises(RuntimeError, match="raised StopIteration") as caught:
        STEP.guard(lambda n: next(iter(())))(7)

    assert (failure(caught.value).step, failure(caught.value).item) == (STEP, 7)


def test_functions_are_shown_as_their_user_wrote_them():
    """By name, wherever they were defined."""

    def local():
        pass

    functions = [len, str.upper, local, lambda: 0, functools.partial(local), Scale()]
    shown = [shown_function(fn) for fn in functions]

    assert shown == ["len", "str.upper", "local", "lambda", "partial(local)", "Scale"]
