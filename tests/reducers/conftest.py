"""A context of its own for each test: both engines, and on the local one two storages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import dstream as ds

PLACES = [
    "local-memory",
    "local-lake",
    pytest.param("inprocess-lake", marks=pytest.mark.beside_spark("ctx", is_spark=False)),
    pytest.param("spark-lake", marks=pytest.mark.beside_spark("ctx", is_spark=True)),
]


@pytest.fixture(params=PLACES)
def ctx(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ds.Context]:
    """A context with an empty storage; on Spark it shares the one session of the test run."""
    name, _, storage = str(request.param).partition("-")
    engine = request.getfixturevalue(f"{name}_context").running_engine()  # Started there: this one only shares it.
    public = "local" if name == "inprocess" else name
    with ds.connect(engine=public, storage="memory:" if storage == "memory" else tmp_path / "data") as context:
        if name == "inprocess":
            context._engine, context._engine_name = engine, name
        yield context
