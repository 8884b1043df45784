"""Operations that move items give with columns what they give without, in value, type, order and failure."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.differential.column_programs import watched
from tests.differential.record_programs import workshop
from tests.differential.wide_programs import outcome, program, small_blocks

pytestmark = pytest.mark.usefixtures("large_ints_as_text")


def test_wide_operations_give_with_columns_what_they_give_without() -> None:
    """For 300 programs, of which most run in columns."""
    counts: Counter[str] = Counter()
    with watched(counts), small_blocks(), workshop() as made_by:
        for seed in range(300):
            made = program(seed, made_by)
            found, expected = (outcome(made, columns) for columns in ("auto", "off"))
            counts[expected[0]] += 1
            assert found == expected, f"seed {seed}: {made.text}"

    assert counts["blocks in columns"] > counts["blocks"] / 2
    assert counts["gives"] > 150
    assert counts["fails"] > 30
