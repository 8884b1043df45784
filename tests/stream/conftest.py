"""What the tests of the stream API share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import dstream as ds


@pytest.fixture
def default_engine(engine: Any) -> Iterator[Any]:
    """Each engine in turn, behind the static factories too."""
    ds.set_default_context(engine.context)
    yield engine
    ds.set_default_context(None)
