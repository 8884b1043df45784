"""CSV and JSON lines read in columns give what their readers give: value, type, order, and the text of a failure."""

from __future__ import annotations

from tests.differential.reader_programs import main, one_by_one


def test_files_in_columns_give_what_readers_give() -> None:
    """For 1,000 files, of which many blocks stand in columns, and those that fail say the same."""
    counts = main(0, 1000)

    assert not counts["DIFFERS"]
    assert counts["blocks in columns"] > counts["blocks"] / 2
    assert counts["gives"] > 300
    assert counts["fails"] > 300


def test_each_odd_text_alone_gives_what_readers_give() -> None:
    """One odd text beside usual ones is what its reader makes of it, or fails as there."""
    counts = one_by_one()

    assert not counts["DIFFERS"]
    assert counts["gives"] > 500
    assert counts["fails"] > 500
