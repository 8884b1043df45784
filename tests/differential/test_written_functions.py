"""Functions that are evaluated in the loop give what they give when they are called."""

from __future__ import annotations

import pytest

from tests.differential.written_functions import drawn, is_same, outcome

PROGRAMS = range(300)


@pytest.mark.parametrize("part", range(3))
def test_written_functions_do_the_same_inlined_and_called(part: int) -> None:
    """In value, type and order; in exception, blamed step and item, and the user's lines; in the operators that run."""
    for number in PROGRAMS[part::3]:
        program = drawn(number)
        called, inlined = outcome(program, None), outcome(program)
        assert is_same(called, inlined), f"program {number}:\n{program.text}\n{called}\n{inlined}"


def test_written_functions_are_read_and_give_something() -> None:
    """Otherwise the comparison would compare nothing."""
    programs = [drawn(number) for number in PROGRAMS]
    outcomes = [outcome(program) for program in programs]

    assert sum(each.read for each in outcomes) > 0.95 * sum(len(program.steps) for program in programs)
    assert sum(len(each.items) for each in outcomes) > 250
    assert sum(len(each.errors) for each in outcomes) > 250
