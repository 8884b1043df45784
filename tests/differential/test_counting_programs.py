"""Programs whose steps are counted give and count in columns what they give and count in plain Python."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from dstream.errors import EngineError
from tests.differential import counting_programs
from tests.differential.counting_programs import main


@pytest.fixture(autouse=True)
def _long_ints_are_shown(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("PYTHONHASHSEED", "0")  # This one process routes keys to itself.
    most = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    yield
    sys.set_int_max_str_digits(most)


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@pytest.mark.parametrize("first", [0, 150])
def test_columns_count_what_a_loop_counts(first: int) -> None:
    """For 150 programs each, of which most run in columns; every fourth is verified, and nothing is found."""
    counts = main(first, first + 150)

    assert not counts["DIFFERS"]
    assert counts["blocks in columns"] > counts["blocks"] / 2
    assert counts["gives"] > 150
    assert counts["fails"] > 80


def test_an_error_of_the_engine_is_never_right(monkeypatch: pytest.MonkeyPatch) -> None:
    """Though plain Python fails the same."""
    outcome = ("fails", EngineError, "a defect", None, ()), None
    monkeypatch.setattr(counting_programs, "outcomes", lambda *given, verified: [(outcome, [outcome])])

    assert main(0, 1)["DIFFERS"] == 1
