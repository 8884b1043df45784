"""Operations that move items give with columns what they give without, in value, type, order and failure."""

from __future__ import annotations

import pytest

from tests.differential.wide_programs import main

pytestmark = pytest.mark.usefixtures("large_ints_as_text")


def test_wide_operations_give_with_columns_what_they_give_without() -> None:
    """For 200 programs, of which most run in columns."""
    counts = main(0, 200)

    assert not counts["DIFFERS"]
    assert counts["blocks in columns"] > counts["blocks"] / 2
    assert counts["gives"] > 80
    assert counts["fails"] > 20
