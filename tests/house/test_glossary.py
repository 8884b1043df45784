"""The glossary can be looked through: its terms stand in order, each once."""

from __future__ import annotations

from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs" / "glossary.md").read_text()
TERMS = [line.split("|")[1].strip() for line in PAGE.splitlines() if line.startswith("| ")][1:]


def test_glossary_is_in_order():
    """By its first words, whatever stands behind the comma."""
    assert len(TERMS) > 50
    assert sorted(set(TERMS), key=lambda term: term.lower().partition(",")[0]) == TERMS
