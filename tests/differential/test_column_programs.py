"""Programs by chance give in columns what they give in plain Python, in value, type, order and failure."""

from __future__ import annotations

import pytest

from dstream.errors import EngineError
from tests.differential.column_programs import main, outcomes, program

pytestmark = pytest.mark.usefixtures("large_ints_as_text")


@pytest.mark.parametrize("first", range(0, 1000, 500))
def test_columns_give_what_python_gives(first: int) -> None:
    """For 500 programs each, of which most run in columns; those that fail blame the same item of the same step."""
    counts = main(first, first + 500)

    assert not counts["DIFFERS"]
    assert counts["blocks in columns"] > counts["blocks"] / 2
    assert counts["gives"] > 150
    assert counts["fails"] > 150


def test_verify_finds_nothing_in_right_columns() -> None:
    """What is compared for each block is equal, or an error of the user's comes first."""
    for seed in range(100):
        for found, _ in outcomes(program(seed).verified(), seed):
            assert EngineError not in found
