"""The pytest plug-in: fixtures for tests on both engines, found by pytest without any set-up.

It is installed as a separate module, outside of `dstream`: pytest loads it in every run of every project, so it imports
nothing but pytest until a test requests a fixture.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest

__all__ = ["both_engines", "pytest_sessionfinish", "same_everywhere"]


@pytest.fixture(params=["local", "spark"])
def both_engines(request: pytest.FixtureRequest) -> Iterator[Any]:
    """A dstream context on each engine in turn, with empty collections in memory; it is the default one."""
    from dstream.testing.engines import context_for_test

    with context_for_test(request.param) as ctx:
        yield ctx


@pytest.fixture
def same_everywhere() -> Any:
    """The function `dstream.testing.same_everywhere`: one result for all partitionings of the items."""
    from dstream.testing import same_everywhere

    return same_everywhere


def pytest_sessionfinish() -> None:
    """Stop the Spark session that the tests shared."""
    # Not imported: a run that has not loaded it has no session.
    engines = sys.modules.get("dstream.testing.engines")
    if engines is not None:
        engines.end_session()
