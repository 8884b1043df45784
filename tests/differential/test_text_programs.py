"""Programs on texts by chance give in columns what they give in plain Python, in value, type, order and failure."""

from __future__ import annotations

import pytest

from tests.differential.text_programs import main


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@pytest.mark.parametrize("first", range(0, 300, 100))
def test_columns_of_texts_give_what_python_gives(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """For 100 programs each, of which most run in columns; those that fail blame the same item of the same step."""
    monkeypatch.setenv("PYTHONHASHSEED", "0")  # This one process routes keys to itself.
    counts = main(first, first + 100)

    assert not counts["DIFFERS"]
    assert counts["blocks in columns"] > counts["blocks"] / 2
    assert counts["gives"] > 50
    assert counts["fails"] > 10
