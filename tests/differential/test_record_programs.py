"""Sources that have columns give what their items give in plain Python: value, type, order, failure, blamed item."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from dstream.errors import EngineError
from tests.differential.column_programs import watched
from tests.differential.record_programs import Workshop, outcomes_of_records, workshop

pytestmark = pytest.mark.usefixtures("large_ints_as_text")


@pytest.fixture(scope="module")
def made_by() -> Iterator[Workshop]:
    """What makes the programs."""
    with workshop() as found:
        yield found


def test_columns_of_sources_give_what_their_items_give(made_by: Workshop) -> None:
    """For 300 programs, of which most run in columns; those that fail blame the same item of the same step."""
    counts: Counter[str] = Counter()
    with watched(counts):
        for seed in range(300):
            made = made_by.program(seed)
            for found, possible in outcomes_of_records(made, seed):
                counts[found[0]] += 1
                assert found in possible, f"seed {seed}: {made.text}"

    assert counts["blocks in columns"] > counts["blocks"] / 2
    assert counts["gives"] > 100
    assert counts["fails"] > 100


def test_verify_finds_nothing_in_right_columns_of_sources(made_by: Workshop) -> None:
    """What is compared for each block is equal, or an error of the user's comes first."""
    for seed in range(60):
        for found, _ in outcomes_of_records(made_by.program(seed).verified(), seed):
            assert EngineError not in found
