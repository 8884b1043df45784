"""Sources that have columns give what their items give in plain Python: value, type, order, failure, blamed item."""

from __future__ import annotations

import pytest

from dstream.errors import EngineError
from tests.differential.record_programs import main, outcomes_of_records, workshop

pytestmark = pytest.mark.usefixtures("large_ints_as_text")


def test_columns_of_sources_give_what_their_items_give() -> None:
    """For 200 programs, of which most run in columns; those that fail blame the same item of the same step."""
    counts = main(0, 200)

    assert not counts["DIFFERS"]
    assert counts["blocks in columns"] > counts["blocks"] / 2
    assert counts["gives"] > 66
    assert counts["fails"] > 66


def test_verify_finds_nothing_in_right_columns_of_sources() -> None:
    """What is compared for each block is equal, or an error of the user's comes first."""
    with workshop() as made_by:
        for seed in range(60):
            for found, _ in outcomes_of_records(made_by.program(seed).verified(), seed):
                assert EngineError not in found
