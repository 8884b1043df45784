"""A module has one reason to change: one that grows beyond 500 lines has more, unless it says here why not."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("collectors", "dstream", "reducers", "sources")
MOST_LINES = 500
MOST_LINES_OF_A_CLASS = 750

CLASSES_WITH_EXAMPLES = {
    "dstream/jobs/handle.py": "`Job`, what users call on a job, with the errors of each call",
    "dstream/session/context.py": "`Context`, what users begin with",
    "dstream/stream/base.py": "`BaseStream`, the fluent methods of all streams",
}
"""One class that users call, with the examples and the errors of each method."""


def lines(path: Path) -> int:
    """Count the lines of a file."""
    return len(path.read_text("utf-8").splitlines())


def test_modules_are_short():
    """Who needs an exception no more is not named."""
    paths = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]

    long = {str(path.relative_to(ROOT)): lines(path) for path in paths if lines(path) > MOST_LINES}
    assert len(paths) > 400
    assert long.keys() == CLASSES_WITH_EXAMPLES.keys(), long


@pytest.mark.parametrize("name", CLASSES_WITH_EXAMPLES)
def test_classes_with_examples_have_an_end_too(name):
    """As long as a reader can leaf through it."""
    assert lines(ROOT / name) <= MOST_LINES_OF_A_CLASS
