"""The line itself: facts in, text out."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from dstream.engine.display import ProgressFacts, written

FULL = ProgressFacts("sorted(key=len) orders.py:12", 1_200_000, (14, 24), (2, 3))


@pytest.mark.parametrize(
    ("facts", "seconds", "line"),
    [
        (FULL, 12.9, "sorted(key=len) orders.py:12  stage 2 of 3  14/24 tasks  1,200,000 items  0:12"),
        (ProgressFacts("count()", 1), 61, "count()  1 item  1:01"),
        (ProgressFacts("count()", 0, (0, 4), (1, 1)), 3725, "count()  0/4 tasks  1:02:05"),
        (ProgressFacts("count()"), 0, "count()  0:00"),
    ],
)
def test_the_line_says_what_is_known(facts, seconds, line):
    """A single stage, and items that nobody counted, are left out."""
    assert written(facts, seconds) == line


def test_the_line_counts_other_jobs():
    """One line serves several threads."""
    assert written(ProgressFacts("count()"), 2, others=1) == "count()  0:02  and 1 more job"
    assert written(ProgressFacts("count()"), 2, others=2).endswith("and 2 more jobs")


@pytest.mark.parametrize("width", range(1, 90))
def test_the_line_fits(width):
    """Whatever the width, also with wide letters."""
    for facts in (FULL, ProgressFacts("日本語" * 20, 5)):
        assert cell_len(written(facts, 12, width)) <= width


def test_the_line_is_cut_in_the_title_first():
    """The numbers are what changes."""
    assert written(FULL, 12, 60) == "sorted(ke…  stage 2 of 3  14/24 tasks  1,200,000 items  0:12"
