"""A context of its own for each test: both engines, and on the local one two storages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import dstream as ds

PLACES = ["local-memory", "local-lake", "spark-lake"]


@pytest.fixture(params=PLACES)
def ctx(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ds.Context]:
    """A context with an empty storage; on Spark it shares the one session of the test run."""
    engine, _, storage = str(request.param).partition("-")
    request.getfixturevalue(f"{engine}_context").running_engine()  # started there, so that this one only shares it
    with ds.connect(engine=engine, storage="memory:" if storage == "memory" else tmp_path / "data") as context:
        yield context
