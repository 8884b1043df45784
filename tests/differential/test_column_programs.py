"""Programs by chance give in columns what they give in plain Python, in value, type, order and failure."""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Iterator

import pytest

from dstream.errors import EngineError
from tests.differential.column_programs import outcomes, program, watched


@pytest.fixture(autouse=True)
def _long_ints_are_shown(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("PYTHONHASHSEED", "0")  # This one process routes keys to itself.
    most = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        yield
    sys.set_int_max_str_digits(most)


@pytest.mark.parametrize("first", range(0, 2000, 500))
def test_columns_give_what_python_gives(first: int) -> None:
    """For 500 programs each, of which most run in columns; those that fail blame the same item of the same step."""
    counts: Counter[str] = Counter()
    with watched(counts):
        for seed in range(first, first + 500):
            made = program(seed)
            for found, possible in outcomes(made, seed):
                counts[found[0]] += 1
                assert found in possible, f"seed {seed}: {made.text}"

    assert counts["blocks in columns"] > counts["blocks"] / 2
    assert counts["gives"] > 150
    assert counts["fails"] > 150


def test_verify_finds_nothing_in_right_columns() -> None:
    """What is compared for each block is equal, or an error of the user's comes first."""
    for seed in range(100):
        for found, _ in outcomes(program(seed).verified(), seed):
            assert EngineError not in found
