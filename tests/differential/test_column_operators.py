"""Operators by chance give on columns what they give without them, in value, type, order and failure."""

from __future__ import annotations

import pytest

from tests.differential.column_operators import main, outcomes, program

pytestmark = pytest.mark.usefixtures("large_ints_as_text")


@pytest.mark.parametrize("first", range(0, 800, 400))
def test_operators_on_columns_give_what_they_give_without(first: int) -> None:
    """For 400 programs each; those that fail blame the same item."""
    counts = main(first, first + 400)

    assert not counts["DIFFERS"]
    assert counts["ranks"] > counts["ranks tried"] / 2
    assert counts["looked up"] > 50
    assert counts["firsts"] > 40
    assert counts["first texts"] > 20
    assert counts["windows"] > 5
    for operator in ("sorted", "top", "first", "join"):
        assert counts[f"{operator} gives"] > 20
        assert counts[f"{operator} fails"] > 3


def test_verify_finds_nothing_in_right_operators() -> None:
    """What is compared is equal, or an error of the user's comes first."""
    for seed in range(150):
        made = program(seed)
        found, expected = outcomes(made.verified(), seed)
        assert found == expected, f"seed {seed}: {made.text}"
