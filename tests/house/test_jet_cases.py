"""The page of Jet's cases names tests that exist."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reference" / "jet-cases.md").read_text()
ROWS = re.findall(r"^\| `(\w+)` \| `(\w+)` \| `([\w/.]+)::(\w+)(?:\[([^]`]+)\])?` \|$", PAGE, re.MULTILINE)


@cache
def parsed(file):
    """Return the statements of a file of tests."""
    return ast.parse((ROOT / file).read_text()).body


def decorated(file, name):
    """Return the decorators of a test, as they are written."""
    (found,) = [each for each in parsed(file) if isinstance(each, ast.FunctionDef) and each.name == name]
    return [ast.unparse(each) for each in found.decorator_list]


def keys_of(file, name):
    """Return the keys of a dictionary that is written down in a file."""
    for each in parsed(file):
        if isinstance(each, ast.Assign) and ast.unparse(each.targets[0]) == name:
            return {key.value for key in each.value.keys}
    raise AssertionError(f"{file} has no {name}")


def test_jet_cases_are_read():
    """Every line of the tables is a row, so that the next test sees them all, and the page says how many there are."""
    lines = [line for line in PAGE.splitlines() if line.startswith("| `")]

    assert len(lines) == len(ROWS) > 300
    assert f"Jet's own tests: {len(ROWS)} of them" in PAGE


@pytest.mark.parametrize(("file", "name", "parameter"), sorted({row[2:] for row in ROWS}))
def test_jet_cases_have_a_test(file, name, parameter):
    """A test that is renamed or removed fails here, and so does one that is not run with the parameter any more."""
    decorators = decorated(file, name)
    if parameter:
        (cases,) = [found[1] for each in decorators if (found := re.fullmatch(r".*parametrize\('name', (\w+)\)", each))]
        assert parameter in keys_of(file, cases)


def test_jet_cases_stand_once():
    """Each of them."""
    cases = [row[:2] for row in ROWS]

    assert len(cases) == len(set(cases))
