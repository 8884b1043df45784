"""CSV and JSON lines read in columns give what their readers give: value, type, order, and the text of a failure."""

from __future__ import annotations

from tests.differential.reader_programs import main


def test_files_in_columns_give_what_readers_give() -> None:
    """For 1,000 files, of which many blocks stand in columns, and those that fail say the same."""
    counts = main(0, 1000)

    assert not counts["DIFFERS"]
    assert counts["blocks in columns"] > counts["blocks"] / 2
    assert counts["gives"] > 300
    assert counts["fails"] > 300
