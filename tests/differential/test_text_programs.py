"""Programs on texts by chance give in columns what they give in plain Python, in value, type, order and failure."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.differential.column_programs import watched
from tests.differential.text_programs import outcomes, program


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@pytest.mark.parametrize("first", range(0, 300, 100))
def test_columns_of_texts_give_what_python_gives(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """For 100 programs each, of which most run in columns; those that fail blame the same item of the same step."""
    monkeypatch.setenv("PYTHONHASHSEED", "0")  # This one process routes keys to itself.
    counts: Counter[str] = Counter()
    with watched(counts):
        for seed in range(first, first + 100):
            made = program(seed)
            for found, possible in outcomes(made, seed):
                counts[found[0]] += 1
                assert found in possible, f"seed {seed}: {made.text}"

    assert counts["blocks in columns"] > counts["blocks"] / 2
    assert counts["gives"] > 50
    assert counts["fails"] > 10
