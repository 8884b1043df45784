"""What programs by chance need in the process that runs them."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator

import pytest


@pytest.fixture
def large_ints_as_text(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Show ints of any size, and say nothing of odd code; this one process routes keys to itself."""
    monkeypatch.setenv("PYTHONHASHSEED", "0")
    most = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        yield
    sys.set_int_max_str_digits(most)
