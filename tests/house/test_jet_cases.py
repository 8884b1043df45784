"""The page of Jet's cases names tests that exist."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "jet-cases.md"
ROWS = re.findall(r"^\| `(\w+)` \| `(\w+)` \| `([\w/.]+)::(\w+)` \|$", PAGE.read_text(), re.MULTILINE)


@cache
def names_in(file):
    """Return the names of the tests of a file."""
    tree = ast.parse((ROOT / file).read_text())
    return {each.name for each in tree.body if isinstance(each, ast.FunctionDef) and each.name.startswith("test_")}


def test_jet_cases_are_read():
    """Every line of the table is a row, so that the next test sees them all."""
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]

    assert len(lines) == len(ROWS) > 60


@pytest.mark.parametrize(("file", "name"), sorted({row[2:] for row in ROWS}))
def test_jet_cases_have_a_test(file, name):
    """A test that is renamed or removed fails here."""
    assert name in names_in(file)


def test_jet_cases_stand_once():
    """Each of them."""
    cases = [row[:2] for row in ROWS]

    assert len(cases) == len(set(cases))
