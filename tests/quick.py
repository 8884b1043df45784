"""The plug-in of `make quick`: what starts a program, as Spark is one, is skipped when it does so.

So a test belongs to `make quick` by itself, unless it starts one: there is no list of tests or fixtures.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import Any

import pytest

_LIGHT = ("redis-server", "sh")
"""Programs that start within milliseconds."""


def pytest_collection_finish() -> None:
    """Watch from here on: pytest itself has started what it needs."""
    sys.addaudithook(_skip_programs)


def _skip_programs(event: str, arguments: Iterable[Any]) -> None:
    """Skip the test that starts a program, or whose fixture does; of code under test, none catches that."""
    if event == "subprocess.Popen":
        program = os.path.basename(os.fsdecode(next(iter(arguments))))
        if program not in _LIGHT:
            pytest.skip(f"starts {program}: make test runs it")
